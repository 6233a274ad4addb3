"""Recalibration of any model, on average or by named group (method: recalibration)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.base import ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import column_or_1d
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from evenhand._format import band, count, number, points
from evenhand._table import SCREEN, Column, Table, line_width, wrapped
from evenhand._validate import (
    MIN_DISTINCT,
    Floats,
    InputError,
    Ints,
    Mask,
    bad_input,
    check_choice,
    check_rows,
    named,
    outcomes_checked,
    refuse_entry,
)
from evenhand.calibration import Cells, Events, n_effective, rate_error, weighted_mean
from evenhand.distributions import (
    Bernoulli,
    Distribution,
    Hurdle,
    OutcomeKind,
    Recalibrated,
    as_hurdle,
)
from evenhand.draws import RandomState, one_row_each
from evenhand.forecast import Forecast, check_atom_at_horizon, check_forecast_of_times
from evenhand.forecasters.adapters import Base, WrappingForecaster, is_held_out
from evenhand.forecasters.base import Bounds, SpreadKind, State, Training, thawed
from evenhand.forecasters.conversions import frozen, is_event
from evenhand.forecasters.corrections import (
    LEVEL,
    Correction,
    EventMaps,
    event_gains,
    learn_corrections,
    learn_events,
)
from evenhand.forecasters.groups import (
    By,
    Grouping,
    Members,
    OverlappingGroups,
    check_storable,
    learn_groups,
    training_masks,
)
from evenhand.forecasters.samples import (
    FEWEST_ROWS,
    IDENTITY,
    converged,
    ends_of,
    error_of,
    learn_map,
    mapped,
    pit_cells,
    shrunk,
    stacked,
)
from evenhand.outcomes import Outcomes, Rounding, as_outcomes
from evenhand.tables import EVERYONE, forecast_values, take_rows

# --- held-out forecasts with their outcomes

TINY = 1e-300
"""Least probability, so that logarithms are finite."""


@dataclass(frozen=True, eq=False)
class Observed:
    """Forecasts of n rows with their outcomes, as far as recalibration depends on them.

    Parameters
    ----------
    kind : OutcomeKind
        Kind of outcome.
    pit : Cells of n rows
        PITs of the outcomes; of hurdles, PITs of the positive part, without meaning at the atom.
        Of times that are cut off, what is known of them.
    events : Events of n rows, optional
        Event and its probability: of 0/1 outcomes, and of hurdles that the outcome is not the atom;
        False for rows of which it is not known.
    is_high : bool
        Whether the atom of hurdles is above the rest.
    has_curve : bool
        Whether maps of events may have a curve, beside an intercept and a slope.
    """

    kind: OutcomeKind
    pit: Cells
    events: Events | None = None
    is_high: bool = False
    has_curve: bool = True

    @classmethod
    def of(
        cls, forecast: Forecast, known: Floats | Outcomes, rounding: Rounding | None = None
    ) -> Observed:
        """Return the forecasts of rows with their outcomes, of which rounded ones are cells."""
        kind, known = forecast.outcome_kind, as_outcomes(known)
        check_forecast_of_times(forecast, known)
        value, lost = known.value, known.is_lost
        if kind in (OutcomeKind.COUNT, OutcomeKind.CONTINUOUS):
            low, high = map(_finite, forecast.pit_interval(known, rounding=rounding))
            return cls(kind, pit_cells(low, high, lost))
        probability = _finite(forecast.event_probability())
        if kind is OutcomeKind.BINARY:
            rule = "be 0 or 1, as the model predicts probabilities"
            refuse_entry("y", value, (value != 0) & (value != 1), rule)
            return cls(kind, Cells(probability), Events(value == 1, probability))
        hurdle = as_hurdle(forecast.distribution)
        is_atom = known.has_reached if known.are_times else value == hurdle.at
        # at the atom the positive part has no PIT
        ends = Forecast(hurdle.positive).pit_interval(known, rounding=rounding)
        low, high = (_finite(np.where(is_atom, 0.5, end)) for end in ends)
        events = Events(known.happened & ~is_atom, probability)
        return cls(kind, pit_cells(low, high, lost), events, hurdle.end == "high")

    @classmethod
    def joined(cls, parts: Sequence[tuple[Ints, Observed]]) -> Observed:
        """Return all rows from parts with the numbers of their rows."""
        order = np.argsort(np.concatenate([rows for rows, _ in parts]), kind="stable")
        pit = Cells.joined([part.pit for _, part in parts]).take(order)
        found = [part.events for _, part in parts if part.events is not None]
        events = Events.joined(found).take(order) if found else None
        # positions in cells are those of one draw for all rows
        pit = pit_cells(*ends_of(pit)[:2], pit.unknown)
        return replace(parts[0][1], pit=pit, events=events)

    @property
    def event_shares(self) -> Mask | Floats:
        """Whether the event happened, or its predicted probability where it is not known, (n,).

        A time that is cut off at the PIT `u` of the positive part is that of an event before the
        horizon with probability `P (1 - u) / (1 - P u)`.
        """
        assert self.events is not None
        lost = self.pit.unknown
        if not lost.any():
            return self.events.happened
        p, u = self.events.probability, self.pit.low.ravel()
        return np.where(lost, p * (1 - u) / np.maximum(1 - p * u, TINY), self.events.happened)

    @property
    def log_survival(self) -> Floats:
        """Log probability of a hurdle's outcomes beyond the PITs of the positive part, (n,)."""
        assert self.events is not None
        return np.log(np.maximum(1 - self.events.probability * self.pit.low.ravel(), TINY))

    def take(self, rows: Any) -> Observed:
        """Return some rows."""
        events = None if self.events is None else self.events.take(rows)
        return replace(self, pit=self.pit.take(rows), events=events)

    def cells(self) -> Cells:
        """Return the PITs of the whole distributions, as cells where the outcome is an atom."""
        if self.events is None:
            return self.pit
        p, happened, lost = self.events.probability, self.events.happened, self.pit.unknown
        low, high, _ = ends_of(self.pit)
        if self.kind is OutcomeKind.BINARY:
            low, high = np.zeros(p.size), np.ones(p.size)
        below = 0.0 if self.is_high else 1 - p
        atom = (p, 1.0) if self.is_high else (0.0, below)
        low = np.where(happened.astype(bool) | lost, below + p * low, atom[0])
        return pit_cells(low, np.where(happened, below + p * high, atom[1]), lost)


def _finite(values: Floats) -> Floats:
    """Return values of forecasts; InputError if any is not a number."""
    if not np.isfinite(values).all():
        raise InputError(
            "the estimator predicts distributions that are not finite; check its predictions for"
            " NaN"
        )
    return values


# --- maps of PITs, of everyone and of groups


@dataclass(frozen=True)
class PitMaps:
    """Maps of PITs that were estimated from held-out PITs.

    Parameters
    ----------
    levels, values : ndarray of shape (n_maps, n_knots)
        Knots of the map of all rows, followed by those of disjoint groups with separate maps.
    is_own : ndarray of bool, shape (n_groups,)
        Whether each group has a map or a correction of its own.
    steps : tuple of Step
        Joint corrections of all rows and of overlapping groups, in place of the map of all rows.
    """

    levels: Floats
    values: Floats
    is_own: Mask
    steps: tuple[Correction, ...] = ()

    @classmethod
    def learn(cls, pit: Cells, weight: Floats, members: Members, level: float = LEVEL) -> PitMaps:
        """Estimate the map of all rows, and those of groups, from held-out PITs.

        Disjoint groups get maps, which are shrunk towards that of all rows if they have fewer than
        50 rows; overlapping groups get joint corrections, any of which calibrated PITs get with
        probability `level`.
        """
        maps = [learn_map(pit, weight)]
        is_own = np.zeros(len(members.names), dtype=bool)
        if not members.are_disjoint:
            steps = learn_corrections(pit, weight, members, level)
            for step in steps:
                is_own |= step.terms[1:].any(axis=-1)
            return cls(*stacked(maps), is_own, steps)
        for i, (_, inside) in enumerate(members.groups()):
            # rows that are lost contain little about a map
            seen = inside & ~pit.unknown
            if not seen.any():
                continue
            own = learn_map(pit.take(inside), weight[inside])
            if seen.sum() < FEWEST_ROWS:
                own = shrunk(own, maps[0], n_effective(weight[seen]))
            is_own[i] = own is not maps[0]
            maps += [own] if is_own[i] else []
        return cls(*stacked(maps), is_own)

    def _maps(self, members: Members) -> list[tuple[Floats, Floats, Ints]]:
        """Return knots, values and each row's number of the maps that are applied in turn."""
        if not members.are_disjoint:
            return [step.maps(members) for step in self.steps]
        # a group without a map of its own has that of all rows
        number = np.append(0, np.where(self.is_own, np.cumsum(self.is_own), 0))
        return [(self.levels, self.values, number[members.which])]

    def apply(self, pit: Cells, members: Members) -> tuple[Cells, Floats]:
        """Return PITs under the maps, and the logarithm of the slope at each."""
        slope = np.zeros(pit.n_samples)
        for maps in self._maps(members):
            pit, more = mapped(pit, *maps)
            slope += more
        return pit, slope

    def forecast(self, distribution: Distribution, members: Members) -> Distribution:
        """Return the distributions of rows under the maps."""
        for maps in self._maps(members):
            distribution = Recalibrated(distribution, *maps)
        return distribution


# --- everything that recalibration estimates

MOST_EM = 50
"""Largest number of steps of the EM algorithm for events of which some are lost."""

FEWEST_POSITIVE = 10
"""Fewest rows off the atom for a map of the positive part."""


@dataclass(frozen=True)
class Maps:
    """Everything that recalibration estimates.

    Parameters
    ----------
    pits : PitMaps
        Maps of PITs; of hurdles, of the positive part. The identity for 0/1 outcomes.
    events, events_of_all : EventMaps, optional
        Corrections of the probability of an event, by group, and without groups.
    """

    pits: PitMaps
    events: EventMaps | None = None
    events_of_all: EventMaps | None = None

    @classmethod
    def learn(cls, held_out: Observed, weight: Floats, members: Members) -> Maps:
        """Estimate the maps from held-out forecasts with weights of shape (n,).

        Of outcomes at a horizon or before it, some may be lost. Whether the event happened, and
        when, is then completed by its probability given the maps, and maps are estimated again from
        all rows: the EM algorithm for the likelihood of what is known.
        """
        known = held_out.events
        if known is None:
            return cls(PitMaps.learn(held_out.pit, weight, members))
        is_hurdle = held_out.kind is OutcomeKind.HURDLE
        # both parts of a hurdle are tested
        level = LEVEL / 2 if is_hurdle else LEVEL

        def of_events(shares: Mask | Floats, groups: Members) -> EventMaps:
            completed = known._replace(happened=shares)
            return learn_events(completed, weight, groups, level, has_curve=held_out.has_curve)

        def step(last: tuple[Maps, Any] | None) -> tuple[Maps, Any]:
            """Return maps, and whether events happened that they are estimated from."""
            mapped = held_out if last is None else last[0].applied(held_out, members)[0]
            shares = mapped.event_shares
            pits = PitMaps(IDENTITY[None], IDENTITY[None], np.zeros(len(members.names), dtype=bool))
            rows = np.flatnonzero((shares > 0) & is_hurdle)
            if known.happened[rows].sum() >= FEWEST_POSITIVE:
                own = weight[rows] * shares[rows]
                pits = PitMaps.learn(held_out.pit.take(rows), own, members.take(rows), level)
            return cls(pits, of_events(shares, members)), shares

        def gain(found: tuple[Maps, Any]) -> float:
            return float(weight @ found[0].applied(held_out, members)[1])

        most = 1 + MOST_EM if held_out.pit.unknown.any() else 1
        maps, shares = converged(step, gain, None, most)
        nobody = Members((), np.zeros(weight.size, dtype=int))
        return replace(maps, events_of_all=of_events(shares, nobody))

    @property
    def is_own(self) -> Mask:
        """Whether each group has a map or a correction of its own, shape (n_groups,)."""
        return self.pits.is_own if self.events is None else self.pits.is_own | self.events.is_own

    def pooled(self) -> Maps:
        """Return only the maps of all rows."""
        pits = PitMaps(self.pits.levels[:1], self.pits.values[:1], np.zeros(0, dtype=bool))
        return Maps(pits, self.events_of_all, self.events_of_all)

    def forecast(self, forecast: Forecast, members: Members) -> Forecast:
        """Return recalibrated forecasts of rows."""
        distribution = forecast.distribution
        if self.events is None:
            return Forecast(self.pits.forecast(distribution, members))
        p = self.events.apply(forecast.event_probability(), members)
        if forecast.outcome_kind is OutcomeKind.BINARY:
            return Forecast(Bernoulli(p))
        hurdle = as_hurdle(distribution)
        positive = self.pits.forecast(hurdle.positive, members)
        return Forecast(Hurdle(1 - p, positive, hurdle.at, hurdle.end))

    def applied(self, held_out: Observed, members: Members) -> tuple[Observed, Floats]:
        """Return recalibrated forecasts with their outcomes, and the gain in log score of rows."""
        if held_out.events is None or self.events is None:
            pit, gain = self.pits.apply(held_out.pit, members)
            return replace(held_out, pit=pit), gain
        p = self.events.apply(held_out.events.probability, members)
        gain = event_gains(held_out.events, p)
        events = held_out.events._replace(probability=p)
        (low, high), lost = np.array(ends_of(held_out.pit)[:2]), held_out.pit.unknown
        # of hurdles, outcomes that may be off the atom have PITs
        rows = np.flatnonzero((held_out.event_shares > 0) & (held_out.kind is OutcomeKind.HURDLE))
        if rows.size:
            mapped, slope = self.pits.apply(held_out.pit.take(rows), members.take(rows))
            low[rows], high[rows] = ends_of(mapped)[:2]
            gain[rows] += slope
        found = replace(held_out, pit=pit_cells(low, high, lost), events=events)
        # of rows that are lost, what is known is that the outcome is beyond a time
        return found, np.where(lost, found.log_survival - held_out.log_survival, gain)


# --- held-out check of recalibration: whether maps helped, by group, on rows not used for them

# without evidence, it is "may not help" for a group with a correction of its own, and "no
# evidence" for other groups
RepairVerdict = Literal["helps", "no evidence", "may not help", "harms"]
"""Verdict of a check."""

N_FOLDS = 5
"""Number of folds of the check."""

CONFIDENCE = 0.95
"""Confidence with which the intervals of all groups contain the expected gains."""

FEWEST_EVENTS = 10
"""Fewest observed events of a group for an interval; of yes or no, also fewest others."""

OF_EVERYONE: dict[RepairVerdict, str] = {
    "helps": "HELPS",
    "harms": "HARMS",
    "no evidence": "NO EVIDENCE that the repair helps",
}
"""Verdict of everyone as the first line."""

PRINTED = 10
"""Most groups that text lists, those that get worse and those with the largest errors before."""

ERRORS = ["error_before", "error_after", "gain", "low", "high"]
CHECK_COLUMNS = ["group", "n", "map", *ERRORS, "verdict"]
"""Columns of the table of a check, some of which may be unknown in all rows."""

NOTE = (
    "Errors in points, of rows that were not used for the maps (cross-fitted). The verdicts are of"
    " the gain in log score, not of the error, and hold for all groups at once with 95% confidence,"
    " unless groups were chosen by their outcomes in these same rows."
)
"""How the numbers of a check are computed, and what its verdicts leave out."""

NOTE_OF_TIMES = (
    " Times that are cut off (censored): errors are Kaplan-Meier estimates, and gains are those in"
    " the probability of what is known of each person. Both assume that, within a group, being cut"
    " off is independent of the time of the event given its forecast."
)
"""What the numbers of a check assume about times that are cut off."""

NOTE_OF_FEW = f" Groups with fewer than {FEWEST_EVENTS} observed events have no interval."
"""Which groups have no verdict."""


def check_maps(
    held_out: Observed,
    weight: Floats,
    members: Members,
    kinds: Sequence[str],
    random: np.random.Generator,
    outcomes: Outcomes,
) -> pd.DataFrame:
    """Compare errors and log scores with and without maps, on rows that the maps have not seen.

    Groups that get a correction are selected again without each fold. `kinds` are the maps of the
    groups of the fitted model, "own" or "pooled". The table has one row for everyone and one per
    group, see `RecalibratedRegressor`.
    """
    n = weight.size
    gain = np.empty(n)
    parts = []
    order = random.permutation(n)
    for fold in range(min(N_FOLDS, n)):
        test = np.sort(order[fold::N_FOLDS])
        learn = np.sort(np.delete(order, np.s_[fold::N_FOLDS]))
        maps = Maps.learn(held_out.take(learn), weight[learn], members.take(learn))
        mapped, gain[test] = maps.applied(held_out.take(test), members.take(test))
        parts.append((test, mapped))
    sides = held_out, Observed.joined(parts)
    level = 1 - (1 - CONFIDENCE) / (1 + len(kinds))
    rare = [outcomes.happened] if outcomes.are_times else []
    if held_out.events is not None and held_out.kind is OutcomeKind.BINARY:
        rare = [held_out.events.happened, ~held_out.events.happened]
    everyone = (EVERYONE, np.ones(n, dtype=bool))
    rows = []
    for kind, (name, mask) in zip(("pooled", *kinds), (everyone, *members.groups()), strict=True):
        own = weight[mask]
        errors = [_error(side.take(mask), own, is_everyone=name == EVERYONE) for side in sides]
        low, mean, high = _mean_interval(gain[mask], own, level)
        # with few events there is no interval, as with a single row
        if any(each[mask].sum() < FEWEST_EVENTS for each in rare):
            low = high = np.nan
        rows.append([name, own.size, kind, *errors, mean, low, high, _verdict(low, high, kind)])
    return pd.DataFrame(rows, columns=CHECK_COLUMNS)


def _error(held_out: Observed, weight: Floats, *, is_everyone: bool) -> float:
    """Return the error of a group in the measure of an audit; NaN if it is not known."""
    if weight.size == 0 or held_out.pit.unknown.all():
        return np.nan
    if held_out.events is None or held_out.kind is not OutcomeKind.BINARY:
        return error_of(held_out.cells(), weight)
    p, happened = held_out.events.probability, held_out.events.happened.astype(float)
    if not is_everyone:
        return abs(float(weight @ (happened - p))) / float(weight.sum())
    # errors of opposite sign of low and high probabilities do not cancel
    weights = None if (weight == weight[0]).all() else weight
    return rate_error(p, happened, 1 - CONFIDENCE, weights).error


def _verdict(low: float, high: float, kind: str) -> RepairVerdict:
    if low > 0:
        return "helps"
    if high < 0:
        return "harms"
    return "may not help" if kind == "own" else "no evidence"


def _mean_interval(values: Floats, weight: Floats, confidence: float) -> tuple[float, float, float]:
    """Return a weighted mean with its t interval; NaN without rows or spread."""
    if values.size < 2:
        return np.nan, float(values.mean()) if values.size else np.nan, np.nan
    mean, variance, n = weighted_mean(values, weight)
    freedom = max(n - 1, 1.0)
    # n / (n - 1), as the mean is estimated from the same rows
    error = np.sqrt(variance * (freedom + 1) / freedom)
    width = float(stats.t.isf((1 - confidence) / 2, freedom) * error)
    return mean - width, mean, mean + width


# --- times that may be cut off, as recalibration takes them (outcomes: 5)


def check_training_times(estimator: Any, times: Outcomes) -> None:
    """Raise InputError for too few times, and if the estimator would be fitted to them."""
    if times.n_samples < MIN_DISTINCT:
        raise bad_input("y", f"have at least {MIN_DISTINCT} rows", f"n_samples = {times.n_samples}")
    if not is_held_out(estimator, times.value):
        name = type(thawed(estimator)).__name__
        raise InputError(
            f"event is given, and {name} would be fitted to times that are cut off as if they were"
            " those of events; pass a fitted survival model in a FrozenEstimator or SurvivalModel,"
            " or a function from X to Forecast.from_survival(...)"
        )


# --- groups that are too small for maps of their own

# by simulation, groups of 300 rows with maps of their own cost calibrated forecasts 0.04 nats of
# log score, and groups of 150 rows 0.06 nats
FEW_ROWS = 300
"""Fewest rows of a disjoint group without a warning."""


def warn_of_small_groups(members: Members) -> None:
    """Warn before a fit that maps of few rows make calibrated forecasts worse."""
    sizes = {name: mask.sum() for name, mask in members.groups()}
    # maps of smaller groups are shrunk
    few = {name: n for name, n in sizes.items() if FEWEST_ROWS <= n < FEW_ROWS}
    if few:
        least = min(few, key=few.__getitem__)
        warnings.warn(
            f"{named('by')}: {count(len(few), 'group has', 'groups have')} fewer than {FEW_ROWS}"
            f" rows, {least!r} only {few[least]}; if their forecasts are calibrated already, maps"
            " of so few rows make them worse, so give more rows, or define the groups by rules,"
            " which correct only significant deviations",
            UserWarning,
            stacklevel=3,
        )


# --- the forecaster


@dataclass(eq=False, repr=False)
class RecalibratedRegressor(WrappingForecaster):
    """A model with recalibrated forecasts `g(F(y))`, with `g` estimated from held-out PITs.

    The map is the isotonic regression of Kuleshov, Fenner and Ermon (2018), smoothed to
    `2 n^(2/5)` knots of equal probability so that densities stay finite, with more knots at ranks
    1, 2, 4, ... of both tails for extreme intervals. A single map for all rows calibrates forecasts
    on average, not within groups; with `by` each named group has a separate map. Groups that cannot
    be named need randomization: wrap this model in `RandomizedRegressor`. Certify on rows that were
    not used here.

    Forecasts of counts and scores are recalibrated by the map with the largest likelihood of the
    outcomes, whose probability is `g(F(y)) - g(F(y-))`. Probabilities of events are recalibrated by
    increasing maps of their log odds: terms of location and slope of each group, and an isotonic
    curve of all rows; terms of disjoint groups shrink towards the map of all rows. Of an outcome
    with an atom, such as an amount with zeros, the probability of the atom is recalibrated as that
    of an event, and the distribution of the other outcomes by those rows.

    Times that may be cut off (censored) are given with `event`. Maps have the largest likelihood of
    what is known: of a person without an observed event, that the time is longer. They are smoothed
    Kaplan-Meier estimates of the distribution of PITs, and assume that, given the forecast and the
    groups of `by`, the time at which a person is lost is independent of that of the event.

    Parameters
    ----------
    estimator : estimator
        Deterministic model of any kind that `RandomizedRegressor` accepts, always cloned. It is
        fitted on all rows, and once without each fold for the held-out PITs. Wrap a fitted model in
        a `FrozenEstimator`: it is not refitted, and all rows are used to estimate the map, so pass
        rows to `fit` that it has not seen.
    by : str, list of str, callable or dict, optional
        Groups with separate maps: columns of the table `X`, or a function from `X` to one label per
        row. Several columns define one group per combination. Numbers and dates with more than 10
        distinct values are cut at the training median, other columns have one group per value, and
        missing values are a separate group; names are those of an audit, such as `age <= 50`. Rows
        with a label that is new (or missing, for a function) use the map of all rows, and the map
        of a group with fewer than 50 rows is shrunk towards it by its standard error. Larger groups
        of fewer than 300 rows are warned of: their maps make forecasts worse that are calibrated
        already. New values of columns are reported as for any forecaster; new labels of a function
        are reported if most rows of a forecast have them.

        A dict defines groups that may overlap, by name: a `columns.GroupRule` or its text, such as
        `"bmi > 0.03 and sex = 2"`; a `FoundGroup` with conditions; the name of a boolean column; a
        function from `X` to a mask; or a mask of the rows of `fit`. A mask does not determine other
        rows: pass theirs to `forecast(X, groups={name: mask})`. A rule may name values of the
        model's own forecast as columns: "predicted probability", "predicted mean", "predicted
        median", "80% width", "chance of zero" and "event by horizon", as in `"predicted probability
        > 0.153 and predicted probability <= 0.231"`. They are those of the forecast without maps,
        which in `fit` is held out. All rows, and groups of at least 30 rows, get a correction if
        they deviate significantly, fitted jointly for all; calibrated forecasts are left unchanged
        with a probability of 95%.
    cv : int, default 5
        Number of folds for the PITs, and for the residuals of a plain regressor.
    spread : {"learned", "constant"}, default "learned"
        Spread of the residuals of a plain regressor, as for `RandomizedRegressor`.
    support : tuple of (float or None, float or None), optional
        Bounds `(low, high)` of the outcome, as for `RandomizedRegressor`.
    random_state : int, generator or None
        Seed of the folds.

    Attributes
    ----------
    estimator_ : estimator
        Fitted model.
    spread_ : SpreadTrees or None
        Fitted model of the logarithm of the spread of a plain regressor's residuals; None if it is
        constant.
    groups_ : DataFrame
        Groups of the training table: `group`, `n_samples` (rows of positive weight) and `map`,
        "own" or "pooled"; for overlapping groups "own" means a correction. Empty without `by`.
    check_ : DataFrame
        Held-out check, one row for everyone and one per group: `group`, `n`, `map`, the error of
        the model `error_before` and with maps `error_after` (W1; of 0/1 outcomes the difference of
        event rate and mean probability, for everyone its mean given the probability), the `gain`
        in mean log score (nats) with its 95% interval from `low` to `high`, valid for all groups
        simultaneously, and the `verdict`: "helps", "harms", "may not help" (a correction of its own
        without evidence) or "no evidence". PITs of the model are held out, and each row is mapped
        by maps of four fifths of the rows, without its own; groups that need a correction are
        selected without it, too. `summary` returns it as text.
    levels_, values_ : ndarray of shape (n_maps, n_knots)
        Knots of the map of all rows, followed by those of disjoint groups with separate maps, in
        the order of `groups_`. Overlapping groups have joint corrections in place of this map. For
        outcomes with an atom, maps of the other outcomes; for events, the identity.
    outcome_kind_ : OutcomeKind
        Kind of outcome of the forecasts that the maps were estimated for.
    horizon_, n_lost_ : float or None, int or None
        Horizon of times, and the number of rows whose time is cut off before it and before the
        event; None for other outcomes.
    support_ : Support or None
        Map of outcomes to the line; None without `support`.
    schema_ : Schema
        Kinds, levels and ranges of the columns of the training table, by which every table is read.

    References
    ----------
    Kuleshov, Fenner & Ermon, ICML 2018. A new outcome is below the `i`-th PIT with probability
    `i / (n + 1)`, the plotting position used here: Vovk et al., Machine Learning 108 (2019),
    445-474.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import BayesianRidge
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = RecalibratedRegressor(BayesianRidge(), by="sex", random_state=0)
    >>> model = model.fit(X[:300], y[:300])
    >>> model.groups_["map"].tolist()
    ['own', 'own']
    >>> model.forecast(X[300:]).cdf(150.0).shape
    (142,)
    """

    estimator: Any
    by: By | None = None
    _: KW_ONLY
    cv: int = 5
    spread: SpreadKind = "learned"
    support: Bounds = None
    random_state: RandomState = None

    inner = ("estimator", "by")
    learned = WrappingForecaster.learned | {
        "_groups": Grouping | OverlappingGroups,
        "_maps": Maps,
        "groups_": pd.DataFrame,
        "check_": pd.DataFrame,
        "outcome_kind_": OutcomeKind,
        "horizon_": float | None,
        "n_lost_": int | None,
    }
    horizon_ = n_lost_ = None

    def fit(self, X: Any, y: ArrayLike | Outcomes, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model, and estimate the maps from held-out PITs.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, n_features)
            Training rows, passed to the estimator unchanged; a table if `by` names columns.
        y : array-like of shape (n,) or Outcomes
            Outcomes of the kind that the estimator predicts; events are 1 (happened) or 0. Times
            that may be cut off are `Outcomes` with their events, and the horizon of the forecasts,
            if they have one; they need a fitted model. One row of each `person` is used.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, for the maps and for estimators that accept them; rows of weight 0
            are dropped. By default those of `Outcomes`.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If the estimator is randomized or of an unsupported kind, `by` does not match the table,
            fewer than `2 cv` rows have a positive weight, or the estimator would be fitted to times
            that are cut off.
        """
        estimator, times = self.estimator, None
        # weights that are 0 in rows that are not used
        used = sample_weight
        if isinstance(y, Outcomes):
            used = sample_weight = y.weight if sample_weight is None else sample_weight
            if y.are_times:
                # weights must not leave out the people whose times are cut off
                times = Outcomes(y.y, y.event, y.horizon, weight=sample_weight)
                check_training_times(estimator, times)
            if y.person is not None:
                # rows of one person in several folds would make any map look useful
                given = np.ones(y.n_samples) if sample_weight is None else sample_weight
                used = np.array(check_rows("sample_weight", given, y.n_samples))
                kept = np.flatnonzero(used)
                one = one_row_each(y.person[kept], kept.size, self.random_state)
                used[np.delete(kept, one)] = 0
            y = y.value
        rows = self._check_training(X, y, used)
        rows = rows if sample_weight is not None else replace(rows, weight=None)
        table, outcomes = rows.X, rows.y
        if times is not None and times.n_samples > outcomes.size:
            times = times.take(np.flatnonzero(np.asarray(used)))
        seen = as_outcomes(outcomes) if times is None else times
        if not is_held_out(estimator, outcomes):
            rows.check_folds()
        self._groups = learn_groups(self.by, table)
        if isinstance(self._groups, Grouping) and not is_event(outcomes):
            # terms of events are shrunk in all groups
            warn_of_small_groups(self._groups.members(table))
        # times at the horizon are many, and no atom of a continuous outcome
        checked = nullcontext if times is None else outcomes_checked
        with checked(), self._kind_checked(estimator, outcomes):
            rows = self._fit_on_support(estimator, rows)
        with outcomes_checked():
            held_out, own = self._held_out(rows, seen)
        members = self._groups.members(table, training_masks(self._groups, self.by, used), own)
        self.outcome_kind_, self.horizon_ = held_out.kind, seen.horizon
        self.n_lost_ = int(seen.is_lost.sum()) if seen.are_times else None
        # only ratios of weights count; squares of tiny weights would underflow
        weight = rows.weights / rows.weights.max()
        held_out = replace(held_out, has_curve=self._has_curve)
        maps = Maps.learn(held_out, weight, members)
        kinds = np.where(maps.is_own, "own", "pooled").tolist()
        sizes = [mask.sum() for _, mask in members.groups()]
        self._set_maps(maps, list(zip(members.names, sizes, kinds, strict=True)))
        self.check_ = check_maps(held_out, weight, members, kinds, rows.random, seen)
        return self

    def _held_out(self, rows: Training, outcomes: Outcomes) -> tuple[Observed, pd.DataFrame]:
        """Return held-out forecasts of the rows, on the line, with their outcomes in own units.

        The table contains the values of these forecasts that rules depend on: by those of a model
        that has seen the outcomes, rules would sort the rows.
        """
        own_values, estimator = self._groups.own_values, self.estimator

        def judged(distribution: Distribution, known: Outcomes) -> tuple[Observed, pd.DataFrame]:
            forecast = Forecast(self._on_support(distribution))
            # checks of the forecast come before its values
            observed = Observed.of(forecast, known, forecast.rounding(outcomes))
            return observed, forecast_values(forecast, own_values)

        # a fitted model has not seen these rows, so all forecasts are held out
        if is_held_out(estimator, rows.y):
            return judged(self._base.distribution(rows.X), outcomes)
        if self._base.unseen_pit is not None and not own_values:
            # its residuals are already cross-fitted
            return Observed(OutcomeKind.CONTINUOUS, Cells(self._base.unseen_pit)), pd.DataFrame()
        # a frozen plain regressor is not refitted, but its residual distribution is
        parts, own = [], []
        for learn, test in rows.folds():
            # inside a caller that has checked all outcomes, all of them may be equal
            if (learn.y == learn.y[0]).all() and not (outcomes.value == outcomes.value[0]).all():
                raise InputError(
                    f"y is {learn.y[0]:g} in all rows outside one of the folds; give more rows with"
                    " other outcomes, or pass a fitted model in a FrozenEstimator"
                )
            part = Base.fit(estimator, learn, self._base.kind)
            found, values = judged(part.distribution(take_rows(rows.X, test)), outcomes.take(test))
            parts.append((test, found))
            own.append(values)
        order = np.argsort(np.concatenate([test for test, _ in parts]), kind="stable")
        return Observed.joined(parts), pd.concat(own).iloc[order]

    _has_curve = True
    """Whether probabilities of events get a curve, beside an intercept and a slope."""

    def _set_maps(self, maps: Maps, groups: Sequence[Sequence[Any]] = ()) -> None:
        self._maps = maps
        self.levels_, self.values_ = maps.pits.levels, maps.pits.values
        self.groups_ = pd.DataFrame(list(groups), columns=["group", "n_samples", "map"])

    def forecast(
        self,
        X: Any,
        r: ArrayLike | None = None,
        *,
        groups: Mapping[str, Any] | None = None,
        random_state: RandomState = None,
    ) -> Forecast:
        """Predict the recalibrated distribution of each row's outcome.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, n_features)
            Rows with the columns of the training table.
        r, random_state
            Without effect, as the forecaster is deterministic.
        groups : dict of str to array of bool, optional
            Masks of these rows for the groups that were given to `by` as masks.

        Returns
        -------
        Forecast

        Raises
        ------
        InputError
            If the rows do not match the training table, or a mask is missing.
        """
        rows = self._check_new_rows(X)
        return self._mapped(self._forecast(rows), rows, groups)

    def _mapped(self, forecast: Forecast, rows: Any, masks: Mapping[str, Any] | None) -> Forecast:
        if self.n_lost_ is not None:
            check_atom_at_horizon(forecast, self.horizon_)
        values = self._groups.own_values
        own = forecast_values(forecast, values) if values else None
        return self._maps.forecast(forecast, self._groups.members(rows, masks, own))

    def recalibrate(
        self, forecast: Forecast, X: Any, groups: Mapping[str, Any] | None = None
    ) -> Forecast:
        """Apply the maps to an existing base forecast, which is then computed only once.

        Parameters
        ----------
        forecast : Forecast
            Output of `base_forecast(X)`.
        X : DataFrame or array-like of shape (n, n_features)
            Rows of the forecast, which determine their groups.
        groups : dict of str to array of bool, optional
            As for `forecast`.

        Returns
        -------
        Forecast
            Equal to `forecast(X)`, without warnings about unseen values of columns.
        """
        check_is_fitted(self)
        return self._mapped(forecast, self._check_rows(X, reset=False), groups)

    def summary(self) -> str:
        """Return the held-out check as text: the verdict, and errors before and after by group."""
        check_is_fitted(self)
        rows: list[Any] = list(self.check_.itertuples(index=False))
        everyone, *groups = rows
        opening = f"{OF_EVERYONE[everyone.verdict]}."
        if groups:
            better, worse = map([row.verdict for row in groups].count, ("helps", "harms"))
            opening += f" {better:,} of {count(len(groups), 'group')} got better"
            opening += f", {worse:,} got worse." if worse else ", none got worse."
        if np.isfinite(everyone.low):
            sign, word = (1, "better") if everyone.gain >= 0 else (-1, "worse")
            ends = band(number, *sorted((sign * everyone.low, sign * everyone.high)))
            opening += f" The mean log score is {word} by {number(sign * everyone.gain)} ({ends})."
        # unknown errors last
        groups.sort(
            key=lambda row: (row.verdict != "harms", -np.nan_to_num(row.error_before, nan=-1))
        )
        width = line_width(SCREEN)
        listed = Table.of(
            "Check of the repair",
            [everyone, *groups[:PRINTED]],
            {
                "group": lambda row: row.group,
                "rows": lambda row: f"{row.n:,}",
                "error before": lambda row: points(row.error_before),
                "after": lambda row: points(row.error_after),
                Column("verdict"): lambda row: row.verdict,
            },
        ).text(width)
        rest = len(groups) - PRINTED
        more = f"\n{count(rest, 'more group')}: check_, or --json" if rest > 0 else ""
        few = NOTE_OF_FEW if self.n_lost_ or self.check_["low"].isna().any() else ""
        note = wrapped(NOTE + (NOTE_OF_TIMES if self.n_lost_ else "") + few, width)
        return f"{wrapped(opening, width)}\n\n{listed}{more}\n\n{note}"

    def without_groups(self) -> Self:
        """Return the fitted model with only the map of all rows, as if fitted without `by`."""
        # a shallow copy, as the shared model is never changed
        pooled = copy(self)
        pooled.by, pooled._groups = None, learn_groups(None, None)
        pooled._set_maps(self._maps.pooled())
        pooled.check_ = self.check_[:1]
        return pooled

    def to_state(self) -> State:
        check_is_fitted(self)
        check_storable(self._groups)
        return super().to_state()

    def _set_up(self) -> None:
        super()._set_up()
        by = self._groups.by
        self.by = list(by) if isinstance(by, tuple) else by
        names = [part.column for part in getattr(self._groups, "columns", ())]
        if names and names != ([by] if isinstance(by, str) else self.by):
            raise InputError("by are not the names of the columns of groups")
        self.levels_, self.values_ = self._maps.pits.levels, self._maps.pits.values
        self.check_ = self.check_.astype(dict.fromkeys(ERRORS, np.float64))


# --- classifiers of two classes

UpdateMethod = Literal["maps", "logistic"]


@dataclass(eq=False, repr=False)
class RecalibratedClassifier(ClassifierMixin, RecalibratedRegressor):  # type: ignore[misc]
    """A classifier of two classes with recalibrated probabilities.

    It is a classifier for scikit-learn: scorers, pipelines, searches and `CalibrationDisplay` take
    it. The maps, the groups and the check are those of `RecalibratedRegressor` for events, and its
    forecasts are those of the event that the second class occurs.

    Parameters
    ----------
    estimator : classifier
        Any classifier with `predict_proba`, always cloned. It is fitted on all rows to the classes
        0 and 1, and once without each fold for the held-out probabilities. Wrap a fitted one in a
        `FrozenEstimator`: it is not refitted, and may have other labels; pass rows to `fit` that it
        has not seen. A function from `X` to a `Forecast` of the second class is taken as well.
    by : str, list of str, callable or dict, optional
        Groups with separate maps, as for `RecalibratedRegressor`.
    method : {"maps", "logistic"}, default "maps"
        Corrections of log odds. "logistic" is logistic updating: an intercept and a slope, of all
        rows and of groups, in `updates_`. "maps" adds an increasing curve of all rows, where it
        pays.
    cv : int, default 5
        Number of folds for the held-out probabilities.
    random_state : int, generator or None
        Seed of the folds.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Labels of the classes.
    updates_ : DataFrame
        With `method="logistic"`, the `intercept` and the `slope` of the corrected in the predicted
        log odds: of "everyone" in no group, and of the rows of each group alone.
    estimator_, groups_, check_, schema_
        As for `RecalibratedRegressor`.

    References
    ----------
    Logistic updating: Cox, Biometrika 45 (1958), 562-565; Steyerberg et al., Statistics in Medicine
    23 (2004), 2567-2586.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RecalibratedClassifier(GaussianNB(), method="logistic", random_state=0)
    >>> model = model.fit(X[:400], y[:400])
    >>> model.predict_proba(X[400:]).shape, bool(model.updates_["slope"][0] < 0.5)
    ((169, 2), True)
    """

    method: UpdateMethod = field(default="maps", kw_only=True)
    # parameters of regressors only
    spread: ClassVar[SpreadKind] = "learned"  # type: ignore[misc]
    support: ClassVar[Bounds] = None  # type: ignore[misc]

    kind = OutcomeKind.BINARY
    learned = RecalibratedRegressor.learned | {"classes_": np.ndarray}

    # known groups of rows are passed by name, not through pipelines
    __metadata_request__predict_proba = {"groups": UNUSED}  # noqa: RUF012

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the classifier, and estimate the maps from held-out probabilities.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, n_features)
            Training rows, passed to the classifier unchanged; a table if `by` names columns.
        y : array-like of shape (n,)
            Labels of two classes.
        sample_weight : array-like of shape (n,), optional
            As for `RecalibratedRegressor`.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If `y` does not have two classes, or not those of a fitted classifier.
        """
        check_choice("method", self.method, get_args(UpdateMethod))
        # the forecaster has the message for y that is missing
        outcomes: Any = y if y is None else self._coded(y, sample_weight)
        return super().fit(X, outcomes, sample_weight)

    def _coded(self, y: Any, sample_weight: ArrayLike | None) -> Floats:
        """Learn the labels of the classes; return 1 for rows of the second class, else 0."""
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        is_fitted = isinstance(self.estimator, FrozenEstimator)
        known = getattr(self.estimator, "classes_", None) if is_fitted else None
        self.classes_ = np.unique(labels) if known is None else np.asarray(known)
        weight = np.ones(labels.size) if sample_weight is None else np.asarray(sample_weight)
        # weights that are wrong are refused by the forecaster
        is_used = weight != 0 if weight.shape == labels.shape and weight.any() else slice(None)
        found = np.unique(labels[is_used])
        if self.classes_.size != 2 or not np.array_equal(found, self.classes_):
            of_model = "" if known is None else f", {known.tolist()} as the fitted classifier"
            got = f"{count(found.size, 'class', 'classes')}, {found[:5].tolist()}"
            raise InputError(
                f"y must have two classes{of_model}, got {got}. Only binary classification is"
                " supported; use RecalibratedRegressor for ordered scores"
            )
        return np.asarray(labels == self.classes_[1], dtype=float)

    def predict_proba(self, X: Any, groups: Mapping[str, Any] | None = None) -> Floats:
        """Predict the recalibrated probabilities of both classes, shape (n, 2).

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, n_features)
            Rows with the columns of the training table.
        groups : dict of str to array of bool, optional
            As for `forecast`.
        """
        p = self.forecast(X, groups=groups).event_probability()
        return np.column_stack((1 - p, p))

    def predict(self, X: Any) -> Any:
        """Predict the more probable class of each row, shape (n,)."""
        is_second = self.predict_proba(X)[:, 1] > 0.5
        return self.classes_[is_second.astype(int)]

    @property
    def updates_(self) -> pd.DataFrame:
        check_is_fitted(self)
        maps = self._maps.events
        if maps is None or self.method != "logistic":
            raise AttributeError('updates_ is that of method="logistic"')
        names = EVERYONE, *self.groups_["group"]
        location, slope = np.concatenate((maps.terms[:1], maps.terms[0] + maps.terms[1:])).T
        numbers = {"intercept": location - slope * maps.center, "slope": 1 + slope}
        return pd.DataFrame({"group": names} | numbers)

    @property
    def _has_curve(self) -> bool:  # type: ignore[override]
        return self.method == "maps"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags = None
        tags.classifier_tags.multi_class = False
        return tags

    def _set_up(self) -> None:
        super()._set_up()
        # one that was fitted to codes of other labels is fitted again
        is_own = np.array_equal(getattr(self.estimator_, "classes_", self.classes_), self.classes_)
        self.estimator = (frozen if is_own else thawed)(self.estimator_)
