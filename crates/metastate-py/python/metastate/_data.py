"""Recognises what the user gives, and hands it to the reader without copying where its layout allows."""

from __future__ import annotations

import difflib
import os
from typing import Any, Final, Iterable, Mapping, NamedTuple

import numpy as np

from ._core import FileError, InputError
from ._engines import counted

_NUMBERS = (np.float64, np.float32, np.int64, np.int32, np.uint32)
# What the reader can look at where it lies; NumPy copies what is laid out otherwise.
_LAYOUT: Final = ("C_CONTIGUOUS", "ALIGNED")


class Given(NamedTuple):
    """Data for the reader."""

    payload: tuple[Any, ...]
    labels: list[Any] | None = None
    weights: list[float] | None = None
    kind: str | None = None
    """What the data can only be, where their type tells."""
    columns: int | None = None
    """Columns of a matrix."""
    lagtime: int | None = None
    """Time steps in one transition, where the data know it."""
    names: list[str] | None = None
    """Names of the columns of a square data frame."""
    log: bool = False
    """Whether the columns are those of a list of episodes."""


def refuse(sentence: str, remedy: str | None = None, code: str = "E-CLI-ARGUMENT") -> InputError:
    error = InputError(f"error[{code}]: {sentence}" + (f"\n  try: {remedy}" if remedy else ""))
    error.code = code
    return error


KINDS: Final = ("trips", "trajectories", "counts", "matrix")


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """The known word that is nearest, as a question; none where nothing is near."""
    near = difflib.get_close_matches(word, list(known), 1)
    return f"did you mean {near[0]!r}?" if near else None


def recognise(
    data: Any,
    kind: str | None = None,
    labels: Any = None,
    weights: Any = None,
    named_columns: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Given:
    """The data in a form that the reader takes; what lies in an engine is counted there, as the options say."""
    if kind is not None and kind not in KINDS:
        raise refuse(f"kind is {kind!r}; it is one of {', '.join(KINDS)}", did_you_mean(str(kind), KINDS))
    there = None if options is None else counted(data, {**options, "kind": kind})
    given = _recognise(data, kind, named_columns) if there is None else Given(("counted", there))
    listed = given.labels if labels is None else np.asarray(labels).tolist()
    weighed = given.weights if weights is None else np.asarray(weights, dtype=np.float64).tolist()
    return given._replace(labels=listed, weights=weighed)


def _recognise(data: Any, kind: str | None, named_columns: bool) -> Given:
    if isinstance(data, (str, os.PathLike)):
        return Given(("files", [_found(data)]))
    if isinstance(data, (list, tuple)) and data and all(isinstance(x, os.PathLike) for x in data):
        return Given(("files", [_found(x) for x in data]))
    if hasattr(data, "obsp") and hasattr(data, "obs_names"):  # AnnData: a transition matrix between cells
        return _anndata(data, kind)
    if hasattr(data, "count_matrix"):  # deeptime's count models
        matrix = _recognise(data.count_matrix, "counts", False)
        symbols = getattr(data, "state_symbols", None)
        lag = getattr(data, "lagtime", None)
        named = None if symbols is None else np.asarray(symbols).tolist()
        return matrix._replace(kind="counts", labels=named, lagtime=None if lag is None else int(lag))
    if hasattr(data, "transition_matrix") and hasattr(data, "stationary_distribution"):  # and its Markov state models
        return _recognise(data.transition_matrix, "matrix", False)._replace(
            kind="matrix",
            weights=np.asarray(data.stationary_distribution, dtype=np.float64).tolist(),
            lagtime=int(getattr(data, "lagtime", None) or 1),
        )
    if hasattr(data, "tocsr"):
        return _sparse(data.tocsr())
    if hasattr(data, "collect_schema") and not hasattr(data, "height") and hasattr(data, "collect"):  # a lazy frame of Polars
        return _recognise(data.collect(engine="streaming"), kind, named_columns)
    if type(data).__module__.startswith("ibis.expr"):
        return _recognise(data.to_pyarrow(), kind, named_columns)
    if isinstance(data, dict):
        alone = next((name for name, values in data.items() if np.ndim(values) == 0), None)
        if alone is not None:
            raise refuse(f"the dict holds {data[alone]!r} as its column {str(alone)!r}, which is no list", "give a dict of columns of one length: {'from': [...], 'to': [...]}")
        return Given(("columns", {str(name): _column(values) for name, values in data.items()}))
    if hasattr(data, "columns") and hasattr(data, "shape") and not named_columns and kind in (None, "counts", "matrix"):
        square = _square_frame(data, kind)
        if square is not None:
            return square
    if hasattr(data, "__arrow_c_stream__"):
        try:
            data.__arrow_c_stream__
            return Given(("arrow", data)) if not _needs_pyarrow(data) else _frame_columns(data)
        except ImportError:
            return _frame_columns(data)
    if hasattr(data, "columns") and hasattr(data, "__getitem__"):
        return _frame_columns(data)
    if isinstance(data, (list, tuple)) and kind not in ("counts", "matrix"):
        return _lists(data, kind)
    return _array(np.asanyarray(data), kind)


def _found(name: str | os.PathLike[str]) -> str:
    """The name of a file that is there; patterns and standard input are the reader's."""
    text = os.fspath(name)
    if text != "-" and not any(c in text for c in "*?[") and not os.path.exists(text):
        error = MissingFileError(f"error[E-INGEST-READ]: there is no file {text!r}\n  try: check the name; relative names begin in {os.getcwd()}")
        error.code = "E-INGEST-READ"
        raise error
    return text


class MissingFileError(FileError, FileNotFoundError, InputError):
    """A file that is not there: a `FileNotFoundError`, a `FileError` and an `InputError`."""


def _anndata(data: Any, kind: str | None) -> Given:
    names = [k for k in data.obsp if k in ("transition_matrix", "T", "T_fwd", "connectivities")]
    if not names:
        raise refuse("this AnnData holds no transition matrix in obsp", "put one into adata.obsp['transition_matrix'], or give the matrix itself")
    matrix = data.obsp[names[0]]
    given = _recognise(matrix, kind or "matrix", False)
    return given._replace(kind=kind or ("counts" if names[0] == "connectivities" else "matrix"), labels=[str(n) for n in data.obs_names])


def _needs_pyarrow(data: Any) -> bool:
    """pandas exports its frames through pyarrow, which may be missing."""
    if not type(data).__module__.startswith("pandas"):
        return False
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return True
    return False


def _sparse(csr: Any) -> Given:
    if np.iscomplexobj(csr.data):
        raise refuse("Complex data not supported: counts and probabilities are real numbers")
    values = csr.data if csr.data.dtype in _NUMBERS else csr.data.astype(np.float64)
    rows, cols = csr.shape
    arrays = (np.require(a, None, _LAYOUT) for a in (csr.indptr, csr.indices, values))
    return Given(("sparse", *arrays, int(rows), int(cols)), columns=int(cols))


def _dense(array: np.ndarray[Any, Any]) -> Given:
    if np.iscomplexobj(array):
        raise refuse("Complex data not supported: counts and probabilities are real numbers")
    if array.ndim != 2:
        raise refuse(
            f"a matrix has two dimensions, this array has {array.ndim}. Reshape your data",
            "one-dimensional arrays of states are trajectories",
            "E-INGEST-SIZE",
        )
    try:
        numbers = np.require(array, np.float64, ["ALIGNED"])
    except ValueError as cause:
        raise refuse(f"a matrix of numbers is needed ({cause})") from None
    if numbers.shape[0] == 0 or numbers.shape[1] == 0:
        what = "feature" if numbers.shape[0] else "sample"
        raise refuse(f"0 {what}(s) (shape={numbers.shape}) while a minimum of 1 is required.", None, "E-INGEST-SIZE")
    return Given(("dense", numbers), columns=int(numbers.shape[1]))


def _square_frame(frame: Any, kind: str | None) -> Given | None:
    """A data frame whose columns are the states that its rows are."""
    names = list(frame.columns)
    if frame.shape[0] != len(names) or {"from", "to", "count"} <= {str(n) for n in names}:
        return None
    index = getattr(frame, "index", None)
    if kind is None and (index is None or list(index) != names):
        return None
    given = _dense(np.asarray(frame))
    text = [str(n) for n in names] if all(isinstance(n, str) for n in names) else None
    return given._replace(labels=names, names=text)


def _frame_columns(frame: Any) -> Given:
    return Given(("columns", {str(name): _column(frame[name]) for name in frame.columns}))


def _column(values: Any) -> Any:
    array = np.asarray(values)
    if array.dtype.kind in "iu":
        return np.require(array, np.int64, _LAYOUT)
    if array.dtype.kind == "f":
        return np.require(array, np.float64, _LAYOUT)
    if array.dtype.kind == "b":
        return np.require(array, None, _LAYOUT)
    return [None if v is None or v != v else str(v) for v in array.tolist()]


def _walk(states: Any) -> Any:
    array = np.asarray(states)
    if array.ndim != 1:
        raise refuse(f"a trajectory has one dimension, this one has {array.ndim}", "give a list of one-dimensional arrays")
    if array.dtype.kind in "iu" or array.size == 0:
        return np.require(array, np.int64, _LAYOUT)
    if array.dtype.kind == "f" and np.all(np.isfinite(array)) and np.all(array == np.floor(array)):
        return np.require(array, np.int64, _LAYOUT)
    if array.dtype.kind in "UO":
        return ["" if v is None else str(v) for v in array.tolist()]
    raise refuse("trajectories must be whole numbers or names, this array holds others", "save the numbers of the states: array.astype('int64')")


# How the columns of episodes are called, by the options that name them.
LOG_COLUMNS: Final = {"from_column": "state", "to_column": "next", "action": "action", "reward": "reward", "id": "episode", "time": "step"}


def label_of(value: Any) -> int | str:
    """The label of a state or an action: whole numbers stay, everything else is known by its text."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
        return int(value)
    return value if isinstance(value, str) else str(value)


def _is_episodes(data: Any) -> bool:
    first = next((episode for episode in data if isinstance(episode, (list, tuple)) and episode), None)
    return first is not None and isinstance(first[0], tuple) and len(first[0]) in (4, 5)


def _episodes(data: Any) -> Given:
    """Episodes as gymnasium gives them: lists of (state, action, reward, next state), and perhaps whether the episode ended there by itself."""
    columns: dict[str, list[Any]] = {name: [] for name in LOG_COLUMNS.values()}
    for number, episode in enumerate(data):
        for step, record in enumerate(episode):
            if not isinstance(record, (list, tuple)) or len(record) not in (4, 5):
                raise refuse(f"step {step} of episode {number} is no (state, action, reward, next state): {record!r}", "a fifth value may say whether the episode ended there by itself")
            state, action, reward, following = record[:4]
            ended = len(record) == 5 and bool(record[4])
            row = (label_of(state), "end" if ended else label_of(following), label_of(action), float(reward), number, step)
            for values, value in zip(columns.values(), row):
                values.append(value)
    if not columns["state"]:
        raise refuse("no episode holds a step", None, "E-INGEST-SIZE")

    def packed(name: str) -> Any:
        whole = name in ("reward", "episode", "step") or all(isinstance(v, int) for v in columns[name])
        return _column(columns[name]) if whole else [str(v) for v in columns[name]]

    return Given(("columns", {name: packed(name) for name in columns}), kind="trips", log=True)


def _lists(data: list[Any] | tuple[Any, ...], kind: str | None) -> Given:
    if kind in (None, "trips") and _is_episodes(data):
        return _episodes(data)
    if not data:
        raise refuse("an empty list was given", "give a list of trajectories, each a list of states", "E-INGEST-SIZE")
    if kind == "trips":
        return _array(np.asarray(data), kind)
    if all(np.ndim(x) == 0 for x in data):
        return Given(("walks", [_walk(data)]), kind="trajectories")
    return Given(("walks", [_walk(x) for x in data]), kind="trajectories")


def _whole(array: np.ndarray[Any, Any]) -> bool:
    return array.dtype.kind == "f" and array.size > 0 and bool(np.all(np.isfinite(array)) and np.all(array == np.floor(array)))


def _array(array: np.ndarray[Any, Any], kind: str | None) -> Given:
    if kind == "trips":
        if array.ndim != 2 or array.shape[1] != 2:
            raise refuse("trips as an array have two columns, from and to", "give a table with named columns for anything else")
        return Given(("columns", {"from": _column(array[:, 0]), "to": _column(array[:, 1])}))
    integer = array.dtype.kind in "iu"
    if kind is None and integer and array.ndim == 2 and array.shape[1] == 2 and array.shape[0] > 2:
        raise refuse(
            f"an array of {array.shape[0]} x 2 whole numbers may be {array.shape[0]} trips or {array.shape[0]} trajectories of two frames",
            "say which: kind='trips' or kind='trajectories' (two long trajectories are array.T)",
        )
    if array.ndim == 1 and array.dtype.kind == "f" and array.size and kind in (None, "trajectories") and not _whole(array):
        at = int(np.flatnonzero(~(np.isfinite(array) & (array == np.floor(array))))[0])
        raise refuse(
            f"a one-dimensional array is a trajectory of states, and {array[at]:g} (frame {at}) is no state. Reshape your data if it is a matrix",
            "states are whole numbers from 0, with -1 where none is known; cluster coordinates into states first",
            "E-INGEST-SIZE",
        )
    if kind == "trajectories" or (kind is None and array.ndim == 1 and (array.dtype.kind in "iuU" or _whole(array))):
        return Given(("walks", [_walk(row) for row in np.atleast_2d(array)]), kind="trajectories")
    if kind is None and integer and array.ndim == 2 and array.shape[0] != array.shape[1]:
        return Given(("walks", [_walk(row) for row in array]), kind="trajectories")
    return _dense(array)
