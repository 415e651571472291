"""Data for the tests: small ones made here, real ones from beside the repository."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import metastate as ms

ROOT = Path(__file__).resolve().parents[3]
SHARED = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def planted():
    """60 states behind 3 hidden ones, with 200,000 transitions."""
    return ms.simulate("planted", states=60, rank=3, steps=200_000, seed=1)


@pytest.fixture(scope="session")
def counts(planted):
    return planted.counts_matrix()


@pytest.fixture(scope="session")
def walks():
    """Twelve trajectories of one chain."""
    walk = ms.simulate("trajectory", states=30, rank=3, steps=23_999, seed=2).trajectory
    return [np.array(part) for part in np.array_split(walk, 12)]


@pytest.fixture(scope="session")
def command():
    """Runs the command `metastate`."""
    binary = os.environ.get("METASTATE")
    if not binary:
        pytest.fail("METASTATE must name the command that is to be compared with; scripts/test sets it")

    def run(*words):
        return subprocess.run([binary, *map(str, words)], check=True, capture_output=True, text=True)

    return run


@pytest.fixture
def real_data():
    """A file of the data beside the repository; where it is absent, the test says what it did not check."""

    def find(name, unchecked):
        if not (SHARED / name).exists():
            pytest.skip(f"{SHARED / name} is absent; not checked: {unchecked}")
        return SHARED / name

    return find
