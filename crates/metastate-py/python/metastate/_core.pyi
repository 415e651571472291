from os import PathLike
from typing import Any, Callable, Sequence

import numpy as np
from numpy.typing import NDArray

__version__: str

_Listener = Callable[[str, str], None] | None
_Path = str | PathLike[str]

class InputError(ValueError):
    code: str

class FileError(OSError):
    code: str

class Fitted:
    def summary(self) -> str: ...
    def arrays(self) -> dict[str, Any]: ...
    def files(self) -> dict[str, bytes]: ...
    def save(self, place: _Path, force: bool) -> None: ...
    def verify(self, place: _Path) -> str: ...

def load(place: _Path) -> tuple[str, dict[str, Any]]: ...
def write_files(place: _Path, files: Sequence[tuple[str, bytes]], force: bool) -> None: ...
def options(command: str) -> list[dict[str, Any]]: ...
def option_name(parameter: str) -> str: ...
def explain(code: str | None = None) -> str: ...
def fit(
    given: tuple[Any, ...],
    values: dict[str, Any],
    whole_path: bool,
    called: str,
    labels: list[Any] | None = None,
    weights: list[float] | None = None,
    listener: _Listener = None,
) -> Fitted: ...
def compare(given: tuple[Any, ...], values: dict[str, Any], labels: list[Any] | None = None, listener: _Listener = None) -> str: ...
def verify(
    place: _Path,
    given: tuple[Any, ...] | None = None,
    labels: list[Any] | None = None,
    weights: list[float] | None = None,
    listener: _Listener = None,
) -> str: ...
def simulate(what: str, values: dict[str, Any]) -> str: ...
def score(
    u: NDArray[np.float64],
    v: NDArray[np.float64],
    arrivals: list[float],
    states: list[Any],
    given: tuple[Any, ...],
    values: dict[str, Any],
    labels: list[Any] | None = None,
) -> tuple[float, float, float, float]: ...
def memberships(
    u: NDArray[np.float64],
    v: NDArray[np.float64],
    how: tuple[str, float, list[float]],
    given: tuple[Any, ...],
    columns: list[int | None],
    transitions: float,
    exponent: float,
) -> NDArray[np.float64]: ...
def panics() -> None: ...
