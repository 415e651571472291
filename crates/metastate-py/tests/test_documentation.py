"""Examples that people copy: those in docstrings, in the README and in the notebooks."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import metastate as ms

ROOT = Path(__file__).resolve().parents[3]
NOTEBOOKS = sorted((ROOT / "examples" / "python").glob("*.ipynb"))


@pytest.mark.parametrize("name", ["", "._api", "._estimator", "._result"])
def test_docstrings(name):
    found = doctest.testmod(importlib.import_module(f"metastate{name}"))
    assert found.attempted > 0 and found.failed == 0


def test_every_public_function_has_an_example():
    for name in ms.__all__:
        thing = getattr(ms, name)
        if callable(thing) and not isinstance(thing, type):
            assert ">>>" in thing.__doc__, name
    assert ">>>" in ms.StateAggregation.__doc__ and ">>>" in ms.Result.__doc__


def test_readme():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        subprocess.run([sys.executable, "-c", block], check=True, timeout=120)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebooks(path):
    """Each notebook runs from top to bottom; without the real data it simulates its own and says so."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}).execute()
    text = " ".join(o.get("text", "") for c in book.cells if c.cell_type == "code" for o in c.outputs)
    assert "certified gap" in text


def test_there_are_four_notebooks():
    assert [p.stem for p in NOTEBOOKS] == ["click_stream", "planted_chain", "protein_folding", "taxi_zones"]
