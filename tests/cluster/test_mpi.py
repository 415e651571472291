"""Several processes under mpirun, each with its shards of the counts: the same answer as one process, to the bit; what happens when one of them is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

# Beyond 6,000 states nothing is done with a whole matrix any more.
STATES, GROUPS, TRIPS = 6500, 6, 400_000
FIT = ["--lambda-ratio", "0.15", "--refit", "likelihood", "--prior", "1"]
SAME = ["factors.npz", "refit.npz", "certificate.npz", "states.csv"]


@pytest.fixture(scope="module")
def mpirun(binary):
    found = shutil.which("mpirun")
    if not found or os.environ.get("METASTATE_MPI") != "1":
        pytest.skip("there is no MPI; not tested: several processes")

    def run(processes: int, *words, start=False, **more):
        command = [found, "--allow-run-as-root", "--oversubscribe", "-n", str(processes), binary, *map(str, words), "--threads", "1"]
        if start:
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        return subprocess.run(command, capture_output=True, text=True, timeout=1200, **more)

    return run


@pytest.fixture(scope="module")
def shards(binary, tmp_path_factory):
    """Trips between planted groups of places, counted in four shards."""
    folder = tmp_path_factory.mktemp("shards")
    rng = np.random.default_rng(11)
    start = rng.integers(0, STATES, TRIPS)
    group = np.where(rng.random(TRIPS) < 0.85, start % GROUPS, rng.integers(0, GROUPS, TRIPS))
    end = group + GROUPS * rng.integers(0, STATES // GROUPS, TRIPS)
    pq.write_table(pa.table({"from": start, "to": end}), folder / "trips.parquet")
    files = []
    for k in range(1, 5):
        files.append(folder / f"shard-{k}.parquet")
        asked = [binary, "count", folder / "trips.parquet", "--from", "from", "--to", "to", "--shard", f"{k}/4", "--out", files[-1]]
        subprocess.run(asked, check=True, capture_output=True)
    return files


def fitted(binary, shards, out, *options):
    subprocess.run([binary, "fit", *shards, *options, "--out", out], check=True, capture_output=True)
    return out


def same(one, other, files=SAME):
    for name in files:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    ours, theirs = (json.loads((folder / "summary.json").read_text()) for folder in (one, other))
    for key in ("states", "transitions", "nonzeros", "lambda", "lambda_max", "rank", "objective", "iterations", "status", "ledger"):
        assert ours[key] == theirs[key], key


@pytest.fixture(scope="module")
def alone(binary, shards, tmp_path_factory):
    return fitted(binary, shards, tmp_path_factory.mktemp("alone") / "one", *FIT)


@pytest.mark.parametrize("processes", [2, 4])
def test_several_processes_find_what_one_finds(processes, mpirun, shards, alone, tmp_path):
    done = mpirun(processes, "fit", *shards, *FIT, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert f"{processes} processes; each received" in done.stderr and done.stdout.count("written to") == 1, done.stderr
    same(alone, tmp_path / "out")


def test_the_rank_is_chosen_alike(binary, mpirun, shards, tmp_path):
    options = ["--max-rank", "8", "--folds", "3"]
    one = fitted(binary, shards, tmp_path / "one", *options)
    done = mpirun(3, "fit", *shards, *options, "--out", tmp_path / "three")
    assert done.returncode == 0, done.stderr
    same(one, tmp_path / "three", [*SAME, "ranks.csv", "path.csv"])


def test_a_killed_process_leaves_a_checkpoint_for_another_number_of_processes(mpirun, shards, alone, tmp_path):
    out, kept = tmp_path / "out", tmp_path / "out.checkpoint"
    run = mpirun(4, "fit", *shards, *FIT, "--out", out, "--checkpoint-every", "0", start=True)
    until = time.monotonic() + 600
    while not (kept.is_dir() and any(kept.glob("[0-9]*/snapshot.json"))) and run.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    assert run.poll() is None, run.communicate()
    ranks = [p for p in psutil.Process(run.pid).children(recursive=True) if p.name() == "metastate"]
    assert len(ranks) == 4
    ranks[2].send_signal(signal.SIGKILL)
    _, said = run.communicate(timeout=120)
    assert run.returncode != 0 and "of 4 is gone" in said and "killed" in said, said
    assert not out.exists() and any(kept.glob("[0-9]*/snapshot.json")), "no result, and the checkpoint is there"
    done = mpirun(2, "fit", *shards, *FIT, "--out", out, "--checkpoint-every", "0", "--resume")
    assert done.returncode == 0 and "resuming at sweep" in done.stderr, done.stderr
    same(alone, out)


def test_what_several_processes_cannot_do_is_refused(binary, mpirun, shards, tmp_path):
    whole = tmp_path / "whole.parquet"
    subprocess.run([binary, "count", *shards, "--out", whole], check=True, capture_output=True)
    for words, said in [
        (["fit", whole, *FIT], "several processes read shards of counts, and this is a whole"),
        (["fit", *shards[:3], *FIT], "shard 4 of 4 is missing"),
        (["fit", *shards, *FIT, "--bootstrap", "5"], "--bootstrap is for one process"),
        (["path", *shards], "`metastate path` is for one"),
    ]:
        done = mpirun(2, *words, "--out", tmp_path / "none")
        assert done.returncode != 0 and done.stderr.count(said) == 1, (words, done.returncode, done.stderr)
        assert not (tmp_path / "none").exists()
    done = mpirun(5, "fit", *shards, *FIT, "--out", tmp_path / "none")
    assert done.returncode != 0 and "there are 4 shards for 5 processes" in done.stderr, done.stderr
