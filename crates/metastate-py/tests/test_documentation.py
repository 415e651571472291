"""Examples that people copy: those in docstrings, in the README and in the notebooks."""

from __future__ import annotations

import doctest
import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import metastate as ms

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "guide"
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


def python_blocks(document):
    return re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL)


@pytest.mark.parametrize(
    "document", [p for p in [ROOT / "README.md", *sorted((GUIDE / "src").glob("*.md"))] if python_blocks(p)], ids=lambda p: p.stem
)
def test_documents(document, tmp_path):
    """README and guide; the shell's blocks are executed by the tests of the command."""
    shutil.copytree(GUIDE / "data", tmp_path / "data")
    for block in python_blocks(document):
        subprocess.run([sys.executable, "-c", block], check=True, timeout=120, cwd=tmp_path)


def test_readme_and_guide_have_python():
    assert python_blocks(ROOT / "README.md") and python_blocks(GUIDE / "src" / "protein.md")


def test_the_data_of_the_guide_are_what_their_script_makes(tmp_path):
    subprocess.run([sys.executable, GUIDE / "data" / "make.py", tmp_path], check=True)
    made = sorted(p.name for p in tmp_path.iterdir())
    assert made == sorted(p.name for p in (GUIDE / "data").iterdir() if p.suffix in {".csv", ".txt"})
    for name in made:
        assert (tmp_path / name).read_bytes() == (GUIDE / "data" / name).read_bytes(), name


def told_by(path, folder):
    """Runs a notebook from top to bottom in a folder; what it prints."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)
    assert all(not c.outputs for c in book.cells if c.cell_type == "code")  # kept without outputs
    NotebookClient(book, timeout=180, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    return " ".join(o.get("text", "") for c in book.cells if c.cell_type == "code" for o in c.outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebooks(path):
    assert "certified gap" in told_by(path, path.parent)


@pytest.mark.parametrize("path", [p for p in NOTEBOOKS if "shared" in p.read_text()], ids=lambda p: p.stem)
def test_notebooks_without_the_real_data(path, tmp_path):
    """They simulate their own, and say so."""
    folder = tmp_path / "a" / "b" / "c"
    folder.mkdir(parents=True)
    told = told_by(path, folder)
    assert "is absent" in told or "are absent" in told
    assert "certified gap" in told


def test_there_are_four_notebooks():
    assert [p.stem for p in NOTEBOOKS] == ["clicks", "planted", "protein", "taxi_zones"]
