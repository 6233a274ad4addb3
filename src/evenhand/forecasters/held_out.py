"""Held-out forecasts with their outcomes, and the maps that are estimated from them, by kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand._validate import Floats, InputError, Ints, Mask, bad_input
from evenhand.calibration import Cells, n_effective
from evenhand.distributions import (
    Bernoulli,
    Distribution,
    Hurdle,
    OutcomeKind,
    Recalibrated,
    as_hurdle,
    curve_times,
)
from evenhand.forecast import Forecast, check_forecast_of_times
from evenhand.forecasters.corrections import (
    LEVEL,
    Correction,
    EventMaps,
    Events,
    learn_corrections,
    learn_events,
)
from evenhand.forecasters.groups import Members
from evenhand.forecasters.samples import (
    FEWEST_ROWS,
    IDENTITY,
    LEAST_GAIN,
    ends_of,
    error_of,
    learn_map,
    mapped,
    pit_cells,
    shrunk,
    stacked,
)
from evenhand.outcomes import Outcomes, as_outcomes

# --- held-out forecasts with their outcomes

TINY = 1e-300
"""Least probability, so that logarithms are finite."""


@dataclass(frozen=True, eq=False)
class HeldOut:
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
    curve_times : tuple of float
        Times of the survival curves; none for other forms of forecasts.
    has_curve : bool
        Whether maps of events may have a curve, beside an intercept and a slope.
    """

    kind: OutcomeKind
    pit: Cells
    events: Events | None = None
    is_high: bool = False
    curve_times: tuple[float, ...] = ()
    has_curve: bool = True

    @classmethod
    def of(cls, forecast: Forecast, known: Floats | Outcomes) -> HeldOut:
        """Return the forecasts of rows with their outcomes."""
        kind, known = forecast.outcome_kind, as_outcomes(known)
        check_forecast_of_times(forecast, known)
        value, lost = known.value, known.is_lost
        times = tuple(curve_times(forecast.distribution)) if known.are_times else ()
        if kind is OutcomeKind.COUNT:
            low, high = map(_finite, forecast.pit_interval(value))
            return cls(kind, pit_cells(low, high))
        if kind is OutcomeKind.CONTINUOUS:
            low = _finite(forecast.cdf(value))
            high = np.where(known.happened, low, 1.0)
            return cls(kind, pit_cells(low, high, lost), curve_times=times)
        probability = _finite(np.asarray(forecast.event_probability(), dtype=np.float64))
        if kind is OutcomeKind.BINARY:
            wrong = (value != 0) & (value != 1)
            if wrong.any():
                rule = "be 0 or 1, as the model predicts probabilities"
                raise bad_input("y", rule, float(value[wrong][0]))
            return cls(kind, Cells(probability), Events(probability, value == 1))
        hurdle = as_hurdle(forecast.distribution)
        is_atom = known.has_reached if known.are_times else value == hurdle.at
        # at the atom the positive part has no PIT
        low = _finite(np.where(is_atom, 0.5, hurdle.positive.cdf(value)))
        pit = pit_cells(low, np.where(lost, 1.0, low), lost)
        events = Events(probability, known.happened & ~is_atom)
        return cls(kind, pit, events, hurdle.end == "high", times)

    @classmethod
    def joined(cls, parts: Sequence[tuple[Ints, HeldOut]]) -> HeldOut:
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
        later = p * (1 - u) / np.maximum(1 - p * u, TINY)
        return np.where(lost, later, self.events.happened)

    @property
    def log_survival(self) -> Floats:
        """Log probability of a hurdle's outcomes beyond the PITs of the positive part, (n,)."""
        assert self.events is not None
        return np.log(np.maximum(1 - self.events.probability * self.pit.low.ravel(), TINY))

    def take(self, rows: Any) -> HeldOut:
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

    def error(self, weight: Floats) -> float:
        """Return the error of the whole distributions in the measure of an audit."""
        return error_of(self.cells(), weight)


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
    def identity(cls, n_groups: int) -> PitMaps:
        """Return maps that change nothing."""
        return cls(IDENTITY[None], IDENTITY[None], np.zeros(n_groups, dtype=bool))

    @classmethod
    def learn(cls, pit: Cells, weight: Floats, members: Members, level: float = LEVEL) -> PitMaps:
        """Estimate the map of all rows, and those of groups.

        Disjoint groups get maps, which are shrunk towards that of all rows if they have fewer than
        50 rows; overlapping groups get joint corrections.

        Parameters
        ----------
        pit : Cells of n rows
            Held-out PITs.
        weight : ndarray of shape (n,)
            Positive weights.
        members : Members
            Membership of the rows.
        level : float, default 0.05
            Probability that calibrated PITs give overlapping groups any correction.
        """
        maps = [learn_map(pit, weight)]
        if not members.are_disjoint:
            steps = learn_corrections(pit, weight, members, level)
            corrected = [step.is_corrected for step in steps]
            none = np.zeros(len(members.names), dtype=bool)
            return cls(*stacked(maps), np.logical_or.reduce(corrected or [none]), steps)
        is_own = np.zeros(len(members.names), dtype=bool)
        # rows that are lost contain little about a map
        is_seen = ~ends_of(pit)[2] if pit.unknown.any() else np.full(pit.n_samples, True)
        for i, (_, inside) in enumerate(members.groups()):
            if not (inside & is_seen).any():
                continue
            own = learn_map(pit.take(inside), weight[inside])
            if (inside & is_seen).sum() < FEWEST_ROWS:
                own = shrunk(own, maps[0], n_effective(weight[inside & is_seen]))
            is_own[i] = own is not maps[0]
            maps += [own] if is_own[i] else []
        return cls(*stacked(maps), is_own)

    def pooled(self) -> PitMaps:
        """Return only the map of all rows."""
        return PitMaps(self.levels[:1], self.values[:1], np.zeros(0, dtype=bool))

    def _number(self, members: Members) -> Ints:
        """Return the number of each row's map; without one of its own, that of all rows."""
        return np.append(0, np.where(self.is_own, np.cumsum(self.is_own), 0))[members.which]

    def apply(self, pit: Cells, members: Members) -> tuple[Cells, Floats]:
        """Return PITs under the maps, and the logarithm of the slope at each."""
        if members.are_disjoint:
            return mapped(pit, self._number(members), self.levels, self.values, "left")
        slope = np.zeros(pit.n_samples)
        for step in self.steps:
            pit, more = step.apply(pit, members)
            slope += more
        return pit, slope

    def forecast(self, distribution: Distribution, members: Members) -> Distribution:
        """Return the distributions of rows under the maps."""
        if not members.are_disjoint:
            for step in self.steps:
                distribution = step.forecast(distribution, members)
            return distribution
        if len(self.levels) == 1:
            return Recalibrated(distribution, self.levels[0], self.values[0])
        return Recalibrated(distribution, self.levels, self.values, self._number(members))


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
    def learn(cls, held_out: HeldOut, weight: Floats, members: Members) -> Maps:
        """Estimate the maps from held-out forecasts with weights of shape (n,).

        Of outcomes at a horizon or before it, some may be lost. Whether the event happened, and
        when, is then completed by its probability given the maps, and maps are estimated again from
        all rows: the EM algorithm for the likelihood of what is known.
        """
        if held_out.events is None:
            return cls(PitMaps.learn(held_out.pit, weight, members))
        # both parts of a hurdle are tested
        level = LEVEL / 2 if held_out.kind is OutcomeKind.HURDLE else LEVEL
        shares = held_out.event_shares
        maps = cls._learn_parts(held_out, shares, weight, members, level)
        gain = -np.inf
        for _ in range(MOST_EM if held_out.pit.unknown.any() else 0):
            mapped, gains = maps.applied(held_out, members)
            last, gain = gain, float(weight @ gains)
            if gain < last + LEAST_GAIN:
                break
            shares = mapped.event_shares
            maps = cls._learn_parts(held_out, shares, weight, members, level)
        completed = replace(held_out.events, happened=shares)
        nobody = Members((), np.zeros(weight.size, dtype=np.intp))
        of_all = learn_events(completed, weight, nobody, level, has_curve=held_out.has_curve)
        return replace(maps, events_of_all=of_all)

    @classmethod
    def _learn_parts(
        cls,
        held_out: HeldOut,
        happened: Mask | Floats,
        weight: Floats,
        members: Members,
        level: float,
    ) -> Maps:
        """Estimate the maps of events, and of the outcomes of rows where the event happened."""
        assert held_out.events is not None
        pits = PitMaps.identity(len(members.names))
        rows = np.flatnonzero((happened > 0) & (held_out.kind is OutcomeKind.HURDLE))
        if held_out.events.happened[rows].sum() >= FEWEST_POSITIVE:
            shares = weight[rows] * happened[rows]
            pits = PitMaps.learn(held_out.pit.take(rows), shares, members.take(rows), level)
        completed = replace(held_out.events, happened=happened)
        events = learn_events(completed, weight, members, level, has_curve=held_out.has_curve)
        return cls(pits, events)

    @property
    def is_own(self) -> Mask:
        """Whether each group has a map or a correction of its own, shape (n_groups,)."""
        return self.pits.is_own if self.events is None else self.pits.is_own | self.events.is_own

    def pooled(self) -> Maps:
        """Return only the maps of all rows."""
        return Maps(self.pits.pooled(), self.events_of_all, self.events_of_all)

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

    def applied(self, held_out: HeldOut, members: Members) -> tuple[HeldOut, Floats]:
        """Return recalibrated forecasts with their outcomes, and the gain in log score of rows."""
        if held_out.events is None or self.events is None:
            pit, gain = self.pits.apply(held_out.pit, members)
            return replace(held_out, pit=pit), gain
        p = self.events.apply(held_out.events.probability, members)
        gain = held_out.events.gains(p)
        events = Events(p, held_out.events.happened)
        low, _, _ = ends_of(held_out.pit)
        low, lost = low.copy(), held_out.pit.unknown
        # of hurdles, outcomes that may be off the atom have PITs
        is_hurdle = held_out.kind is OutcomeKind.HURDLE
        rows = np.flatnonzero((held_out.event_shares > 0) & is_hurdle)
        if rows.size:
            mapped, slope = self.pits.apply(held_out.pit.take(rows), members.take(rows))
            low[rows] = mapped.low.ravel()
            gain[rows] += slope
        pit = pit_cells(low, np.where(lost, 1.0, low), lost)
        found = replace(held_out, pit=pit, events=events)
        # of rows that are lost, what is known is that the outcome is beyond a time
        return found, np.where(lost, found.log_survival - held_out.log_survival, gain)
