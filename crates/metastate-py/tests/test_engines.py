"""The query that is printed, and tables that lie in an engine: the same triplets, byte for byte, and the same ledger."""

from __future__ import annotations

import os
import subprocess

import numpy as np
import pytest

import metastate as ms
from engine_cases import CASES, POINTS, WALK, embedded, printed, tables, triplets, write

duckdb = pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write(tmp_path_factory.mktemp("engines"))


@pytest.fixture(scope="module")
def binary(command):
    return os.environ["METASTATE"]


@pytest.mark.parametrize("case", CASES)
def test_duckdb_counts_the_same(case, files, binary, tmp_path):
    name, options = CASES[case]
    query = printed(binary, files[name], options, "duckdb")
    ours = embedded(binary, files[name], options, tmp_path / "counts.parquet")
    assert triplets(duckdb.sql(query).to_arrow_table()) == ours and ours.count(b"\n") >= 3


def test_duckdb_reads_csv_as_the_reader_does(files, binary, tmp_path):
    for case in ["texts", "where text", "where hours", "coarse cells", "walks, lag 3", "walks with gaps"]:
        name, options = CASES[case]
        table = tmp_path / f"{name}.csv"
        duckdb.sql(f"COPY (SELECT * FROM '{files[name]}') TO '{table}' (HEADER)")
        query = printed(binary, table, options, "duckdb")
        assert triplets(duckdb.sql(query).to_arrow_table()) == embedded(binary, table, options, tmp_path / "counts.parquet"), case


def test_what_is_printed_can_be_fitted(files, binary, tmp_path):
    name, options = CASES["cells by share"]
    query = printed(binary, files[name], options, "duckdb")
    duckdb.sql(f"COPY ({query}) TO '{tmp_path / 'triplets.parquet'}'")
    subprocess.run([binary, "fit", tmp_path / "triplets.parquet", "--as", "counts", "--lambda-ratio", "0.5", "--out", tmp_path / "out"], check=True, capture_output=True)
    assert ms.load(tmp_path / "out").states[0].count(",") == 1


def test_other_counts_are_never_given(files, tmp_path, binary):
    """What an engine cannot count as the reader does ends with a sentence."""
    asked = [binary, "count", "walks", "--state", "state", "--print-sql"]
    refused = subprocess.run(asked, capture_output=True, text=True)
    assert refused.returncode == 2 and "--time is missing" in refused.stderr
    for words, said in [
        (["t.parquet", "--from", "a", "--to", "b", "--print-sql", "--dialect", "postgres"], "a query of PostgreSQL reads tables, and this is a file"),
        (["t.csv", "--from", "a", "--to", "b", "--print-sql", "--dialect", "spark"], "only through a view"),
        (["t", "--print-sql"], "it is not clear what this table holds"),
        (["t", "--from", "a", "--to", "b", "--print-sql", "--out", "x"], "--out"),
        (["t", "--from", "a", "--to", "b"], "--out must be given"),
        (["t", "--from", "a", "--to", "b", "--lag", "3", "--print-sql"], "--lag cannot be used with trips"),
    ]:
        refused = subprocess.run([binary, "count", *words], capture_output=True, text=True)
        assert refused.returncode == 2 and said in refused.stderr, refused.stderr
    ties = duckdb.sql("SELECT 1 AS id, 5 AS time, unnest([1, 2, 1]) AS state")  # noqa: F841
    halves = duckdb.sql("SELECT 0.5 AS a, 1 AS b UNION ALL SELECT 1.0, 2")  # noqa: F841
    letters = duckdb.sql("SELECT 1 AS id, unnest(['9', '10', '11']) AS time, unnest([1, 2, 1]) AS state")  # noqa: F841
    below = duckdb.sql("SELECT 1 AS a, 2 AS b, unnest([1, -1]) AS n")  # noqa: F841
    for table, options, said in [
        ("ties", WALK, "the same time"),
        ("letters", WALK, "must be a number or a date"),
        ("halves", {"from_column": "a", "to_column": "b"}, None),
        ("below", {"from_column": "a", "to_column": "b", "weight": "n"}, "zero or more"),
    ]:
        query = printed(binary, table, options, "duckdb")
        if said is None:  # a decimal is a label by its text, in both
            assert b"0.5\t1" in triplets(duckdb.sql(query).to_arrow_table())
            continue
        with pytest.raises(duckdb.Error, match=said):
            duckdb.sql(query).to_arrow_table()


def _engines(table):
    import polars as pl

    found = {"DuckDB": duckdb.from_arrow(table), "Polars": pl.from_arrow(table).lazy()}
    try:
        import ibis

        engine = ibis.duckdb.connect()
        engine.con.register("there", table)
        found["Ibis"] = engine.table("there")
    except ImportError:
        pass
    return found


@pytest.mark.parametrize("case", ["texts", "text and number", "shares", "both shares", "coarse cells", "half cells", "cells by share", "walks, lag 3", "walks with gaps"])
def test_tables_in_engines_give_the_same_answer(case):
    name, options = CASES[case]
    table = tables()[name]
    expected = ms.fit(table, lambda_ratio=0.5, **options)
    told = lambda result: sorted((e["reason"], e["unit"], e["count"], e["weight"]) for e in result.summary["ledger"])
    for engine, data in _engines(table).items():
        result = ms.fit(data, lambda_ratio=0.5, **options)
        assert np.array_equal(result.memberships, expected.memberships) and np.array_equal(result.profiles, expected.profiles), engine
        assert result.states == expected.states and told(result) == told(expected), engine
        assert (result.summary["rows"], result.summary["rows_counted"]) == (expected.summary["rows"], expected.summary["rows_counted"]), engine


def test_the_engine_does_the_counting(monkeypatch):
    """Only triplets come over."""
    import metastate._data as reading

    name, options = CASES["coarse cells"]
    table = tables()[name]
    came = []
    monkeypatch.setattr(reading, "counted", lambda data, options, count=reading.counted: came.append(count(data, options)) or came[-1])
    for engine, data in _engines(table).items():
        ms.fit(data, lambda_ratio=0.5, **options)
        assert came[-1] is not None, engine
    for spelled in ({"bbox": [-74.02, 40.7, -73.95, 40.8]}, {"bbox": "-74.02,40.7,-73.95,40.8"}):
        for data in _engines(table).values():
            ms.fit(data, lambda_ratio=0.5, **{**POINTS, "cell": 0.0025, **spelled})
