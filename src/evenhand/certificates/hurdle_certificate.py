"""Certificates of forecasts with an atom at an end of the range of outcomes (outcomes: 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand._format import at_most, count, number_in_full
from evenhand._validate import Floats, InputError, Mask, bad_input, check_finite, check_rows
from evenhand.calibration import Cells, PITCounts
from evenhand.certificates.assumptions import (
    ATOM,
    BY_HORIZON,
    CHOSEN_HURDLE,
    FIXED_HURDLE_LINK,
    FIXED_LINK,
    NO_PROMISE_OF_TIMES,
    OTHER_GROUPS,
    OWN_TIES,
    SHARES_OF_ROWS,
    SHIFT,
    WEIGHTED,
    assumptions_of_times,
    beyond,
    hurdle_questions,
    remarks_of_times,
)
from evenhand.certificates.certificate import Certificate, Method
from evenhand.certificates.deterministic_intervals import WiderInterval
from evenhand.certificates.event_certificate import (
    EventCertificate,
    EventCounts,
    certify_event_counts,
    certify_events,
)
from evenhand.certificates.evidence import CountEvidence, LinkBase, RowEvidence, row_evidence
from evenhand.certificates.link_certificate import LinkCertificate
from evenhand.certificates.pit_certificate import PITCertificate, certify_counts, certify_pit
from evenhand.certificates.promise import Promise
from evenhand.distributions import OutcomeKind
from evenhand.draws import RandomState, generator, one_row_each
from evenhand.links import Link
from evenhand.tables import check_groups


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class HurdleCertificate(PITCertificate):
    """Bounds for outcomes with an atom at an end of the range and a continuous rest.

    Two questions have separate bounds. *Whether the outcome is the atom* is a 0/1 question:
    `event_rate` and `bias` bound the event that it is not, for groups of a share of all people.
    *How large it is, if it is not the atom*: `group_error`, `coverage`, `mpaic` and `chain` compare
    the forecasts given that the outcome is not the atom with the outcomes that are not, for every
    group of at least a share `mass` of the people whose outcome is not the atom. These people are
    themselves a random sample, so all of the theory of continuous outcomes applies to them.
    `average_error` and the bounds of named groups are about the whole forecast and all people.

    Times with a horizon are such outcomes: the atom is the horizon, and the event is one by the
    horizon. With a `follow_up`, people who were lost before the horizon count as worst for each
    bound, so the bounds hold whatever made people leave: with and without the event, and in
    `positive` as people with the event and the largest error.

    Parameters
    ----------
    confidence, method, mass, is_randomized, evidence, seed, one_row_each, bounds, is_chosen, events
        As in `PITCertificate`; `evidence` contains all people, `bounds` are those of `positive`.
    follow_up : FollowUp or None
        As in `PITCertificate`.
    positive : PITCertificate
        Certificate of the forecasts given that the outcome is not the atom, from the people whose
        outcome is not, or who were lost.
    at : float
        The atom.
    """

    positive: PITCertificate
    at: float = 0.0
    kind: OutcomeKind = OutcomeKind.HURDLE

    of_positive = True
    """Whether group sizes are shares of the people whose outcome is not the atom."""

    @property
    def link(self) -> Link | None:
        """Link around the continuous part; None if there is none."""
        return self.positive.link

    @property
    def bounds_every_group(self) -> bool:
        """Whether every group of the people off the atom can have a useful bound."""
        return self.positive.bounds_every_group

    @property
    def n_positive(self) -> int:
        """Number of people whose outcome is not the atom; people who were lost are not counted."""
        lost = 0 if self.follow_up is None else self.follow_up.n_lost
        return self.positive.n_samples - lost

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions under which the bounds hold."""
        every = (*self.positive.assumptions, OWN_TIES, *self.evidence.assumptions)
        if self.follow_up is not None:
            every = (*every, *assumptions_of_times(self.follow_up))
        named = (FIXED_HURDLE_LINK if one == FIXED_LINK else one for one in every)
        return tuple(dict.fromkeys(named))

    @property
    def not_covered(self) -> tuple[str, ...]:
        """Situations that the bounds do not cover."""
        others = OTHER_GROUPS if self.is_randomized else OTHER_GROUPS[1:]
        shares = (SHARES_OF_ROWS,) if self.one_row_each else ()
        chosen = (CHOSEN_HURDLE,) if self.is_chosen else ()
        atom = ATOM.format(atom=self._atom)
        if self.follow_up is not None:
            shares = (*beyond(self.follow_up), *shares)
            atom = BY_HORIZON.format(horizon=self._atom)
        return (SHIFT, *others, atom, *shares, *chosen)

    def accounting_for(self, choice: Certificate) -> HurdleCertificate:
        """Return the certificate with bounds that account for a choice made on the same people.

        Parameters
        ----------
        choice : Certificate
            Bounds for every group of the people whose outcome is not the atom, which hold whatever
            was chosen.

        Raises
        ------
        InputError
            If `choice` has another confidence.
        """
        positive = self.positive.accounting_for(choice)
        own = self.events
        return replace(
            self,
            positive=positive,
            bounds=positive.bounds,
            events=own and replace(own, one_row_each=positive.one_row_each),
            is_chosen=True,
            method=positive.method,
            mass=positive.mass,
            one_row_each=positive.one_row_each,
        )

    def average_error(self) -> float:
        """Upper bound for the overall W1 error of the whole forecast, 0 to 1/2."""
        return self.evidence.error_interval(self.confidence)[1]

    def group_error(self, mass: float) -> float:
        """Upper bound for the W1 error, 0 to 1/2, of every group of people off the atom.

        Parameters
        ----------
        mass : float
            Smallest share of the people whose outcome is not the atom, 0 < mass <= 1.
        """
        return self.positive.group_error(mass)

    def promise(self, mass: float) -> Promise:
        """Return what is promised for every group of the people whose outcome is not the atom.

        Parameters
        ----------
        mass : float
            Smallest share of the people whose outcome is not the atom, 0 < mass <= 1.

        Raises
        ------
        InputError
            If the randomization is no link around a deterministic forecaster.
        """
        if self.follow_up is not None:
            raise InputError(NO_PROMISE_OF_TIMES)
        found = self.positive.promise(mass)
        if found.statistic == "gap":
            raise InputError(
                "nothing is promised that served forecasts can show: the gaps between PITs and"
                " draws were certified for the positive part alone; randomize with a link"
                " (evenhand.randomize), or watch named groups"
            )
        return replace(found, atom=self.at)

    def coverage(self, level: float, mass: float) -> tuple[float, float]:
        """Bounds for the coverage of central intervals, given that the outcome is no atom.

        Parameters
        ----------
        level : float
            Nominal level of the interval, such as 0.8.
        mass : float
            Smallest share of the people whose outcome is not the atom, 0 < mass <= 1.

        Returns
        -------
        low, high : float
            The coverage of every such group of these people lies between them.
        """
        return self.positive.coverage(level, mass)

    def mpaic(self, error: float) -> float:
        """Upper bound for `P(|h[X, R](Y) - R| >= error)` given that the outcome is not the atom.

        `h` is the forecast given that the outcome is not the atom: the rest is not randomized.
        """
        return self.positive.mpaic(error)

    def mpaic_curve(self, errors: ArrayLike) -> Floats:
        """Simultaneous upper bounds as in `mpaic` at all thresholds, by DKW; shape of `errors`."""
        return self.positive.mpaic_curve(errors)

    def plain_intervals(self, mass: float) -> tuple[WiderInterval, ...]:
        """Return the floors of intervals without a draw, given that the outcome is not the atom."""
        return self.positive.plain_intervals(mass)

    @property
    def questions(self) -> pd.DataFrame:
        """Questions that these rows can or cannot answer: `question`, `answered`, `why`."""
        is_link = isinstance(self.bounds, LinkCertificate)
        n_draws = self.positive.n_draws
        return hurdle_questions(self.is_randomized, is_link, n_draws, self._atom, self.follow_up)

    @property
    def _atom(self) -> str:
        return number_in_full(self.at)

    def _coverage_80(self, mass: float) -> tuple[float, float]:
        return self.positive._coverage_80(mass)

    def _forecasts(self) -> str:
        people = count(self.n_positive, "has", "have")
        outcome = f"an outcome other than {self._atom}"
        if self.follow_up is not None:
            outcome = f"the event by {self._atom}"
        return f"of whom {people} {outcome}, {super()._forecasts()}"

    def _group_lines(self, of: str = "people") -> list[str]:
        overall = at_most(self.positive.average_error())
        event = f"have an outcome other than {self._atom}"
        opening = (
            f"- for the {count(self.n_positive, 'person', 'people')} whose outcome is not"
            f" {self._atom}, probabilities given that it is not are off by at most {overall} points"
        )
        if self.follow_up is not None:
            event = f"have the event by {self._atom}"
            opening = (
                f"- for the people who have the event by {self._atom}, probabilities given that it"
                f" happens by then are off by at most {overall} points"
            )
        events = [] if self.events is None else self.events.lines(event)
        return [*events, opening, *self.positive._group_lines("these people")]

    def _remarks(self) -> list[str]:
        times = [] if self.follow_up is None else remarks_of_times(self.follow_up)
        return [*times, *super()._remarks()]


# --- certification


def certify_hurdle(
    pit: Cells,
    positive: Cells,
    is_positive: ArrayLike,
    probability: ArrayLike,
    *,
    at: float = 0.0,
    confidence: float = 0.95,
    groups: Any = None,
    base: LinkBase | None = None,
    method: Method = "local-levels",
    mass: float | None = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: RandomState = None,
) -> HurdleCertificate:
    """Certify forecasts with an atom, such as money with zeros, on rows that they have not seen.

    Parameters
    ----------
    pit : Cells of n people
        PITs of the whole forecast, with their cells: the basis of the overall bound and of those of
        named groups.
    positive : Cells of the n_positive people whose outcome is not the atom
        PITs of the forecast given that the outcome is not the atom (`Forecast.positive_part`), in
        the order of the rows; their draws are those of the rows. They have cells only where
        outcomes were rounded.
    is_positive : array-like of bool, shape (n,)
        Whether the outcome is not the atom.
    probability : array-like of shape (n,)
        Forecast probability that the outcome is not the atom (`Forecast.event_probability`).
    at : float, default 0.0
        The atom.
    confidence, groups, method, mass, cluster, sample_weight, random_state
        As in `certify_pit`, with one value or label for each of the n rows.
    base : LinkBase, optional
        For a link around the continuous part: the link, and the n_positive PITs of the forecast
        inside it, given that the outcome is not the atom.

    Returns
    -------
    HurdleCertificate
        `group_error(mass)` and `coverage(level, mass)` are for every group of at least a share
        `mass` of the people whose outcome is not the atom; `event_rate` and `bias`, about whether
        it is the atom, for groups of shares of all people.

    Raises
    ------
    InputError
        If the input is invalid or cannot support a guarantee, or every outcome is the atom.

    Examples
    --------
    >>> from evenhand.draws import jittered
    >>> from evenhand.links import Entropic
    >>> rng = np.random.default_rng(0)
    >>> n, chance = 2000, 0.3  # a right forecast: 30% have an outcome of 0
    >>> is_positive = rng.uniform(size=n) > chance
    >>> u = rng.uniform(size=int(is_positive.sum()))  # PITs given that the outcome is not 0
    >>> link, r = Entropic(0.1), jittered(n, 8, random_state=1)
    >>> low, high = np.zeros((n, 8)), np.full((n, 8), chance)
    >>> low[is_positive] = chance + (1 - chance) * link.ppf(u[:, None], r[is_positive])
    >>> high[is_positive] = low[is_positive]
    >>> proof = certify_hurdle(
    ...     Cells.between(low, high, rng.uniform(size=n), draws=r),
    ...     Cells(link.ppf(u[:, None], r[is_positive]), draws=r[is_positive]),
    ...     is_positive,
    ...     np.full(n, 1 - chance),
    ...     base=LinkBase(u, link),
    ... )
    >>> proof.average_error() < 0.05, proof.group_error(0.2) < 0.25
    (True, True)
    >>> low, high = proof.bias(0.5)
    >>> low < 0 < high
    True
    """
    if sample_weight is not None or pit.weights is not None:
        raise InputError(f"certificates do not accept sample_weight: {WEIGHTED}")
    flags = _flags(is_positive, pit, positive)
    chance = check_rows("probability", probability, pit.n_samples)
    masks: Mapping[str, Mask] = check_groups(groups, pit.n_samples)
    random = generator(random_state)
    if cluster is not None:
        # one row per person from all rows: of these, the people off the atom are a random sample
        rows = one_row_each(cluster, pit.n_samples, random)
        kept = np.isin(np.flatnonzero(flags), rows)
        pit = pit.take(rows)
        positive = positive.take(kept)
        flags = flags[rows]
        chance = chance[rows]
        masks = {name: mask[rows] for name, mask in masks.items()}
        base = None if base is None else base.take(kept)
        if not flags.any():
            raise _no_positive()
    events = certify_events(chance, flags, confidence=confidence)
    inner = certify_pit(
        positive,
        confidence=confidence,
        base=base,
        method=method,
        mass=mass,
        kind=OutcomeKind.CONTINUOUS,
        random_state=random,
    )
    made = _hurdle(row_evidence(pit, masks, None, random), inner, events, at)
    return made if cluster is None else with_one_row_each(made)


def certify_hurdle_counts(
    counts: PITCounts,
    positive: PITCounts,
    events: EventCounts,
    *,
    is_randomized: bool,
    at: float = 0.0,
    link: Link | None = None,
    confidence: float = 0.95,
) -> HurdleCertificate:
    """Certify forecasts with an atom from counts, for tables of any length.

    Parameters
    ----------
    counts : PITCounts
        Counts of the PITs of the whole forecast, of all people.
    positive : PITCounts
        Counts of the PITs of the forecast given that the outcome is not the atom, of the people
        whose outcome is not; with a link, `base` counts those of the forecast inside it.
    events : EventCounts
        Counts of all people by the probability that the outcome is not the atom and by whether it
        is not.
    at, is_randomized, link, confidence
        As in `certify_hurdle` and `certify_counts`.

    Returns
    -------
    HurdleCertificate

    Raises
    ------
    InputError
        If the counts are not of the same people, or every outcome is the atom.
    """
    for name, size, number in (
        ("events", events.n_samples, counts.n_samples),
        ("positive", positive.n_samples, events.n_events),
    ):
        if size != number:
            raise bad_input(name, f"contain {number} people", size, "count them on the same rows")
    if positive.n_samples == 0:
        raise _no_positive()
    inner = certify_counts(
        positive,
        is_randomized=is_randomized,
        link=link,
        confidence=confidence,
        kind=OutcomeKind.CONTINUOUS,
    )
    made = certify_event_counts(events, confidence=confidence)
    return _hurdle(CountEvidence(counts), inner, made, at)


def _flags(is_positive: ArrayLike, pit: Cells, positive: Cells) -> Mask:
    """Check which people have an outcome off the atom, and that the PITs match them."""
    values = check_rows("is_positive", is_positive, pit.n_samples)
    flags: Mask = values != 0
    if not ((values == 0) | (values == 1)).all():
        raise bad_input("is_positive", "be booleans", "other numbers")
    if not flags.any():
        raise _no_positive()
    if positive.n_samples != flags.sum():
        rule = f"have one row for each person with is_positive ({int(flags.sum())})"
        raise bad_input("positive", rule, f"{positive.n_samples} rows")
    return flags


def _no_positive() -> InputError:
    return InputError(
        "every outcome is the atom, so nothing can be certified about the others; use rows with"
        " other outcomes"
    )


def _hurdle(
    evidence: RowEvidence | CountEvidence,
    positive: PITCertificate,
    events: EventCertificate,
    at: float,
) -> HurdleCertificate:
    (place,) = check_finite("at", [at])
    return HurdleCertificate(
        confidence=positive.confidence,
        method=positive.method,
        mass=positive.mass,
        is_randomized=positive.is_randomized,
        evidence=evidence,
        seed=positive.seed,
        bounds=positive.bounds,
        events=events,
        positive=positive,
        at=float(place),
    )


def with_one_row_each(made: HurdleCertificate) -> HurdleCertificate:
    """Mark all parts of a certificate as made of one row per person."""
    assert made.events is not None
    return replace(
        made,
        one_row_each=True,
        positive=replace(made.positive, one_row_each=True),
        events=replace(made.events, one_row_each=True),
    )
