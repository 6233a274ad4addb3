"""The certificate: parts of the people, how the randomization was chosen, and every answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand._format import Summarized, digits_of, number_in_full, one_line
from evenhand._validate import (
    Floats,
    InputError,
    Ints,
    bad_input,
    check_fraction,
    check_masses,
    check_number,
    read_state,
    typed_fields,
)
from evenhand.calibration import LEAST_EFFECTIVE, CDFBand, CDFBands, SurvivalBand, share_bound
from evenhand.certificates.bounds import LatticeBounds, LinkBounds
from evenhand.certificates.parts import (
    WIDER_LEVELS,
    WORST,
    EventPart,
    Part,
    Values,
    bias_bounds,
    coverage_floor,
    quantiles,
)
from evenhand.certificates.unions import Unions
from evenhand.distributions import OutcomeKind
from evenhand.links import Link, make_link
from evenhand.outcomes import thinned_rows
from evenhand.report import ASSUMED, NOT_COVERED, QUESTIONS, WHY, certificate_text
from evenhand.results import PlainInterval, Proof, plain

Statistic = Literal["mean_pit", "gap", "bias"]

SHARES_OF_MASS = np.array([0.125, 0.25, 0.5, 1.0])
"""Tail probabilities, as shares of the group size, at which an envelope has bounds."""


@dataclass(frozen=True)
class Envelope:
    """Bounds of a certified distribution of PITs, at few PITs (outcomes: 6).

    Parameters
    ----------
    low : tuple of (float, float)
        Pairs `(t, bound)` with `P(U <= t) <= bound`.
    high : tuple of (float, float)
        Pairs `(t, bound)` with `P(U >= 1 - t) <= bound`.
    """

    low: tuple[tuple[float, float], ...] = ()
    high: tuple[tuple[float, float], ...] = ()

    @classmethod
    def of(cls, bands: CDFBands, mass: float) -> Self:
        """Read bands where they bind the error of groups of a size: in tails of at most its share.

        Examples
        --------
        >>> envelope = Envelope.of(CDFBands.of_uniform(2000, 0.95), 0.2)
        >>> len(envelope.low), all(t < bound <= 0.2 for t, bound in envelope.low)
        (4, True)
        """
        return cls(*(_tails(band, mass) for band in (bands.upper, bands.mirrored)))


@dataclass(frozen=True)
class Promise:
    """Bound for every group of at least a size, and the statistic whose means it bounds.

    Parameters
    ----------
    statistic : {"mean_pit", "gap", "bias"}
        Value per person whose mean over any group is at most `target`. "mean_pit": the mean served
        PIT minus 1/2, and its negative, of forecasts through a known link (method: sharp
        certificate, Theorem 1). "gap": `|PIT - draw|` where the link is unknown. "bias": outcome
        minus probability, and its negative, for 0/1 outcomes.
    mass : float
        Smallest share of people in a group, 0 < mass <= 1.
    target : float
        Promised bound: group error from 0 to 1/2, gap from 0 to 1, bias from 0 to 1; the larger of
        both sides.
    confidence : float
        Confidence with which it was certified.
    link : Link or None
        The link; None unless the statistic is "mean_pit".
    envelope : Envelope or None
        Bounds of the certified distribution of base PITs; None if they are not known.
    atom : float or None
        Outcome beside which the promise holds: `mass` is then a share of the people with another
        outcome. None if it holds for all people.
    targets : tuple of (float, float) or None
        Bounds of the statistic and of its negative, from -1 to 1; None if both are `target`.
    """

    statistic: Statistic
    mass: float
    target: float
    confidence: float
    link: Link | None = None
    envelope: Envelope | None = None
    atom: float | None = None
    targets: tuple[float, float] | None = None

    @classmethod
    def of_bias(cls, low: float, high: float, mass: float, confidence: float) -> Self:
        """Return the promise that the bias of every group lies between two bounds.

        Examples
        --------
        >>> promise = Promise.of_bias(-0.354, 0.812, mass=0.2, confidence=0.95)
        >>> promise.target, promise.targets
        (0.812, (0.812, 0.354))
        """
        return cls("bias", mass, max(high, -low), confidence, targets=(high, -low))

    def to_dict(self) -> dict[str, Any]:
        """Return the promise as JSON values."""
        link, envelope = self.link, self.envelope
        own = {"link": link and link.name, "alpha": link and link.alpha}
        return plain(vars(self) | own | {"envelope": envelope and vars(envelope)})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild a promise from the output of `to_dict`; InputError if it is anything else."""
        with read_state("Promise.to_dict"):
            names = ("statistic", "mass", "target", "confidence", "atom", "targets")
            given = typed_fields(cls, {name: values[name] for name in names})
            if (name := values["link"]) is not None:
                given["link"] = make_link(name, float(values["alpha"]))
            if (found := values["envelope"]) is not None:
                sides = {side: tuple(map(tuple, found[side])) for side in ("low", "high")}
                given["envelope"] = Envelope(**typed_fields(Envelope, sides))
            return cls(**given)


def _tails(band: CDFBand, mass: float) -> tuple[tuple[float, float], ...]:
    """Return the largest t, each with its bound, at which a band is at most a share of the mass."""
    steps = np.unique(np.searchsorted(band.upper, mass * SHARES_OF_MASS, side="right")) - 1
    steps = steps[(steps >= 0) & (steps < band.upper.size - 1)]
    # the band is constant from one start to just below the next one
    ends = np.nextafter(band.starts[steps + 1], 0.0)
    pairs = zip(ends.tolist(), band.upper[steps].tolist(), strict=True)
    return tuple((t, bound) for t, bound in pairs if t > 0)


Method = Literal["local-levels", "betting"]

MASSES = (0.1, 0.2, 0.5, 1.0)
"""Group sizes of tables."""

AVERAGE_SHARE = 0.1
"""Share of the risk of `group_error` for the overall error: a tighter bound at large masses."""

LOW_SHARE = 0.9
"""Share of the risk of coverage that is spent on the lower bound: undercoverage does the harm."""

THRESHOLDS = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5),
    *(0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999),
)
"""Probabilities from which tables take a threshold for each group size."""


@dataclass(frozen=True)
class Choice:
    """How the randomization was chosen, and what is proven for every group because of it.

    Parameters
    ----------
    rule : {"fixed", "simultaneous", "tested"}
        "fixed": without using the certified rows. "simultaneous": the bounds for every group hold
        for all links at once. "tested": only the tested bound holds (fixed-sequence testing, or one
        of several links whose bounds hold simultaneously).
    error, mass : float, optional
        Tested bound of the group error, and the smallest group size that it is for.
    n_links : int, default 1
        Number of links whose bounds hold simultaneously (Bonferroni).
    """

    rule: Literal["fixed", "simultaneous", "tested"] = "fixed"
    error: float = WORST
    mass: float = 1.0
    n_links: int = 1


class Thinned(NamedTuple):
    """Part of weighted rows that was kept at random so that it needs no weights (method: 12).

    Parameters
    ----------
    n_kept, n_given : int
        Number of rows that were kept, and of all.
    seed : int
        Seed of their choice.
    """

    n_kept: int
    n_given: int
    seed: int

    @classmethod
    def of(
        cls, weight: Floats, largest: float, random: np.random.Generator
    ) -> tuple[Ints, Thinned]:
        """Choose the rows to keep, at least 150."""
        kept, seed = thinned_rows(weight, largest, random)
        if kept.size < LEAST_EFFECTIVE:
            raise InputError(
                f"of {weight.size:,} weighted rows {kept.size} are left that need no weights, and"
                f" at least {LEAST_EFFECTIVE} are needed; use more rows"
            )
        return kept, cls(kept.size, weight.size, seed)


@dataclass(frozen=True)
class FollowUp:
    """How many certified people had the event, reached the horizon, or were lost before it.

    Parameters
    ----------
    horizon : float or None
        Time up to which outcomes are followed, in units of the times; None without one.
    n_events, n_reached, n_lost : int
        Number of people with the event by the horizon, seen until the horizon without it, and last
        seen without it before the horizon: their outcome is not known.
    n_left_out : int
        Number of people who entered less than a horizon before the end of follow-up: they are not
        used, whatever happened to them.
    has_entry : bool
        Whether the times of entry are known, so that such people could be left out.
    """

    horizon: float | None
    n_events: int
    n_reached: int
    n_lost: int
    n_left_out: int = 0
    has_entry: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Summarized):
    """Bounds on the calibration of a forecaster, each with a stated confidence.

    Made by `certify` and its relatives, and by `randomize`.

    Parameters
    ----------
    confidence : float
        Probability, over the rows and draws, that a bound holds.
    everyone : Part or None
        What was seen of everyone; None if only events are known.
    off_atom : Part or None
        What was seen of the people off the atom of a hurdle, which with a horizon are those with
        the event by then.
    events : EventPart or None
        Probabilities of people with their events; None for forecasts without an event.
    kind : OutcomeKind
        Kind of outcome that the forecasts describe.
    is_randomized : bool
        Whether the forecasts depend on a draw.
    link : Link or None
        The link around a deterministic forecaster, if it is known.
    method : {"local-levels", "betting"}
        Method of the bounds for every group without a link.
    mass : float or None
        The single group size of "betting".
    seed : int
        Seed of the order of bets.
    choice : Choice
        How the randomization was chosen.
    at : float or None
        The atom of a hurdle.
    follow_up : FollowUp or None
        Follow-up of times that may be cut off.
    may_be_unknown : bool
        Whether positions may be unknown, which was known before the rows were seen.
    is_rounded, has_cells, has_draws : bool
        Whether cells have a width, whether they are then those of rounded outcomes under continuous
        forecasts, and whether the draws were given.
    one_row_each : bool
        Whether people have several rows and one row per person was used: group sizes are then
        shares of people, not of rows.
    thinned : Thinned or None
        Which part of weighted rows was kept; None without weights.
    ratio : float
        Largest density ratio of the population that the bounds are for, see `under_shift`.
    unions : Unions or None
        Bounds for every union of the disjoint cells of named groups; None without such groups.
    """

    confidence: float
    everyone: Part | None = None
    off_atom: Part | None = None
    events: EventPart | None = None
    kind: OutcomeKind = OutcomeKind.CONTINUOUS
    is_randomized: bool = False
    link: Link | None = None
    method: Method = "local-levels"
    mass: float | None = None
    seed: int = 0
    choice: Choice = field(default_factory=Choice)
    at: float | None = None
    follow_up: FollowUp | None = None
    may_be_unknown: bool = False
    is_rounded: bool = False
    has_cells: bool = False
    has_draws: bool = True
    one_row_each: bool = False
    thinned: Thinned | None = None
    ratio: float = 1.0
    unions: Unions | None = None

    def __repr__(self) -> str:
        return one_line(
            self,
            kind=str(self.kind),
            link=self.link,
            n_samples=self.n_samples,
            confidence=digits_of(self.confidence, 4, "down"),
            ratio=None if self.ratio == 1 else self.ratio,
        )

    # --- parts

    @property
    def own(self) -> Part:
        """What was seen of the people whom the bounds for every group are for."""
        found = self.off_atom or self.everyone
        if found is None:
            raise InputError(
                "only the probability of an event was certified; use bias and event_rate"
            )
        return found

    @property
    def _only_mass(self) -> float | None:
        """Group size of a betting certificate; None if bounds are for all."""
        return None if self.mass is None else self.mass * self.ratio

    @property
    def _horizon(self) -> float | None:
        return None if self.follow_up is None else self.follow_up.horizon

    @property
    def _n_lost(self) -> int:
        return 0 if self.follow_up is None else self.follow_up.n_lost

    @property
    def _is_event(self) -> bool:
        """Whether outcomes are 0/1, so that bounds are those of the event."""
        return self.kind is OutcomeKind.BINARY

    @property
    def n_draws(self) -> int:
        """Number of draws per person."""
        return 1 if self.everyone is None else self.own.n_draws

    @property
    def bound(self) -> Literal["sharp"] | None:
        """Whether the bounds for every group are the sharp ones of a link (method: 11)."""
        is_proven = self._link_bounds is not None and not self._is_event
        return "sharp" if is_proven and self.choice.rule != "tested" else None

    @property
    def n_samples(self) -> int:
        """Number of people."""
        seen = self.everyone or self.events
        assert seen is not None
        return seen.n_people

    @property
    def n_positive(self) -> int | None:
        """Number of people off the atom of a hurdle, without those who were lost; None if none."""
        return None if self.off_atom is None else self.off_atom.n_people - self._n_lost

    @property
    def bounds_every_group(self) -> bool:
        """Whether every group can have a useful bound: for links, and from several draws each."""
        if self._n_lost and self._horizon is None:
            return False
        return not self._is_event and (self.link is not None or self.n_draws > 1)

    # --- everyone and named groups

    def average_error(self) -> float:
        """Upper bound for the overall W1 error, 0 to 1/2; available for any forecaster."""
        if self.everyone is None or (self.at is not None and self.ratio > 1):
            return WORST
        return self.own_error() if self.at is None else self.everyone.average(self.confidence)[1]

    def own_error(self) -> float:
        """Upper bound for the W1 error of all people whom group sizes are shares of.

        Of a hurdle they are those off the atom, or with the event by the horizon.
        """
        if self.ratio > 1 and self.mass is not None:
            return WORST
        if self.choice.rule == "tested" or self.ratio > 1 or self._link_bounds is not None:
            return self.group_error(1.0)  # all of them are such a group
        return self.own.average(self.confidence)[1]

    def named(self, group: str) -> float:
        """Upper bound for the W1 error of a named group, 0 to 1/2; simultaneous for all of them."""
        groups, each = self._named
        if not groups:
            raise InputError(
                f"group {group!r} has no bound: these rows were certified without named groups, or"
                " for a shifted population; name groups in certify(..., groups=...)"
            )
        if group not in groups:
            raise bad_input("group", f"be one of {list(groups)}", repr(group))
        return groups[group].average(each)[1]

    def named_table(self) -> pd.DataFrame:
        """Return simultaneous intervals for the W1 errors of the named groups (Bonferroni).

        Columns: `group`, `n`, the estimated `error`, `low` and `high`. Empty under a shift, which
        may be larger in a group.
        """
        groups, each = self._named
        rows = [
            (name, part.n_people, part.estimate(), *part.average(each))
            for name, part in groups.items()
        ]
        return pd.DataFrame(rows, columns=["group", "n", "error", "low", "high"])

    @property
    def _named(self) -> tuple[Mapping[str, Part], float]:
        """Named groups that have bounds, and the confidence of each."""
        groups = {} if self.everyone is None or self.ratio > 1 else self.everyone.groups
        return groups, 1 - (1 - self.confidence) / max(len(groups), 1)

    # --- every group of a size

    def group_error(self, mass: float) -> float:
        """Upper bound for the W1 error, 0 to 1/2, of every group of at least this share of people.

        Of a hurdle the people are those off the atom, or with the event by the horizon. For a
        deterministic forecaster of continuous outcomes the bound is at least 1/4 for groups of up
        to half of the people. Nothing below `(1 - mass) / 2` can be certified if its PITs are
        uniform; see `questions`.

        Raises
        ------
        InputError
            For 0/1 outcomes, of which no data can prove it; see `bias` and `event_rate`.
        """
        size = self._size(mass)
        self._refuse_events("group_error")
        if self.choice.rule == "tested":
            return self.choice.error if self._is_tested(size) else WORST
        if self._bounds is not None:
            return self._bounds(size)
        own = self.own
        if self.method == "betting":  # all of the risk goes to the one mass
            return self._worst_mean(own.all_errors, size, WORST, self.confidence)
        overall = own.average(1 - (1 - self.confidence) * AVERAGE_SHARE)[1]
        if size == 1:
            return min(self._band.cvar(1.0), overall)
        if self.follow_up is not None:
            # the overall error bounds no other group here: that of randomized PITs is not the error
            # in the reading of cells of the other people
            return self._band.cvar(size)
        # triangle inequality for a group and its complement, weighted by their shares:
        # d(S) <= (d(all) + (1 - mass) CVaR_(1 - mass)) / mass
        rest = (overall + (1 - size) * self._band.cvar(1 - size)) / size
        return min(self._band.cvar(size), rest, WORST)

    def _size(self, mass: float) -> float:
        """Check a group size; return the size among the certified people that has its bounds."""
        return check_fraction("mass", mass, high_open=False) / self.ratio

    def _is_tested(self, size: float) -> bool:
        """Whether a group is at least as large as the tested ones, whose bound larger ones have."""
        return size >= self.choice.mass * (1 - 1e-12)

    @cached_property
    def _band(self) -> SurvivalBand:
        return self.own.all_errors.band(WORST, 1 - (1 - self.confidence) * (1 - AVERAGE_SHARE))

    @cached_property
    def _link_bounds(self) -> LinkBounds | None:
        """Bounds under every link, if there is one and they are proven for the cells."""
        base = None if self.link is None else self.own.base
        # people may be beyond a horizon, which is known before the rows are seen
        if base is None or (self._horizon is not None and self.at is None):
            return None
        # cells are points but for people whose position is unknown
        if base.averaged.all() and not base.are_points:
            return None
        return LinkBounds.of(base, self.confidence, may_be_unknown=self.may_be_unknown)

    @cached_property
    def _bounds(self) -> Callable[[float], float] | None:
        """Bound of the group error as a function of the size; None without those of a link."""
        link, bounds = self.link, self._link_bounds
        if link is None:
            return None
        if bounds is not None:
            return partial(bounds.group_error, link)
        if self.kind is not OutcomeKind.COUNT or self.own.base is None:
            return None
        lattice = LatticeBounds.of(self.own.base, np.random.default_rng(self.seed))
        return partial(lattice.group_error, link, confidence=self.confidence)

    def coverage(self, level: float, mass: float) -> tuple[float, float]:
        """Bounds for the coverage of central prediction intervals in every group of a given size.

        Parameters
        ----------
        level : float
            Nominal level of the interval, such as 0.8.
        mass : float
            Smallest share of people in the group, 0 < mass <= 1.

        Returns
        -------
        low, high : float
            The coverage of every such group lies between them.
        """
        check_fraction("level", level)
        size = self._size(mass)
        self._refuse_events("coverage")
        if self.choice.rule == "tested":  # coverage was not tested
            return 0.0, 1.0
        if self.link is not None and self._link_bounds is not None:
            return self._link_bounds.coverage(self.link, level, size)
        missed, n = self.own.missed(level), self.own.n_people
        inside = missed.complement()
        risk = 1 - self.confidence
        if not self.is_randomized:
            # a group of a share `mass` of people has at most all misses, and at most all hits, of
            # all people (method: 11)
            if level in WIDER_LEVELS:  # the lower bounds of these levels share the whole risk
                return coverage_floor(missed.n_at_least(1.0), n, level, size, self.confidence), 1.0
            low = coverage_floor(missed.n_at_least(1.0), n, level, size, 1 - risk * LOW_SHARE)
            high = share_bound(inside.n_at_least(1.0), n, 1 - risk * (1 - LOW_SHARE)) / size
            return low, min(high, 1.0)
        # the CVaR of people's shares of misses bounds coverage from below, that of their shares of
        # hits from above; the risk is split between both (method: 5, no loss from Jensen)
        most = self._worst_mean(missed, size, 1.0, 1 - risk * LOW_SHARE)
        return 1 - most, self._worst_mean(inside, size, 1.0, 1 - risk * (1 - LOW_SHARE))

    def _worst_mean(self, values: Values, size: float, top: float, confidence: float) -> float:
        if self.mass is not None and not math.isclose(size, self.mass):
            remedy = "use method='local-levels' for bounds at all masses"
            rule = f"be {self._only_mass:g}, the single mass of this betting certificate"
            raise bad_input("mass", rule, size * self.ratio, remedy)
        seed = self.seed if self.method == "betting" else None
        return values.worst_mean(size, top, confidence, seed)

    def _refuse_events(self, name: str) -> None:
        if self._is_event:
            raise InputError(
                f"0/1 outcomes have no certified {name}: whether probabilities are right in every"
                " group cannot be proven; use bias(mass) or event_rate(mass, below=...)"
            )

    def plain_intervals(self, mass: float) -> tuple[PlainInterval, ...]:
        """Return the floors of intervals of the deterministic forecaster, without a draw.

        By increasing level; empty if there is no such forecaster, or it is not known what its
        intervals cover.
        """
        size, part = self._size(mass), self.off_atom or self.everyone
        return () if part is None else part.floors(mass, size, self.confidence)

    # --- the event of 0/1 forecasts

    def event_rate(
        self, *, below: float | None = None, above: float | None = None, mass: float
    ) -> float:
        """Bound the event rate of every group of people whose forecasts are below or above a value.

        Parameters
        ----------
        below : float, optional
            Group members have a forecast of at most this probability; the upper bound is returned.
        above : float, optional
            They have a forecast of at least this probability; the lower bound is returned.
        mass : float
            Smallest share of all people in the group, 0 < mass <= 1.
        """
        size = self._size(mass)
        if below is not None and above is None:
            share = self._event_bands[0].at(np.array(check_fraction("below", below)))
            return min(float(share) / size, 1.0)
        if above is not None and below is None:
            share = self._event_bands[1].at(np.array(1 - check_fraction("above", above)))
            return max(1 - float(share) / size, 0.0)
        got = "neither" if below is None else f"below={below} and above={above}"
        raise bad_input("event_rate", "have exactly one of below and above", got)

    def bias(self, mass: float) -> tuple[float, float]:
        """Bounds for the event rate minus the mean forecast in every group of at least this share.

        In rate points, between -1 and 1; both hold jointly.
        """
        size, each = self._size(mass), (1 + self.confidence) / 2
        return bias_bounds(self._known_events("bias"), size, each)

    @cached_property
    def _event_bands(self) -> tuple[CDFBand, CDFBand]:
        """Upper bands for the probabilities of people with the event, and without it."""
        events, level = self._known_events("event_rate"), self.confidence
        return events.band(level, of_events=True), events.band(level, of_events=False)

    def _known_events(self, method: str) -> EventPart:
        if self.events is None:
            raise InputError(
                f"{method} bounds 0/1 forecasts, and this certificate has no events; use"
                " group_error and coverage, or certify the probability of an event with"
                " certificates.certify_events"
            )
        return self.events

    # --- the paper's own terms

    def mpaic(self, error: float) -> float:
        """Upper bound for `P(|h[X, R](Y) - R| >= error)`, the delta of the paper's mPAIC.

        By one draw per person (Clopper-Pearson); for a link whose choice is "simultaneous" by its
        bounds, for all thresholds at once. Of a hurdle it is given that the outcome is off the
        atom.

        Parameters
        ----------
        error : float
            Threshold, 0 to 1.
        """
        check_fraction("error", error, low_open=False, high_open=False)
        of_link = self.own.gaps is None or self.choice.rule == "simultaneous"
        if of_link and self.link is not None and self._link_bounds is not None:
            return min(self.ratio * self._link_bounds.mpaic(self.link, error), 1.0)
        gaps = self._known_gaps()
        found = share_bound(gaps.n_at_least(error), gaps.n_people, self.confidence)
        return min(self.ratio * found, 1.0)

    def mpaic_curve(self, errors: ArrayLike) -> Floats:
        """Simultaneous upper bounds for `P(|h[X, R](Y) - R| >= error)` at all thresholds, by DKW.

        Returns
        -------
        ndarray of the shape of `errors`
        """
        thresholds = np.asarray(errors, dtype=float)
        for error in thresholds.ravel():
            check_fraction("error", error, low_open=False, high_open=False)
        gaps = self._known_gaps()
        n = gaps.n_people
        reached = np.array([gaps.n_at_least(error) for error in thresholds.flat])
        # the band of Dvoretzky, Kiefer and Wolfowitz on one side (Massart 1990)
        margin = np.sqrt(np.log(1 / (1 - self.confidence)) / (2 * n))
        bounds = np.minimum(self.ratio * (1 - (n - reached) / n + margin), 1.0)
        return bounds.reshape(thresholds.shape)

    def chain(self, mass: float) -> float:
        """Return the bound for every group, 0 to 1/2, that follows from the paper's own results.

        From mPAIC over PAIC to every group, by Markov's inequality; see `group_error` for a bound
        that is much smaller.
        """
        check_fraction("mass", mass, high_open=False)
        # a person with a pathwise error above the target has |h - R| >= e with probability at least
        # (target - e) / (1 - e); by Markov such people are at most a share delta (1 - e) / (target
        # - e) of all people, and at most that share over mass of a group (method: proof)
        target = np.linspace(0.0, WORST, 201)
        delta, e = self.mpaic_curve(target)[:, None], target[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            outside = np.where(target > e, delta * (1 - e) / (target - e), np.inf)
        return min(float(np.where(outside < mass, target + outside / mass, WORST).min()), WORST)

    def _known_gaps(self) -> Values:
        if self.choice.rule != "fixed":
            raise InputError(
                "the randomization was chosen on these people, which gaps between PITs and draws do"
                " not allow for; certify it on other rows with certify_pit"
            )
        if self.own.gaps is None:
            raise InputError(
                "mPAIC compares PITs with their draws, and these PITs have no draws; give r"
            )
        return self.own.gaps

    # --- links

    def with_link(self, link: Link) -> Certificate:
        """Return the same bounds read for another link.

        Raises
        ------
        InputError
            Unless all of its bounds hold for all links at once, as those of `certify_link`.
        """
        is_of_links = self.choice.rule == "simultaneous" and self.own.gaps is None
        if self._link_bounds is None or not is_of_links:
            raise InputError(
                "bounds of this certificate hold for its own forecasts alone; certify links with"
                " certify_link"
            )
        made = replace(self, link=link)
        made.__dict__["_link_bounds"] = self._link_bounds
        return made

    def accounting_for(self, chosen: Certificate) -> Certificate:
        """Return the certificate with the bounds for every group of another one of these people.

        `chosen` is that of a selection: its bounds account for the choice of the randomization.
        """
        own = replace(self.own, base=chosen.own.base)
        made = replace(
            self,
            everyone=own if self.off_atom is None else self.everyone,
            off_atom=None if self.off_atom is None else own,
            link=chosen.link,
            method=chosen.method,
            mass=chosen.mass,
            choice=chosen.choice,
            may_be_unknown=chosen.may_be_unknown,
            one_row_each=chosen.one_row_each,
        )
        made.__dict__["_link_bounds"] = chosen._link_bounds
        return made

    def mean_error(self) -> float:
        """Return the mean pathwise error of these people under the link.

        This is the argument of `price_of_proof`. Exact up to 1,000 people, to within 0.001 beyond.
        People whose PIT is not known are left out.
        """
        base = self.own.base
        if base is None or self.link is None:
            raise InputError("mean_error is that of a link, and these forecasts have none")
        known = base if base.count is not None else base.take(~base.unknown)
        # errors increase with the distance from 1/2 and lie in [0, 1/2]: the mean over equal steps
        # in rank is off by at most half a step
        middle = quantiles((known.low + known.high)[:, 0] / 2, known.count)
        return float(self.link.pathwise_error(middle).mean())

    # --- other populations, and what is promised

    def under_shift(self, ratio: float) -> Certificate:
        """Return the certificate for populations whose densities are at most `ratio` times larger.

        Where the density of (features, outcome) is at most `ratio` times that of the certified
        people, every group of a size `m` there is a group of the certified people of size
        `m / ratio` (method: 12). Everything that this certificate states is divided so: group
        errors, coverage, bias and event rates. The ratio is assumed, and cannot be estimated from
        the rows; of a hurdle, sizes and the ratio are those of the people off the atom. Named
        groups and their unions have no bound, and a tested certificate knows nothing below its
        size.

        Parameters
        ----------
        ratio : float
            Largest density ratio, at least 1.

        Examples
        --------
        >>> from evenhand.links import Entropic
        >>> from evenhand.certificates import certify_link
        >>> proof = certify_link((np.arange(2000) + 0.5) / 2000, Entropic(0.1))
        >>> proof.under_shift(2).group_error(0.2) == proof.group_error(0.1)
        True
        """
        ratio = check_number("ratio", ratio, 1, "give the largest ratio of densities")
        if self.mass is not None and self.mass * self.ratio * ratio > 1:
            most = 1 / (self.mass * self.ratio)
            rule = f"be at most {most:g}, one divided by the single mass of this certificate"
            raise bad_input("ratio", rule, ratio, "use method='local-levels'")
        return replace(self, ratio=self.ratio * ratio, unions=None)

    def promise(self, mass: float) -> Promise:
        """Return what is promised for every group of a size, in the form that a watch tests.

        Under a link it is the bound of the group error, as a promise about mean served PITs: a
        group error is at least the distance of the group's mean served PIT from 1/2. Of 0/1
        forecasts it is the bias. Of other randomized forecasters it is the mean of `|PIT - r|`, r
        the one draw that is served: the CVaR of these gaps, which is at least the group error.

        Parameters
        ----------
        mass : float
            Smallest share of people in the group, 0 < mass <= 1.
        """
        size = self._size(mass)
        if self._is_event:
            low, high = self.bias(mass)
            return Promise.of_bias(low, high, mass, self.confidence)
        if (why := self._unpromised()) is not None:
            raise InputError(f"nothing is promised that served forecasts can show: {why}")
        is_tested = self.choice.rule == "tested"
        if is_tested and not self._is_tested(size):
            rule = f"be at least {self.choice.mass * self.ratio:g}, the tested group size"
            raise bad_input("mass", rule, mass)
        if not is_tested and self._bounds is None:
            target = self._worst_mean(self._known_gaps(), size, 1.0, self.confidence)
            return Promise("gap", mass, target, self.confidence)
        bounds = None if is_tested else self._link_bounds
        envelope = None if bounds is None else Envelope.of(bounds.bands, size)
        error = self.group_error(mass)
        return Promise("mean_pit", mass, error, self.confidence, self.link, envelope, self.at)

    def _unpromised(self) -> str | None:
        """Return why nothing is promised; None if something is."""
        if self.follow_up is not None:
            return (
                "the outcomes of people who are lost before the horizon are not known; watch named"
                " groups"
            )
        if self.choice.rule == "tested" and self.link is None:
            return (
                "the model is not a link around a deterministic one, so its mean PIT over draws is"
                " not known after one draw; certify it on other rows with certify_pit(..., r=...),"
                " which bounds |PIT - r|"
            )
        if self.at is not None and self._bounds is None and self.choice.rule != "tested":
            return (
                "the gaps between PITs and draws were certified for the positive part alone;"
                " randomize with a link (evenhand.randomize), or watch named groups"
            )
        if not self.is_randomized:
            return (
                "the forecasts are deterministic, and no rows can prove a small error in every"
                " group of them; randomize them with evenhand.randomize, or watch named groups"
            )
        return None

    # --- views: tables, questions, text

    def table(self, masses: ArrayLike = MASSES) -> pd.DataFrame:
        """Return the bounds for every group, one row per group size.

        Columns: `mass`, `group_error`, `chain` (NaN if the draws are not known or the randomization
        was chosen on these people), `coverage_80_low`, `coverage_80_high` (NaN if counts do not
        include that level). For 0/1 outcomes it is the `event_table`.
        """
        if self._is_event:
            return self.event_table(masses)
        # bounds made for a single mass do not hold for another
        shares = [self._only_mass] if self._only_mass else check_masses(masses).tolist()
        has_chain = self.own.gaps is not None and self.choice.rule == "fixed"
        knows = self._link_bounds is not None or self.own.levels is None or 0.8 in self.own.levels
        rows = [
            (
                mass,
                self.group_error(mass),
                self.chain(mass) if has_chain else np.nan,
                *(self.coverage(0.8, mass) if knows else (np.nan, np.nan)),
            )
            for mass in shares
        ]
        columns = ["mass", "group_error", "chain", "coverage_80_low", "coverage_80_high"]
        return pd.DataFrame(rows, columns=columns)

    def event_table(self, masses: ArrayLike = MASSES) -> pd.DataFrame:
        """Return the bounds for the event, one row per group size; empty if there is none.

        Columns: `mass`, `below`, `event_rate_below`, `above`, `event_rate_above`, `bias_low` and
        `bias_high`; NaN where no threshold has that share of the people.
        """
        columns = [
            *("mass", "below", "event_rate_below", "above", "event_rate_above"),
            *("bias_low", "bias_high"),
        ]
        if self.events is None:
            return pd.DataFrame(columns=columns)
        p, rows = quantiles((self.events.low + self.events.high) / 2, self.events.count), []
        for mass in check_masses(masses).tolist():
            # bounds hold for all thresholds, so they may be chosen on the same people: thresholds
            # below and above which about a share `mass` of the people lies
            below = next((t for t in THRESHOLDS if np.mean(p <= t) >= mass), np.nan)
            above = next((t for t in reversed(THRESHOLDS) if np.mean(p >= t) >= mass), np.nan)
            low = np.nan if np.isnan(below) else self.event_rate(below=below, mass=mass)
            high = np.nan if np.isnan(above) else self.event_rate(above=above, mass=mass)
            rows.append((mass, below, low, above, high, *self.bias(mass)))
        return pd.DataFrame(rows, columns=columns)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions under which the bounds hold."""
        return tuple(ASSUMED[key].format(**self._words) for key in assumption_keys(self))

    @property
    def not_covered(self) -> tuple[str, ...]:
        """Situations that the bounds do not cover."""
        return tuple(NOT_COVERED[key].format(**self._words) for key in limit_keys(self))

    @property
    def questions(self) -> pd.DataFrame:
        """Questions that these rows can or cannot answer: `question`, `answered`, `why`."""
        rows = [
            (QUESTIONS[question].format(**self._words), answered, WHY[why])
            for question, answered, why in question_keys(self)
        ]
        return pd.DataFrame(rows, columns=["question", "answered", "why"])

    @property
    def _words(self) -> dict[str, str]:
        """Values in texts."""
        return {
            "atom": "" if self.at is None else number_in_full(self.at),
            "horizon": "" if self._horizon is None else number_in_full(self._horizon),
            "ratio": f"{self.ratio:g}",
        }

    def summary(self) -> str:
        """Return the bounds as text, with their assumptions and limits."""
        return certificate_text(self)


# --- keys of assumptions, limits and questions, whose texts stand in `report`


def assumption_keys(proof: Certificate) -> list[str]:
    """Return the keys of `ASSUMED` that apply."""
    own, choice, follow_up = proof.off_atom or proof.everyone, proof.choice, proof.follow_up
    fixed, is_served = "fixed", False
    if own is None:
        fixed = "fixed event"
    elif choice.rule == "tested":
        fixed = "fixed models" if choice.n_links == 1 else "fixed links"
    elif (proof._link_bounds is not None and follow_up is None) or choice.rule == "simultaneous":
        fixed = "fixed base"
        is_served = own.gaps is not None or proof.has_cells or own.n_draws > 1
    return _that_apply(
        {
            "sample": True,
            fixed: True,
            "draws": proof.is_randomized,
            "fixed link": is_served and choice.rule == "fixed" and proof.at is None,
            "fixed hurdle link": is_served and choice.rule == "fixed" and proof.at is not None,
            "rounded": proof.is_rounded,
            "ties": proof.at is not None or (proof.has_cells and not proof.is_rounded),
            "own draws": not proof.has_draws,
            "counted": own is not None and own.levels is not None,
            "horizon": proof._horizon is not None,
            "entry": follow_up is not None and follow_up.has_entry,
            "design": proof.thinned is not None,
            "ratio": proof.ratio > 1,
        }
    )


def limit_keys(proof: Certificate) -> list[str]:
    """Return the keys of `NOT_COVERED` that apply."""
    is_followed = proof.follow_up is not None
    of_groups = proof.is_randomized and (
        proof.at is not None or not is_followed or proof.bounds_every_group
    )
    is_chosen, everyone = proof.choice.rule != "fixed", proof.everyone
    has_groups = everyone is not None and bool(everyone.groups)
    is_continuous = proof.kind is OutcomeKind.CONTINUOUS and not proof.has_cells
    return _that_apply(
        {
            "shift": proof.ratio == 1,
            "larger shift": proof.ratio > 1,
            "after draws": of_groups and not proof._is_event,
            "smaller": of_groups or proof.events is not None,
            "atom": proof.at is not None and not is_followed,
            "by horizon": proof.at is not None and is_followed,
            "discrete": is_continuous and not is_followed,
            "mean probabilities": proof.kind is OutcomeKind.COUNT and proof.is_randomized,
            "beyond horizon": proof._horizon is not None,
            "shares of rows": proof.one_row_each,
            "chosen overall": is_chosen and proof.at is not None,
            "chosen named": is_chosen and proof.at is None and has_groups,
        }
    )


def _that_apply(keys: dict[str, bool]) -> list[str]:
    return [key for key, does in keys.items() if does]


Answer = tuple[str, bool, str]


def question_keys(proof: Certificate) -> list[Answer]:
    """Return the questions about a forecaster, whether they are answered, and why."""
    is_followed = proof.follow_up is not None
    one, each = ("lost on average",) * 2 if is_followed else ("one PIT", "one PIT each")
    worst = "; worst" if proof._n_lost else ""
    average: list[Answer] = [("average", True, one), ("named", True, each)]
    events: list[Answer] = [
        ("low forecasts", True, "event rate" + worst),
        ("every group", False, "binary"),
        ("each person", False, "each person"),
    ]
    if proof._is_event:
        return [*average, *events]
    is_answered = proof.link is not None or proof.own.n_draws > 1
    error = coverage = "one draw"
    if is_answered:
        error = coverage = ("link" if proof.link is not None else "several") + worst
    elif not proof.is_randomized:
        # with one forecast per person the floor is that of the lowest outcomes, as for counts:
        # times are compared up to the horizon only
        is_point = proof.kind is not OutcomeKind.COUNT and (not is_followed or proof.at)
        error, coverage = "one forecast" if is_point else "one forecast of counts", "floor"
    if proof._n_lost and proof._horizon is None:
        error, coverage = "no horizon", "no horizon" if is_answered else coverage
        is_answered = False
    every: list[Answer] = [
        ("every group", is_answered, error),
        ("coverage", is_answered, coverage),
        ("after draws", False, "after draws"),
    ]
    if proof.at is None:
        return [*average, *every]
    whether, among = ("whether by", "among by") if is_followed else ("whether", "among")
    return [
        *average,
        *((f"{whether}: {question}", known, why) for question, known, why in events),
        *((f"{among}: {question}", known, why) for question, known, why in every),
    ]


# --- rows of what is proven


def proof_rows(certificate: Certificate | None) -> Proof | None:
    """Return a certificate as rows, with its bounds for every group."""
    if certificate is None:
        return None
    # in pooled PITs of 0/1 outcomes too high and too low probabilities cancel (verdict: 2)
    is_event = certificate.kind is OutcomeKind.BINARY
    every = certificate.table()
    every = every[["mass", "bias_low", "bias_high"]] if is_event else every
    events, follow_up, unions = certificate.events, certificate.follow_up, certificate.unions
    same = ("confidence", "method", "n_samples", "n_draws", "assumptions", "not_covered")
    return Proof.of(
        {name: getattr(certificate, name) for name in same}
        | {
            "link_bound": certificate.bound,
            "average_error": None if is_event else certificate.average_error(),
            "groups": [] if is_event else certificate.named_table().to_dict("records"),
            "every_group": every.to_dict("records"),
            "events": None if events is None else certificate.event_table().to_dict("records"),
            "questions": certificate.questions.to_dict("records"),
            "atom": certificate.at,
            "follow_up": None if follow_up is None else vars(follow_up),
            "unions": None if unions is None else unions.facts(),
        }
    )
