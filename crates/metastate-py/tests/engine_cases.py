"""Tables and options on which engines must count what the embedded counter counts; used here for DuckDB, and by scripts/test-cluster for Spark."""

from __future__ import annotations

import datetime
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def _some(values, rng, share=0.02, kind=None):
    """Values of which a few are missing."""
    gone = rng.random(len(values)) < share
    return pa.array([None if g else v for v, g in zip(values.tolist(), gone)], kind)


def tables():
    """Name and table; small, and with everything that goes wrong in real ones."""
    rng = np.random.default_rng(11)
    n = 3000
    names = np.array(["Zürich", "a b", "it's", "007", "7", "-0", "x,y", 'q"q', "", "-12", "back\\slash"], dtype=object)
    clock = datetime.datetime(2015, 11, 28, 22, 59, 58)
    moments = [clock + datetime.timedelta(seconds=int(k)) for k in rng.integers(0, 40 * 86400, n)]
    trips = pa.table(
        {
            "start": _some(names[rng.integers(0, len(names), n)], rng),
            "end": _some(names[rng.integers(0, len(names), n)], rng),
            "from_id": _some(rng.integers(-3, 9, n), rng),
            "to_id": _some(rng.integers(0, 9, n).astype(float), rng, kind=pa.float64()),
            "small": pa.array(rng.integers(0, 5, n).astype(np.float32)),
            "flag": _some(rng.random(n) < 0.5, rng),
            "day": pa.array([m.date() for m in moments]),
            "n": _some(rng.integers(0, 4, n), rng),
            "service": _some(np.array(["yellow", "green", "fhv%"], dtype=object)[rng.integers(0, 3, n)], rng),
            "fare": _some(np.round(rng.normal(8, 6, n), 2), rng),
            "moment": pa.array(moments, pa.timestamp("us")),
        }
    )
    lon, lat = rng.normal(-73.98, 0.02, n), rng.normal(40.75, 0.02, n)
    far = rng.random(n) < 0.05
    points = pa.table(
        {
            "lon": _some(np.where(far, lon + 300, lon), rng),
            "lat": _some(lat, rng),
            "to lon": pa.array(np.where(rng.random(n) < 0.02, np.nan, lon[::-1])),
            "to_lat": pa.array((lat[::-1]).astype(np.float32)),
            "origin": pa.array(rng.normal(0, 0.004, n)),
            "weight": pa.array(rng.integers(1, 5, n)),
        }
    )
    ids, times, states = [], [], []
    for walk in range(40):
        length = int(rng.integers(1, 120))
        ids += [f"walk {walk}" if walk else None] * length
        times += rng.choice(10_000, length, replace=False).tolist()
        states += rng.choice([0, 1, 2, 3, 4, -1, None], length, p=[0.2, 0.2, 0.2, 0.2, 0.16, 0.02, 0.02]).tolist()
    order = rng.permutation(len(ids))
    walks = pa.table(
        {
            "id": pa.array([ids[k] for k in order]),
            "time": pa.array([None if k % 97 == 0 else times[k] for k in order], pa.int64()),
            "state": pa.array([states[k] for k in order], pa.int64()),
            "name": pa.array([None if states[k] is None else f"s{states[k]}" for k in order]),
            "temperature": pa.array(rng.integers(290, 310, len(ids))),
        }
    )
    return {"trips": trips, "points": points, "walks": walks}


POINTS = {"from_lon": "lon", "from_lat": "lat", "to_lon": "to lon", "to_lat": "to_lat"}
WALK = {"id": "id", "time": "time", "state": "state"}

# Table and options, by the names that Python gives them.
CASES = {
    "texts": ("trips", {"from_column": "start", "to_column": "end"}),
    "numbers": ("trips", {"from_column": "from_id", "to_column": "to_id"}),
    "small numbers and truth": ("trips", {"from_column": "small", "to_column": "flag"}),
    "days": ("trips", {"from_column": "day", "to_column": "day"}),
    "weights": ("trips", {"from_column": "start", "to_column": "end", "weight": "n"}),
    "text and number": ("trips", {"from_column": "start", "to_column": "to_id", "weight": "n", "where": "fare > 5"}),
    "where text": ("trips", {"from_column": "start", "to_column": "end", "where": "service = 'yellow' AND fare BETWEEN 2 AND 12.5"}),
    "where quotes": ("trips", {"from_column": "start", "to_column": "end", "where": "\"start\" <> 'it''s' AND \"end\" <> 'back\\slash'"}),
    "where unknown": ("trips", {"from_column": "start", "to_column": "end", "where": "NOT (service = 'yellow') OR fare IS NULL"}),
    "where list": ("trips", {"from_column": "from_id", "to_column": "to_id", "where": "service IN ('green', 'fhv%') AND flag"}),
    "where like": ("trips", {"from_column": "start", "to_column": "end", "where": "service LIKE '%e%n' OR service LIKE 'fhv\\%'"}),
    "where ilike": ("trips", {"from_column": "start", "to_column": "end", "where": "service ILIKE 'YEL%'"}),
    "where dates": ("trips", {"from_column": "from_id", "to_column": "to_id", "where": "moment >= TIMESTAMP '2015-12-01 08:30:00' AND day < DATE '2015-12-20'"}),
    "where date texts": ("trips", {"from_column": "from_id", "to_column": "to_id", "where": "moment >= '2015-12-01' AND moment < '2015-12-20 12:00:00'"}),
    "where hours": ("trips", {"from_column": "from_id", "to_column": "to_id", "where": "EXTRACT(HOUR FROM moment) BETWEEN 7 AND 18 AND EXTRACT(DOW FROM moment) IN (0, 6)"}),
    "where weeks": (
        "trips",
        {"from_column": "from_id", "to_column": "to_id", "where": "EXTRACT(ISODOW FROM moment) = 7 OR EXTRACT(WEEK FROM day) = 49 OR EXTRACT(DOY FROM day) > 360 OR EXTRACT(SECOND FROM moment) < 4"},
    ),
    "shares": ("trips", {"from_column": "start", "to_column": "end", "min_share": 0.08}),
    "self shares": ("trips", {"from_column": "from_id", "to_column": "to_id", "where": "from_id <> 3", "max_self_share": 0.12}),
    "both shares": ("trips", {"from_column": "from_id", "to_column": "to_id", "min_share": 0.08, "max_self_share": 0.2, "weight": "n"}),
    "cells": ("points", POINTS),
    "coarse cells": ("points", {**POINTS, "cell": 0.0025, "bbox": "-74.02,40.7,-73.95,40.8"}),
    "whole cells": ("points", {**POINTS, "cell": 1.0}),
    "half cells": ("points", {**POINTS, "cell": 0.5, "weight": "weight"}),
    "cells about zero": ("points", {"from_lon": "origin", "from_lat": "origin", "to_lon": "origin", "to_lat": "to_lat", "cell": 0.001}),
    "cells by share": ("points", {**POINTS, "cell": 0.01, "min_share": 0.005, "where": "weight > 1"}),
    "walks": ("walks", WALK),
    "walks, lag 3": ("walks", {**WALK, "lag": 3}),
    "walks, lag 3, strided": ("walks", {**WALK, "lag": 3, "count": "strided"}),
    "walks with gaps": ("walks", {**WALK, "state": "name", "lag": 2, "where": "temperature < 308"}),
    "walks by share": ("walks", {**WALK, "min_share": 0.18, "max_self_share": 0.27}),
}


def write(folder):
    """The tables as Parquet files; name to path."""
    found = {}
    for name, table in tables().items():
        found[name] = folder / f"{name}.parquet"
        pq.write_table(table, found[name])
    return found


def words(options):
    """Options as the command has them."""
    own = {"from_column": "from", "to_column": "to", "kind": "as"}
    return [w for n, v in options.items() for w in (f"--{own.get(n, n).replace('_', '-')}", str(v))]


def triplets(table):
    """Sorted lines, as bytes: what must be equal."""
    columns = [table.column(n).to_pylist() for n in ("from", "to", "count")]
    return "\n".join(sorted(f"{a}\t{b}\t{float(c)!r}" for a, b, c in zip(*columns))).encode()


def embedded(binary, file, options, out):
    """What `metastate count` counts."""
    out.unlink(missing_ok=True)
    subprocess.run([binary, "count", str(file), *words(options), "--out", str(out), "--quiet"], check=True, capture_output=True)
    return triplets(pq.read_table(out))


def printed(binary, table, options, dialect):
    """What `metastate count --print-sql` prints."""
    asked = [binary, "count", str(table), *words(options), "--print-sql", "--dialect", dialect]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout
