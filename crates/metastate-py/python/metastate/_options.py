"""From Python's parameters to the words of the command, which checks them and knows their defaults."""

from __future__ import annotations

import numbers
import os
from typing import Any, Mapping

# Words that Python keeps for itself, or that would say little as a parameter.
RENAMED = {"lam": "lambda", "kind": "as", "from_column": "from", "to_column": "to"}

# Options of the command that are no parameters here, and why.
NOT_PARAMETERS = {
    "inputs": "the data are the argument of fit",
    "labels": "an argument of fit: labels belong to the data",
    "weights": "an argument of fit: weights belong to the data",
    "out": "results stay in memory; save() writes the folder",
    "force": "an argument of save()",
    "checkpoint-every": "checkpoints belong to runs of the command",
    "resume": "checkpoints belong to runs of the command",
    "json": "results are objects",
    "quiet": "see progress and logging",
}

# Parameters that the command does not have.
OWN_PARAMETERS = {"progress"}


def option_name(parameter: str) -> str:
    """The command's name of a parameter, without dashes in front."""
    return RENAMED.get(parameter, parameter.replace("_", "-"))


def words(options: Mapping[str, Any]) -> list[str]:
    """The options as they would be typed; None is left to the command's default."""
    typed = []
    for parameter, value in options.items():
        if value is None or value is False or (parameter == "lam" and isinstance(value, str) and value == "auto"):
            continue
        name = option_name(parameter)
        typed.append(f"--{name}" if value is True else f"--{name}={_text(value)}")
    return typed


def _text(value: Any) -> str:
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
    if isinstance(value, (list, tuple)):
        return ",".join(_text(v) for v in value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
