"""Parts of the people of a certificate, and the values of each person that bounds are for.

Values come from rows, from counts, or from events; each bound is proven for some readings of cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._format import OneLine
from evenhand._validate import Floats, InputError, Ints, Mask, bad_input, check_finite, check_rows
from evenhand.calibration import (
    ERROR_BINS,
    GAP_BINS,
    PIT_BINS,
    CDFBand,
    Cells,
    PITCounts,
    Reading,
    SurvivalBand,
    betting_cvar,
    binned_error,
    cell_excess,
    check_events,
    covered_whole,
    error_interval,
    estimated_error,
    local_levels_band,
    pathwise_errors,
    share_bound,
)
from evenhand.draws import jittered
from evenhand.links import Link
from evenhand.results import PlainInterval

WORST = 0.5
"""Largest possible W1 error."""

# --- what each bound is proven for (method: 12)


class Proven(NamedTuple):
    """Cells for which a bound is proven.

    Parameters
    ----------
    why : str
        Why it is not proven for other cells.
    readings : set of Reading
        Readings of the cells. Points are "averaged".
    has_link : bool
        Whether cells are those before the draw of a link, or served ones.
    has_widths : bool
        Whether averaged cells may have a width.
    has_counts : bool
        Whether rows may stand for several people.
    """

    why: str
    readings: frozenset[Reading] = frozenset(Reading)
    has_link: bool = False
    has_widths: bool = True
    has_counts: bool = True


PROVEN = {
    "norm": Proven("before the draw of a link, widths and draws are not independent"),
    "norm under a link": Proven(
        "the error of an averaged position under a link needs its draws",
        has_link=True,
        has_widths=False,
    ),
    "ordered": Proven(
        "profiles are in one order only if the completed PIT does not depend on the draw",
        frozenset({Reading.AVERAGED, Reading.UNKNOWN}),
        has_link=True,
        has_widths=False,
    ),
    "lattice": Proven(
        "both positions of a person lie in one served cell, which needs the person's own draws",
        frozenset({Reading.AVERAGED}),
        has_link=True,
        has_counts=False,
    ),
    "coverage": Proven("coverage is that of served intervals"),
    "gap": Proven("gaps are distances of served PITs from their draws", has_counts=False),
}
"""Cells for which each bound is proven, by the name of the bound."""


def refusal(bound: str, cells: Cells) -> str | None:
    """Return why a bound is not proven for these cells; None if it is.

    Examples
    --------
    >>> from evenhand.links import Entropic
    >>> refusal("ordered", Cells([0.2], [0.4], link=Entropic(0.1)))
    "the bound 'ordered' is not proven for these cells (averaged, under a link, with widths): \
profiles are in one order only if the completed PIT does not depend on the draw"
    """
    proof = PROVEN[bound]
    readings = [Reading(int(one)) for one in np.unique(cells.reading)]
    widths = (cells.high > cells.low)[cells.averaged].any()
    is_proven = (
        proof.readings.issuperset(readings)
        and proof.has_link == (cells.link is not None)
        and (proof.has_widths or not widths)
        and (proof.has_counts or cells.count is None)
    )
    if is_proven:
        return None
    found = [one.name.lower() for one in readings]
    found.append("served" if cells.link is None else "under a link")
    found += ["with widths"] if widths else []
    found += ["with counts"] if cells.count is not None else []
    return f"the bound {bound!r} is not proven for these cells ({', '.join(found)}): {proof.why}"


def check_proven(bound: str, cells: Cells) -> None:
    """Raise InputError unless a bound is proven for these cells."""
    why = refusal(bound, cells)
    if why is not None:
        raise InputError(why)


# --- values per person


class Values(NamedTuple):
    """A value per person, known up to an interval, with the number of people of each row.

    Parameters
    ----------
    low, high : ndarray of shape (k,)
        Ends between which the values lie; one array twice if they are known.
    people : ndarray of int, shape (k,), optional
        Number of people with each value; one by default.
    """

    low: Floats
    high: Floats
    people: NDArray[np.int64] | None = None

    @classmethod
    def known(cls, values: Floats, people: NDArray[np.int64] | None = None) -> Values:
        """Return values that are known."""
        return cls(values, values, people)

    @property
    def n_people(self) -> int:
        """Number of people."""
        return self.high.size if self.people is None else int(self.people.sum())

    def complement(self, top: float = 1.0) -> Values:
        """Return the largest possible value minus each value."""
        return Values(top - self.high, top - self.low, self.people)

    def band(self, top: float, confidence: float) -> SurvivalBand:
        """Return an upper band for the distribution of the values, which are at most `top`."""
        return local_levels_band(self.high, top, confidence, self.people)

    def worst_mean(
        self, mass: float, top: float, confidence: float, seed: int | None = None
    ) -> float:
        """Return an upper bound for the mean of the worst `mass`; with a `seed` by betting."""
        if seed is not None:
            # a bound for a single mean, without a band
            return betting_cvar(self.high, mass, top, confidence, seed)
        return self.band(top, confidence).cvar(mass)

    def n_at_least(self, threshold: float) -> int:
        """Return the number of people whose value may be at least `threshold`."""
        hits = self.high >= threshold
        return int(hits.sum() if self.people is None else self.people[hits].sum())


def norm(cells: Cells) -> Values:
    """Return each person's pathwise error, the norm of the profile minus uniform (method: 12).

    An averaged position counts by the profile that is averaged over it, an unknown one by the worst
    profile, and a person beyond the horizon by the best. The rows of cells are those of served
    forecasts, over draws, or with a link those before the draw.
    """
    check_proven("norm" if cells.link is None else "norm under a link", cells)
    unknown, beyond, known = cells.unknown, cells.beyond, cells.averaged
    errors = np.full(cells.n_samples, WORST)
    if known.all():
        errors = _errors(cells)
    elif known.any():
        errors[known] = _errors(cells.take(known))
    if beyond.any():
        low = cells.low[beyond]
        errors[beyond] = (
            cell_excess(1 - low) if cells.link is None else cells.link.cell_error(low[:, 0])
        )
    if unknown.any() and cells.n_draws == 1:
        # the error of one forecast, and that under a link, is largest at an end
        ends = (Cells(end[unknown], link=cells.link) for end in (cells.low, cells.high))
        errors[unknown] = np.maximum(*map(_errors, ends))
    return Values.known(errors, cells.count)


def _errors(cells: Cells) -> Floats:
    """Return pathwise errors of averaged cells."""
    if cells.link is None:
        return pathwise_errors(cells)
    return cells.link.pathwise_error(cells.low[:, 0])


def missed(cells: Cells, level: float) -> Values:
    """Return the least and the largest share of draws whose central interval misses the outcome.

    An interval covers a whole outcome, and an outcome beyond the horizon, if it reaches into the
    cell. Wherever an unknown outcome is, it is covered if both ends are.
    """
    check_proven("coverage", cells)
    share = 1 - covered_whole(cells, level)
    if not cells.unknown.any():
        return Values.known(share, cells.count)
    # (1 - 0.98) / 2 is above the edge 0.01 of a bin of counts in the last digit
    ends = np.round(((1 - level) / 2, (1 + level) / 2), 12)
    inside = (cells.low >= ends[0]) & (cells.high <= ends[1])
    return Values(
        np.where(cells.unknown, 0.0, share),
        np.where(cells.unknown, 1 - inside.mean(axis=-1), share),
        cells.count,
    )


def gap(cells: Cells, place: tuple[Ints, Ints]) -> Values | None:
    """Return the largest `|h[x, r](y) - r|` of one draw per person, at given places.

    None if the draws are not known. A person beyond the horizon is off only if the lower end is
    above the draw.
    """
    check_proven("gap", cells)
    if cells.draws is None:
        return None
    r, low, high = cells.draws[place], cells.low[place], cells.high[place]
    found = np.abs(cells.drawn[place] - r)
    found = np.where(cells.beyond, np.maximum(low - r, 0.0), found)
    worst = np.maximum(np.abs(low - r), np.abs(high - r))
    return Values.known(np.where(cells.unknown, worst, found))


# --- intervals without a draw

TINY = 1e-300
"""Any share of draws whose interval misses is more."""

WIDER_LEVELS = (0.9, 0.95, 0.98, 0.99)
"""Nominal levels of intervals without a draw, among which the risk is shared equally."""


def coverage_floor(n_missed: int, n: int, level: float, size: float, confidence: float) -> float:
    """Lower bound for the coverage of a deterministic interval in every group of a given size."""
    shared = len(WIDER_LEVELS) if level in WIDER_LEVELS else 1
    missed = share_bound(n_missed, n, 1 - (1 - confidence) / shared)
    # all of the misses may be in one group
    return max(1 - missed / size, 0.0)


# --- rows of people, or counts of them in bins


def _unknown(*_: Any) -> Any:
    raise InputError("served forecasts are not known, only those of the forecaster inside a link")


@dataclass(frozen=True, eq=False, repr=False)
class Part(OneLine):
    """What was seen of some people under their forecasts.

    Parameters
    ----------
    n_people, n_draws : int
        Number of people, and of draws of each.
    n_intervals : int
        Number of draws over which `missed` is a share: more where few are given and the link is
        known.
    errors : callable
        Function that returns their pathwise errors.
    average : callable
        Function of a confidence that returns an interval of the W1 error of all of them.
    estimate : callable
        Function that returns the estimated W1 error of all of them.
    missed : callable
        Function of a level that returns the shares of draws whose central interval misses.
    gaps : Values or None
        `|h[x, r](y) - r|` of one draw per person, if the draws are known.
    plain : callable or None
        `missed` of the interval of the deterministic forecaster, at `WIDER_LEVELS`, if it is known.
    levels : tuple of float or None
        Levels of counted intervals; None if all are known.
    base : Cells or None
        Cells under the deterministic forecaster inside a link, before the draw.
    groups : mapping of str to Part
        Named groups.
    cells : tuple of Part
        Their disjoint cells.
    """

    n_people: int
    n_draws: int
    n_intervals: int = 1
    errors: Callable[[], Values] = _unknown
    average: Callable[[float], tuple[float, float]] = _unknown
    estimate: Callable[[], float] = _unknown
    missed: Callable[[float], Values] = _unknown
    gaps: Values | None = None
    plain: Callable[[float], Values] | None = None
    levels: tuple[float, ...] | None = None
    base: Cells | None = None
    groups: Mapping[str, Part] = field(default_factory=dict)
    cells: tuple[Part, ...] = ()

    @cached_property
    def all_errors(self) -> Values:
        """Pathwise errors, computed once."""
        return self.errors()

    def floors(self, mass: float, size: float, confidence: float) -> tuple[PlainInterval, ...]:
        """Return the floors of intervals without a draw in every group, by increasing level.

        Among these people a group of the size `mass` that is asked for has the share `size`.
        """
        if self.plain is None:
            return ()
        n, found = self.n_people, []
        for level in WIDER_LEVELS:
            covered = n - self.plain(level).n_at_least(TINY)
            floor = coverage_floor(n - covered, n, level, size, confidence)
            found.append(PlainInterval(level=level, mass=mass, floor=floor, covered=covered / n))
        return tuple(found)


LEAST_DRAWS = 16
"""Fewest draws over which the coverage of a known link is computed where people were lost."""


def part_of_rows(
    cells: Cells,
    random: np.random.Generator,
    *,
    base: Cells | None,
    masks: Mapping[str, Mask] | None = None,
    disjoint: Sequence[Mask] = (),
    is_rounded: bool,
    may_be_unknown: bool,
) -> Part:
    """Return what was seen of independent people in rows; one draw of each is chosen at random.

    `cells` are served ones, and `base` those before the draw of the link. Cells are rounded if
    they are those of rounded outcomes under continuous forecasts: outcomes then lie at one position
    in their cells, and an interval that meets a cell need not cover the outcome. Positions may be
    unknown if times may be cut off.
    """
    # one PIT per person at a random draw: independent, and distributed as the PITs in use
    place = cells.one_draw_each(random)
    low = np.where(cells.unknown, cells.low[place], cells.drawn[place])
    high = np.where(cells.unknown, 1.0, low) if cells.unknown.any() else low
    whole = cells.at_points(cells.averaged) if is_rounded else cells
    measured, served = cells, whole
    if base is not None and may_be_unknown:
        # the worst position under a known link is that over all draws
        assert base.link is not None
        measured = base
        draws = cells.draws
        if draws is None or draws.shape[1] < LEAST_DRAWS:
            draws = jittered(cells.n_samples, LEAST_DRAWS, random)
        served = base.served(base.link, draws)
    plain = None
    if base is not None or not cells.is_randomized:
        own = whole if base is None else base
        plain = partial(missed, replace(own, link=None))

    def part(rows: Any = slice(None), **more: Any) -> Part:
        some = low[rows], high[rows]
        # partial functions can be pickled
        return Part(
            some[0].size,
            cells.n_draws,
            served.n_draws,
            errors=partial(_of_some, norm, measured, rows),
            average=partial(_average, *some, None),
            estimate=partial(_of_some, estimated_error, cells, rows),
            missed=partial(_of_some, missed, served, rows),
            **more,
        )

    return part(
        gaps=gap(cells, place),
        plain=plain,
        base=base,
        groups={name: part(mask) for name, mask in (masks or {}).items()},
        cells=tuple(part(mask) for mask in disjoint),
    )


def _of_some(function: Callable[..., Any], cells: Cells, rows: Any, *given: Any) -> Any:
    """Return the value of a function of the cells of some people."""
    return function(cells.take(rows), *given)


def _average(
    low: Floats, high: Floats, counts: Ints | None, confidence: float
) -> tuple[float, float]:
    """Return an interval for the W1 error of one independent PIT per person."""
    if not (low.size if counts is None else counts.sum()):
        return 0.0, WORST
    return error_interval(low, confidence, None if (high == low).all() else high, counts)


def part_of_base(base: Cells) -> Part:
    """Return what is known of people under a deterministic forecaster inside a link alone."""
    return Part(base.n_people, 1, plain=partial(missed, replace(base, link=None)), base=base)


def part_of_counts(counts: PITCounts, link: Link | None, *, is_randomized: bool) -> Part:
    """Return what was seen of people in counts; values at the upper ends of bins widen bounds."""
    n, m, edges = counts.n_samples, counts.n_draws, np.linspace(0.0, 1.0, PIT_BINS + 1)
    plain: Callable[[float], Values] | None = None
    bins = counts.base if is_randomized else counts.one_draw
    # bins of drawn PITs do not show whether intervals contain whole outcomes
    if n and bins is not None and not counts.has_cells:
        plain = partial(missed, cells_of_bins(bins))
    elif not is_randomized and counts.inside.keys() >= {*WIDER_LEVELS}:
        plain = partial(_missed_of_counts, counts)
    return Part(
        n,
        m,
        m,
        # taken at the upper ends of their bins, so that no bound is understated
        errors=partial(_upper, ERROR_BINS, WORST, counts.error),
        average=partial(_average, edges[:-1], edges[1:], counts.one_draw),
        estimate=partial(_estimate_of_counts, counts),
        missed=partial(_missed_of_counts, counts),
        gaps=None if counts.gap is None else _upper(GAP_BINS, 1.0, counts.gap),
        plain=plain,
        levels=counts.levels,
        base=None if link is None or counts.base is None else cells_of_bins(counts.base, link),
        groups={
            name: part_of_counts(one, None, is_randomized=is_randomized)
            for name, one in counts.groups.items()
        },
    )


def _estimate_of_counts(counts: PITCounts) -> float:
    return binned_error(counts.pit) if counts.n_samples else np.nan


def _missed_of_counts(counts: PITCounts, level: float) -> Values:
    if level not in counts.inside:
        listed = ", ".join(f"{one:g}" for one in counts.levels) or "none"
        remedy = "count the rows again with this level in count_pits(..., levels=...)"
        raise bad_input("level", f"be one of the counted levels ({listed})", level, remedy)
    m = counts.n_draws
    return Values.known(1 - np.arange(m + 1) / m, counts.inside[level])


def _upper(n_bins: int, top: float, count: Ints) -> Values:
    return Values.known(np.asarray(np.arange(1, n_bins + 1) * (top / n_bins)), count)


def cells_of_bins(counts: NDArray[np.int64], link: Link | None = None) -> Cells:
    """Return the cells of people counted by their PIT in equal bins, closed on the right.

    Examples
    --------
    >>> cells_of_bins(np.array([0, 3, 1, 0])).count
    array([3, 1])
    """
    bins = np.flatnonzero(counts)
    low, high = bins / counts.size, (bins + 1) / counts.size
    return Cells(low, high, reading=np.ones(bins.size), count=counts[bins], link=link)


# --- 0/1 outcomes: probabilities of people, or limits of them, with their events (outcomes: 3)

EQUAL_BINS = 6400
"""Number of equal bins of [0, 1] for probabilities; bins near 0 and 1 are narrower."""

END = 0.01
"""Distance from 0 and from 1 up to which bins have geometric widths."""

LEAST = 1e-7
"""Upper end of the first bin."""


@dataclass(frozen=True, eq=False, repr=False)
class EventPart(OneLine):
    """Probabilities of people, or limits between which they lie, with their events.

    Parameters
    ----------
    low, high : ndarray of shape (k,)
        Limits of the probabilities; one array twice if they are known.
    event : ndarray of bool, shape (k,)
        Whether the event is known to have happened.
    possible : ndarray of bool, shape (k,)
        Whether it happened, or may have happened.
    count : ndarray of int, shape (k,), optional
        Number of people of each row; one by default.
    """

    low: Floats
    high: Floats
    event: Mask
    possible: Mask
    count: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls, probability: ArrayLike, event: ArrayLike, lost: ArrayLike | None = None
    ) -> EventPart:
        """Check probabilities and events, and of whom events are not known."""
        p, happened = check_events(check_finite("probability", probability), event)
        unknown = (
            np.zeros(p.size, np.bool_) if lost is None else check_rows("lost", lost, p.size) != 0
        )
        seen = (happened == 1) & ~unknown
        return cls(p, p, seen, seen | unknown)

    def __add__(self, other: EventPart) -> EventPart:
        """Return the counts of both blocks of people, each from `count_events`."""
        if self.count is None or other.count is None:
            raise InputError("only counts of events can be added, those of count_events")
        return replace(self, count=self.count + other.count)

    def take(self, rows: Any) -> EventPart:
        """Return some of the people, one in each row."""
        return EventPart(self.low[rows], self.high[rows], self.event[rows], self.possible[rows])

    @property
    def n_people(self) -> int:
        """Number of people."""
        return self.low.size if self.count is None else int(self.count.sum())

    @property
    def n_events(self) -> int:
        """Number of people who are known to have the event."""
        return int(self.event.sum() if self.count is None else self.count[self.event].sum())

    @property
    def n_lost(self) -> int:
        """Number of people of whom it is not known whether the event happened."""
        return int((self.possible & ~self.event).sum())

    def band(self, confidence: float, *, of_events: bool) -> CDFBand:
        """Return an upper band for `P(p <= t, Y = 1)`, or for `P(1 - p <= t, Y = 0)`."""
        # people without the event never enter P(p <= t, Y = 1) for t < 1. Limits of probabilities
        # are taken at the ends that make each bound larger, and so are events that are not known
        if of_events:
            return CDFBand.of(np.where(self.possible, self.low, 1.0), confidence, self.count)
        return CDFBand.of(np.where(self.event, 1.0, 1 - self.high), confidence, self.count)


def bias_bounds(
    events: EventPart, mass: float, confidence: float, seed: int | None = None
) -> tuple[float, float]:
    """Return bounds for the mean of `Y - p` in every group; each holds with `confidence`."""
    # `1 + Y - p` is twice the mean PIT over the cell: linear in the profile (method: 12)
    above = Values(1 + events.event - events.high, 1 + events.possible - events.low, events.count)
    low, high = (
        excess.worst_mean(mass, 2.0, confidence, seed) for excess in (above.complement(2.0), above)
    )
    return 1 - low, high - 1


MOST_PITS = 1000
"""Largest number of people in estimates; more are replaced by as many equal steps in rank."""


def quantiles(values: Floats, count: NDArray[np.int64] | None) -> Floats:
    """Return at most `MOST_PITS` values, increasing, in the middle of equal steps in rank."""
    n = values.size if count is None else int(count.sum())
    size = min(n, MOST_PITS)
    ranks = ((np.arange(size) + 0.5) * n / size).astype(np.int64)
    if count is None:
        return np.sort(values)[ranks]
    order = np.argsort(values, kind="stable")
    return values[order][np.searchsorted(np.cumsum(count[order]), ranks, side="right")]


def count_events(probability: ArrayLike, event: ArrayLike) -> EventPart:
    """Count the people of a block by the probability of an event and by the event.

    Bins of probabilities are narrow near 0 and 1. Counts of blocks can be added, so that a table
    need not fit into memory.

    Parameters
    ----------
    probability : array-like of shape (n,)
        Probabilities of the event, between 0 and 1.
    event : array-like of shape (n,)
        Whether the event happened, as booleans or as 0 and 1.

    Examples
    --------
    >>> counts = count_events([0.1, 0.9], [0, 1]) + count_events([0.5], [1])
    >>> counts.n_people, counts.n_events
    (3, 2)
    """
    part = EventPart.of(probability, event)
    edges = _edges()
    n_bins = edges.size - 1
    # a probability of 1 belongs to the last bin
    bins = np.minimum(np.searchsorted(edges, part.low, side="right") - 1, n_bins - 1)
    count = np.bincount(bins + n_bins * part.event, minlength=2 * n_bins)
    happened = np.repeat([False, True], n_bins)
    low, high = np.tile(edges[:-1], 2), np.tile(edges[1:], 2)
    return EventPart(low, high, happened, happened, count.astype(np.int64, copy=False))


@cache
def _edges() -> Floats:
    """Return the edges of the bins: rare events need narrow bins near 0."""
    ratio = 1 + 1 / (EQUAL_BINS * END)
    # so many steps that the narrowest equal bin is no narrower than the widest geometric one
    steps = math.ceil(np.log(END / LEAST) / np.log(ratio))
    end = np.append(0.0, np.geomspace(LEAST, END, steps + 1))
    first = round(END * EQUAL_BINS)
    middle = np.arange(first + 1, EQUAL_BINS - first) / EQUAL_BINS
    return np.concatenate((end, middle, 1 - end[::-1]))
