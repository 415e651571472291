"""Which options of the catalogue are parameters here; the catalogue itself knows names, defaults and what is allowed."""

from __future__ import annotations

from typing import Any, Mapping

from ._core import option_name

# Options of the command that are no parameters here, and why.
NOT_PARAMETERS = {
    "inputs": "the data are the argument of fit",
    "labels": "an argument of fit: labels belong to the data",
    "weights": "an argument of fit: weights belong to the data",
    "out": "results stay in memory; save() writes the folder",
    "estimate": "a function of its own",
    "force": "an argument of save()",
    "checkpoint-every": "checkpoints belong to runs of the command",
    "resume": "checkpoints belong to runs of the command",
    "json": "results are objects",
    "quiet": "see progress and logging",
}

# Parameters that the command does not have.
OWN_PARAMETERS = {"progress"}


def given(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that are not left to their defaults: None is, and "auto" is for lambda."""
    return {n: v for n, v in parameters.items() if v is not None and not (n == "lam" and isinstance(v, str) and v == "auto")}


__all__ = ["NOT_PARAMETERS", "OWN_PARAMETERS", "given", "option_name"]
