"""Times, rates and fates of a result. Everything is in frames of the data, and meta-states count from 0, as all indices in Python; the tables of a result folder count from 1.

The chain of the meta-states is estimated on the data at the memberships found: with P the chain of the states, D their departures and ``W = P^4 U``,

    K = (W^T D W)^-1 W^T D P W,

so that neither the prior of a refit nor the penalty shrinks its times. Passage times between meta-states are those between their states, by the states' own chain, where that is small enough.
Intervals hold 90 %: each part of the data (a block of frames) weighs a little less in turn, and what a number changes by is its error. ``docs/kinetics.md`` has bias, spread and coverage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, NamedTuple, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._data import recognise, refuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._result import Result

Array = NDArray[np.float64]


class Interval(NamedTuple):
    """The two ends of 90 % intervals, in the shape of what they belong to; NaN where there is none."""

    low: Array
    high: Array


class Estimate(NamedTuple):
    """Numbers, with their intervals: for trajectories always, for single transitions after ``bootstrap=``; None for a given matrix."""

    value: Array
    interval: Interval | None


class Flux(NamedTuple):
    """Transition path theory from A to B: ``f_jk = a_j q-_j K_jk q+_k``, with the stationary law a and the two committors."""

    gross: Array
    """Passages from A to B along j -> k in one frame."""
    net: Array
    """``max(f_jk - f_kj, 0)``."""
    forward: Array
    """Probability of reaching B before A."""
    backward: Array
    """Probability of having come from A rather than from B."""
    total: float
    """Passages in one frame."""
    rate: float
    """Passages in one frame while on the way from A; one over it is the mean time from A to B."""
    pathways: tuple[tuple[tuple[int, ...], float], ...]
    """The strongest ways, with what they carry; between meta-states only."""


class ImpliedTimescales(NamedTuple):
    """Timescales against the lag, in frames: one row a lag, one column a process."""

    lags: NDArray[np.int64]
    timescales: Array
    low: Array
    high: Array
    advice: str | None
    """Which lag to take, in one sentence."""


class ChapmanKolmogorov(NamedTuple):
    """``K^n`` beside the chain estimated at n lags: lags x meta-states x meta-states."""

    lags: NDArray[np.int64]
    predicted: Array
    estimated: Array
    low: Array
    high: Array
    """Wilson's 95 % interval of what was estimated."""

    @property
    def agrees(self) -> float:
        """Share of the entries whose prediction lies in the interval."""
        return float(((self.predicted >= self.low) & (self.predicted <= self.high)).mean())


def _chosen(result: Result, which: int | Sequence[int], what: str) -> list[int]:
    listed = [int(j) for j in np.atleast_1d(np.asarray(which))]
    for j in listed:
        if not 0 <= j < result.rank:
            raise refuse(f"{what} names the meta-state {j}; there are {result.rank}, from 0 to {result.rank - 1}")
    return listed


def _states(result: Result, labels: Iterable[Any], what: str) -> list[bool]:
    place = {str(label): k for k, label in enumerate(result.states)}
    inside = [False] * len(result.states)
    for label in [labels] if isinstance(labels, (str, int, np.integer)) else labels:
        if str(label) not in place:
            import difflib

            near = difflib.get_close_matches(str(label), list(place), 1)
            raise refuse(f"{what} names the state {label!r}, which the result does not know", f"did you mean {near[0]!r}?" if near else "result.states lists them")
        inside[place[str(label)]] = True
    return inside


def two_sided() -> Exception:
    """What is said where something needs a chain that goes on from where it arrives."""
    return refuse(
        "origins and destinations are two different sets, so that no transition can follow another",
        "there is no latent chain, and no times, forecasts or stationary law",
        "E-DATA-TWO-SIDED",
    )


def chain(result: Result) -> Array:
    if result.destinations is not None:
        raise two_sided()
    if result.kinetic_chain is None:
        raise refuse("this result was written without kinetics", "fit again", "E-CLI-RESULT")
    return result.kinetic_chain


def _live(result: Result) -> _core.Fitted:
    if result._live is None:
        raise refuse("questions about single states need the data of the fit, and this result was loaded", "ask for meta-states, or fit again", "E-CLI-INPUTS-GONE")
    return result._live


def _cut(stacked: Array | None, s: int) -> list[Array]:
    return [] if stacked is None else [stacked[b * s : (b + 1) * s] for b in range(len(stacked) // s)]


def _parts(result: Result) -> list[Array]:
    """The chain with each part of the data weighing less."""
    return [np.ascontiguousarray(part) for part in _cut(result._part_chains, result.rank)]


def _interval(value: Array, parts: list[Array], times: bool) -> Interval | None:
    if not parts:
        return None
    low, high = _core.intervals(np.ravel(value).tolist(), np.ascontiguousarray([np.ravel(d) for d in parts]), times)
    return Interval(np.reshape(low, value.shape), np.reshape(high, value.shape))


def timescales(result: Result) -> Estimate:
    modes = np.asarray(_core.chain_modes(result._projected, chain(result))[2])[1:] * result.lagtime
    parts = result._part_timescales
    return Estimate(modes, _interval(modes, [] if parts is None else [row * result.lagtime for row in parts], True))


def eigenvalues(result: Result) -> NDArray[np.complex128]:
    re, im, _ = _core.chain_modes(result._projected, chain(result))
    return np.asarray(re) + 1j * np.asarray(im)


def stationary(result: Result) -> Estimate:
    start = (result.weights @ result.memberships).tolist()
    law = np.asarray(_core.chain_stationary(chain(result), start)[2])
    return Estimate(law, _interval(law, [np.asarray(_core.chain_stationary(part, start)[2]) for part in _parts(result)], False))


def closed_classes(result: Result) -> list[tuple[list[int], Array]]:
    classes, laws, _ = _core.chain_stationary(chain(result), (result.weights @ result.memberships).tolist())
    return [(list(c), np.asarray(law)) for c, law in zip(classes, laws)]


def mfpt(result: Result, source: Any, target: Any, states: bool) -> Estimate:
    lag = result.lagtime
    if states:
        if source is None:
            return Estimate(lag * np.asarray(_core.state_steps(_live(result), _states(result, target, "target"))).ravel(), None)
        found = _core.state_passage(_live(result), _states(result, source, "source"), _states(result, target, "target"))
        return Estimate(lag * np.asarray(found).ravel()[0], None)
    by_states = result._passage_states
    if by_states is not None and bool(np.isfinite(by_states).any()):
        whole, parts = by_states, _cut(result._part_passage, result.rank)
    else:
        whole, parts = np.asarray(_core.chain_passage(chain(result))), [np.asarray(_core.chain_passage(part)) for part in _parts(result)]
    rows = slice(None) if source is None else _chosen(result, source, "source")[0]
    columns = slice(None) if target is None else _chosen(result, target, "target")[0]
    value = lag * np.asarray(whole[rows, columns])
    return Estimate(value, _interval(value, [lag * np.asarray(part[rows, columns]) for part in parts], True))


def committor(result: Result, source: Any, target: Any, states: bool) -> Estimate:
    if states:
        found = _core.state_committor(_live(result), _states(result, source, "source"), _states(result, target, "target"))
        return Estimate(np.asarray(found).ravel(), None)
    a, b = _chosen(result, source, "source"), _chosen(result, target, "target")
    value = np.asarray(_core.chain_committor(chain(result), a, b))
    return Estimate(value, _interval(value, [np.asarray(_core.chain_committor(part, a, b)) for part in _parts(result)], False))


def reactive_flux(result: Result, source: Any, target: Any, states: bool, share: float) -> Flux:
    if states:
        found = _core.state_flux(_live(result), _states(result, source, "source"), _states(result, target, "target"))
    else:
        found = _core.chain_flux(chain(result), _chosen(result, source, "source"), _chosen(result, target, "target"), share)
    lag = result.lagtime
    ways = tuple((tuple(nodes), flux / lag) for nodes, flux in found["pathways"])
    return Flux(found["gross"] / lag, found["net"] / lag, found["forward"], found["backward"], found["total"] / lag, found["rate"] / lag, ways)


def fates(result: Result, sets: Any) -> tuple[list[list[Any]], Array]:
    if sets is not None or result._live is not None:
        live = _live(result)
        masks = [] if sets is None else [_states(result, s, "a set") for s in sets]
        found = np.asarray(_core.state_fates(live, masks))
        if sets is not None:
            return [list(s) for s in sets], found
        members: dict[int, list[Any]] = {}
        class_of, closed = _core.state_classes(live)
        for label, c in zip(result.states, class_of):
            if closed[c]:
                members.setdefault(c, []).append(label)
        order = sorted(members, key=lambda c: (-len(members[c]), -c))
        return [members[c] for c in order][: found.shape[1]], found
    classes, of_metastates = _core.chain_fates(chain(result))
    return [list(c) for c in classes], result.memberships @ np.asarray(of_metastates)


def forecast(result: Result, start: Any, steps: int) -> Array:
    if start is None:
        law = result.weights / result.weights.sum()
    elif isinstance(start, np.ndarray) and start.dtype.kind == "f":
        law = start / start.sum()
    else:
        law = np.asarray(_states(result, start, "start"), dtype=np.float64)
        law /= law.sum()
    if len(law) != len(result.states):
        raise refuse(f"start has {len(law)} shares; there are {len(result.states)} states")
    if steps < 0:
        raise refuse(f"steps is {steps}; it must be zero or more")
    if steps == 0:
        return np.asarray(law)
    return np.asarray(result.profiles @ (np.linalg.matrix_power(chain(result).T, steps - 1) @ (result.memberships.T @ law)))


def _lags(result: Result, lags: Any) -> list[int]:
    listed = [int(x) for x in (np.array([1, 2, 5, 10]) * result.lagtime if lags is None else np.atleast_1d(lags))]
    if not listed or min(listed) < 1:
        raise refuse(f"lags are {listed}; they must be whole numbers of frames, 1 or more")
    return listed


def _at_lags(result: Result, data: Any, lags: list[int], bands: bool) -> list[dict[str, Any]]:
    given = recognise(data, "trajectories" if not isinstance(data, (str, bytes)) and not hasattr(data, "columns") else None)
    settings = result.summary["settings"]["input"]
    values: dict[str, Any] = {"lag": result.lagtime, "lambda_ratio": 0.5, "kind": "trajectories"}
    for ours, theirs in (("id", "id"), ("time", "time"), ("state", "state"), ("count", "count"), ("where", "where")):
        if settings.get(theirs) is not None:
            values[ours] = settings[theirs]
    states = list(result.states)
    return [_core.at_lag(result.memberships, states, given, values, lag, bands) for lag in lags]


def implied_timescales(result: Result, data: Any, lags: Any, bands: bool) -> ImpliedTimescales:
    listed = _lags(result, lags)
    found = _at_lags(result, data, listed, bands)

    def table(key: str) -> Array:
        return np.array([[*e[key], *([np.nan] * (result.rank - 1 - len(e[key])))] for e in found], dtype=np.float64).reshape(len(listed), result.rank - 1)

    times, low, high = table("timescales"), table("low"), table("high")
    points = [(float(lag), float(times[k, 0]), float(low[k, 0]), float(high[k, 0])) for k, lag in enumerate(listed) if result.rank > 1]
    return ImpliedTimescales(np.asarray(listed), times, low, high, _core.lag_advice(points, float(result.lagtime)))


def ck_test(result: Result, data: Any, steps: Any) -> ChapmanKolmogorov:
    multiples = [int(n) for n in np.atleast_1d([1, 2, 5, 10] if steps is None else steps)]
    lags = [n * result.lagtime for n in multiples]
    found = _at_lags(result, data, _lags(result, lags), False)
    predicted = np.array([np.linalg.matrix_power(chain(result), n) for n in multiples])
    estimated = np.array([np.clip(e["projected"], 0, 1) for e in found])
    ends = np.array(
        [[[_core.share_interval(float(x), max(1.0, v)) for x in row] for row, v in zip(k, e["visits"])] for k, e in zip(estimated, found)]
    )
    return ChapmanKolmogorov(np.asarray(lags), predicted, estimated, ends[..., 0], ends[..., 1])


# Pictures.


def plot_timescales(result: Result, ax: Axes | None) -> Axes:
    from ._plots import _axes

    axes = _axes(ax)
    found = timescales(result)
    t = np.asarray(found.value)
    places = np.arange(1, len(t) + 1)
    shown = np.isfinite(t)
    axes.plot(places[shown], t[shown], "o", color="tab:blue")
    if found.interval is not None:
        low, high = (np.where(np.isfinite(e), e, np.nan) for e in found.interval)
        axes.vlines(places[shown], low[shown], high[shown], color="tab:blue", alpha=0.5)
    axes.axhspan(0, result.lagtime, color="0.9")
    axes.set(yscale="log", xlabel="process", ylabel="timescale / frames", title="timescales" + (", with 90 % intervals" if found.interval else ""))
    return axes  # type: ignore[no-any-return]


def plot_implied(its: ImpliedTimescales, ax: Axes | None, most: int) -> Axes:
    from ._plots import _axes

    axes = _axes(ax)
    for k in range(min(its.timescales.shape[1], most)):
        (line,) = axes.plot(its.lags, its.timescales[:, k], "o-", markersize=3)
        axes.fill_between(its.lags, its.low[:, k], its.high[:, k], color=line.get_color(), alpha=0.2, linewidth=0)
    axes.fill_between(its.lags, 0, its.lags, color="0.85", linewidth=0)
    axes.set(yscale="log", xlabel="lag / frames", ylabel="timescale / frames", title="implied timescales")
    return axes  # type: ignore[no-any-return]


def plot_ck(ck: ChapmanKolmogorov, ax: Axes | None) -> Axes:
    from ._plots import _axes

    axes = _axes(ax)
    for j in range(ck.predicted.shape[1]):
        (line,) = axes.plot(ck.lags, ck.predicted[:, j, j], "-")
        spread = np.abs(np.array([ck.estimated[:, j, j] - ck.low[:, j, j], ck.high[:, j, j] - ck.estimated[:, j, j]]))
        axes.errorbar(ck.lags, ck.estimated[:, j, j], yerr=spread, fmt="o", markersize=3, color=line.get_color(), capsize=2)
    axes.set(xlabel="time / frames", ylabel="probability of being there again", ylim=(0, 1.02), title="Chapman-Kolmogorov: lines predicted, points estimated")
    return axes  # type: ignore[no-any-return]


def plot_flux(result: Result, flux: Flux, ax: Axes | None) -> Axes:
    from ._plots import _axes

    axes = _axes(ax)
    x, mass = flux.forward, stationary(result).value
    y = np.linspace(0, 1, result.rank)[np.argsort(np.argsort(x, kind="stable"), kind="stable")] % 0.618 if result.rank > 2 else np.zeros(result.rank)
    most = float(flux.net.max()) or 1.0
    for i, j in zip(*np.nonzero(flux.net > 0.01 * most)):
        axes.annotate("", (x[j], y[j]), (x[i], y[i]), arrowprops={"arrowstyle": "-|>", "lw": 0.5 + 4 * flux.net[i, j] / most, "color": "0.5", "shrinkA": 8, "shrinkB": 8})
    axes.scatter(x, y, s=100 + 1500 * mass, c=np.arange(result.rank), cmap="tab20", vmin=0, vmax=19, zorder=3)
    for j in range(result.rank):
        axes.text(x[j], y[j], str(j), ha="center", va="center", zorder=4)
    axes.set(xlabel="committor", yticks=[], title=f"reactive flux, one passage in {1 / flux.total:.4g} frames" if flux.total > 0 else "no flux")
    axes.margins(0.15)
    return axes  # type: ignore[no-any-return]


def plot_mfpt(result: Result, ax: Axes | None) -> Axes:
    from ._plots import _axes

    axes = _axes(ax)
    times = np.asarray(mfpt(result, None, None, False).value)
    image = axes.imshow(np.log10(np.where(np.isfinite(times), times, np.nan)), cmap="viridis")
    axes.figure.colorbar(image, ax=axes, label="log10 frames")
    ticks = range(result.rank)
    axes.set(xticks=ticks, yticks=ticks, xlabel="to", ylabel="from", title="mean first passage times")
    return axes  # type: ignore[no-any-return]


def plot_states(result: Result, xy: Any, ax: Axes | None, labels: Sequence[Any] | None) -> Axes:
    """Points of any plane in the colours of the meta-states of their states."""
    from ._plots import _axes

    axes = _axes(ax)
    points = np.asarray(xy, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise refuse(f"xy has the shape {points.shape}; two columns are needed, one row a state or, with labels, one row a point")
    if labels is None and len(points) != len(result.states):
        raise refuse(f"xy has {len(points)} rows; there are {len(result.states)} states", "give one row a state in the order of result.states, or labels, the state of each point")
    place = {str(label): k for k, label in enumerate(result.states)}
    at = np.arange(len(points)) if labels is None else np.array([place.get(str(v), -1) for v in np.asarray(labels).tolist()])
    known = at >= 0
    axes.scatter(*points[known].T, c=result.metastates[at[known]], cmap="tab20", vmin=0, vmax=19, s=20 if labels is None else 2, linewidths=0)
    axes.set(title=f"{result.rank} meta-states")
    return axes  # type: ignore[no-any-return]
