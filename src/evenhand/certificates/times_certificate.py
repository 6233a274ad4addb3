"""Certificates of forecasts of times that may be cut off (outcomes: 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand._format import number_in_full
from evenhand._ids import check_cluster
from evenhand._validate import InputError, Ints, Mask, bad_input, check_fraction, check_rows
from evenhand.calibration import Cells, CensoredTimes, check_own_draws
from evenhand.certificates.assumptions import (
    FIXED,
    NO_PROMISE_OF_TIMES,
    OTHER_GROUPS,
    OWN_CELLS,
    SAMPLE,
    SHARES_OF_ROWS,
    SHIFT,
    SMALLER_GROUPS,
    UNIFORM_DRAWS,
    FollowUp,
    assumptions_of_times,
    beyond,
    questions_of_times,
    remarks_of_times,
)
from evenhand.certificates.certificate import WORST, Method
from evenhand.certificates.event_certificate import certify_events
from evenhand.certificates.evidence import LinkBase, part_evidence, times_evidence
from evenhand.certificates.hurdle_certificate import HurdleCertificate, with_one_row_each
from evenhand.certificates.link_certificate import certify_link
from evenhand.certificates.pit_certificate import AVERAGE_SHARE, PITCertificate, check_options
from evenhand.certificates.promise import Promise
from evenhand.distributions import OutcomeKind
from evenhand.draws import RandomState, generator, one_row_each
from evenhand.links import Link
from evenhand.tables import check_groups


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TimesCertificate(PITCertificate):
    """Bounds on calibration errors of forecasts of times, of which some are cut off.

    With a horizon the outcome is `min(T, horizon)`. The errors of people with the event by the
    horizon, and of those seen until it without the event, are known; everybody else was lost, and
    counts with the largest error that any outcome after the last observation would have. All bounds
    therefore hold whatever made people leave. They are in the reading of cells: the forecasts of a
    person who reached the horizon are compared with that fact alone.

    If the times of entry are known, only people are used who entered at least a horizon before the
    end of follow-up, whatever happened to them: nobody else is lost by the end of follow-up.

    Without a horizon `group_error` is 1/2 for every group that may consist of people whose times
    are cut off.

    Parameters
    ----------
    confidence, method, mass, is_randomized, evidence, seed, one_row_each, events
        As in `PITCertificate`; `evidence` is a `TimesEvidence`, `events` are bounds of the event
        that the time is at most the horizon, for forecasts without a draw.
    follow_up : FollowUp
        How many of the people had the event, reached the horizon or were lost.
    around : Link or None
        The link around a deterministic forecaster, if there is one.
    is_rounded : bool
        Whether the times of events were rounded.
    """

    follow_up: FollowUp
    around: Link | None = None
    is_rounded: bool = False

    @property
    def link(self) -> Link | None:
        """Link around a deterministic forecaster; None if there is none."""
        return self.around

    @property
    def bounds_every_group(self) -> bool:
        """Whether every group can have a useful bound."""
        is_known = self.follow_up.horizon is not None or self.follow_up.n_lost == 0
        return is_known and (self.around is not None or self.n_draws > 1)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions under which the bounds hold."""
        drawn = (UNIFORM_DRAWS,) if self.is_randomized else ()
        rounded = (OWN_CELLS,) if self.is_rounded else ()
        own = (SAMPLE, FIXED, *drawn, *rounded, *self.evidence.assumptions)
        return (*own, *assumptions_of_times(self.follow_up))

    @property
    def not_covered(self) -> tuple[str, ...]:
        """Situations that the bounds do not cover."""
        others: tuple[str, ...] = ()
        if self.bounds_every_group:
            others = OTHER_GROUPS
        elif self.events is not None:
            others = (SMALLER_GROUPS,)
        shares = (SHARES_OF_ROWS,) if self.one_row_each else ()
        return (SHIFT, *others, *beyond(self.follow_up), *shares)

    def group_error(self, mass: float) -> float:
        """Upper bound for the W1 error, 0 to 1/2, of every group of at least this share of people.

        It is the mean of the largest pathwise errors that people may have. Simultaneous for all
        masses, except with betting.

        Parameters
        ----------
        mass : float
            Smallest share of people in the group, 0 < mass <= 1.
        """
        check_fraction("mass", mass, high_open=False)
        if self.method == "betting":
            return self._worst_mean(self.evidence.errors, mass, WORST, self.confidence)
        if mass < 1:
            # the overall error bounds no other group here: that of randomized PITs is not the error
            # in the reading of cells of the other people
            return self._band.cvar(mass)
        overall = self.evidence.error_interval(1 - (1 - self.confidence) * AVERAGE_SHARE)[1]
        return min(self._band.cvar(1.0), overall)

    def promise(self, mass: float) -> Promise:
        """Raise InputError: nothing is promised that served forecasts can show."""
        raise InputError(NO_PROMISE_OF_TIMES)

    @cached_property
    def questions(self) -> pd.DataFrame:
        """Questions that these rows can or cannot answer: `question`, `answered`, `why`."""
        return questions_of_times(
            self.is_randomized, self.link is not None, self.n_draws, self.follow_up
        )

    def _remarks(self) -> list[str]:
        return [*remarks_of_times(self.follow_up, in_cells=True), *super()._remarks()]


# --- certification


def certify_times(
    pit: Cells,
    times: CensoredTimes,
    *,
    at_horizon: ArrayLike | None = None,
    base: LinkBase | None = None,
    confidence: float = 0.95,
    groups: Any = None,
    method: Method = "local-levels",
    mass: float | None = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: RandomState = None,
) -> TimesCertificate:
    """Certify forecasts of times, of which some are cut off, on rows that they have not seen.

    Parameters
    ----------
    pit : Cells of n people
        PITs with cells: those of events are points, or rounding cells, and those of other people
        reach from the CDF at their time to 1.
    times : CensoredTimes of n people
        The times, with or without a horizon.
    at_horizon : array-like of shape (n,), optional
        CDF at the horizon of the deterministic forecaster inside the link, or of a deterministic
        forecaster. Without it, the largest error of a person who was lost is 1/2.
    base : LinkBase, optional
        For a link around a deterministic forecaster: the link, and the PITs of that forecaster on
        the same rows, with their cells.
    confidence, groups, method, mass, cluster, sample_weight, random_state
        As in `certify_pit`.

    Returns
    -------
    TimesCertificate
        If the times of entry are known, of the people who entered at least a horizon before the end
        of follow-up.

    Raises
    ------
    InputError
        If the input is invalid or cannot support a guarantee.

    Examples
    --------
    A right forecast of times that are exponential with mean 1, of which a fifth is cut off by
    dropout before the horizon 1:

    >>> from evenhand.draws import jittered
    >>> from evenhand.links import Entropic
    >>> rng = np.random.default_rng(0)
    >>> n, link = 2000, Entropic(0.1)
    >>> T, C, r = rng.exponential(1, n), rng.exponential(3, n), jittered(n, 8, random_state=1)
    >>> times = CensoredTimes.of(np.minimum(T, C), T <= C, horizon=1.0)
    >>> low, known = -np.expm1(-times.time), times.happened
    >>> high = np.where(known, low, 1.0)
    >>> base = LinkBase(low, link, (low, high))
    >>> served = [link.ppf(end[:, None], r) for end in (low, high)]
    >>> pit = Cells.between(*served, rng.uniform(size=n), draws=r, censored=times.is_lost)
    >>> proof = certify_times(pit, times, base=base, at_horizon=np.full(n, -np.expm1(-1.0)))
    >>> proof.follow_up.n_lost < 500, 0.1 < proof.group_error(0.5) < 0.2
    (True, True)
    """
    check_options(pit, confidence, method, mass, sample_weight)
    random = generator(random_state)
    chosen = _Chosen.of(pit, times, groups, cluster, random)
    rows = chosen.rows
    pits = chosen.pits
    if base is not None and not pits.is_randomized:
        remedy = "give the draws of the link, or leave base out"
        raise bad_input("base", "be None for forecasts without a draw", repr(base.link), remedy)
    tops = None if at_horizon is None else check_rows("at_horizon", at_horizon, pit.n_samples)[rows]
    known = chosen.times
    evidence = times_evidence(
        pits,
        known.has_reached,
        known.is_lost,
        chosen.masks,
        random,
        base=None if base is None else base.take(rows),
        at_horizon=tops,
    )
    events = None
    if tops is not None and not pits.is_randomized:
        # without a draw, whether the event happens by the horizon is a 0/1 forecast
        events = certify_events(tops, known.happened, lost=known.is_lost, confidence=confidence)
        events = replace(events, one_row_each=chosen.one_row_each)
    return TimesCertificate(
        confidence=float(confidence),
        method=method,
        mass=mass,
        is_randomized=pits.is_randomized,
        evidence=evidence,
        seed=int(random.integers(2**31)),
        one_row_each=chosen.one_row_each,
        events=events,
        follow_up=chosen.follow_up,
        around=None if base is None else base.link,
        is_rounded=bool((pits.high > pits.low)[known.happened].any()),
    )


def certify_hurdle_times(
    pit: Cells,
    positive: Cells,
    probability: ArrayLike,
    times: CensoredTimes,
    *,
    base: LinkBase | None = None,
    confidence: float = 0.95,
    groups: Any = None,
    method: Method = "local-levels",
    mass: float | None = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: RandomState = None,
) -> HurdleCertificate:
    """Certify forecasts of times with a horizon whose atom is the horizon.

    Whether the event happens by the horizon is a 0/1 question, and when it happens, given that it
    does, a continuous one.

    Parameters
    ----------
    pit : Cells of n people
        PITs of the whole forecast, with their cells: [P(event by the horizon), 1] of people who
        reached the horizon, and up to 1 of people who were lost.
    positive : Cells of the k people with the event by the horizon or lost before it
        PITs of the forecast given that the event happens by the horizon, in the order of the rows;
        what they are for people who were lost is ignored.
    probability : array-like of shape (n,)
        Forecast probability of the event by the horizon.
    times : CensoredTimes of n people
        The times, with a horizon.
    base : LinkBase, optional
        For a link around the continuous part: the link, and the k PITs of the forecast inside it.
    confidence, groups, method, mass, cluster, sample_weight, random_state
        As in `certify_pit`, with one value or label for each of the n rows.

    Returns
    -------
    HurdleCertificate
        `group_error(mass)` and `coverage(level, mass)` are for every group of at least a share
        `mass` of the people who have the event by the horizon; `event_rate` and `bias`, about
        whether they have it, for groups of shares of all people.

    Raises
    ------
    InputError
        If the input is invalid or cannot support a guarantee.
    """
    check_options(pit, confidence, method, mass, sample_weight)
    if times.horizon is None:
        raise InputError("times have no horizon, which is the atom of these forecasts; give it")
    chance = check_rows("probability", probability, pit.n_samples)
    random = generator(random_state)
    chosen = _Chosen.of(pit, times, groups, cluster, random)
    belongs = times.happened | times.is_lost
    if positive.n_samples != belongs.sum():
        rule = f"have one row per person with the event or lost ({int(belongs.sum())})"
        raise bad_input("positive", rule, f"{positive.n_samples} rows")
    kept = np.isin(np.flatnonzero(belongs), chosen.rows)
    part = positive.take(kept)
    lost = times.is_lost[belongs][kept]
    known = chosen.times
    own = None if base is None else base.take(kept)
    inner = _part(part, lost, own, method, mass, float(confidence), random)
    made = HurdleCertificate(
        confidence=float(confidence),
        method=method,
        mass=mass,
        is_randomized=inner.is_randomized,
        evidence=times_evidence(
            chosen.pits, known.has_reached, known.is_lost, chosen.masks, random
        ),
        seed=inner.seed,
        bounds=inner.bounds,
        events=certify_events(
            chance[chosen.rows], known.happened, lost=known.is_lost, confidence=confidence
        ),
        positive=inner,
        at=times.horizon,
        follow_up=chosen.follow_up,
    )
    return with_one_row_each(made) if chosen.one_row_each else made


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The rows that certify: people who could be followed until the horizon, one row each.

    Parameters
    ----------
    rows : ndarray of int, shape (k,)
        Increasing row numbers.
    pits : Cells
        PITs of these rows.
    times : CensoredTimes
        Times of these rows.
    masks : dict of str to ndarray of bool
        Named groups among these rows.
    follow_up : FollowUp
        What is known of these people.
    one_row_each : bool
        Whether people have several rows.
    """

    rows: Ints
    pits: Cells
    times: CensoredTimes
    masks: dict[str, Mask]
    follow_up: FollowUp
    one_row_each: bool

    @classmethod
    def of(
        cls,
        pit: Cells,
        times: CensoredTimes,
        groups: Any,
        cluster: ArrayLike | None,
        random: np.random.Generator,
    ) -> _Chosen:
        n = pit.n_samples
        if times.n_samples != n:
            raise bad_input("times", f"have one time per person ({n})", f"{times.n_samples} times")
        masks = check_groups(groups, n)
        followed = times.is_followed
        rows = np.flatnonzero(followed)
        # who is not followed is left out whatever happened: the others are a sample of all people
        if not times.happened[rows].any():
            raise InputError(_nobody(times))
        left_out = n - rows.size
        if cluster is not None:
            people = check_cluster(cluster, n)
            left_out = np.setdiff1d(people[~followed], people[rows]).size
            rows = np.sort(rows[one_row_each(people[rows], rows.size, random)])
        pits = pit.take(rows).without_copies()
        if pits.draws is not None:
            check_own_draws(pits.draws, None)
        known = times.take(rows)
        return cls(
            rows,
            pits,
            known,
            {name: mask[rows] for name, mask in masks.items()},
            FollowUp.of(known, int(left_out)),
            cluster is not None,
        )


def _nobody(times: CensoredTimes) -> str:
    tau = number_in_full(times.horizon)
    return (
        f"nobody who entered at least a horizon ({tau}) before the end of follow-up had the event"
        " by the horizon, so nothing can be certified; give an earlier horizon"
    )


def _part(
    pits: Cells,
    lost: Mask,
    base: LinkBase | None,
    method: Method,
    mass: float | None,
    confidence: float,
    random: np.random.Generator,
) -> PITCertificate:
    """Certify the forecasts given that the event happens by the horizon."""
    if base is not None and method != "local-levels":
        rule = "be 'local-levels' where base is given"
        raise bad_input("method", rule, repr(method), "leave base out for another method")
    bounds = None
    if base is not None:
        # one band for the distance from 1/2, at whose end people who were lost are: two bands for
        # the tails would count them twice
        bounds = certify_link(
            base.pit, base.link, confidence=confidence, bound="pathwise", lost=lost
        )
    known = pits.at_points()
    return PITCertificate(
        confidence=float(confidence),
        method=method,
        mass=mass,
        is_randomized=pits.is_randomized,
        evidence=part_evidence(known, lost, {}, random),
        seed=int(random.integers(2**31)),
        bounds=bounds,
        kind=OutcomeKind.CONTINUOUS,
    )
