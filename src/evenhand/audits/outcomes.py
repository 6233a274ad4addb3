"""PITs of a block of rows: cells of outcomes, events, and the part off an atom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from evenhand._validate import MILD_ATOM, Floats, InputError, Ints, Mask, bad_input, largest_atom
from evenhand.calibration import Cells, CensoredTimes, Reading, rounding_step
from evenhand.certificates import LinkBase
from evenhand.distributions import Distribution, OutcomeKind, Randomized, as_hurdle
from evenhand.draws import jittered
from evenhand.forecast import Forecast

# --- PITs of a block of rows

PIT_DRAWS = 64
"""Draws per row for PITs and log scores."""

Ends = tuple[Floats, Floats]
"""Lower and upper ends of cells."""


class Block(NamedTuple):
    """PITs of some rows.

    Parameters
    ----------
    pit : ndarray of shape (k, m)
        PITs, at the person's position within each cell: rows are people, columns draws.
    r : ndarray of shape (k, m) or None
        The draws; None for a deterministic forecaster.
    mean : ndarray of shape (k,)
        Mean of each person's forecasts over the draws, units of y.
    base : LinkBase or None
        The link and the PITs of the deterministic forecaster inside it; None if the forecaster is
        no link.
    cells : tuple of two ndarrays of shape (k, m), or None
        Ends of the PITs' cells; None if all cells are empty.
    """

    pit: Floats
    r: Floats | None
    mean: Floats
    base: LinkBase | None
    cells: Ends | None


def forecast_of(model: Any, X: Any, random: np.random.Generator) -> Forecast:
    """Return the forecasts of a model at jittered draws, or the given forecasts."""
    if isinstance(model, Forecast):
        return model
    # one random draw in each of 64 equal cells: midpoints would understate errors (method: 1)
    draws = jittered(len(X), PIT_DRAWS, random)
    with missing_columns_named(model, X):
        forecast: Forecast = model.forecast(X, draws)
    return forecast


@contextmanager
def missing_columns_named(model: Any, X: Any) -> Iterator[None]:
    """Name the columns of its training table that a failing model does not find in X."""
    try:
        yield
    except InputError:
        raise
    except (KeyError, ValueError) as error:
        # models of other libraries are wrapped; arrays have no names
        names = getattr(getattr(model, "model", model), "feature_names_in_", ())
        lacking = [repr(name) for name in names if name not in getattr(X, "columns", names)]
        if not lacking:
            raise
        rule = "have the columns that the model was fitted on"
        remedy = "pass the table with these columns"
        raise bad_input("X", rule, f"none named {', '.join(lacking[:5])}", remedy) from error


def read_forecast(
    forecast: Forecast,
    ends: Ends,
    ties: Floats,
    random: np.random.Generator,
    *,
    is_own: bool,
    has_mean: bool = True,
) -> Block:
    """Compute the PITs of forecasts; `is_own` is true if the audit made their draws.

    Means of times that may be cut off have no use, and may take long: without `has_mean` they are
    NaN.
    """
    inside = inside_link(forecast)
    base = None
    if inside is not None:
        # served PITs are not computed from these: near 1 they would lose digits of the upper tail
        pit, cells = spread_pits(inside.base, ends, ties)
        own = None if cells is None else (_first(cells[0]), _first(cells[1]))
        base = LinkBase(_first(pit), inside.link, own)
    pit, cells = spread_pits(forecast.distribution, ends, ties)
    if pit.ndim == 1:
        pit = pit[:, None]
        cells = None if cells is None else (cells[0][:, None], cells[1][:, None])
    mean = _mean(forecast, random, is_own=is_own) if has_mean else np.full(len(forecast), np.nan)
    return Block(pit, _draws(forecast), mean, base, cells)


def inside_link(forecast: Forecast) -> Randomized | None:
    """Return the distributions of a link around one base distribution per person, or None."""
    distribution = forecast.distribution
    if forecast.r is None or not isinstance(distribution, Randomized):
        return None
    # a base with several draws per person is not deterministic
    is_one_each = forecast.r.ndim == 1 or distribution.base.batch_shape[-1:] in ((), (1,))
    return distribution if is_one_each else None


def spread_pits(distribution: Distribution, ends: Ends, ties: Floats) -> tuple[Floats, Ends | None]:
    """Return PITs, shape of the batch, spread over their cells, and the ends of the cells.

    The cell of an outcome `y` is `[F(y-), F(y)]`, and that of a rounded one reaches over all
    outcomes that are rounded to it.
    """
    low, high = ends
    if len(distribution.batch_shape) == 2:
        low, high, ties = low[:, None], high[:, None], ties[:, None]
    # exactly 1 where nothing is known above
    upper = np.where(np.isposinf(high), 1.0, distribution.cdf(high))
    # without atoms and a grid both ends of a cell are the outcome: one evaluation suffices
    if not distribution.has_atoms and np.array_equal(low, high):
        return upper, None
    lower = np.minimum(distribution.cdf_left(low), upper)
    # rounding errors must not move a PIT out of its cell
    return np.clip(lower + ties * (upper - lower), lower, upper), (lower, upper)


def _first(values: Floats) -> Floats:
    """Return one value per person of an array of shape (n,) or (n, 1)."""
    return np.asarray(values.reshape(values.shape[0], -1)[:, 0])


def _draws(forecast: Forecast) -> Floats | None:
    if forecast.r is None:
        return None
    r = forecast.r if forecast.r.ndim == 2 else forecast.r[:, None]
    return np.broadcast_to(r, (len(forecast), r.shape[1]))


def _mean(forecast: Forecast, random: np.random.Generator, *, is_own: bool) -> Floats:
    """Mean of each person's forecasts over the draws.

    If the audit makes the draws, a link has a formula for the mean over a uniform draw. Given
    forecasts are averaged over their own draws. Where a mean has no formula, it is estimated by
    one outcome drawn from each forecast, at jittered probabilities in random order. All of these
    estimates are unbiased.
    """
    distribution = forecast.distribution
    shape = distribution.batch_shape
    if len(shape) == 1:
        return forecast.mean()
    if distribution.has_mean:
        return np.asarray(distribution.mean().mean(axis=-1))
    # n x 64 integrals would take longer than the rest of the audit
    if (
        is_own
        and isinstance(distribution, Randomized)
        and not distribution.has_atoms
        and distribution.base.batch_shape == (shape[0], 1)
    ):
        return distribution.mean_over_draws(random)[:, 0]
    levels = random.permuted(jittered(shape[0], shape[1], random), axis=-1)
    return np.asarray(distribution.ppf(levels).mean(axis=-1))


# --- cells of rounded outcomes (outcomes: 4.3)

OPEN = (-np.inf, np.inf)
"""Bounds of outcomes that are no atoms: no cell is open."""


@dataclass(frozen=True)
class RoundingCells:
    """Cells over whose probability PITs of outcomes are spread.

    Many rows may share an outcome although the forecast is continuous. Their PITs would coincide
    under the true distribution of the unrounded outcome, and that distribution would seem
    miscalibrated. An outcome on a grid has the cell `y -+ step / 2`. The cell of an atom at the
    smallest or largest outcome is open: that outcome stands for all values beyond it.

    Parameters
    ----------
    step : float or None
        Distance of neighbouring grid values, in units of the outcome; None for outcomes off a grid.
    span : tuple of float
        Bounds of the outcome that are atoms, whose cells are open; infinite for an end that is
        none.

    Examples
    --------
    A fifth of the outcomes are censored at 3, the others are continuous:

    >>> y = np.minimum(np.random.default_rng(0).exponential(2.0, size=500), 3.0)
    >>> cells = RoundingCells.of(y)
    >>> cells
    RoundingCells(step=None, span=(-inf, 3.0))
    >>> cells.ends(np.array([1.5, 3.0]))
    (array([1.5, 3. ]), array([1.5, inf]))
    """

    step: float | None = None
    span: tuple[float, float] = OPEN

    @classmethod
    def of(cls, outcomes: Floats) -> RoundingCells:
        """Return the cells of outcomes; no cells unless more than 2% of the rows share one."""
        # on a fine grid spreading would add a random number to each PIT without any benefit
        _, share = largest_atom(outcomes)
        if not _is_atom(share * outcomes.size, outcomes.size):
            return cls()
        low, high = float(outcomes.min()), float(outcomes.max())
        ends = (
            low if _is_atom((outcomes == low).sum(), outcomes.size) else -np.inf,
            high if _is_atom((outcomes == high).sum(), outcomes.size) else np.inf,
        )
        return cls(rounding_step(outcomes), ends)

    @property
    def is_used(self) -> bool:
        """Whether any outcome has a cell."""
        return self.step is not None or self.span != OPEN

    def ends(self, outcomes: Floats) -> tuple[Floats, Floats]:
        """Return both ends of each outcome's cell; the outcome itself where it has no cell."""
        half = 0.0 if self.step is None else self.step / 2
        low = np.where(outcomes <= self.span[0], -np.inf, outcomes - half)
        return low, np.where(outcomes >= self.span[1], np.inf, outcomes + half)

    def rounded(self, values: Floats, origin: float) -> Floats:
        """Return the outcomes that would be observed instead of continuous values.

        Parameters
        ----------
        values : ndarray
            Values of a continuous distribution.
        origin : float
            A value on the grid.
        """
        step = self.step
        on_grid = values if step is None else origin + step * np.round((values - origin) / step)
        return np.clip(on_grid, *self.span)


def spread_step(outcomes: Floats) -> float | None:
    """Return the rounding step over whose cells PITs are spread, or None if they are not."""
    return RoundingCells.of(outcomes).step


def _is_atom(count: float, n: int) -> bool:
    # a single row is more than 2% of fewer than 50 rows
    return count > MILD_ATOM * n and count > 1.5


# --- events, and the part off an atom

Simulate = Callable[[np.random.Generator], Cells]
"""Function of a random generator that returns PITs of the same rows under their forecasts."""


@dataclass(frozen=True, eq=False)
class Events:
    """Events and their predicted probabilities.

    Parameters
    ----------
    probability : ndarray of shape (n,)
        Predicted probability of the event.
    happened : ndarray of shape (n,)
        1 where the event happened, 0 elsewhere.
    """

    probability: Floats
    happened: Floats

    def take(self, rows: Ints) -> Events:
        """Return the events of some rows."""
        return Events(self.probability[rows], self.happened[rows])

    @classmethod
    def of(cls, forecast: Forecast, outcomes: Floats) -> Events | None:
        """Return the events of a forecast: 0/1 outcomes, or outcomes off the atom of a hurdle.

        None for outcomes of other kinds.
        """
        if forecast.outcome_kind is OutcomeKind.BINARY:
            return cls(event_probability(forecast), outcomes)
        if forecast.outcome_kind is OutcomeKind.HURDLE:
            happened = is_off_atom(forecast, outcomes).astype(np.float64)
            return cls(event_probability(forecast), happened)
        return None


@dataclass(frozen=True, eq=False)
class PositivePart:
    """PITs of the continuous part of a hurdle, of the people whose outcome is not the atom.

    Parameters
    ----------
    rows : ndarray of int, shape (k,)
        Row numbers of these people.
    pits : Cells
        PITs of their outcomes under the continuous part.
    residual : ndarray of shape (k,)
        Outcome minus the mean of the continuous part, units of y; NaN for times.
    base : LinkBase or None
        The link, and the PITs of the deterministic forecaster inside it; None without a link.
    at : float
        The atom, units of y.
    keys : dict of str to ndarray of shape (k,)
        Values of the forecasts of the continuous part that define groups.
    """

    rows: Ints
    pits: Cells
    residual: Floats
    base: LinkBase | None
    at: float
    keys: Mapping[str, Floats] = field(default_factory=dict)

    @classmethod
    def joined(
        cls,
        rows: Ints,
        parts: Sequence[Block],
        outcomes: Floats,
        weights: Floats | None,
        at: float,
        times: CensoredTimes | None = None,
    ) -> PositivePart:
        """Concatenate the blocks of these people, whose row numbers are `rows`."""
        pit = np.concatenate([part.pit for part in parts])
        ends = None
        # blocks without atoms at the ends have no cells, although others may have them
        if any(part.cells is not None for part in parts):
            both = [(part.pit, part.pit) if part.cells is None else part.cells for part in parts]
            ends = (
                np.concatenate([low for low, _ in both]),
                np.concatenate([high for _, high in both]),
            )
        draws = [part.r for part in parts if part.r is not None]
        base = [part.base for part in parts if part.base is not None]
        some = None if weights is None else weights[rows]
        lost = None if times is None else times.is_lost[rows]
        pits = Cells(
            *(ends or (pit, pit)),
            pit,
            np.concatenate(draws) if draws else None,
            some,
            None if lost is None else lost * Reading.UNKNOWN,
        )
        link = None
        if base:
            inside = np.concatenate([one.pit for one in base])
            if lost is not None:
                # who is lost has no position in a cell, only a lower end
                low = np.concatenate([(one.cells or (one.pit,))[0] for one in base])
                inside = np.where(lost, low, inside)
            link = LinkBase(inside, base[0].link)
        mean = np.concatenate([part.mean for part in parts])
        residual = outcomes[rows] - mean
        return cls(rows, pits, residual, link, at, {"predicted mean": mean})

    def of_rows(self, chosen: Ints) -> PositivePart | None:
        """Return the people among some rows, numbered by their place among these, no weights."""
        place = np.searchsorted(chosen, self.rows)
        is_in = (place < chosen.size) & (chosen[np.minimum(place, chosen.size - 1)] == self.rows)
        some = np.flatnonzero(is_in)
        if not some.size:
            return None
        return replace(
            self,
            rows=place[some],
            pits=replace_weights(self.pits.take(some)),
            residual=self.residual[some],
            base=_base_of_rows(self.base, some),
            keys={name: values[some] for name, values in self.keys.items()},
        )


@dataclass(frozen=True, eq=False)
class RowPITs:
    """PITs of the audited rows, and what is known of the forecasts behind them.

    Parameters
    ----------
    pits : Cells
        PITs of the rows.
    kind : OutcomeKind or None
        Kind of outcome; None if only PITs are known.
    base : LinkBase or None
        The link, and the PITs of the deterministic forecaster inside it.
    events : Events or None
        Events and their probabilities.
    positive : PositivePart or None
        PITs of the people whose outcome is not the atom of a hurdle.
    simulate : callable or None
        See `Subject`.
    times : CensoredTimes or None
        Times that may be cut off; None for outcomes that are all known.
    at_horizon : ndarray of shape (n,) or None
        CDF at the horizon of the deterministic forecaster inside the link, or of a deterministic
        forecast; None without a horizon, and for other randomized forecasts.
    by_horizon : ndarray of shape (n,) or None
        Predicted probability of the event before the horizon, mean over draws; None without a
        horizon.
    time_base : Cells or None
        For randomized forecasts of times: PITs under the distributions under which they are
        calibrated, one per person; None for others.
    keys : dict of str to ndarray of shape (n,)
        Values of the forecasts that define groups, by the column that rules name them by; empty if
        only PITs are known.
    """

    pits: Cells
    kind: OutcomeKind | None = None
    base: LinkBase | None = None
    events: Events | None = None
    positive: PositivePart | None = None
    simulate: Simulate | None = None
    times: CensoredTimes | None = None
    at_horizon: Floats | None = None
    by_horizon: Floats | None = None
    time_base: Cells | None = None
    keys: Mapping[str, Floats] = field(default_factory=dict)

    @classmethod
    def of_pits(cls, pits: Cells) -> RowPITs:
        """Return rows of which only PITs are known; cells of 0/1 outcomes have probabilities."""
        found = pits.events()
        if found is None:
            return cls(pits)
        events = Events(found[1], found[0])
        return cls(
            pits,
            OutcomeKind.BINARY,
            events=events,
            keys={"predicted probability": events.probability},
        )

    def take(self, rows: Ints) -> RowPITs:
        """Return some rows without their weights, such as a sample of them that needs none."""
        base_of_times, times, events = self.time_base, self.times, self.events
        at_horizon, by_horizon = (
            None if one is None else one[rows] for one in (self.at_horizon, self.by_horizon)
        )
        return RowPITs(
            replace_weights(self.pits.take(rows)),
            self.kind,
            _base_of_rows(self.base, rows),
            None if events is None else events.take(rows),
            None if self.positive is None else self.positive.of_rows(rows),
            times=None if times is None else times.take(rows),
            at_horizon=at_horizon,
            by_horizon=by_horizon,
            time_base=None if base_of_times is None else replace_weights(base_of_times.take(rows)),
        )

    @cached_property
    def tested(self) -> Cells:
        """PITs that tests use, and errors beside them.

        Positions in the cells of open outcomes are uniform under calibrated forecasts if these are
        deterministic. Randomized forecasts are tested at completed times, which are points.
        """
        if self.time_base is None or self.times is None:
            return self.pits
        return self.pits.at_points(self._is_open)

    @cached_property
    def sized(self) -> Cells:
        """PITs that sizes of errors are estimated from: those of who is lost are unknown."""
        if self.time_base is None or self.times is None:
            return self.pits
        return self.pits.at_points(self._is_open & ~self.times.is_lost)

    @property
    def _is_open(self) -> Mask:
        """People whose outcome has no upper end, see `outcome_ends`."""
        assert self.times is not None
        is_hurdle = self.kind is OutcomeKind.HURDLE
        return self.times.is_lost if is_hurdle else ~self.times.happened

    @property
    def is_censored(self) -> bool:
        """Whether outcomes are times that may be cut off."""
        return self.times is not None or bool(self.pits.unknown.any())

    @property
    def binary(self) -> tuple[Floats, Floats] | None:
        """0/1 outcomes and their probabilities, each (n,); None for outcomes of other kinds."""
        if self.kind is not OutcomeKind.BINARY or self.events is None:
            return None
        return self.events.happened, self.events.probability


def _base_of_rows(base: LinkBase | None, rows: Ints) -> LinkBase | None:
    if base is None:
        return None
    cells = None if base.cells is None else (base.cells[0][rows], base.cells[1][rows])
    return base._replace(pit=base.pit[rows], cells=cells)


def replace_weights(pits: Cells) -> Cells:
    """Return PITs without weights."""
    return pits.without_weights()


def event_probability(forecast: Forecast) -> Floats:
    """Return each person's probability of the event, shape (n,).

    Only its mean over draws matters for the calibration of events (outcomes: Theorem 4.3).
    """
    probability = forecast.event_probability()
    return np.asarray(probability.mean(axis=-1) if probability.ndim == 2 else probability)


def is_off_atom(forecast: Forecast, outcomes: Floats) -> Mask:
    """Whether each outcome is not the atom of its hurdle."""
    return np.asarray(outcomes != as_hurdle(forecast.distribution).at)


def outcome_ends(
    forecast: Forecast,
    outcomes: Floats,
    rounding: RoundingCells,
    times: CensoredTimes | None = None,
) -> Ends:
    """Return the ends of the cells of outcomes, see `read_forecast`.

    The cell of a rounded outcome ends at the atom of a hurdle: the outcome is known not to be the
    atom. Times that are cut off have no upper end, and neither have outcomes at the horizon, unless
    the forecast has an atom there (outcomes: 5).
    """
    low, high = _known_ends(forecast, outcomes, rounding)
    if times is None:
        return low, high
    is_open = times.is_lost
    if forecast.outcome_kind is not OutcomeKind.HURDLE:
        is_open = ~times.happened
    return np.where(is_open, outcomes, low), np.where(is_open, np.inf, high)


def _known_ends(forecast: Forecast, outcomes: Floats, rounding: RoundingCells) -> Ends:
    low, high = rounding.ends(outcomes)
    if forecast.outcome_kind is not OutcomeKind.HURDLE or not rounding.is_used:
        return low, high
    hurdle = as_hurdle(forecast.distribution)
    if hurdle.end == "low":
        low = np.maximum(low, np.nextafter(hurdle.at, np.inf))
    else:
        high = np.minimum(high, np.nextafter(hurdle.at, -np.inf))
    is_off = is_off_atom(forecast, outcomes)
    return np.where(is_off, low, outcomes), np.where(is_off, high, outcomes)


def rounding_of(
    forecast: Forecast, outcomes: Floats, times: CensoredTimes | None = None
) -> RoundingCells:
    """Return the rounding cells of all outcomes, which only continuous parts of forecasts need.

    Of times only those of events are rounded. Many people may be cut off on one day, or reach the
    horizon: that is no rounding, and none of these times stands for all beyond it.
    """
    if times is not None:
        cells = RoundingCells.of(outcomes[times.happened])
        return replace(cells, span=OPEN)
    if forecast.outcome_kind is OutcomeKind.CONTINUOUS:
        return RoundingCells.of(outcomes)
    if forecast.outcome_kind is OutcomeKind.HURDLE:
        off = outcomes[is_off_atom(forecast, outcomes)]
        return RoundingCells.of(off) if off.size else RoundingCells()
    return RoundingCells()
