"""Pictures of results, on axes of matplotlib. Nothing here is imported before a picture is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

import numpy as np

from ._data import refuse
from ._kinetics import two_sided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._result import Result


def _axes(ax: Axes | None) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots()[1]


def plot_map(result: Result, ax: Axes | None, places: Mapping[Any, tuple[float, float]] | None) -> Axes:
    """Each state at its place, in the colour of its zone; the paler, the smaller its largest membership."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    if places is not None:
        found = [places.get(label, (np.nan, np.nan)) for label in result.states]
        points = np.array(found, dtype=np.float64)
        if not np.isfinite(points).any():
            raise refuse("none of the states has a place", "give places={label: (lon, lat)} with the labels of result.states")
    elif result.coordinates is not None:
        points = result.coordinates
    else:
        raise refuse(
            "the places of these states are not known",
            "fit trips with from_lon, from_lat, to_lon and to_lat, or give places={label: (lon, lat)}",
        )
    import matplotlib

    axes = _axes(ax)
    colours = matplotlib.colormaps["tab20"](np.arange(max(result.labels.max() + 1, 1)) % 20)[result.labels]
    # k-means zones need not be columns; the strength of a state is its largest membership then.
    colours[:, 3] = 0.25 + 0.75 * result.memberships.max(axis=1)
    if places is None and result.cell:
        half = result.cell / 2
        cells = [Rectangle((x - half, y - half), result.cell, result.cell) for x, y in points]
        axes.add_collection(PatchCollection(cells, facecolors=colours, linewidths=0))
        axes.autoscale_view()
    else:
        size = 20 + 300 * result.weights / result.weights.max()
        axes.scatter(points[:, 0], points[:, 1], s=size, c=colours, linewidths=0)
    if places is None:
        axes.set_aspect(1 / np.cos(np.deg2rad(np.clip(np.nanmean(points[:, 1]), -80, 80))))
        axes.set(xlabel="longitude", ylabel="latitude")
    axes.set(title=f"{result.labels.max() + 1} zones")
    return axes  # type: ignore[no-any-return]


def plot_path(result: Result, ax: Axes | None) -> Axes:
    """Rank as steps, the held-out score of the refit at that rank as points with standard errors."""
    path = result.path
    if path is None:
        raise refuse("lambda was given, so there is no path", "use metastate.path(data), or lam='auto'")
    axes = _axes(ax)
    ratio, rank = np.array(path["lambda_ratio"]), np.array(path["rank"])
    axes.step(ratio, rank, where="mid", color="tab:blue", label="meta-states")
    axes.axvline(result.lam / result.summary["lambda_max"], color="0.6", linestyle=":", label="chosen")
    axes.set(xscale="log", xlabel="lambda / lambda_max", ylabel="meta-states", title="path")
    axes.invert_xaxis()
    score, error = np.array(path["refit_held_out"]), np.array(path["refit_standard_error"])
    if np.isfinite(score).any():
        other = axes.twinx()
        other.errorbar(ratio, score, yerr=error, fmt="o", color="tab:orange", markersize=4, capsize=2)
        other.set_ylabel("held-out log-likelihood a transition")
    axes.legend(loc="upper left")
    return axes  # type: ignore[no-any-return]


def plot_latent(result: Result, ax: Axes | None) -> Axes:
    """K = V^T U, with its numbers where they can be read."""
    if result.latent_chain is None:
        raise two_sided()
    axes = _axes(ax)
    chain = result.latent_chain
    image = axes.imshow(chain, cmap="Blues", vmin=0, vmax=max(float(chain.max()), 1e-300))
    axes.figure.colorbar(image, ax=axes)
    ticks = range(result.rank)
    names = [str(k + 1) for k in ticks]
    axes.set(xticks=ticks, yticks=ticks, xticklabels=names, yticklabels=names, xlabel="to", ylabel="from", title="latent chain")
    if result.rank <= 12:
        for i in ticks:
            for j in ticks:
                axes.text(j, i, f"{chain[i, j]:.2f}", ha="center", va="center", color="white" if chain[i, j] > chain.max() / 2 else "black")
    return axes  # type: ignore[no-any-return]
