"""Held-out forecasts with their outcomes, and the maps that are estimated from them, by kind."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Floats, Ints, Mask, bad_input
from evenhand.calibration import Outcomes, as_outcomes
from evenhand.distributions import (
    Bernoulli,
    Hurdle,
    OutcomeKind,
    Recalibrated,
    as_hurdle,
    curve_times,
)
from evenhand.forecast import Forecast, check_forecast_of_times
from evenhand.forecasters.corrections import LEVEL, Step
from evenhand.forecasters.events import EventMaps, Events, learn_disjoint, learn_overlapping
from evenhand.forecasters.maps import (
    FEWEST_ROWS,
    IDENTITY,
    Everyone,
    GroupMaps,
    Members,
    Overlapping,
    group_table,
    map_pits,
)
from evenhand.forecasters.pit_cells import PitCells

TINY = 1e-300
"""Least probability, so that logarithms are finite."""

MOST_EM = 50
"""Largest number of steps of the EM algorithm for events of which some are lost."""

LEAST_GAIN = 0.05
"""Smallest gain in nats, of all rows together, for another step of the EM algorithm."""

FEWEST_POSITIVE = 10
"""Fewest rows off the atom for a map of the positive part."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Forecasts of n rows with their outcomes, as far as recalibration depends on them.

    Parameters
    ----------
    kind : OutcomeKind
        Kind of outcome.
    pit : PitCells of n rows
        PITs of the outcomes; of hurdles, PITs of the positive part, without meaning at the atom.
        Of times that are cut off, what is known of them.
    events : Events of n rows, optional
        Event and its probability: of 0/1 outcomes, and of hurdles that the outcome is not the atom;
        False for rows of which it is not known.
    is_high : bool
        Whether the atom of hurdles is above the rest.
    curve_times : tuple of float
        Times of the survival curves; none for other forms of forecasts.
    """

    kind: OutcomeKind
    pit: PitCells
    events: Events | None = None
    is_high: bool = False
    curve_times: tuple[float, ...] = ()

    @classmethod
    def of(cls, forecast: Forecast, known: Floats | Outcomes) -> HeldOut:
        """Return the forecasts of rows with their outcomes."""
        kind, known = forecast.outcome_kind, as_outcomes(known)
        check_forecast_of_times(forecast, known)
        if known.are_times:
            grid = tuple(curve_times(forecast.distribution))
            return replace(cls._of_times(forecast, known), curve_times=grid)
        outcomes = known.value
        if kind is OutcomeKind.CONTINUOUS:
            return cls(kind, PitCells.of(forecast.cdf(outcomes)))
        if kind is OutcomeKind.COUNT:
            return cls(kind, PitCells.spread(*forecast.pit_interval(outcomes)))
        probability = np.asarray(forecast.event_probability(), dtype=np.float64)
        if kind is OutcomeKind.BINARY:
            wrong = (outcomes != 0) & (outcomes != 1)
            if wrong.any():
                value = float(outcomes[wrong][0])
                raise bad_input("y", "be 0 or 1, as the model predicts probabilities", value)
            return cls(kind, PitCells.of(probability), Events(probability, outcomes == 1))
        hurdle = as_hurdle(forecast.distribution)
        happened = outcomes != hurdle.at
        # at the atom the positive part has no PIT
        pit = np.where(happened, hurdle.positive.cdf(outcomes), 0.5)
        events = Events(probability, happened)
        return cls(kind, PitCells.of(pit), events, hurdle.end == "high")

    @classmethod
    def _of_times(cls, forecast: Forecast, times: Outcomes) -> HeldOut:
        """Return forecasts of times, which are continuous or have an atom at the horizon."""
        if forecast.outcome_kind is OutcomeKind.CONTINUOUS:
            low = forecast.cdf(times.value)
            high = np.where(times.happened, low, 1.0)
            is_known = bool(times.happened.all())
            pit = PitCells.of(low) if is_known else PitCells.spread(low, high, times.is_lost)
            return cls(forecast.outcome_kind, pit)
        hurdle = as_hurdle(forecast.distribution)
        # who reached the horizon is at the atom, where the positive part has no PIT
        low = np.where(times.has_reached, 0.5, hurdle.positive.cdf(times.value))
        lost = times.is_lost
        is_known = not lost.any()
        high = np.where(lost, 1.0, low)
        pit = PitCells.of(low) if is_known else PitCells.spread(low, high, lost)
        probability = np.asarray(forecast.event_probability(), dtype=np.float64)
        events = Events(probability, times.happened)
        return cls(forecast.outcome_kind, pit, events, is_high=True)

    @classmethod
    def joined(cls, parts: Sequence[tuple[Ints, HeldOut]]) -> HeldOut:
        """Return all rows from parts with the numbers of their rows."""
        order = np.argsort(np.concatenate([rows for rows, _ in parts]), kind="stable")
        all_parts = [part for _, part in parts]
        first = all_parts[0]
        low, high = (
            np.concatenate([getattr(part.pit, end) for part in all_parts])[order]
            for end in ("low", "high")
        )
        lost = None
        if first.pit.lost is not None:
            masks = [part.pit.lost for part in all_parts if part.pit.lost is not None]
            lost = np.concatenate(masks)[order]
        pit = PitCells.of(low) if first.pit.ties is None else PitCells.spread(low, high, lost)
        events = None
        if first.events is not None:
            found = [part.events for part in all_parts if part.events is not None]
            probability = np.concatenate([part.probability for part in found])[order]
            events = Events(probability, np.concatenate([part.happened for part in found])[order])
        return replace(first, pit=pit, events=events)

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.pit.size

    @property
    def is_finite(self) -> bool:
        """Whether all forecasts are numbers."""
        numbers = [self.pit.low, self.pit.high]
        if self.events is not None:
            numbers.append(self.events.probability)
        return all(np.isfinite(values).all() for values in numbers)

    @property
    def has_pit(self) -> Mask:
        """Whether the outcome of each row has a PIT: of hurdles, where it may be off the atom."""
        return np.asarray(self.event_shares > 0) & (self.kind is not OutcomeKind.BINARY)

    @property
    def event_shares(self) -> Mask | Floats:
        """Whether the event happened, or its predicted probability where it is not known, (n,).

        A time that is cut off at the PIT `u` of the positive part is that of an event before the
        horizon with probability `P (1 - u) / (1 - P u)`.
        """
        if self.events is None:
            return np.full(self.size, self.kind is not OutcomeKind.BINARY)
        if self.kind is not OutcomeKind.HURDLE or self.pit.lost is None:
            return self.events.happened
        p, u = self.events.probability, self.pit.low
        later = p * (1 - u) / np.maximum(1 - p * u, TINY)
        return np.where(self.pit.lost, later, self.events.happened)

    @property
    def log_survival(self) -> Floats:
        """Log probability of a hurdle's outcomes beyond the PITs of the positive part, (n,)."""
        assert self.events is not None
        return np.log(np.maximum(1 - self.events.probability * self.pit.low, TINY))

    def take(self, rows: Any) -> HeldOut:
        """Return some rows."""
        events = None if self.events is None else self.events.take(rows)
        return replace(self, pit=self.pit.take(rows), events=events)

    def cells(self) -> PitCells:
        """Return the PITs of the whole distributions, as cells where the outcome is an atom."""
        if self.events is None:
            return self.pit
        p, happened = self.events.probability, self.events.happened
        low, high = self.pit.low, self.pit.high
        if self.kind is OutcomeKind.BINARY:
            low, high = np.zeros(self.size), np.ones(self.size)
        lost = self.pit.lost
        if self.is_high:
            is_beyond = happened if lost is None else np.where(lost, True, happened)
            ends = np.where(is_beyond, p * low, p), np.where(happened, p * high, 1.0)
            return PitCells.spread(*ends, lost)
        below = 1 - p
        ends = np.where(happened, below + p * low, 0.0), np.where(happened, below + p * high, below)
        return PitCells.spread(*ends)


@dataclass(frozen=True)
class Maps:
    """Everything that recalibration estimates.

    Parameters
    ----------
    pits : GroupMaps
        Maps of PITs; of hurdles, of the positive part. The identity for 0/1 outcomes.
    table : DataFrame
        Output of `group_table`, of all rows.
    events, events_of_all : EventMaps, optional
        Corrections of the probability of an event, by group, and without groups.
    """

    pits: GroupMaps
    table: pd.DataFrame
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
            pits = members.learn(held_out.pit, weight)
            return cls(pits, pits.table)
        # both parts of a hurdle are tested
        level = LEVEL / 2 if held_out.kind is OutcomeKind.HURDLE else LEVEL
        shares = held_out.event_shares
        maps = cls._learn_parts(held_out, shares, weight, members, level)
        gain = -np.inf
        for _ in range(0 if held_out.pit.lost is None else MOST_EM):
            mapped, gains = maps.applied(held_out, members)
            last, gain = gain, float(weight @ gains)
            if gain < last + LEAST_GAIN:
                break
            shares = mapped.event_shares
            maps = cls._learn_parts(held_out, shares, weight, members, level)
        completed = replace(held_out.events, happened=shares)
        return replace(maps, events_of_all=_learn_events(completed, weight, Everyone(), level))

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
        pits = GroupMaps(IDENTITY[None], IDENTITY[None], _group_table(members))
        rows = np.flatnonzero((happened > 0) & (held_out.kind is OutcomeKind.HURDLE))
        if held_out.events.happened[rows].sum() >= FEWEST_POSITIVE:
            shares = weight[rows] * happened[rows]
            pits = members.take(rows).learn(held_out.pit.take(rows), shares, level)
        completed = replace(held_out.events, happened=happened)
        events = _learn_events(completed, weight, members, level)
        own = set(events.names) | set(pits.table["group"][pits.table["map"] == "own"])
        table = _group_table(members, own)
        return cls(pits, table, events)

    def pooled(self) -> Maps:
        """Return only the maps of all rows."""
        return Maps(self.pits.pooled(), group_table([]), self.events_of_all, self.events_of_all)

    def to_state(self) -> dict[str, Any]:
        """Return what is not in the arrays of `pits` and in the table of groups, as JSON values."""
        state: dict[str, Any] = {"n_steps": len(self.pits.steps)}
        if self.events is not None and self.events_of_all is not None:
            state["events"] = self.events.to_state()
            state["events_of_all"] = self.events_of_all.to_state()
            own = self.pits.table.itertuples(index=False)
            state["groups_of_pits"] = [[name, int(count), used] for name, count, used in own]
        return state

    @classmethod
    def from_state(
        cls, state: Mapping[str, Any], levels: Floats, values: Floats, steps: tuple[Step, ...]
    ) -> Maps:
        """Rebuild the maps from the state of a model and the arrays of the maps of PITs."""
        table = group_table(map(tuple, state["groups"]))
        if "events" not in state:
            return cls(GroupMaps(levels, values, table, steps), table)
        own = group_table(map(tuple, state["groups_of_pits"]))
        events = (EventMaps.from_state(state[name]) for name in ("events", "events_of_all"))
        return cls(GroupMaps(levels, values, own, steps), table, *events)

    def forecast(self, forecast: Forecast, members: Members) -> Forecast:
        """Return recalibrated forecasts of rows."""
        distribution = forecast.distribution
        if self.events is None:
            return Forecast(Recalibrated(distribution, *members.knots(self.pits)))
        p = self._probability(forecast.event_probability(), members)
        if forecast.outcome_kind is OutcomeKind.BINARY:
            return Forecast(Bernoulli(p))
        knots = members.knots(self.pits)
        hurdle = as_hurdle(distribution)
        positive = Recalibrated(hurdle.positive, *knots)
        return Forecast(Hurdle(1 - p, positive, hurdle.at, hurdle.end))

    def applied(self, held_out: HeldOut, members: Members) -> tuple[HeldOut, Floats]:
        """Return recalibrated forecasts with their outcomes, and the gain in log score of rows."""
        if held_out.events is None:
            pit, gain = map_pits(held_out.pit, *members.knots(self.pits))
            return replace(held_out, pit=pit), gain
        p = self._probability(held_out.events.probability, members)
        gain = held_out.events.gains(p)
        pit = held_out.pit
        low = pit.low.copy()
        rows = np.flatnonzero(held_out.has_pit)
        if rows.size:
            mapped, slope = map_pits(pit.take(rows), *members.take(rows).knots(self.pits))
            low[rows] = mapped.low
            gain[rows] += slope
        high = low if pit.lost is None else np.where(pit.lost, 1.0, low)
        events = Events(p, held_out.events.happened)
        found = replace(held_out, pit=replace(pit, low=low, high=high), events=events)
        if pit.lost is not None:
            # of rows that are lost, what is known is that the outcome is beyond a time
            later = found.log_survival - held_out.log_survival
            gain = np.where(pit.lost, later, gain)
        return found, gain

    def _probability(self, probability: Floats, members: Members) -> Floats:
        if self.events is None:
            return probability
        columns = members.columns(self.events.names, probability.size)
        return self.events.apply(probability, columns)


def _learn_events(events: Events, weight: Floats, members: Members, level: float) -> EventMaps:
    sizes = {name: int(mask.sum()) for name, mask in members.groups()}
    if isinstance(members, Overlapping):
        return learn_overlapping(events, weight, list(sizes), members.masks, level)
    names = [name for name, size in sizes.items() if size >= FEWEST_ROWS]
    return learn_disjoint(events, weight, names, members.columns(names, weight.size))


def _group_table(members: Members, own: Collection[str] = ()) -> pd.DataFrame:
    """Return the table of groups, of which some have a map of their own."""
    return group_table(
        (name, int(mask.sum()), "own" if name in own else "pooled")
        for name, mask in members.groups()
    )
