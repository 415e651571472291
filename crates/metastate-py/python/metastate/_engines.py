"""Tables that lie in an engine are counted there: the GROUP BY is pushed down, and only triplets come over."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any, Callable, Iterator, Mapping
from contextlib import contextmanager

from . import _core

_COLUMNS = ("from_column", "to_column", "from_lon", "from_lat", "to_lon", "to_lat", "weight", "id", "time", "state")


def counted(data: Any, options: Mapping[str, Any]) -> Any | None:
    """What the engine has counted, as something with Arrow's C stream; None where the data are no such table, or are better read row by row."""
    if options.get("slice") is not None and not type(data).__module__.startswith("pyspark.sql"):
        return None  # the rows themselves are read: no query tells slices apart
    home = type(data).__module__
    if home.startswith("pyspark.sql"):
        return _spark(data, options)
    if home.split(".")[0] in ("duckdb", "_duckdb") and hasattr(data, "query"):
        return _local(options, lambda query, name: data.query(name, query)) if _fits_duckdb(data.types) else None
    if home.startswith("ibis.expr") and hasattr(data, "get_backend"):
        return _ibis(data, options)
    if home.startswith("polars") and hasattr(data, "collect_schema") and not hasattr(data, "height"):
        return _polars(data, options)
    return None


def _query(options: Mapping[str, Any], table: str, dialect: str) -> str:
    reading = {o["name"] for o in _core.options("count")}
    return _core.count_sql({n: v for n, v in options.items() if v is not None and _core.option_name(n) in reading}, table, dialect)


def _is_walk(options: Mapping[str, Any]) -> bool:
    return options.get("kind") == "trajectories" or any(options.get(n) is not None for n in ("state", "id", "time"))


def _local(options: Mapping[str, Any], run: Callable[[str, str], Any], dialect: str = "duckdb") -> Any | None:
    """An engine in this process. Trajectories are read row by row there: their frames are wanted, for blocks that are held out together."""
    if _is_walk(options):
        return None
    name = f"metastate_{uuid.uuid4().hex}"
    try:
        query = _query(options, name, dialect)
    except _core.InputError:
        return None  # the reader has its own sentence, or guesses what the table is
    return run(query, name)


def _fits_duckdb(types: Any) -> bool:
    """Times with a zone would be told in the session's zone, and the reader tells them in UTC."""
    return not any("TIME ZONE" in str(t) for t in types)


def _spark(frame: Any, options: Mapping[str, Any]) -> Any:
    """Spark, or Spark Connect. The view lives as long as the query, and the session's time zone is UTC meanwhile."""
    session = frame.sparkSession
    name = f"metastate_{uuid.uuid4().hex}"
    query = _query(options, name, "spark")
    frame.createOrReplaceTempView(name)
    try:
        with _in_utc(session):
            return session.sql(query).toArrow()
    finally:
        session.catalog.dropTempView(name)


@contextmanager
def _in_utc(session: Any) -> Iterator[None]:
    zone = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        yield
    finally:
        session.conf.set("spark.sql.session.timeZone", zone)


def _ibis(table: Any, options: Mapping[str, Any]) -> Any:
    """Ibis, where its engine speaks one of our dialects; else the rows themselves, in the columns that are needed."""
    import ibis
    from ibis.common.exceptions import IbisError

    try:
        backend = table.get_backend()
        if backend.name == "duckdb":
            return counted(backend.con.sql(ibis.to_sql(table)), options)
        dialect = {"pyspark": "spark", "postgres": "postgres", "bigquery": "bigquery"}[backend.name]
        name = f"metastate_{uuid.uuid4().hex}"
        found = table.alias(name).sql(_query(options, name, dialect))
    except (KeyError, IbisError):
        return None  # an engine with words of its own, or a table without an engine
    return found.to_pyarrow()


def _polars(frame: Any, options: Mapping[str, Any]) -> Any | None:
    """A lazy frame: trips are grouped by Polars. What it cannot say as SQL says it is left to the reader, which gets the rows."""
    import polars as pl

    if _is_walk(options) or options.get("where") is not None:
        return None
    try:
        _query(options, "frame", "duckdb")
    except _core.InputError:
        return None
    schema = frame.collect_schema()
    missing = [options[n] for n in _COLUMNS if options.get(n) is not None and options[n] not in schema]
    numbers = [options[n] for n in ("from_lon", "from_lat", "to_lon", "to_lat", "weight") if options.get(n) is not None]
    if missing or any(not schema[n].is_numeric() for n in numbers):
        return None
    weight = options.get("weight") or ("count" if options.get("kind") == "counts" else None)
    reasons: list[tuple[Any, str]] = []
    if weight is not None:
        value = pl.col(weight).cast(pl.Float64)
        if frame.select(((value < 0) | ~value.is_finite()).any()).collect(engine="streaming").item():
            return None  # refused by the reader, with the row
        reasons += [(value.is_null(), "weight-missing"), (value == 0, "weight-zero")]
    if options.get("from_lon") is None:
        keys = {"from": pl.col(options.get("from_column") or "from"), "to": pl.col(options.get("to_column") or "to")}
    else:
        keys, more = _cells(pl, options)
        reasons += more
    left_out = pl.lit(None, dtype=pl.String)
    for condition, reason in reversed(reasons):
        left_out = pl.when(condition).then(pl.lit(reason)).otherwise(left_out)
    rows = frame.with_columns(left_out.alias("metastate_left_out")).select(
        pl.col("metastate_left_out").alias("left_out"),
        *(pl.when(pl.col("metastate_left_out").is_null()).then(key).alias(name) for name, key in keys.items()),
        (pl.lit(1.0) if weight is None else pl.col(weight).cast(pl.Float64)).alias("metastate_weight"),
    )
    found = (
        rows.group_by(*keys, "left_out")
        .agg(pl.col("metastate_weight").sum().alias("count"), pl.len().cast(pl.Int64).alias("rows"))
        .collect(engine="streaming")
    )
    return found if options.get("from_lon") is None else _named(pl, found, float(options.get("cell") or 0.001))


def _cells(pl: Any, options: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[Any, str]]]:
    """Numbers of the cells, and which rows have none; `_core.count_sql` says the same in SQL."""
    cell = float(options.get("cell") or 0.001)
    box = options.get("bbox")
    west, south, east, north = (-180.0, -90.0, 180.0, 90.0) if box is None else (float(x) for x in (box.split(",") if isinstance(box, str) else box))
    points = [pl.col(options[n]).cast(pl.Float64) for n in ("from_lon", "from_lat", "to_lon", "to_lat")]
    missing = pl.any_horizontal([(p.is_null() | p.is_nan()) for p in points])

    def within(w: float, s: float, e: float, n: float) -> Any:
        return pl.all_horizontal([p.is_between(*(((w, e), (s, n))[k % 2])) for k, p in enumerate(points)])

    inside, on_earth = within(west, south, east, north), within(-180.0, -90.0, 180.0, 90.0)
    reasons = [(missing, "coordinate-missing"), (~inside & on_earth, "outside-bbox"), (~inside, "coordinate-out-of-range")]
    names = ("from_x", "from_y", "to_x", "to_y")
    return {n: (p / cell).floor().cast(pl.Int64) for n, p in zip(names, points)}, reasons


def _named(pl: Any, found: Any, cell: float) -> Any:
    """Cells by their lower left corners, with as many digits as the side of a cell has."""
    digits = min(max(-int(Decimal(repr(cell)).normalize().as_tuple().exponent), 0), 12)

    def corner(name: str) -> Any:
        values = found[name].drop_nulls().unique()
        return pl.col(name).replace_strict(values, [f"{n * cell:.{digits}f}" for n in values.to_list()], default=None, return_dtype=pl.String)

    ends = {end: pl.concat_str([corner(f"{end}_x"), corner(f"{end}_y")], separator=",") for end in ("from", "to")}
    return found.with_columns(**ends).select("from", "to", "count", "rows", "left_out")
