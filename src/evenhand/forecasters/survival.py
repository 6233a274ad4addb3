"""Fitted survival models of lifelines and scikit-survival as forecasts of times (outcomes: 5)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._format import number_in_full, one_line
from evenhand._validate import Floats, InputError, bad_input, check_finite, check_horizon
from evenhand.distributions import OutcomeKind
from evenhand.draws import RandomState
from evenhand.forecast import Forecast
from evenhand.forecasters.base import Forecaster, State, Training, thawed
from evenhand.forecasters.conversions import final_step, is_fitted
from evenhand.tables import as_pandas, row_blocks, take_rows

MOST_TIMES = 100
"""Largest number of times at which curves are evaluated by default, besides those of the tail."""

TAIL_STEPS = 2 ** (np.arange(1, 9) / 2)
"""Times beyond the last training time, relative to it, for models that predict there."""

BLOCK_NUMBERS = 4_000_000
"""Survival probabilities that a model predicts at once: scikit-survival returns one for each
distinct training time."""


class SurvivalModel(Forecaster):
    """Forecasts of times by a fitted survival model of lifelines or scikit-survival.

    The model's survival curves are evaluated at a grid of times and are linear between them, see
    `Forecast.from_survival`. The model is not refitted or changed: rows that audit, recalibrate or
    certify it must be rows that it has not seen. A fitted model itself, without this class, is
    accepted by `audit` and `certify`, and in a `FrozenEstimator` by other functions; this class
    chooses the horizon and the grid.

    Parameters
    ----------
    model : estimator
        Fitted model with `predict_survival_function`: a regression model of lifelines, such as
        `CoxPHFitter` or `WeibullAFTFitter`, or a model of scikit-survival, such as
        `RandomSurvivalForest`, also as the last step of a `Pipeline`.
    horizon : float, optional
        Time, above 0, up to which outcomes are followed. Forecasts are then of `min(T, horizon)`,
        in hurdle form: whether the event happens by the horizon, and when, given that it does.
        Models without a parametric baseline have no forecasts beyond their last training time, so
        that the horizon must not be later.
    times : array-like of shape (q,), optional
        Increasing times above 0 at which the model's curves are evaluated; by default at most 100
        quantiles of the times of training events, closer in both tails, and for parametric models
        the horizon and eight later times. With 3,000 training rows PITs then differ by 0.0001 to
        0.001 on average, and by at most 0.015, from those of the model's own curves.

    Attributes
    ----------
    times : ndarray of shape (q,)
        Times of the grid; with a horizon, up to it or to the first time of the grid beyond it.

    Raises
    ------
    InputError
        If the model has no survival curves or is not fitted, or the horizon or the times are
        invalid.

    Examples
    --------
    >>> from lifelines import WeibullAFTFitter
    >>> from lifelines.datasets import load_rossi
    >>> rows = load_rossi()
    >>> fitted = WeibullAFTFitter().fit(rows[:300], "week", "arrest")
    >>> forecast = SurvivalModel(fitted, horizon=26).forecast(rows[300:])
    >>> forecast.event_probability()[:3].round(2)
    array([0.16, 0.17, 0.15])
    """

    def __init__(
        self, model: Any, horizon: float | None = None, times: ArrayLike | None = None
    ) -> None:
        self.model = thawed(model)
        self.horizon = None if horizon is None else check_horizon(horizon)
        known = _known_times(self.model)
        if self.horizon is not None:
            _check_within(self.model, known, "horizon", self.horizon)
        if times is None:
            grid = _default_times(self.model, known, self.horizon)
        else:
            grid = _checked_times(times)
            _check_within(self.model, known, "times", float(grid[-1]))
        self.times: Floats = grid if self.horizon is None else self._until(grid, self.horizon)
        # before its first event a model without a parametric baseline predicts none
        self._start = 0.0 if _is_parametric(self.model) else float(known[0])

    def _until(self, grid: Floats, horizon: float) -> Floats:
        """Return the times of a grid that a forecast up to a horizon needs."""
        if _is_parametric(self.model):
            return np.append(grid[grid < horizon], horizon)
        # a step function is flat between two events, where it would exclude an event: the drop at
        # the first event beyond the horizon is spread over the time since the last one before it
        return grid[: np.searchsorted(grid, horizon) + 1]

    def __repr__(self) -> str:
        return one_line(
            self, model=type(self.model).__name__, horizon=self.horizon, n_times=self.times.size
        )

    def forecast(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> Forecast:
        """Predict the distribution of each row's time.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, n_features)
            Rows as the model takes them: lifelines reads the columns it was fitted to by name.
        r, random_state
            Without effect, as the forecaster is deterministic.

        Returns
        -------
        Forecast
            With a horizon, a hurdle forecast with its atom at the horizon.

        Raises
        ------
        InputError
            If columns are missing, or the model predicts no probability for a row.
        """
        return Forecast.from_survival(self.times, self.survival(X), self.horizon)

    def survival(self, X: Any) -> Floats:
        """Return the probabilities of times beyond each of `times`, shape (n, q).

        Where a model's curve rises, as it may for Aalen's additive model, or leaves the range from
        0 to 1, it is replaced by its running minimum in that range.
        """
        rows = as_pandas(X) if hasattr(X, "columns") else np.asarray(X)
        if len(rows) == 0:
            raise bad_input("X", "have at least one row", "an empty table")
        is_lifelines = hasattr(final_step(self.model), "durations")
        predicted = _from_lifelines if is_lifelines else _from_scikit_survival
        curves = predicted(self.model, rows, self.times)
        # lifelines extends the first step of a curve to time 0
        curves = np.where(self.times < self._start, 1.0, curves)
        missing = np.isnan(curves).any(axis=1)
        if missing.any():
            row = int(np.argmax(missing))
            rule = f"have a survival curve by {type(self.model).__name__} for each row"
            remedy = "check this row for missing values"
            raise bad_input(f"X[{row}]", rule, "probabilities that are missing", remedy)
        return np.minimum.accumulate(np.clip(curves, 0.0, 1.0), axis=1)

    def outcome_kind_of(self, y: Floats) -> OutcomeKind:
        """Return the kind of outcome, whatever `y` is: hurdle with a horizon, else continuous."""
        return OutcomeKind.CONTINUOUS if self.horizon is None else OutcomeKind.HURDLE

    def to_state(self) -> State:
        params = {"horizon": self.horizon}
        return State(
            "SurvivalModel", {"params": params}, {"times": self.times}, {"model": self.model}
        )

    @classmethod
    def from_state(cls, state: State) -> Self:
        return cls(state.parts["model"], times=state.arrays["times"], **state.params["params"])

    def __sklearn_clone__(self) -> Self:
        return self  # a fitted model

    def _models(self) -> tuple[Any, ...]:
        return (self.model,)


def has_survival_curves(model: Any) -> bool:
    """Whether a model predicts survival curves, as those of lifelines and scikit-survival do."""
    return hasattr(final_step(model), "predict_survival_function")


def fit_survival(estimator: Any, rows: Training) -> SurvivalModel:
    """Return a fitted survival model as a forecaster; refuse one that would be fitted to `y`."""
    if not is_fitted(estimator):
        name = type(estimator).__name__
        raise InputError(
            f"estimator {name} is a survival model, which is fitted to times and events; fit it"
            " with its own fit, on other rows, and pass FrozenEstimator(model) or"
            " evenhand.forecasters.SurvivalModel(model, horizon=...)"
        )
    model = thawed(estimator)
    return model if isinstance(model, SurvivalModel) else SurvivalModel(model)


def _known_times(model: Any) -> Floats:
    """Return the distinct times above 0 at which a fitted model knows its curves, increasing.

    These are the times of events of lifelines' training rows with the last training time, and the
    distinct training times of scikit-survival's.
    """
    inner = final_step(model)
    name = type(inner).__name__
    try:
        is_fitted = hasattr(inner, "durations") or hasattr(inner, "unique_times_")
    except ValueError as error:  # a model of scikit-survival without a baseline gives the remedy
        raise InputError(f"model {name} has no survival curves: {error}") from error
    # models of lifelines have no such method before they are fitted
    if not (is_fitted and has_survival_curves(model)):
        rule = "be a fitted model with predict_survival_function"
        remedy = "fit it first, with its own fit; for other models use Forecast.from_survival"
        raise bad_input("model", rule, name, remedy)
    if hasattr(inner, "durations"):
        durations = np.asarray(inner.durations, dtype=np.float64)
        happened = np.asarray(inner.event_observed, dtype=np.bool_)
        found = np.append(durations[happened], durations.max())
    else:
        found = np.asarray(inner.unique_times_, dtype=np.float64)
    return np.unique(found[found > 0])


def _default_times(model: Any, known: Floats, horizon: float | None) -> Floats:
    """Return the times at which curves are evaluated by default, increasing, shape (q,)."""
    last = known[-1]
    # beyond the last event a step function is flat to the last training time, and the tail is not
    inner = final_step(model)
    if hasattr(inner, "durations") and not _is_parametric(model):
        happened = np.asarray(inner.event_observed, dtype=np.bool_)
        known = known[known <= np.asarray(inner.durations, dtype=np.float64)[happened].max()]
    grid = known if horizon is None else known[: np.searchsorted(known, horizon) + 1]
    if grid.size > MOST_TIMES:
        # closer in the tails, where the people of largest and least risk have their events
        reach = special.ndtri(0.5 / grid.size)
        levels = special.ndtr(np.linspace(reach, -reach, MOST_TIMES))
        grid = np.unique(np.quantile(grid, levels, method="inverted_cdf"))
    return np.append(grid, last * TAIL_STEPS) if _is_parametric(model) else grid


def _is_parametric(model: Any) -> bool:
    """Whether a model of lifelines predicts beyond its last training time."""
    names = {kind.__name__ for kind in type(model).__mro__}
    baseline = getattr(model, "baseline_estimation_method", "breslow")
    return "ParametricRegressionFitter" in names or baseline != "breslow"


def _from_lifelines(model: Any, rows: Any, times: Floats) -> Floats:
    """Return the curves of a model of lifelines at some times, shape (n, q)."""
    # a stratified Cox model returns people by stratum: their labels restore the order
    table = rows.reset_index(drop=True) if hasattr(rows, "columns") else rows
    try:
        frame = model.predict_survival_function(table, times=times)
    except KeyError as error:
        rule = f"have the columns that {type(model).__name__} was fitted on"
        raise bad_input("X", rule, error.args[0], "pass the table with these columns") from None
    frame = frame.reindex(columns=range(len(rows)))
    curves = frame.to_numpy(dtype=np.float64).T
    # Aalen's additive model returns its curves at training times instead
    given = frame.index.to_numpy(dtype=np.float64)
    return np.asarray(curves if np.array_equal(given, times) else _steps_at(given, curves, times))


def _from_scikit_survival(model: Any, rows: Any, times: Floats) -> Floats:
    """Return the curves of a model of scikit-survival at some times, shape (n, q)."""
    known = np.asarray(final_step(model).unique_times_, dtype=np.float64)
    # it returns a probability for each of them
    size = max(1, BLOCK_NUMBERS // known.size)
    curves = []
    for block in row_blocks(len(rows), size):
        predicted = model.predict_survival_function(take_rows(rows, block), return_array=True)
        curves.append(_steps_at(known, np.asarray(predicted, dtype=np.float64), times))
    return np.concatenate(curves)


def _steps_at(known: Floats, curves: Floats, times: Floats) -> Floats:
    """Evaluate step functions, 1 before the first of the times at which they are known."""
    place = np.searchsorted(known, times, side="right") - 1
    return np.where(place >= 0, curves[:, np.maximum(place, 0)], 1.0)


def _checked_times(times: ArrayLike) -> Floats:
    """Check the times of a grid."""
    grid = check_finite("times", times)
    if not (np.diff(grid) > 0).all() or grid[0] <= 0:
        raise bad_input("times", "increase from above 0", f"{grid.tolist()}"[:80])
    return grid


def _check_within(model: Any, known: Floats, name: str, latest: float) -> None:
    """Refuse times at which a model without a parametric baseline has no forecasts."""
    if latest > known[-1] and not _is_parametric(model):
        inner = type(final_step(model)).__name__
        rule = f"be at most {number_in_full(known[-1])}, the last training time"
        remedy = f"{inner} predicts no survival probabilities beyond it; use a parametric model"
        raise bad_input(name, rule, number_in_full(latest), remedy)
