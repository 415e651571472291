"""How the package behaves as a guest: signals, threads, panics, logging, imports."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import metastate as ms


@pytest.fixture(scope="module")
def long_work():
    """A fit of several seconds at least."""
    rng = np.random.default_rng(0)
    return rng.poisson(0.3, (500, 500)) + 1.0, {"kind": "counts", "lambda_ratio": 0.02, "solver": "palm-lipschitz", "gap": 1e-9, "tolerance": 1e-12}


def interrupted_after(seconds, work):
    """Runs the work with Ctrl-C after so many seconds; how long it took to stop."""
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, send)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        timer.cancel()
    assert sent, "the work was done before the signal came"
    return time.monotonic() - sent[0]


@pytest.mark.parametrize("seconds", [0.1, 0.7])
def test_ctrl_c_stops_within_a_second(long_work, walks, seconds):
    data, options = long_work
    model = ms.StateAggregation(**options)
    assert interrupted_after(seconds, lambda: model.fit(data)) < 1.0
    assert not hasattr(model, "result_")
    assert model.set_params(solver="fast", kind=None, lambda_ratio=0.3, gap=1e-3, tolerance=1e-5).fit(walks).n_metastates_ >= 1


def test_ctrl_c_keeps_the_fit_before_it(long_work, walks):
    data, options = long_work
    model = ms.StateAggregation(lambda_ratio=0.3).fit(walks)
    before = model.memberships_
    model.set_params(**options)
    interrupted_after(0.3, lambda: model.fit(data))
    assert model.memberships_ is before and np.isfinite(model.score(np.ones((30, 30)) * 2))


def test_ctrl_c_while_lambda_is_chosen(walks):
    assert interrupted_after(0.2, lambda: ms.path(walks * 20, points=60, floor=1e-4, max_rank=25, gap=1e-8, tolerance=1e-10)) < 1.0


def test_other_threads_run_meanwhile(long_work):
    data, options = long_work
    ticks = []
    done = threading.Event()

    def tick():
        while not done.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    ms.fit(data, time_limit=1.0, **options)
    done.set()
    thread.join()
    assert max(np.diff(ticks)) < 0.5 and len(ticks) > 20


def test_fits_in_several_threads_agree(counts):
    expected = ms.fit(counts, lambda_ratio=0.3)
    found = [None] * 4

    def work(k):
        found[k] = ms.fit(counts, lambda_ratio=0.3)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert all(np.array_equal(f.factors[0], expected.factors[0]) for f in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_can_fit(counts):
    ms.fit(counts, lambda_ratio=0.3)
    code = "import os, sys, numpy as np, metastate as ms\nc = np.eye(6) * 9 + 1\nms.fit(c, lambda_ratio=0.5)\npid = os.fork()\nif pid == 0:\n    ms.fit(c, lambda_ratio=0.5)\n    os._exit(0)\nsys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], timeout=60).returncode == 0


def test_no_panic_reaches_python(capfd):
    with pytest.raises(RuntimeError, match="E-PY-PANIC.*asked to"):
        ms._core.panics()
    assert "bug in the Python package" in ms.explain("E-PY-PANIC")
    # Counts of rank one with a vanishing lambda once met a panic in the solver.
    x = np.arange(1.0, 11)[:, None]
    try:
        assert ms.fit(x @ x.T, kind="counts", lambda_ratio=0.5).rank == 1
    except ValueError as refused:
        assert "error[E-" in str(refused)


def test_progress_and_logging(walks, caplog):
    said = []

    class Bar:
        def __init__(self, **options):
            said.append("begun")

        def set_description_str(self, text, refresh):
            said.append(text)

        def set_postfix_str(self, text, refresh):
            pass

        def update(self, n):
            pass

        def close(self):
            said.append("closed")

    with caplog.at_level(logging.INFO, "metastate"):
        ms.fit(walks, progress=Bar, max_rank=4)
    assert said[0] == "begun" and said[-1] == "closed" and "choosing" in said
    assert "states," in caplog.text and "transitions" in caplog.text

    class Broken(Bar):
        def update(self, n):
            raise ZeroDivisionError("the bar broke")

    with pytest.raises(ZeroDivisionError, match="the bar broke"):
        ms.fit(walks, progress=Broken, max_rank=4)


def test_tqdm(walks, capsys):
    from tqdm import tqdm

    ms.fit(walks, progress=tqdm, lambda_ratio=0.3)
    ms.fit(walks, progress=True, lambda_ratio=0.3)
    assert capsys.readouterr().err.count("zones") >= 2


def test_import_is_quick_and_needs_numpy_only():
    code = "import sys, time\nimport numpy\nt = time.perf_counter()\nimport metastate\nprint(time.perf_counter() - t)\nprint([m for m in ('scipy', 'sklearn', 'pandas', 'matplotlib', 'pyarrow', 'deeptime', 'tqdm') if m in sys.modules])"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines() for _ in range(3)]
    assert min(float(r[0]) for r in runs) < 0.2 and runs[0][1] == "[]"


def test_time_limit_gives_a_point(long_work):
    data, options = long_work
    result = ms.fit(data, time_limit=0.5, **options)
    assert result.certificate["status"] == "time-limit" and result.certificate["certified_gap"] > 0
