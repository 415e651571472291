"""The printed query in Spark and PostgreSQL: the embedded counter's triplets, byte for byte after sorting."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine_cases import CASES, WALK, embedded, printed, triplets


@pytest.mark.parametrize("case", CASES)
def test_spark_counts_the_same(case, spark, files, binary, tmp_path):
    name, options = CASES[case]
    query = printed(binary, files[name], options, "spark")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        ours = embedded(binary, files[name], options, tmp_path / "counts.parquet")
        assert triplets(spark.sql(query).toArrow()) == ours and ours.count(b"\n") >= 3
    finally:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")


def test_spark_refuses_what_it_cannot_count(spark, binary):
    spark.createDataFrame([(1, 5, 1), (1, 5, 2), (1, 6, 1)], "id int, time int, state int").createOrReplaceTempView("ties")
    spark.createDataFrame([(1, "9", 1), (1, "10", 2)], "id int, time string, state int").createOrReplaceTempView("letters")
    spark.createDataFrame([(1.5, 1), (1.0, 2)], "a double, b int").createOrReplaceTempView("halves")
    for table, options, said in [
        ("ties", WALK, "the same time"),
        ("letters", WALK, "must be a number or a date"),
        ("halves", {"from_column": "a", "to_column": "b"}, "must be whole"),
    ]:
        with pytest.raises(Exception, match=said):
            spark.sql(printed(binary, table, options, "spark")).toArrow()


TYPES = {pa.string(): "text", pa.int64(): "bigint", pa.float64(): "double precision", pa.float32(): "real", pa.bool_(): "boolean", pa.date32(): "date", pa.timestamp("us"): "timestamp"}


@pytest.fixture(scope="module")
def loaded(postgres, files):
    for name, file in files.items():
        table = pq.read_table(file)
        columns = ", ".join(f'"{f.name}" {TYPES[f.type]}' for f in table.schema)
        postgres.execute(f"CREATE TABLE {name} ({columns})")
        with postgres.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            for row in zip(*(c.to_pylist() for c in table.columns)):
                copy.write_row(row)
    return postgres


@pytest.mark.parametrize("case", CASES)
def test_postgres_counts_the_same(case, loaded, files, binary, tmp_path):
    name, options = CASES[case]
    rows = loaded.execute(printed(binary, name, options, "postgres")).fetchall()
    found = pa.table({n: [row[k] for row in rows] for k, n in enumerate(("from", "to", "count"))})
    assert triplets(found) == embedded(binary, files[name], options, tmp_path / "counts.parquet")


def test_bigquery_can_be_parsed(binary):
    """No BigQuery can be had here: its query is read by a parser of its dialect, and never executed."""
    sqlglot = pytest.importorskip("sqlglot")
    for name, options in CASES.values():
        sqlglot.parse_one(printed(binary, f"project.data.{name}", options, "bigquery"), dialect="bigquery")
