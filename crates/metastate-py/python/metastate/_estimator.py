"""The scikit-learn estimator. scikit-learn itself is needed only by those who use it."""

from __future__ import annotations

import inspect
import sys
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Mapping

import numpy as np
from numpy.typing import NDArray

from . import _core, _options
from ._data import LOG_COLUMNS, Given, did_you_mean, recognise, refuse
from ._kinetics import ChapmanKolmogorov, Estimate, Flux, ImpliedTimescales, two_sided
from ._progress import Listener, logger
from ._result import Array, Result, from_live, largest_memberships

if TYPE_CHECKING:
    from deeptime.markov.msm import MarkovStateModel
    from matplotlib.axes import Axes

# Kinds of data that are square matrices of states.
_MATRICES = ("counts", "matrix")


class StateAggregation:
    """Finds the few hidden meta-states behind a Markov chain with many states.

    The parameters are the options of ``metastate fit``, with the same defaults; ``metastate.options("fit")`` tells all about them.

    Parameters
    ----------
    lam : float or "auto"
        How much each further meta-state costs in the objective: a larger value gives fewer meta-states. "auto" chooses it, and the number of
        meta-states, on held-out transitions.
    lambda_ratio : float, optional
        The same cost as a share of lambda_max, the value above which a single meta-state is best.
    objective : {"paper", "whitened"}
        Which convex problem is stated and proven: the paper's, with a refit shown beside it, or the whitened one, whose solution predicts and is
        itself what is shown and proven. The latter needs counts, and its lambda follows from the noise.
    rank : int, optional
        Exactly this many meta-states: their number is not searched for, and lambda is searched for so that the
        solution has them.
    start_rank, max_rank : int
        Meta-states to start with (by default as many as the relaxation has), and never more than (50 unless given).
    as_in_paper : bool
        Solve as the paper does: PALM with Barzilai-Borwein steps from a random start of `start_rank` meta-states (a tenth of the states unless
        given, at most 300), the paper's local rule (30 steps, 1e-3), one meta-state appended at a time for a decrease of 1e-5, an absolute
        threshold of redundancy (5e-5 unless given), the exact rule at 1e-3 unless `stop` is given, never more than 300 meta-states. What
        contradicts it is refused.
    solver : {"fast", "palm-bb", "palm-lipschitz"}, optional
        "fast" unless given; "palm-bb" as in the paper.
    stop : {"certificate", "exact", "early"}, optional
        "certificate" unless given; "exact" as in the paper.
    tolerance, gap : float
        KKT residual and certified gap to reach.
    redundancy_relative, redundancy_absolute : float, optional
        Remove a meta-state where the others can take its place and the model changes by less than this, as a share of the norm of the data or as
        a number.
    weights_by : {"departures", "arrivals"}
    weight_power : {1, 0.5, 0}
        Power of the weights in the objective: 1 as in the paper, 0.5 counts every transition once, 0 every state.
    connected : {"all", "largest"}
        Keep all states, or the largest set of states that can all reach each other; the ledger of the summary counts what is left out.
    connected_at : int
        With "largest": two states join only where at least so many transitions lead from one to the other.
    bipartite : bool
        Origins and destinations are two different sets: a name on both sides is two states, nothing is left out for being never left or never reached, and
        there is no latent chain.
    reversible : bool
        Kinetics with detailed balance, on the meta-states and on all states.
    init : {"spectral", "random"} or the folder of a result, optional
        "spectral" unless given; "random" as in the paper.
    truth : str, optional
        File with the true P, or "U.npy,V.npy", for the recovery error.
    clusters : {"rank", "membership"} or int, optional
        Zones: k-means on the memberships, or the largest membership. Unless given, the largest membership after a refit, else
        k-means with one cluster for each meta-state.
    refit : {"none", "least-squares", "likelihood"}, optional
        Fit the memberships a second time with the number of meta-states found, without the cost of lambda. Unless given, by likelihood where lambda is chosen, else not at all.
    prior, folds, points, floor, bootstrap
        For what is chosen on held-out data, the path, and intervals of memberships and timescales. The prior counts transitions a state; for a
        transition matrix, where it is 0 unless given, its unit is what a state weighs on average. An interval of
        ``uncertainty.csv`` holds, in 90 % of cases, what endlessly many transitions out of the state would give *in the meta-states as they
        are*; it always holds the membership found. It does not say whether other meta-states would explain the data as well.
        ``docs/statistics.md`` has the measured coverage.
    places : path, optional
        File with a row for each named state, with the columns `label`, `lon`, `lat` and perhaps `name`: the states then have a map and names.
    outline : {"voronoi", "hull", "points"}
        What ground these places have on the map and in ``zones.geojson``.
    zone_names : path, optional
        File with names for zones: the columns `zone` (its number from 1) and `name`, or `label` (a state in it) and `name`.
    time_limit : float, optional
        Seconds after which the best point so far is taken.
    kind : {"trips", "trajectories", "counts", "matrix"}, optional
        What the data are; told from them where that is safe.
    no_header, delimiter, columns
        How a file of text is a table: without a line of names, the sign between its columns, and their names.
    from_column, to_column, from_lon, from_lat, to_lon, to_lat, weight, where, id, time, state
        Columns of tables, and a condition on their rows as in SQL.
    action, reward
        Columns of the log of a controlled chain: what was done in the state of `from_column`, and what was paid; `id` and `time` name the episode and the order of its steps. A list of episodes, each
        a list of (state, action, reward, next state), needs no names. ``result_.plan(discount)`` then says what to do.
    slice : str, optional
        Tells trips apart by a further column: ``"COL"``, ``"hour(COL)"``, ``"weekday(COL)"``, ``"month(COL)"`` or ``"date(COL)"``. One set of meta-states for all slices; the
        result's ``flows(slice)`` and ``profiles_in(slice)`` say where they lead in each.
    cell, bbox, min_share, max_self_share, lag, count, memory_limit
        How the data are counted. Cells are squares by their side in degrees, or hexagons by their resolution, such as "h3:8".
    seed : int
        Seed of everything random.
    threads : int, optional
        Threads to use; the answer does not depend on it.
    progress : bool or a tqdm class
        Tell how far the work is. The logger ``metastate`` hears it in any case.

    Attributes
    ----------
    result_ : Result
        All of the result, frozen.
    memberships_, profiles_, latent_chain_, weights_ : arrays
        U, V, ``V.T @ U`` and the share of each state.
    labels_ : array of int
        The zones of the states of the fit, from 0.
    metastates_ : array of int
        The meta-states of their largest memberships, from 0; zones may be others, see `clusters`.
    states_ : tuple
        The labels of the states, in the order of the arrays.
    certificate_ : dict
        Status, objective, proven lower bound and gap.

    Notes
    -----
    scikit-learn's ``check_estimator`` holds but for three checks, whose bad data are refused with this package's sentences instead of scikit-learn's: ``check_positive_only_tag_during_fit`` (negative
    counts), ``check_fit2d_1sample`` (a single state) and ``check_estimators_nan_inf`` (its matrices are 10 x 3: that they are not square is told before the NaN is looked for).

    Examples
    --------
    >>> import metastate as ms
    >>> trajectories = [[0, 0, 1, 1] * 40 + [2, 2, 3, 3] * 40, [3, 3, 2, 2] * 40 + [0, 1] * 9]
    >>> model = ms.StateAggregation(lambda_ratio=0.3).fit(trajectories)
    >>> model.certificate_["status"]
    'certified'
    >>> [int(z) for z in model.predict([0, 1, 2, 3]) == model.predict([0])]
    [1, 1, 0, 0]
    >>> model.transform([0, 3]).shape == (2, model.n_metastates_)
    True
    """

    # Known to the type checker; scikit-learn looks at the signature below.
    result_: Result
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init__(
        self,
        lam: float | Literal["auto"] = "auto",
        *,
        lambda_ratio: float | None = None,
        objective: Literal["paper", "whitened"] = "paper",
        rank: int | None = None,
        start_rank: int | None = None,
        max_rank: int | None = None,
        as_in_paper: bool = False,
        solver: Literal["fast", "palm-bb", "palm-lipschitz"] | None = None,
        stop: Literal["certificate", "exact", "early"] | None = None,
        tolerance: float = 1e-5,
        gap: float = 1e-3,
        redundancy_relative: float | None = None,
        redundancy_absolute: float | None = None,
        weights_by: Literal["departures", "arrivals"] = "departures",
        weight_power: Literal[0, 1] | float = 1,
        connected: Literal["all", "largest"] = "all",
        connected_at: int = 1,
        bipartite: bool = False,
        reversible: bool = False,
        init: str | PathLike[str] | None = None,
        truth: str | None = None,
        clusters: int | Literal["rank", "membership"] | None = None,
        refit: Literal["none", "least-squares", "likelihood"] | None = None,
        prior: float | None = None,
        folds: int = 5,
        points: int = 25,
        floor: float = 0.003,
        places: str | PathLike[str] | None = None,
        label: str = "label",
        name: str | None = None,
        lon: str = "lon",
        lat: str = "lat",
        outline: Literal["voronoi", "hull", "points"] = "voronoi",
        zone_names: str | PathLike[str] | None = None,
        bootstrap: int = 0,
        time_limit: float | None = None,
        kind: Literal["trips", "trajectories", "counts", "matrix"] | None = None,
        no_header: bool = False,
        delimiter: str | None = None,
        columns: str | list[str] | None = None,
        from_column: str | None = None,
        to_column: str | None = None,
        from_lon: str | None = None,
        from_lat: str | None = None,
        to_lon: str | None = None,
        to_lat: str | None = None,
        cell: float | str = 0.001,
        bbox: str | tuple[float, float, float, float] | None = None,
        weight: str | None = None,
        action: str | None = None,
        reward: str | None = None,
        slice: str | None = None,
        where: str | None = None,
        min_share: float = 0.0,
        max_self_share: float | None = None,
        id: str | None = None,
        time: str | None = None,
        state: str | None = None,
        lag: int = 1,
        count: Literal["sliding", "strided"] = "sliding",
        memory_limit: int | str | None = None,
        seed: int = 0,
        threads: int | None = None,
        progress: Any = False,
    ) -> None:
        self.lam = lam
        self.lambda_ratio = lambda_ratio
        self.objective = objective
        self.rank = rank
        self.start_rank = start_rank
        self.max_rank = max_rank
        self.as_in_paper = as_in_paper
        self.solver = solver
        self.stop = stop
        self.tolerance = tolerance
        self.gap = gap
        self.redundancy_relative = redundancy_relative
        self.redundancy_absolute = redundancy_absolute
        self.weights_by = weights_by
        self.weight_power = weight_power
        self.connected = connected
        self.connected_at = connected_at
        self.bipartite = bipartite
        self.reversible = reversible
        self.init = init
        self.truth = truth
        self.clusters = clusters
        self.refit = refit
        self.prior = prior
        self.folds = folds
        self.points = points
        self.floor = floor
        self.places = places
        self.label = label
        self.name = name
        self.lon = lon
        self.lat = lat
        self.outline = outline
        self.zone_names = zone_names
        self.bootstrap = bootstrap
        self.time_limit = time_limit
        self.kind = kind
        self.no_header = no_header
        self.delimiter = delimiter
        self.columns = columns
        self.from_column = from_column
        self.to_column = to_column
        self.from_lon = from_lon
        self.from_lat = from_lat
        self.to_lon = to_lon
        self.to_lat = to_lat
        self.cell = cell
        self.bbox = bbox
        self.weight = weight
        self.action = action
        self.reward = reward
        self.slice = slice
        self.where = where
        self.min_share = min_share
        self.max_self_share = max_self_share
        self.id = id
        self.time = time
        self.state = state
        self.lag = lag
        self.count = count
        self.memory_limit = memory_limit
        self.seed = seed
        self.threads = threads
        self.progress = progress

    # Parameters, as scikit-learn has them.

    @classmethod
    def _parameters(cls) -> dict[str, inspect.Parameter]:
        return {name: p for name, p in inspect.signature(cls.__init__).parameters.items() if name != "self"}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in sorted(self._parameters())}

    def set_params(self, **params: Any) -> StateAggregation:
        """Sets parameters."""
        known = self._parameters()
        for name, value in params.items():
            if name not in known:
                raise refuse(f"Invalid parameter {name!r} for estimator {self!r}", did_you_mean(name, known) or f"the parameters are {', '.join(sorted(known))}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = [f"{n}={getattr(self, n)!r}" for n, p in self._parameters().items() if not _same(getattr(self, n), p.default)]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return "result_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        # Rows and columns of a matrix are the same states; trajectories and tables are lists of their own.
        inputs = InputTags(two_d_array=True, sparse=True, positive_only=True, pairwise=self.kind in _MATRICES)
        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=inputs,
        )

    def _options(self) -> dict[str, Any]:
        return {name: value for name, value in self.get_params().items() if name not in _options.OWN_PARAMETERS}

    def _reading(self, kind: str | None) -> dict[str, Any]:
        """The options that say how data are read."""
        names = {o["name"] for o in _core.options("count")} - set(_options.NOT_PARAMETERS)
        chosen = {n: v for n, v in self._options().items() if _options.option_name(n) in names}
        return _options.given({**chosen, "kind": kind, "seed": self.seed, "threads": self.threads})

    def _recognise(self, data: Any, labels: Any = None, weights: Any = None) -> Given:
        named = any(v is not None for v in (self.from_column, self.from_lon, self.state, self.id, self.time))
        return recognise(data, self.kind, labels, weights, named, self._options())

    # Fitting.

    def fit(self, X: Any, y: Any = None, *, labels: Any = None, weights: Any = None) -> StateAggregation:
        """Finds the meta-states.

        Parameters
        ----------
        X
            Counts or a transition matrix (NumPy, SciPy sparse, a square data frame), a list of trajectories, a table of trips
            (pandas, polars, pyarrow, DuckDB, anything with Arrow's C stream, or a dict of columns), a table in an engine (a Spark data
            frame, a lazy frame of polars, a relation of DuckDB, a table of Ibis), which is counted there, a count model of deeptime, or
            the name of a file.
        y : ignored
        labels : sequence, optional
            Names of the states of a matrix.
        weights : array, optional
            Row weights of a transition matrix; its stationary law without them.
        """
        result, given = fit_result(self._options(), self._recognise(X, labels, weights), self.progress, repr(self), whole_path=False)
        self.__dict__.pop("feature_names_in_", None)
        self.result_ = result
        self.n_features_in_ = given.columns if given.columns is not None else len(result.states)
        if given.names is not None:
            self.feature_names_in_ = np.asarray(given.names, dtype=object)
        # Where the columns of a matrix are among the states of the fit: states without weight are left out.
        place = {label: k for k, label in enumerate(result.states)}
        all_labels = given.labels if given.labels is not None else range(self.n_features_in_)
        self._columns: list[int | None] = [place.get(x) for x in (all_labels if given.columns is not None else result.states)]
        return self

    def fit_transform(self, X: Any, y: Any = None, *, labels: Any = None, weights: Any = None) -> Any:
        """Fits, and gives the memberships of X."""
        return self.fit(X, y, labels=labels, weights=weights).transform(X)

    def fit_predict(self, X: Any, y: Any = None, *, labels: Any = None, weights: Any = None) -> Any:
        """Fits, and gives the zones of X."""
        return self.fit(X, y, labels=labels, weights=weights).predict(X)

    # Using the fit.

    def transform(self, X: Any = None) -> Any:
        """Memberships.

        A matrix has one row a state, old or new, and one column for each state of the fit: memberships are read off each row's own
        transitions, as ``metastate assign`` does. A list of labels (a trajectory) gives one row for each of them, several
        trajectories a list of such arrays. Without X, the states of the fit. Rows about which nothing is known are NaN.
        """
        self._check_fitted()
        if X is None:
            return self.result_.memberships.copy()
        given = recognise(X, "counts" if self.kind in _MATRICES else self.kind)
        if given.payload[0] == "walks":
            found = [self._by_label(walk) for walk in given.payload[1]]
            return found if _is_nested(X) else found[0]
        if given.payload[0] not in ("dense", "sparse"):
            raise refuse(
                "memberships are given for the rows of a matrix, for labels or for trajectories",
                "give one of these, or nothing for the states of the fit",
            )
        self._check_names(given)
        s = self.result_.summary
        u, v = self.result_.memberships, self.result_.profiles
        refit = s.get("refit") or {"kind": "penalised"}
        strength = self.result_.lam if refit["kind"] == "penalised" else refit.get("prior", 0.0)
        how = (refit["kind"], strength, (u.T @ self.result_.weights).tolist())
        # A transition matrix has no number of transitions; its rows weigh as the states of the fit did on average.
        transitions = s["transitions"] or float(len(self.result_.states))
        exponent = float(s["settings"]["fit"]["weight_power"])
        return _core.memberships(u, v, how, given, self._columns, (transitions, exponent))

    def predict(self, X: Any = None) -> Any:
        """Zones, from 0, of what `transform` takes; -1 where nothing is known."""
        self._check_fitted()
        if X is None:
            return self.result_.labels.copy()
        soft = self.transform(X)
        return [self._harden(part) for part in soft] if isinstance(soft, list) else self._harden(soft)

    def score(self, X: Any, y: Any = None, *, labels: Any = None) -> float:
        """Log-likelihood a transition of data that were held out; larger is better.

        Each model is smoothed with 0.001 of the arrivals of its own training data, as in ``metastate compare``. Transitions from or to
        states that were not in the fit cannot be scored; the logger ``metastate`` says how many there were.
        """
        self._check_fitted()
        given = self._recognise(X, labels)
        self._check_names(given)
        if given.columns is not None and given.columns != self.n_features_in_:
            raise refuse(
                f"X has {given.columns} features, but StateAggregation is expecting {self.n_features_in_} features as input",
                None,
                "E-DATA-SIZE",
            )
        r = self.result_
        values = self._reading(given.kind or self.kind)
        found, _, scored, strange = _core.score(r.memberships, r.profiles, r._arrivals.tolist(), list(r.states), given, values)
        if strange > 0:
            logger.warning("%g of %g transitions lead from or to states that were not in the fit and were not scored", strange, strange + scored)
        return found

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of `transform`."""
        self._check_fitted()
        names = [f"{type(self).__name__.lower()}{k}" for k in range(self.n_metastates_)]
        return np.asarray(names, dtype=object)

    def _by_label(self, walk: Any) -> Array:
        place = {str(label): k for k, label in enumerate(self.result_.states)}
        at = np.array([place.get(str(label), -1) for label in (walk.tolist() if isinstance(walk, np.ndarray) else walk)], dtype=np.int64)
        found = self.result_.memberships[at]
        found[at < 0] = np.nan
        return found

    def _harden(self, soft: Array) -> NDArray[np.int64]:
        if self.result_.summary["settings"]["fit"]["clusters"] == "membership":
            return largest_memberships(soft)
        u, hard = self.result_.memberships, self.result_.labels
        known = ~np.isnan(soft).any(axis=1)
        out = np.full(len(soft), -1, dtype=np.int64)
        # The zone whose mean is nearest: what k-means says of a point.
        zones = [k for k in range(int(hard.max()) + 1) if (hard == k).any()]
        means = np.array([u[hard == k].mean(axis=0) for k in zones])
        distances = ((soft[known, None, :] - means[None]) ** 2).sum(axis=2)
        out[known] = np.asarray(zones)[distances.argmin(axis=1)]
        return out

    def _check_names(self, given: Given) -> None:
        """Columns of data frames must come in the order of the fit."""
        mine = getattr(self, "feature_names_in_", None)
        if mine is None or given.names is None:
            return
        if list(mine) != given.names:
            missing = sorted(set(mine) - set(given.names))
            strange = sorted(set(given.names) - set(mine))
            text = "The feature names should match those that were passed during fit.\n"
            if strange:
                text += "Feature names unseen at fit time:\n" + "".join(f"- {n}\n" for n in strange)
            if missing:
                text += "Feature names seen at fit time, yet now missing:\n" + "".join(f"- {n}\n" for n in missing)
            if not missing and not strange:
                text += "Feature names must be in the same order as they were in fit.\n"
            raise ValueError(text)

    def _check_fitted(self) -> None:
        if self.__sklearn_is_fitted__():
            return
        text = f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before using this estimator."
        if "sklearn" in sys.modules:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(text)
        raise refuse(text)

    def _fitted(self, name: str) -> Any:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__} has no {name}_ before it is fitted")
        return getattr(self.result_, name)

    @property
    def memberships_(self) -> Array:
        """U: states x meta-states, each row sums to one."""
        found: Array = self._fitted("memberships")
        return found

    @property
    def profiles_(self) -> Array:
        """V: states x meta-states, each column sums to one."""
        found: Array = self._fitted("profiles")
        return found

    @property
    def latent_chain_(self) -> Array:
        """K = V^T U, a Markov chain of the meta-states."""
        found: Array | None = self._fitted("latent_chain")
        if found is None:
            raise two_sided()
        return found

    @property
    def weights_(self) -> Array:
        """xi, the share of each state."""
        found: Array = self._fitted("weights")
        return found

    @property
    def labels_(self) -> NDArray[np.int64]:
        """Zones, from 0."""
        found: NDArray[np.int64] = self._fitted("labels")
        return found

    @property
    def metastates_(self) -> NDArray[np.int64]:
        """Meta-states by the largest membership, from 0."""
        found: NDArray[np.int64] = self._fitted("metastates")
        return found

    @property
    def states_(self) -> tuple[int | str, ...]:
        """Labels of the states."""
        found: tuple[int | str, ...] = self._fitted("states")
        return found

    @property
    def certificate_(self) -> Mapping[str, Any]:
        """How good the answer is, proven."""
        found: Mapping[str, Any] = self._fitted("certificate")
        return found

    @property
    def n_metastates_(self) -> int:
        """Number of meta-states."""
        return int(self._fitted("rank"))

    def timescales(self) -> Estimate:
        """See `Result.timescales`."""
        self._check_fitted()
        return self.result_.timescales()

    def eigenvalues(self) -> NDArray[np.complex128]:
        """See `Result.eigenvalues`."""
        self._check_fitted()
        return self.result_.eigenvalues()

    def mfpt(self, source: Any = None, target: Any = None, *, states: bool = False) -> Estimate:
        """See `Result.mfpt`."""
        self._check_fitted()
        return self.result_.mfpt(source, target, states=True) if states else self.result_.mfpt(source, target)

    def committor(self, source: Any, target: Any, *, states: bool = False) -> Estimate:
        """See `Result.committor`."""
        self._check_fitted()
        return self.result_.committor(source, target, states=states)

    def reactive_flux(self, source: Any, target: Any, *, states: bool = False, share: float = 0.9) -> Flux:
        """See `Result.reactive_flux`."""
        self._check_fitted()
        return self.result_.reactive_flux(source, target, states=states, share=share)

    def fates(self, sets: Any = None) -> tuple[list[list[Any]], Array]:
        """See `Result.fates`."""
        self._check_fitted()
        return self.result_.fates(sets)

    def forecast(self, start: Any = None, steps: int = 1) -> Array:
        """See `Result.forecast`."""
        self._check_fitted()
        return self.result_.forecast(start, steps)

    def implied_timescales(self, data: Any, lags: Any = None, *, bands: bool = True) -> ImpliedTimescales:
        """See `Result.implied_timescales`."""
        self._check_fitted()
        return self.result_.implied_timescales(data, lags, bands=bands)

    def ck_test(self, data: Any, steps: Any = None) -> ChapmanKolmogorov:
        """See `Result.ck_test`."""
        self._check_fitted()
        return self.result_.ck_test(data, steps)

    def plot_timescales(self, ax: Axes | None = None) -> Axes:
        """See `Result.plot_timescales`."""
        self._check_fitted()
        return self.result_.plot_timescales(ax)

    def plot_implied_timescales(self, data: Any, lags: Any = None, ax: Axes | None = None, *, most: int = 6) -> Axes:
        """See `Result.plot_implied_timescales`."""
        self._check_fitted()
        return self.result_.plot_implied_timescales(data, lags, ax, most=most)

    def plot_ck_test(self, data: Any, steps: Any = None, ax: Axes | None = None) -> Axes:
        """See `Result.plot_ck_test`."""
        self._check_fitted()
        return self.result_.plot_ck_test(data, steps, ax)

    def plot_flux(self, source: Any, target: Any, ax: Axes | None = None) -> Axes:
        """See `Result.plot_flux`."""
        self._check_fitted()
        return self.result_.plot_flux(source, target, ax)

    def plot_mfpt(self, ax: Axes | None = None) -> Axes:
        """See `Result.plot_mfpt`."""
        self._check_fitted()
        return self.result_.plot_mfpt(ax)

    def plot_states(self, xy: Any, ax: Axes | None = None, *, labels: Any = None) -> Axes:
        """See `Result.plot_states`."""
        self._check_fitted()
        return self.result_.plot_states(xy, ax, labels=labels)

    @property
    def stationary_distribution(self) -> Estimate:
        """See `Result.stationary_distribution`."""
        found: Estimate = self._fitted("stationary_distribution")
        return found

    @property
    def kinetic_chain_(self) -> Array:
        """The chain of the meta-states as the data have it."""
        found: Array = self._fitted("kinetic_chain")
        return found

    def plot_map(self, ax: Axes | None = None, **options: Any) -> Axes:
        """See `Result.plot_map`."""
        self._check_fitted()
        return self.result_.plot_map(ax, **options)

    def plot_path(self, ax: Axes | None = None) -> Axes:
        """See `Result.plot_path`."""
        self._check_fitted()
        return self.result_.plot_path(ax)

    def plot_latent(self, ax: Axes | None = None) -> Axes:
        """See `Result.plot_latent`."""
        self._check_fitted()
        return self.result_.plot_latent(ax)

    def to_deeptime(self, lagtime: int | None = None) -> MarkovStateModel:
        """See `Result.to_deeptime`."""
        self._check_fitted()
        return self.result_.to_deeptime(lagtime)

    def save(self, folder: str | PathLike[str], force: bool = False) -> Any:
        """See `Result.save`."""
        self._check_fitted()
        return self.result_.save(folder, force)

    def _repr_html_(self) -> str:
        if self.__sklearn_is_fitted__():
            return self.result_._repr_html_()
        import html

        return f"<code>{html.escape(repr(self))}</code>"


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(a is b or a == b)
    except Exception:  # arrays do not say whether they are equal
        return False


def _is_nested(data: Any) -> bool:
    if isinstance(data, np.ndarray):
        return bool(data.ndim > 1)
    return any(np.ndim(x) > 0 for x in data)


def typed_options(options: dict[str, Any], given: Given) -> dict[str, Any]:
    """The options of a fit with what the data themselves say."""
    # What a table or a deeptime object is needs no word; a list of trajectories must not be taken for anything else.
    kind = options.get("kind") or (given.kind if given.kind != "trajectories" else None)
    typed = {**options, "kind": kind}
    if given.payload[0] == "columns" and kind == "trips" and not given.log and not any(options.get(n) for n in ("from_column", "from_lon")):
        typed.update(from_column="from", to_column="to")
    if given.log:
        typed.update(LOG_COLUMNS)
    return _options.given(typed)


def fit_result(options: dict[str, Any], given: Given, progress: Any, called: str, whole_path: bool) -> tuple[Result, Given]:
    """Runs a fit and wraps what comes out."""
    with Listener(progress) as listener:
        live = _core.fit(given, typed_options(options, given), whole_path, called, listener)
    return from_live(live, given.lagtime), given
