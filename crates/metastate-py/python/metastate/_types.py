"""Types for checkers: the options of `fit` and `path` by name, so that a wrong word or an unknown keyword is an error before the program runs."""

from __future__ import annotations

from os import PathLike
from typing import Any, Literal, TypedDict


class Options(TypedDict, total=False):
    """The parameters of `StateAggregation`."""

    lam: float | Literal["auto"]
    lambda_ratio: float | None
    objective: Literal["paper", "whitened"]
    rank: int | None
    start_rank: int | None
    max_rank: int | None
    as_in_paper: bool
    solver: Literal["fast", "palm-bb", "palm-lipschitz"] | None
    stop: Literal["certificate", "exact", "early"] | None
    tolerance: float
    gap: float
    redundancy_relative: float | None
    redundancy_absolute: float | None
    weights_by: Literal["departures", "arrivals"]
    weight_power: Literal[0, 1] | float
    connected: Literal["all", "largest"]
    connected_at: int
    bipartite: bool
    reversible: bool
    init: str | PathLike[str] | None
    truth: str | None
    clusters: int | Literal["rank", "membership"] | None
    refit: Literal["none", "least-squares", "likelihood"] | None
    prior: float | None
    folds: int
    points: int
    floor: float
    places: str | PathLike[str] | None
    label: str
    name: str | None
    lon: str
    lat: str
    outline: Literal["voronoi", "hull", "points"]
    zone_names: str | PathLike[str] | None
    bootstrap: int
    time_limit: float | None
    kind: Literal["trips", "trajectories", "counts", "matrix"] | None
    no_header: bool
    delimiter: str | None
    columns: str | list[str] | None
    from_column: str | None
    to_column: str | None
    from_lon: str | None
    from_lat: str | None
    to_lon: str | None
    to_lat: str | None
    cell: float | str
    bbox: str | tuple[float, float, float, float] | None
    weight: str | None
    action: str | None
    reward: str | None
    slice: str | None
    where: str | None
    min_share: float
    max_self_share: float | None
    id: str | None
    time: str | None
    state: str | None
    lag: int
    count: Literal["sliding", "strided"]
    memory_limit: int | str | None
    seed: int
    threads: int | None
    progress: Any


__all__ = ["Any", "Literal", "Options", "PathLike"]
