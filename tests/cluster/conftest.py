"""Real engines on loopback: a standalone Spark with a master and two workers, a PostgreSQL. What they leave is removed at the end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "crates" / "metastate-py" / "tests"))

from engine_cases import write  # noqa: E402
from processes import Spark, free_port, wait_for  # noqa: E402


@pytest.fixture(scope="session")
def binary():
    found = os.environ.get("METASTATE")
    if not found:
        pytest.fail("METASTATE must name the command; scripts/test-cluster sets it")
    return found


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    return write(tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory):
    pytest.importorskip("pyspark", reason="pyspark is not installed; not tested: Spark")
    cluster = Spark(tmp_path_factory.mktemp("spark"))
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def spark(spark_cluster):
    from pyspark.sql import SparkSession

    os.environ.update({k: spark_cluster.environment[k] for k in ("SPARK_HOME", "SPARK_LOCAL_IP", "PYSPARK_PYTHON")})
    session = (
        SparkSession.builder.master(spark_cluster.url)
        .appName("metastate")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.executor.memory", "1g")
        .config("spark.executor.cores", "1")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        # Not the default, so that what depends on it is seen.
        .config("spark.sql.session.timeZone", "America/New_York")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """A PostgreSQL of its own, as an unprivileged user where the tests run as root."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed; not tested: PostgreSQL")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [Path(p) for p in [shutil.which("initdb")] if p]
    if not found:
        pytest.skip("PostgreSQL is not installed; not tested: its dialect")
    programs, port = found[-1].parent, free_port()
    folder = Path(tmp_path_factory.mktemp("postgres"))
    as_user = []
    if os.geteuid() == 0:
        for place in [folder, *folder.parents[:2]]:
            place.chmod(0o755)
        shutil.chown(folder, "postgres")
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    data = folder / "data"
    subprocess.run([*as_user, programs / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8"], check=True, capture_output=True, cwd=folder)
    server = subprocess.Popen(
        [*as_user, programs / "postgres", "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", folder],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder,
    )  # fmt: skip
    connection = None

    def up():
        nonlocal connection
        try:
            connection = psycopg.connect(host="127.0.0.1", port=port, user="postgres", autocommit=True, options="-c timezone=UTC")
        except psycopg.OperationalError:
            return False
        return True

    wait_for(up, 60, "PostgreSQL was not up")
    yield connection
    connection.close()
    server.send_signal(signal.SIGINT)
    server.wait()
