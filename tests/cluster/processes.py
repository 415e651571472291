"""Processes that the tests start, and how to wait for them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, seconds: float, said: str):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if what():
            return
        time.sleep(0.2)
    pytest.fail(f"{said} within {seconds:.0f} s")


class Spark:
    """A standalone master with its workers, each a process of its own."""

    def __init__(self, folder: Path):
        import pyspark

        self.home = Path(pyspark.__file__).parent
        self.folder = folder
        self.port, self.page = free_port(), free_port()
        self.url = f"spark://127.0.0.1:{self.port}"
        self.environment = {
            **os.environ,
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "512m",
            "SPARK_WORKER_DIR": str(folder / "work"),
            "PYSPARK_PYTHON": sys.executable,
        }
        self.master = self._start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", self.port, "--webui-port", self.page)
        wait_for(lambda: "I have been elected leader" in self._log("master"), 90, "no Spark master was up")
        self.workers = [self.add_worker(k) for k in range(2)]

    def _log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def _start(self, name: str, what: str, *words) -> subprocess.Popen:
        with open(self.folder / f"{name}.log", "w") as log:
            command = [str(self.home / "bin" / "spark-class"), what, *map(str, words)]
            return subprocess.Popen(command, env=self.environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)

    def add_worker(self, k: int) -> subprocess.Popen:
        worker = self._start(
            f"worker{k}", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "2g",
            "--webui-port", free_port(), self.url,
        )  # fmt: skip
        wait_for(lambda: "Successfully registered with master" in self._log(f"worker{k}"), 90, f"worker {k} was not registered")
        return worker

    def kill(self, worker: subprocess.Popen):
        """The worker and its executors, at once: as when a machine is gone."""
        import psutil

        family = [psutil.Process(worker.pid), *psutil.Process(worker.pid).children(recursive=True)]
        for process in family:
            process.send_signal(signal.SIGKILL)
        worker.wait()

    def stop(self):
        for process in [*self.workers, self.master]:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
