"""Results: frozen, saved, loaded, drawn, handed on."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import metastate as ms


@pytest.fixture(scope="module")
def result(walks):
    return ms.path(walks, points=6, max_rank=5, refit="likelihood")


@pytest.fixture(scope="module")
def city():
    trips = ms.simulate("city", trips=20_000).trips
    columns = {n: n for n in trips}
    return ms.fit(trips, **columns, cell=0.01, min_share=1e-3, lambda_ratio=0.3)


def test_frozen(result):
    with pytest.raises(AttributeError, match="frozen"):
        result.memberships = 1
    with pytest.raises(TypeError):
        result.summary["rank"] = 9
    for array in (result.memberships, result.profiles, result.weights, result.latent_chain, result.labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_save_and_load(result, tmp_path):
    place = result.save(tmp_path / "out")
    back = ms.load(place)
    for name in ("memberships", "profiles", "weights", "latent_chain", "labels"):
        assert np.array_equal(getattr(back, name), getattr(result, name)), name
    assert back.states == result.states and back.path["objective"] == result.path["objective"]
    with pytest.raises(OSError, match="E-CLI-EXISTS"):
        result.save(place)
    result.save(place, force=True)
    # A loaded one can be saved and pickled again, and the bytes do not change.
    again = pickle.loads(pickle.dumps(back)).save(tmp_path / "again")
    assert all((again / p.relative_to(place)).read_bytes() == p.read_bytes() for p in place.rglob("*") if p.is_file())
    (place / "factors.npz").write_bytes(b"damaged")
    with pytest.raises(OSError, match="E-CLI-RESULT"):
        ms.load(place)


def test_verify(result, walks, tmp_path):
    assert ms.verify(result) and "checks agree" in repr(ms.verify(result))
    place = result.save(tmp_path / "out")
    with pytest.raises(OSError, match="data in the memory of a Python program"):
        ms.verify(place)
    assert ms.verify(place, walks)
    assert ms.verify(pickle.loads(pickle.dumps(result)), walks)
    # Other data are not those of the result: it can fail.
    found = ms.verify(place, [w[:-1] for w in walks])
    assert not found and any(c["name"] == "transitions" and not c["agrees"] for c in found.checks)
    assert "<b>NO</b>" in found._repr_html_()


def test_html_escapes_labels():
    result = ms.fit([["<script>", "b", "<script>", "b"], ["c", "d", "c", "d", "b"]] * 9, lambda_ratio=0.5)
    text = result._repr_html_()
    assert "&lt;script&gt;" in text and "<script>" not in text
    assert ms.StateAggregation(where="<b>")._repr_html_() == "<code>StateAggregation(where=&#x27;&lt;b&gt;&#x27;)</code>"


def test_pictures(result, city):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    assert city.plot_map(ax=ax) is ax and len(ax.collections[0].get_paths()) == len(city.states)
    assert result.plot_path().get_xscale() == "log"
    assert result.plot_latent().images[0].get_array().shape == (result.rank, result.rank)
    with pytest.raises(ValueError, match="places of these states are not known"):
        result.plot_map()
    assert len(result.plot_map(places={s: (s * 0.1, 40.0) for s in result.states}).collections) == 1
    with pytest.raises(ValueError, match="there is no path"):
        city.plot_path()
    plt.close("all")


def test_pandas(city, result):
    frame = city.to_pandas()
    assert list(frame.columns[:3]) == ["weight", "metastate", "zone"] and {"lon", "lat"} <= set(frame.columns)
    assert np.allclose(frame.filter(like="membership_").sum(axis=1), 1) and frame["metastate"].min() == 1
    assert 3 in list(result.table("ranks.csv")["model"]) and result.table("nothing.csv") is None


def test_zones_and_metastates(walks, tmp_path):
    found = ms.fit(walks, lambda_ratio=0.3, clusters=2)
    assert np.array_equal(found.metastates, found.memberships.argmax(axis=1)) and set(found.labels) == {0, 1}
    loaded = ms.load(found.save(tmp_path / "two"))
    assert np.array_equal(loaded.labels, found.labels) and np.array_equal(loaded.metastates, found.metastates)
    frame = loaded.to_pandas()
    assert np.array_equal(frame["zone"], found.labels + 1) and np.array_equal(frame["metastate"], found.metastates + 1)


def test_compare(walks, tmp_path):
    found = ms.compare(walks, rank=3, folds=3)
    frame = found.to_pandas()
    assert frame["ours"].any() and (~frame["ours"].astype(bool)).any() and len(found.verdicts) >= 2
    assert frame["log_likelihood"].notna().all() and "<table>" in found._repr_html_()
    # Without a rank, the one that fit chooses; results of earlier fits take part.
    fitted = ms.fit(walks)
    again = ms.compare(walks, folds=2, methods=["rank-one"], with_results=[str(fitted.save(tmp_path / "earlier"))])
    assert again.summary["rank"] == fitted.rank and [m["method"] for m in again] == ["rank-one", "result earlier"]
    with pytest.raises(ValueError, match="no method `best`"):
        ms.compare(walks, rank=3, methods=["best"])
    with pytest.raises(ValueError, match="no option 'rang'"):
        ms.compare(walks, rank=3, rang=2)


def test_simulate():
    chain = ms.simulate("planted", states=50, rank=4, seed=3)
    assert np.allclose(chain.P, chain.U @ chain.V.T) and np.allclose(chain.xi @ chain.P, chain.xi, atol=1e-6)
    with pytest.raises(ValueError, match="cannot be simulated"):
        ms.simulate("weather")
    with pytest.raises(ValueError, match="E-CLI-ARGUMENT"):
        ms.simulate("planted", colour=1)


def alanine(real_data):
    """Frames in 12 x 12 cells of the two angles, one trajectory each."""
    import pyarrow.parquet as pq

    table = pq.read_table(real_data("alanine_dipeptide_phi_psi.parquet", "the way through deeptime on real trajectories")).to_pandas()
    cell = np.clip((table[["phi", "psi"]].to_numpy() + 180) // 30, 0, 11).astype(int)
    state = cell[:, 0] * 12 + cell[:, 1]
    return [state[table["traj"] == k] for k in sorted(table["traj"].unique())]


def test_deeptime_there_and_back(real_data):
    """Count model in, memberships and MarkovStateModel out, deeptime's own Chapman-Kolmogorov test on the memberships."""
    from deeptime.markov import TransitionCountEstimator
    from deeptime.markov.msm import MarkovStateModel, MaximumLikelihoodMSM
    from deeptime.markov._observables import MembershipsObservable
    from deeptime.plots import plot_ck_test
    from deeptime.util.validation import ck_test

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    walks = alanine(real_data)
    lag = 10
    model = TransitionCountEstimator(lagtime=lag, count_mode="sliding").fit_fetch(walks).submodel_largest()
    # The fourth meta-state is soft everywhere: as the largest membership it would be left with two frames in ten thousand, k-means gives it some.
    fitted = ms.StateAggregation(weight_power=0.5, max_rank=6, clusters="rank").fit(model)
    assert set(fitted.states_) <= set(int(s) for s in model.state_symbols)
    assert fitted.n_metastates_ >= 2
    latent = fitted.to_deeptime()
    assert isinstance(latent, MarkovStateModel) and latent.lagtime == lag
    assert np.allclose(latent.transition_matrix, fitted.kinetic_chain_)
    assert latent.timescales()[0] > lag
    # deeptime's own models of the same states at multiples of the lag, seen through our memberships.
    msms = [MaximumLikelihoodMSM(reversible=False).fit_fetch(TransitionCountEstimator(k * lag, "sliding").fit_fetch(walks).submodel(model.state_symbols)) for k in (1, 2, 3)]
    assert all(m.n_states == model.n_states for m in msms) and len(fitted.states_) == model.n_states
    test = ck_test(msms, MembershipsObservable(msms[0], fitted.memberships_))
    assert plot_ck_test(test).axes.shape == (fitted.n_metastates_,) * 2
    assert np.abs(test.predictions - test.estimates).max() < 0.02
    # The latent chain itself, propagated by deeptime, against deeptime's models of the hard meta-states at longer lags.
    hard = [fitted.predict(w) for w in walks]
    assert min(h.min() for h in hard) >= 0
    coarse = [MaximumLikelihoodMSM(reversible=False).fit_fetch(TransitionCountEstimator(k * lag, "sliding").fit_fetch(hard)) for k in (2, 3)]
    test = ck_test([latent, *coarse], MembershipsObservable(latent, np.eye(fitted.n_metastates_)))
    assert plot_ck_test(test).axes.shape == (fitted.n_metastates_,) * 2
    error = np.abs(test.predictions - test.estimates).max()
    print(f"{fitted.n_metastates_} meta-states of {len(fitted.states_)}; largest error of the latent chain {error:.3f}; timescales {latent.timescales()}")
    assert error < 0.2
    plt.close("all")


def test_anndata():
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], 20)
    p = np.where(group[:, None] == group[None, :], 1.0, 0.02) * rng.random((60, 60))
    p /= p.sum(axis=1, keepdims=True)
    adata = anndata.AnnData(np.zeros((60, 2)))
    adata.obs_names = [f"cell {i}" for i in range(60)]
    adata.obsp["transition_matrix"] = p
    found = ms.fit(adata, rank=3)
    back = found.to_anndata(adata)
    assert back is adata and back.obsm["metastates"].shape == (60, 3)
    # The same meta-states as of the matrix itself, cell by cell; the three groups.
    assert np.array_equal(back.obsm["metastates"], ms.fit(p, rank=3, kind="matrix").memberships)
    assert all(len(set(back.obs["metastates"][group == g])) == 1 for g in range(3)) and set(back.obs["metastates"]) == {"0", "1", "2"}
    assert back.uns["metastates"]["chain"].shape == (3, 3)
    # Cells that the fit did not see have no membership.
    more = anndata.AnnData(np.zeros((2, 2)))
    more.obs_names = ["cell 7", "stranger"]
    found.to_anndata(more)
    assert np.isfinite(more.obsm["metastates"][0]).all() and np.isnan(more.obsm["metastates"][1]).all() and more.obs["metastates"].tolist()[1] == "none"
    with pytest.raises(ValueError, match="no transition matrix in obsp"):
        ms.fit(anndata.AnnData(np.zeros((3, 2))))


def test_what_is_different_between_two_results(result, tmp_path):
    place = result.save(tmp_path / "saved")
    same = ms.diff(result, place)
    assert same.adjusted_rand == 1.0 and same.moves == () and same.summary["moved"] == 0
    counts = {"from": [0, 0, 1, 1, 2, 2, 3, 3] * 9, "to": [1, 0, 0, 1, 3, 2, 2, 3] * 9, "count": [5, 9] * 36}
    moved = {**counts, "to": [1, 0, 0, 1, 0, 1, 2, 3] * 9}
    one, other = (ms.fit(c, kind="counts", rank=2, refit="least-squares") for c in (counts, moved))
    found = one.diff(other)
    assert found.summary["states"]["common"] == 4 and 0 <= found.stayed < 1
    assert {m["label"] for m in found.moves} <= {"0", "1", "2", "3"} and len(found.to_pandas()) == len(found.moves) > 0
    assert "common states" in repr(found)
    ms.diff(one, other, out=tmp_path / "changed")
    assert (tmp_path / "changed" / "diff.html").exists()
    with pytest.raises(ValueError, match="no state in common"):
        ms.diff(one, ms.fit([["a", "b", "a", "b", "c", "c"] * 9], lambda_ratio=0.3))
