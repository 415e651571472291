"""What a type checker says of mistakes."""

import subprocess
import sys
from pathlib import Path

import pytest


def test_ten_mistakes_are_ten_errors():
    pytest.importorskip("mypy")
    file = Path(__file__).with_name("mistakes.py")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", "--config-file=", str(file)]
    said = subprocess.run(command, capture_output=True, text=True, cwd=file.parent).stdout
    lines = {line.split(":")[1] for line in said.splitlines() if "mistakes.py" in line and "error:" in line}
    wrong = [str(n) for n, line in enumerate(file.read_text().splitlines(), 1) if line.startswith("ms.")]
    assert sorted(lines, key=int) == wrong, said
