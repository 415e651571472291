"""Times, rates and fates in Python: known answers, frames, intervals, and what is asked wrongly."""

import json
import pickle

import numpy as np
import pytest

import metastate as ms


def metastable(steps: int, seed: int = 1) -> np.ndarray:
    """Two groups of three states; the group changes with probability 1/50, so the timescale is -1 / ln 0.96 = 24.5 frames."""
    rng = np.random.default_rng(seed)
    group = (np.cumsum(rng.random(steps) < 0.02) % 2).astype(np.int64)
    return 3 * group + rng.integers(0, 3, steps)


@pytest.fixture(scope="module")
def model() -> ms.StateAggregation:
    return ms.StateAggregation(rank=2, prior=20.0, bootstrap=40).fit(metastable(40_000))


def test_a_strong_prior_does_not_shorten_the_times(model):
    truth = -1 / np.log(0.96)
    found = model.timescales()
    assert found.interval.low[0] < truth < found.interval.high[0]
    assert abs(found.value[0] / truth - 1) < 0.15
    strong = ms.fit(metastable(40_000), rank=2, prior=2000.0)
    assert abs(strong.timescales().value[0] / found.value[0] - 1) < 1e-3
    shrunk = np.sort(np.abs(np.linalg.eigvals(strong.latent_chain)))[0]
    assert -1 / np.log(shrunk) < 0.9 * truth


def test_times_are_in_frames_and_indices_from_zero(model):
    slow = ms.fit(metastable(40_000), rank=2, prior=1.0, lag=5)
    assert abs(slow.timescales().value[0] / model.timescales().value[0] - 1) < 0.1
    times = model.mfpt().value
    assert abs(times[0, 1] / 50 - 1) < 0.15 and np.isclose(model.mfpt(0, 1).value, times[0, 1])
    with pytest.raises(ms.InputError, match="from 0 to 1"):
        model.mfpt(0, 2)
    share = model.stationary_distribution
    assert np.isclose(share.value.sum(), 1) and np.all(share.interval.low <= share.value)
    # The states' own chain says the same of the same sets.
    sets = [[s for s, m in zip(model.states_, model.metastates_) if m == k] for k in (0, 1)]
    assert abs(float(model.mfpt(sets[0], sets[1], states=True).value) / times[0, 1] - 1) < 0.05
    assert np.allclose(model.committor(0, 1).value, [0, 1])
    q = model.committor(sets[0][:1], sets[1][:1], states=True).value
    assert q.shape == (6,) and ((q >= 0) & (q <= 1)).all()


def test_flux_rate_is_one_over_the_passage_time(model):
    flux = model.reactive_flux(0, 1)
    leaves = model.result_.kinetic_chain[0, 1]
    assert np.isclose(flux.rate, leaves) and flux.pathways[0][0] == (0, 1)
    # Passage times are those of the states' own chain; inside a group all states are alike here, so that the two agree.
    passage = model.mfpt(0, 1)
    assert abs(float(passage.value) * leaves - 1) < 0.02 and passage.interval.low < 50 < passage.interval.high
    assert np.isclose(flux.total, flux.gross[0, 1])


def test_implied_timescales_and_chapman_kolmogorov(model):
    walk = metastable(40_000)
    its = model.implied_timescales(walk, [1, 2, 5, 10])
    assert its.timescales.shape == (4, 1) and np.all(its.low <= its.timescales) and "long enough" in its.advice
    ck = model.ck_test(walk, [1, 2, 5])
    assert ck.predicted.shape == (3, 2, 2) and ck.agrees > 0.6
    with pytest.raises(ms.InputError, match="1 or more"):
        model.implied_timescales(walk, [0])


def test_two_trajectories_that_share_no_state_are_infinitely_far_apart():
    rng = np.random.default_rng(0)
    result = ms.fit([rng.integers(0, 5, 5000), rng.integers(5, 10, 5000)], rank=2, prior=0.01)
    assert np.isinf(result.timescales().value[0]) and np.isinf(result.mfpt().value[0, 1])
    assert len(result.closed_classes) == 2 and any("no transition joins" in h for h in result.summary["hints"])
    largest = ms.fit([rng.integers(0, 5, 5000), rng.integers(5, 9, 5000)], lambda_ratio=0.5, connected="largest")
    assert set(largest.states) == set(range(5))
    assert [e["count"] for e in largest.summary["ledger"] if e["reason"] == "not-in-the-largest-connected-class"] == [4]


def test_fates_of_the_gambler():
    p = np.zeros((11, 11))
    p[0, 0] = p[10, 10] = 1
    for i in range(1, 10):
        p[i, i - 1] = p[i, i + 1] = 0.5
    result = ms.fit(p, kind="matrix", lambda_ratio=0.3)
    assert len(result.states) == 11
    classes, probability = result.fates()
    assert sorted(map(tuple, classes)) == [(0,), (10,)]
    assert np.allclose(probability[:, classes.index([10])], np.arange(11) / 10)
    assert np.allclose(result.fates([[0, 10]])[1].ravel(), 1)
    assert np.allclose(result.mfpt(None, [0, 10], states=True).value, [i * (10 - i) for i in range(11)])


def test_detailed_balance_is_what_deeptime_accepts():
    deeptime = pytest.importorskip("deeptime")
    result = ms.fit(metastable(20_000), rank=2, prior=0.1, reversible=True)
    msm = result.to_deeptime()
    assert msm.reversible and isinstance(msm, deeptime.markov.msm.MarkovStateModel)
    flow = msm.stationary_distribution[:, None] * msm.transition_matrix
    assert np.allclose(flow, flow.T, atol=1e-12)


def test_words_speak_of_what_is_shown(model):
    c = model.certificate_
    assert c["status"] == "refit" and c["shown_rank"] == 2 and c["proof_rank"] >= 1 and c["proof_lambda"] > 0
    assert "not certified" in repr(model.result_) and "refit" in repr(model.result_)
    plain = ms.fit(metastable(5000), lambda_ratio=0.5)
    assert plain.certificate["status"] == "certified" and "certified gap" in repr(plain)


def test_inputs_are_recognised_or_asked_about(tmp_path):
    walk = metastable(2000)
    floats = ms.fit(walk.astype(np.float64), lambda_ratio=0.5)
    assert floats.states == ms.fit(walk, lambda_ratio=0.5).states
    with pytest.raises(ms.InputError, match="kind='trips'"):
        ms.fit(np.column_stack([walk[:-1], walk[1:]]))
    with pytest.raises(FileNotFoundError, match="there is no file"):
        ms.fit(tmp_path / "absent.csv")
    with pytest.raises(ms.InputError):
        ms.fit(str(tmp_path / "absent.csv"))
    single = np.full((4, 4), 0.25, dtype=np.float32)
    single[0, 0] += np.float32(3e-7)
    assert any(e["reason"] == "row-divided-by-its-sum" for e in ms.fit(single, kind="matrix", lambda_ratio=0.5).summary["ledger"])


def test_other_packages(model):
    json.dumps(model.result_.summary)
    again = pickle.loads(pickle.dumps(model.result_))
    assert np.array_equal(again.timescales().value, model.timescales().value)
    assert np.array_equal(again.timescales().interval.low, model.timescales().interval.low)
    polars = pytest.importorskip("polars")
    assert isinstance(model.result_.to_polars(), polars.DataFrame)
    networkx = pytest.importorskip("networkx")
    graph = model.result_.to_networkx()
    assert isinstance(graph, networkx.DiGraph) and np.isclose(sum(d["stationary"] for _, d in graph.nodes(data=True)), 1)


def test_pictures(model):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    walk = metastable(5000)
    for axes in (
        model.plot_timescales(), model.plot_mfpt(), model.plot_flux(0, 1), model.plot_ck_test(walk, [1, 2]), model.plot_implied_timescales(walk, [1, 2]),
        model.plot_states(np.zeros((6, 2))), model.plot_states(np.zeros((4, 2)), labels=[0, 1, 5, 3]),
    ):  # fmt: skip
        assert "longitude" not in axes.get_xlabel()


def test_intervals_need_no_draws_and_survive_a_folder(tmp_path):
    result = ms.fit(metastable(40_000), rank=2, prior=1.0)
    times, passage = result.timescales(), result.mfpt()
    assert times.interval.low[0] < -1 / np.log(0.96) < times.interval.high[0]
    assert np.isnan(passage.interval.low[0, 0]) and passage.interval.low[0, 1] < passage.value[0, 1] < passage.interval.high[0, 1]
    again = ms.load(result.save(tmp_path / "out"))
    assert np.array_equal(again.mfpt().interval.high, passage.interval.high, equal_nan=True)
    # A certain committor has no interval.
    assert np.isnan(result.committor(0, 1).interval.low).all()


@pytest.mark.parametrize(
    ("data", "options", "sentence"),
    [
        ([0, 1] * 40, {"kind": "trajectory"}, "did you mean 'trajectories'"),
        (np.array([0.5, 1.5] * 40), {}, r"0.5 \(frame 0\) is no state"),
        (np.array([0, 1, np.nan, 1] * 40), {}, r"nan \(frame 2\) is no state"),
        ({"from": 1, "to": 2}, {}, "which is no list"),
    ],
)
def test_odd_inputs_get_a_sentence_about_python(data, options, sentence):
    with pytest.raises(ms.InputError, match=sentence):
        ms.fit(data, **options)


def test_anndata_in_and_out(tmp_path):
    anndata, sparse = pytest.importorskip("anndata"), pytest.importorskip("scipy.sparse")
    p = np.kron(np.array([[0.95, 0.05], [0.02, 0.98]]), np.full((5, 5), 0.2))
    data = anndata.AnnData(np.zeros((10, 1)))
    data.obs_names = [f"cell-{k}" for k in range(10)]
    data.obsp["T_fwd"] = sparse.csr_matrix(p)
    result = ms.fit(data, rank=2)
    result.to_anndata(data)
    data.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert np.allclose(again.obsm["metastates"], result.memberships) and again.uns["metastates"]["lag"] == 1
    assert len(set(again.obs["metastates"][:5])) == 1 and again.obs["metastates"].iloc[0] != again.obs["metastates"].iloc[9]
    assert np.allclose(again.uns["metastates"]["timescales"], [-1 / np.log(0.93)], rtol=0.02)
