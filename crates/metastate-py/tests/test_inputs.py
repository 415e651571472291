"""Everything that people hold their data in gives the same answer."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import metastate as ms


def same(a, b):
    return np.array_equal(a.factors[0], b.factors[0]) and np.array_equal(a.factors[1], b.factors[1]) and a.states == b.states


@pytest.fixture(scope="module")
def expected(counts):
    return ms.fit(counts, lambda_ratio=0.3)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("value", [np.float64, np.float32, np.int64, np.int32, np.uint16])
def test_sparse_types(counts, expected, index, value):
    c = sp.csr_array((counts.data.astype(value), counts.indices.astype(index), counts.indptr.astype(index)), shape=counts.shape)
    assert c.indices.dtype == index
    assert same(ms.fit(c, lambda_ratio=0.3), expected)


def test_sparse_layouts(counts, expected):
    for c in (counts.tocsc(), counts.tocoo(), sp.csr_matrix(counts), counts.todok(), counts.tolil()):
        assert same(ms.fit(c, lambda_ratio=0.3), expected)
    # Entries in any order, and one entry in two parts.
    rng = np.random.default_rng(0)
    coo = counts.tocoo()
    order = rng.permutation(coo.nnz)
    halves = np.concatenate([coo.data[order] / 2] * 2)
    split = sp.coo_array((halves, (np.tile(coo.row[order], 2), np.tile(coo.col[order], 2))), shape=coo.shape)
    indptr, indices, data = counts.indptr, counts.indices.copy(), counts.data.copy()
    for i in range(60):
        part = rng.permutation(np.arange(indptr[i], indptr[i + 1]))
        indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]] = counts.indices[part], counts.data[part]
    shuffled = sp.csr_array((data, indices, indptr), shape=counts.shape)
    before = indices.copy()
    assert same(ms.fit(split, lambda_ratio=0.3), expected) and same(ms.fit(shuffled, lambda_ratio=0.3), expected)
    assert np.array_equal(indices, before)  # the user's matrix is as it was


def test_dense_orders_read_only_and_memory_mapped(counts, expected, tmp_path):
    dense = counts.toarray().astype(float)
    dense.flags.writeable = False
    np.save(tmp_path / "c.npy", dense)
    views = [dense, np.asfortranarray(dense), dense.astype(np.int32), np.load(tmp_path / "c.npy", mmap_mode="r"), np.repeat(dense, 2, axis=1)[:, ::2]]
    for view in views:
        assert same(ms.fit(view, lambda_ratio=0.3), expected)
    frozen = counts.copy()
    for array in (frozen.data, frozen.indices, frozen.indptr):
        array.flags.writeable = False
    assert same(ms.fit(frozen, lambda_ratio=0.3), expected)
    odd = np.frombuffer(b"x" + dense.tobytes(), dtype=np.float64, offset=1).reshape(60, 60)
    swapped = dense.astype(">f8")
    assert not odd.flags.aligned and same(ms.fit(odd, lambda_ratio=0.3), expected) and same(ms.fit(swapped, lambda_ratio=0.3), expected)
    crooked = frozen.copy()
    crooked.data = np.frombuffer(b"x" + counts.data.astype(float).tobytes(), dtype=np.float64, offset=1)
    assert same(ms.fit(crooked, lambda_ratio=0.3), expected)
    np.save(tmp_path / "data.npy", counts.data)
    mapped = sp.csr_array((np.load(tmp_path / "data.npy", mmap_mode="r"), counts.indices, counts.indptr), shape=counts.shape)
    assert same(ms.fit(mapped, lambda_ratio=0.3), expected)


def test_simulated_counts_are_taken_as_they_are(planted, expected):
    assert same(ms.fit(planted.counts, lambda_ratio=0.3), expected)


def test_matrix_or_counts_is_told_by_the_values(counts):
    p = counts.toarray() / counts.toarray().sum(axis=1, keepdims=True)
    assert ms.fit(p, lambda_ratio=0.3).summary["transitions"] == 0
    with pytest.raises(ValueError, match="could be counts or a transition matrix"):
        ms.fit(p * 0.7, lambda_ratio=0.3)
    weights = np.arange(1.0, 61)
    assert np.allclose(ms.fit(p, lambda_ratio=0.3, weights=weights).weights, weights / weights.sum())
    with pytest.raises(ValueError, match="weights were given, and the matrix holds counts"):
        ms.fit(counts, lambda_ratio=0.3, weights=weights)
    with pytest.raises(ValueError, match="E-CLI-LAMBDA"):
        ms.fit(p)


@pytest.fixture(scope="module")
def trips():
    rng = np.random.default_rng(3)
    zone = rng.integers(0, 3, 4000)
    start, end = zone * 10 + rng.integers(0, 10, 4000), np.where(rng.random(4000) < 0.9, zone, rng.integers(0, 3, 4000)) * 10 + rng.integers(0, 10, 4000)
    names = np.array([f"Zürich {k}" for k in range(30)], dtype=object)
    return {"from": names[start], "to": names[end], "n": rng.integers(1, 4, 4000), "service": np.where(rng.random(4000) < 0.5, "yellow", "green").astype(object)}


def test_tables(trips, tmp_path, monkeypatch):
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    options = {"from_column": "from", "to_column": "to", "weight": "n", "where": "service = 'yellow'", "lambda_ratio": 0.3}
    frame = pd.DataFrame(trips)
    arrow = pa.Table.from_pandas(frame)
    category = frame.astype({"from": "category", "to": "category"})
    chunked = pa.concat_tables([arrow.slice(0, 1000), arrow.slice(1000)])
    views = arrow.set_column(0, "from", arrow["from"].cast(pa.string_view()))
    tables = [frame, arrow, chunked, views, category, pl.DataFrame(frame), pl.from_pandas(category), duckdb.sql("select * from frame"), trips]
    frame.to_csv(tmp_path / "trips.csv", index=False)
    expected = ms.fit(tmp_path / "trips.csv", **options)
    assert expected.summary["ledger"][0]["reason"] == "where-not-true"
    for table in tables:
        result = ms.fit(table, **options)
        assert same(result, expected), type(table)
        assert result.summary["ledger"] == expected.summary["ledger"] and result.summary["rows"] == 4000
    monkeypatch.setattr("metastate._data._needs_pyarrow", lambda _: True)
    assert same(ms.fit(frame, **options), expected) and same(ms.fit(category, **options), expected)
    assert {str(s) for s in expected.states} <= set(trips["from"]) | set(trips["to"])
    with pytest.raises(ValueError, match="did you mean `from`|there is no column `fro`"):
        ms.fit(frame, from_column="fro", to_column="to")
    pairs = np.array([[0, 1], [1, 0], [2, 3], [3, 2], [0, 0], [2, 2]] * 20)
    assert len(ms.fit(pairs, kind="trips", lambda_ratio=0.3).states) == 4


def test_large_tables_are_cut_without_a_trace():
    import pyarrow as pa

    rng = np.random.default_rng(0)
    n = 600_000
    table = pa.table({"from": rng.integers(0, 20, n), "to": rng.integers(0, 20, n)})
    result = ms.fit(table, from_column="from", to_column="to", lambda_ratio=0.9)
    assert result.summary["transitions"] == n and result.summary["rows"] == n


def test_trajectories(walks):
    import pandas as pd

    expected = ms.fit(walks, lambda_ratio=0.3)
    assert same(ms.fit([w.tolist() for w in walks], lambda_ratio=0.3), expected)
    assert same(ms.fit([w.astype(np.int16) for w in walks], lambda_ratio=0.3), expected)
    assert same(ms.fit(np.array(walks), kind="trajectories", lambda_ratio=0.3), expected)
    frame = pd.DataFrame({"id": np.repeat(np.arange(12), 2000), "state": np.concatenate(walks)})
    assert same(ms.fit(frame, id="id", state="state", lambda_ratio=0.3), expected)
    # Nothing is counted across a gap or from one trajectory into the next.
    gap = ms.fit([[0, 1, 0, 1, -1, 2, 3, 2, 3], [0, 2]] * 10, lambda_ratio=0.5)
    assert gap.summary["transitions"] == 70 and gap.summary["ledger"][0]["reason"] == "unassigned-frame"
    named = ms.fit([["a", "b", "a", "b", "c", "d", "c", "d"]] * 9, lambda_ratio=0.5)
    assert named.states == ("a", "b", "c", "d")


def test_square_frames_keep_their_names(counts, expected):
    import pandas as pd

    names = [f"s{k:02}" for k in range(60)]
    frame = pd.DataFrame(counts.toarray(), index=names, columns=names)
    model = ms.StateAggregation(lambda_ratio=0.3).fit(frame)
    assert model.states_ == tuple(names) and list(model.feature_names_in_) == names
    assert np.array_equal(model.result_.factors[0], expected.factors[0])


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (np.ones((3, 4)), {}, "not square"),
        (np.zeros((3, 3)), {"kind": "counts"}, "every count is zero"),
        (np.array([[1.0, np.nan], [1, 1]]), {"kind": "counts"}, r"row 1, column 2"),
        ([], {}, "empty list"),
        ([1.5, 2.5], {}, "whole numbers or names"),
        (np.ones((2, 2), dtype=complex), {}, "Complex data not supported"),
        (sp.csr_array((np.ones(1), np.array([7]), np.array([0, 1, 1])), shape=(2, 8))[:, :2], {}, "not clear|every count is zero|could be"),
        ({"a": [1, 2]}, {}, "not clear what this table holds"),
        (np.eye(2) * 5, {"labels": ["a"]}, "1 labels for the 2 states"),
        (np.eye(2) * 5, {"labels": ["a", "a"]}, "E-DATA-LABEL"),
        (np.eye(3) * 5, {"lag": 3}, "--lag cannot be used"),
        ([0, 1, 0, 1], {"where": "x = 1"}, "named columns"),
    ],
)
def test_bad_data_get_a_sentence(data, options, message):
    with pytest.raises(ms.InputError, match=message) as caught:
        ms.fit(data, lambda_ratio=0.5, **options)
    assert caught.value.code.startswith("E-") and f"error[{caught.value.code}]" in str(caught.value)


def test_forged_sparse_arrays_are_refused(counts):
    from metastate import _core
    from metastate._data import Given

    def fit(indptr, indices, data):
        given = Given(("sparse", np.array(indptr), np.array(indices), np.array(data, dtype=float), 2, 2))
        _core.fit(given, {"lambda_ratio": 1}, False, "test")

    for arrays in (([0, 9, 2], [0, 1], [1, 1]), ([0, 1, 5], [0, 1], [1, 1]), ([0, 1, 2], [0, 2], [2, 2]), ([0, 1, 2], [0, -1], [2, 2]), ([0, 1], [0], [2])):
        with pytest.raises(ms.InputError, match="sparse matrix"):
            fit(*arrays)


def test_missing_files_are_os_errors(tmp_path):
    with pytest.raises((ms.FileError, ms.InputError), match=r"error\[E-"):
        ms.fit(tmp_path / "nothing.csv")
    with pytest.raises(OSError, match="E-CLI-RESULT"):
        ms.load(tmp_path / "nothing")
