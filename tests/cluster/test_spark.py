"""A Spark data frame in Python, on a real master with two workers: counted there, the same factors here; also when a worker dies."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metastate as ms
from engine_cases import CASES, tables
from processes import free_port

TRIPS = int(float(os.environ.get("METASTATE_TRIPS", "2e6")))


# A table in an engine has no order that its frames could be out of.
NO_ORDER = "out-of-time-order-sorted"


def told(result):
    ledger = result.summary["ledger"]
    return sorted((e["reason"], e["unit"], e["count"], e["weight"]) for e in ledger if e["reason"] != NO_ORDER)


def same(result, expected):
    assert result.states == expected.states and told(result) == told(expected)
    assert np.array_equal(result.memberships, expected.memberships) and np.array_equal(result.profiles, expected.profiles)
    assert result.summary["rows"] == expected.summary["rows"] and result.summary["rows_counted"] == expected.summary["rows_counted"]


@pytest.mark.parametrize("case", ["texts", "text and number", "both shares", "where hours", "coarse cells", "walks, lag 3", "walks with gaps"])
def test_frames_are_counted_on_the_cluster(case, spark, files):
    name, options = CASES[case]
    expected = ms.fit(tables()[name], lambda_ratio=0.5, **options)
    same(ms.fit(spark.read.parquet(str(files[name])), lambda_ratio=0.5, **options), expected)
    assert spark.conf.get("spark.sql.session.timeZone") == "America/New_York" and not spark.catalog.listTables()


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    """Trips between the blocks of twelve districts, in 16 files."""
    folder = tmp_path_factory.mktemp("city")
    rng = np.random.default_rng(5)
    centres = np.column_stack([rng.uniform(-74.02, -73.92, 12), rng.uniform(40.68, 40.82, 12)])
    for k in range(16):
        n = TRIPS // 16
        home = rng.integers(0, 12, n)
        goal = np.where(rng.random(n) < 0.85, home, rng.integers(0, 12, n))
        start, end = centres[home] + rng.normal(0, 0.006, (n, 2)), centres[goal] + rng.normal(0, 0.006, (n, 2))
        columns = {"from_lon": start[:, 0], "from_lat": start[:, 1], "to_lon": end[:, 0], "to_lat": end[:, 1]}
        pq.write_table(pa.table(columns), folder / f"part-{k:02}.parquet", row_group_size=1 << 17)
    return folder


CITY = {n: n for n in ("from_lon", "from_lat", "to_lon", "to_lat")} | {"cell": 0.004, "min_share": 1e-4, "lambda_ratio": 0.2}


@pytest.fixture(scope="module")
def embedded_city(city):
    began = time.monotonic()
    result = ms.fit(str(city / "*.parquet"), **CITY)
    print(f"\n{TRIPS} trips, embedded: {time.monotonic() - began:.1f} s with the fit, {len(result.states)} states")
    return result


def test_a_city_in_sixteen_files(spark, city, embedded_city):
    began = time.monotonic()
    result = ms.fit(spark.read.parquet(str(city)), **CITY)
    print(f"\n{TRIPS} trips, Spark: {time.monotonic() - began:.1f} s with the fit")
    same(result, embedded_city)


def test_spark_connect(spark_cluster, city, embedded_city, files):
    """The same through Spark Connect: a client without Java of its own, a server that drives the cluster."""
    pytest.importorskip("grpc", reason="grpcio is not installed; not tested: Spark Connect")
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    port = free_port()
    server = spark_cluster._start(
        "connect", "org.apache.spark.deploy.SparkSubmit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--master", spark_cluster.url, "--driver-memory", "1g", "--conf", f"spark.connect.grpc.binding.port={port}", "--conf", "spark.driver.host=127.0.0.1",
        "--conf", "spark.executor.memory=1g", "--conf", "spark.cores.max=1", "--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=8",
        "spark-internal",
    )  # fmt: skip
    try:
        until = time.monotonic() + 120
        while True:
            try:
                session = ConnectSession.builder.remote(f"sc://127.0.0.1:{port}").create()
                session.range(1).collect()
                break
            except Exception:
                if time.monotonic() > until or server.poll() is not None:
                    raise
                time.sleep(1)
        name, options = CASES["walks, lag 3"]
        same(ms.fit(session.read.parquet(str(files[name])), lambda_ratio=0.5, **options), ms.fit(tables()[name], lambda_ratio=0.5, **options))
        same(ms.fit(session.read.parquet(str(city)), **CITY), embedded_city)
        session.stop()
    finally:
        import psutil

        for process in [*psutil.Process(server.pid).children(recursive=True), psutil.Process(server.pid)]:
            process.kill()
        server.wait()


def test_a_worker_dies_in_the_middle(spark, spark_cluster, city, embedded_city):
    """The last test: one worker is gone afterwards."""
    status = spark.sparkContext.statusTracker()
    killed = []

    def kill():
        # When some of the tasks are done and some are not.
        for _ in range(6000):
            stages = [status.getStageInfo(s) for s in status.getActiveStageIds()]
            if any(s is not None and s.numTasks > 1 and 0 < s.numCompletedTasks < s.numTasks for s in stages):
                spark_cluster.kill(spark_cluster.workers[0])
                killed.extend(f"{s.numCompletedTasks} of {s.numTasks} tasks" for s in stages if s is not None)
                return
            time.sleep(0.01)

    watcher = threading.Thread(target=kill)
    watcher.start()
    result = ms.fit(spark.read.parquet(str(city)), **CITY)
    watcher.join()
    assert killed, "the query was over before a worker could be killed: raise METASTATE_TRIPS"
    print(f"\na worker was killed after {killed[0]}")
    same(result, embedded_city)
