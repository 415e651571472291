"""The same seed through the command and through Python gives the same bytes, from files and from memory."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import metastate as ms
from metastate import _options

SAME_BYTES = ["factors.npz", "certificate.npz", "states.csv", "states.parquet", "metastates.csv", "latent.csv", "zones.csv"]


# Parameters whose defaults depend on as_in_paper.
AS_IN_PAPER = {"max_rank", "solver", "stop", "init"}


def assert_same(result, folder, tmp_path, names=SAME_BYTES):
    mine = result.save(tmp_path / "python")
    for name in names:
        assert (mine / name).read_bytes() == (folder / name).read_bytes(), name


@pytest.mark.parametrize("seed", [0, 7])
def test_counts_from_scipy(counts, command, tmp_path, seed):
    sp.save_npz(tmp_path / "counts.npz", counts)
    words = ["--lambda-ratio", 0.3, "--init", "random", "--start-rank", 4, "--seed", seed]
    command("fit", tmp_path / "counts.npz", *words, "--out", tmp_path / "out")
    result = ms.fit(counts, lambda_ratio=0.3, init="random", start_rank=4, seed=seed)
    assert_same(result, tmp_path / "out", tmp_path)
    # It can fail: another seed ends elsewhere.
    other = ms.fit(counts, lambda_ratio=0.3, init="random", start_rank=4, seed=seed + 1)
    assert not np.array_equal(other.factors[0], result.factors[0])


def test_chosen_lambda_and_likelihood_refit_from_trajectories(walks, command, tmp_path):
    (tmp_path / "walks.txt").write_text("\n".join(" ".join(map(str, w)) for w in walks))
    words = ["--refit", "likelihood", "--bootstrap", 5, "--max-rank", 6]
    command("fit", tmp_path / "walks.txt", *words, "--out", tmp_path / "out")
    result = ms.fit(walks, refit="likelihood", bootstrap=5, max_rank=6)
    assert_same(result, tmp_path / "out", tmp_path, [*SAME_BYTES, "refit.npz", "path.csv", "ranks.csv", "uncertainty.csv"])
    assert result.summary["choice"] == ms.load(tmp_path / "out").summary["choice"]


def test_whole_path(walks, command, tmp_path):
    np.save(tmp_path / "walk.npy", walks[0])
    command("path", tmp_path / "walk.npy", "--points", 6, "--max-rank", 4, "--out", tmp_path / "out")
    assert_same(ms.path(walks[0], points=6, max_rank=4), tmp_path / "out", tmp_path, [*SAME_BYTES, "path.csv"])


def test_transition_matrix(command, tmp_path):
    p = ms.simulate("planted", states=40, rank=3).P
    np.save(tmp_path / "P.npy", p)
    command("fit", tmp_path / "P.npy", "--as", "matrix", "--lambda-ratio", 0.2, "--out", tmp_path / "out")
    assert_same(ms.fit(p, kind="matrix", lambda_ratio=0.2), tmp_path / "out", tmp_path)


def test_transition_matrix_refitted_by_likelihood(command, tmp_path):
    p = ms.simulate("planted", states=40, rank=3).P
    np.save(tmp_path / "P.npy", p)
    words = ["--as", "matrix", "--lambda-ratio", 0.2, "--refit", "likelihood", "--prior", 0.1]
    command("fit", tmp_path / "P.npy", *words, "--out", tmp_path / "out")
    result = ms.fit(p, kind="matrix", lambda_ratio=0.2, refit="likelihood", prior=0.1)
    assert_same(result, tmp_path / "out", tmp_path, [*SAME_BYTES, "refit.npz"])
    assert result.summary["refit"]["prior"] == 0.1
    assert ms.fit(p, kind="matrix", lambda_ratio=0.2, refit="likelihood").summary["refit"]["prior"] == 0


def test_as_in_paper(counts, command, tmp_path):
    sp.save_npz(tmp_path / "counts.npz", counts)
    command("fit", tmp_path / "counts.npz", "--lambda-ratio", 0.2, "--as-in-paper", "--seed", 2, "--out", tmp_path / "out")
    result = ms.fit(counts, lambda_ratio=0.2, as_in_paper=True, seed=2)
    assert_same(result, tmp_path / "out", tmp_path)
    said = result.summary["settings"]["fit"]
    assert (said["solver"], said["stop"], said["init"], said["max_rank"]) == ("palm-bb", "exact", "random", 300)
    plain = ms.fit(counts, lambda_ratio=0.2, seed=2).summary["settings"]["fit"]
    assert (plain["solver"], plain["stop"], plain["init"], plain["max_rank"]) == ("fast", "certificate", "spectral", 50)
    for contradiction in ({"solver": "fast"}, {"init": "spectral"}, {"redundancy_relative": 1e-3}, {"tolerance": 1e-7}):
        with pytest.raises(ValueError, match="contradicts as_in_paper"):
            ms.fit(counts, lambda_ratio=0.2, as_in_paper=True, **contradiction)


def test_trips_with_coordinates(command, tmp_path):
    city = ms.simulate("city", trips=20_000)
    command("simulate", "city", "--trips", 20_000, "--out", tmp_path / "trips.csv")
    columns = {"from_lon": "from_lon", "from_lat": "from_lat", "to_lon": "to_lon", "to_lat": "to_lat"}
    words = [f"--{k.replace('_', '-')}={v}" for k, v in columns.items()]
    command("fit", tmp_path / "trips.csv", *words, "--cell", 0.01, "--min-share", 1e-3, "--lambda-ratio", 0.3, "--out", tmp_path / "out")
    result = ms.fit(city.trips, **columns, cell=0.01, min_share=1e-3, lambda_ratio=0.3)
    assert_same(result, tmp_path / "out", tmp_path, [*SAME_BYTES, "zones.geojson"])
    from_file = ms.fit(tmp_path / "trips.csv", **columns, cell=0.01, min_share=1e-3, lambda_ratio=0.3)
    assert np.array_equal(from_file.factors[0], result.factors[0])
    assert ms.verify(from_file.save(tmp_path / "file"))


def test_verify_leaves_the_working_folder(counts, command, tmp_path, monkeypatch):
    """The inputs of a result may be named from where it was made."""
    sp.save_npz(tmp_path / "counts.npz", counts)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    command("fit", "counts.npz", "--lambda-ratio", 0.3, "--out", "out")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert ms.verify("../out")
    assert Path.cwd() == tmp_path / "elsewhere"


def test_threads_do_not_matter(counts):
    one, two = (ms.fit(counts, lambda_ratio=0.3, threads=n) for n in (1, 2))
    assert np.array_equal(one.factors[0], two.factors[0]) and np.array_equal(one.factors[1], two.factors[1])


def test_options_have_one_place():
    """Python's parameters are the command's options, with the same defaults; what is not, is listed with its reason."""
    parameters = inspect.signature(ms.StateAggregation).parameters
    command = {o["name"]: o for o in ms.options("fit")}
    assert {o["name"] for o in ms.options("path")} == set(command)
    mine = {_options.option_name(n) for n in parameters if n not in _options.OWN_PARAMETERS}
    assert mine == set(command) - set(_options.NOT_PARAMETERS)
    assert set(_options.NOT_PARAMETERS) <= set(command)
    for name, parameter in parameters.items():
        if name in _options.OWN_PARAMETERS:
            continue
        default = command[_options.option_name(name)]["default"]
        given = {n: v for n, v in _options.given({name: parameter.default}).items() if v is not False}
        # None is left to the catalogue, which has other defaults as in the paper.
        if default is None or name in AS_IN_PAPER:
            assert given == {}, name
        else:
            try:
                assert float(given[name]) == float(default), name
            except ValueError:
                assert given[name] == default, name


def test_every_option_reaches_the_solver(walks):
    """Each parameter, set to another value, stands in the settings of the summary, or is refused by the command's own check."""
    other = {"solver": "palm-bb", "stop": "early", "max_rank": 7, "gap": 0.05, "tolerance": 1e-3, "clusters": "membership", "lag": 2,
             "count": "strided", "weight_power": 0.5, "weights_by": "arrivals", "init": "random", "start_rank": 2}  # fmt: skip
    settings = ms.fit(walks, lambda_ratio=0.4, **other).summary["settings"]
    found = {**settings["input"], **settings["fit"]}
    for name, value in other.items():
        said = found[name]
        assert (float(said) == value) if isinstance(value, (int, float)) else said == value, name
    for bad in ({"min_share": 2.0}, {"where": "a ="}, {"bbox": "1,2"}, {"memory_limit": "4Q"}, {"threads": 0}, {"folds": 1}):
        with pytest.raises(ValueError, match=r"error\[E-"):
            ms.fit(walks, **bad)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({"prior": -1}, r"\]: prior is -1; it must be zero or a positive number"),
        ({"threads": 0}, r"\]: threads is 0; at least one is needed"),
        ({"max_rank": 2.5}, r"\]: max_rank is 2.5; it must be a whole number"),
        ({"gap": float("nan")}, r"\]: gap is .*NaN.*; it must be a number"),
        ({"solver": "fats"}, r"\]: solver is `fats`; it must be one of fast, .* \(did you mean fast\?\)"),
        ({"lam": 1.0, "lambda_ratio": 0.5}, r"\]: lam cannot be given together with lambda_ratio"),
        ({"start_rank": 60}, r"\]: start_rank 60 is above max_rank 50\n  try: raise max_rank or lower start_rank"),
        ({"bootstrap": 5, "lambda_ratio": 0.5}, r"\]: bootstrap needs refit likelihood"),
    ],
)
def test_options_are_refused_in_the_words_of_python(walks, bad, sentence):
    with pytest.raises(ms.InputError, match=sentence) as caught:
        ms.fit(walks, **bad)
    assert caught.value.code == "E-CLI-ARGUMENT"


def test_unknown_options_are_named_with_what_may_have_been_meant(walks):
    with pytest.raises(ms.InputError, match=r"compare has no option 'fold'\n  try: did you mean folds\?"):
        ms.compare(walks, rank=3, fold=3)
    with pytest.raises(ms.InputError, match=r"planted has no option 'state'\n  try: did you mean states\?"):
        ms.simulate("planted", state=3)


def test_values_of_numpy_and_paths_are_options_too(counts, tmp_path):
    first = ms.fit(counts, lambda_ratio=np.float32(0.25), max_rank=np.int64(7), seed=np.uint8(3))
    said = first.summary["settings"]["fit"]
    assert (said["lambda_ratio"], said["max_rank"], said["weight_power"], first.summary["seed"]) == (0.25, 7, 1, 3)
    again = ms.fit(counts, lambda_ratio=0.25, init=first.save(tmp_path / "first"))
    assert again.summary["settings"]["fit"]["init"] == str(tmp_path / "first")


def test_nothing_is_looked_for_or_written_in_the_working_folder(walks, tmp_path, monkeypatch):
    """A folder with the name that a checkpoint of the command would have is neither read nor removed."""
    monkeypatch.chdir(tmp_path)
    for name in ("(memory).checkpoint", "(memory).path-checkpoint", ".checkpoint", ".path-checkpoint"):
        (tmp_path / name / "1").mkdir(parents=True)
    before = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*"))
    ms.fit(walks, max_rank=4)
    assert sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*")) == before
