"""Certification of forecasts from cells, from counts of PITs, and from probabilities of events."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand._format import number_in_full
from evenhand._validate import (
    Floats,
    InputError,
    Ints,
    bad_input,
    check_choice,
    check_fraction,
    check_rows,
)
from evenhand.calibration import Cells, Pit, PITCounts, as_cells
from evenhand.certificates.certificate import Certificate, Choice, FollowUp, Method
from evenhand.certificates.parts import EventPart, part_of_base, part_of_counts, part_of_rows
from evenhand.certificates.unions import Unions, disjoint_cells
from evenhand.distributions import OutcomeKind
from evenhand.draws import (
    RandomState,
    check_own_draws,
    check_person_labels,
    generator,
    one_row_each,
)
from evenhand.links import Link, check_link
from evenhand.outcomes import Outcomes
from evenhand.tables import Groups, check_groups

WEIGHTED = (
    "weighted rows are not a sample of the people; give the largest weight of the design"
    " (Outcomes(weight=, largest_weight=)), by which rows are kept at random, or certify without"
    " weights and read the bounds at mass / W, W the largest weight over the mean weight"
)
"""Why certificates refuse weights, and what to do."""

ALL_AT_ATOM = (
    "every outcome is the atom, so nothing can be certified about the others; use rows with other"
    " outcomes"
)


# --- rows


def certify_pit(
    pit: Pit,
    r: ArrayLike | None = None,
    *,
    base: Cells | None = None,
    kind: OutcomeKind | str | None = None,
    groups: Any = None,
    confidence: float = 0.95,
    method: Method = "local-levels",
    mass: float | None = None,
    person: ArrayLike | None = None,
    random_state: RandomState = None,
) -> Certificate:
    """Certify a forecaster from its PITs on rows that neither its fit nor its selection has seen.

    Parameters
    ----------
    pit : Cells, array-like of shape (n,) or (n, m), or tuple (low, high) of two such arrays
        PITs between 0 and 1: rows are people, columns are draws. A single column without `r` means
        a deterministic forecaster. Outcomes with atoms have cells (`Cells(low, high, ties=)`):
        bounds for every group then average over the position in the cell, coverage is that of
        intervals of whole values, and all other bounds use the drawn positions. Coverage of rounded
        outcomes under continuous forecasts (`kind="continuous"`) uses the drawn positions, too.
    r : array-like of shape (n,) or (n, m), optional
        The draws behind the PITs: fresh for each person, one in each of m cells (`draws.jittered`).
        Draws shared by all people, such as midpoints, are refused because they understate errors.
        If PITs with several columns are given without `r`, such draws are assumed.
    base : Cells, optional
        For a link around a deterministic forecaster: the cells of that forecaster on the same rows,
        with the link, `Cells(u, link=link)`. The overall bound and those for every group then
        follow from these cells, and one draw per person suffices.
    kind : {"continuous", "count", "binary"}, optional
        Kind of outcome that the forecasts describe (`Forecast.outcome_kind`). By default "count"
        for PITs with cells, else "continuous".
    groups : DataFrame, Series, or dict of name to values, optional
        Groups named before the rows were seen, by features known before the outcome: booleans are
        masks, other values are labels, as in `evenhand.audit`.
    confidence : float, default 0.95
        Probability that a bound holds.
    method : {"local-levels", "betting"}, default "local-levels"
        Method of the bounds for every group without a link: equal local levels hold for all masses
        simultaneously; betting gives tighter bounds for a single mass.
    mass : float, optional
        The single mass of `method="betting"`.
    person : array-like of shape (n,), optional
        Person labels, for people who have several rows. One row per person, chosen at random, is
        used, and group sizes are shares of people, not of rows. Without labels, rows with the same
        draws are refused.
    random_state : int, generator or None
        Seed for the draw and the row chosen per person, and for the order of bets.

    Returns
    -------
    Certificate

    Raises
    ------
    InputError
        If the input is invalid or cannot support a guarantee.

    Examples
    --------
    >>> from evenhand.draws import jittered
    >>> r = jittered(1000, 64, random_state=0)  # a forecaster whose PITs are its draws
    >>> certificate = certify_pit(r, r, random_state=0)
    >>> certificate.group_error(0.2) < 0.05, certificate.mpaic(0.0) == 1.0
    (True, True)

    Bounds for a link around a deterministic forecaster need one draw per person only:

    >>> from evenhand.links import Entropic
    >>> u = np.random.default_rng(1).uniform(size=1000)  # PITs of a calibrated base
    >>> link, draws = Entropic(0.1), np.random.default_rng(2).uniform(size=1000)
    >>> served = certify_pit(link.ppf(u, draws), draws, base=Cells(u, link=link))
    >>> served.group_error(0.2) < 0.3
    True

    A deterministic forecaster, even the true distribution, cannot be certified for every group:

    >>> certify_pit(np.random.default_rng(0).uniform(size=1000)).group_error(0.2) > 0.25
    True
    """
    random = generator(random_state)
    cells = as_cells(pit, r, random_state=random)
    return certify_rows(
        cells, base=base, kind=_kind_of(kind, not cells.are_points), groups=groups,
        confidence=confidence, method=method, mass=mass, person=person, random_state=random,
    )  # fmt: skip


def certify_link(
    pit: Pit,
    link: Link,
    *,
    lost: ArrayLike | None = None,
    confidence: float = 0.95,
    person: ArrayLike | None = None,
    random_state: RandomState = None,
) -> Certificate:
    """Certify links around a deterministic forecaster, from its own PITs on held-out rows.

    All bounds hold jointly for every link and alpha, so both may be chosen on the same people.

    Parameters
    ----------
    pit : Cells or array-like of shape (n,)
        PITs of the deterministic forecaster, between 0 and 1, one per row.
    link : Link
        The link whose bounds are returned; `with_link` returns those of any other.
    lost : array-like of bool, shape (n,), optional
        People whose PIT is not known, and who need not belong to the population of the others: the
        bounds are for groups of the people who do, and hold whatever these PITs are. What `pit`
        contains for them is ignored. Give it whenever people may be lost, even if nobody is.
    confidence, person, random_state
        As in `certify_pit`.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> from evenhand.links import Entropic
    >>> u = np.random.default_rng(0).uniform(size=2000)  # a calibrated forecaster
    >>> proof = certify_link(u, Entropic(0.1))
    >>> true = Entropic(0.1).group_error(0.2)
    >>> true < proof.group_error(0.2) < true + 0.04
    True
    """
    check_fraction("confidence", confidence)
    cells = as_cells(pit)
    if cells.is_randomized:
        remedy = "links wrap a deterministic forecaster; certify a randomized one with certify_pit"
        raise bad_input("pit", "be those of forecasts without a draw", f"{cells!r}", remedy)
    if not cells.are_points:
        remedy = "certify randomized forecasts of outcomes with atoms with certify_pit"
        raise bad_input("pit", "be PITs of continuous outcomes", "PITs with cells", remedy)
    refuse_weights(cells)
    u = cells.drawn[:, 0]
    if lost is not None:
        unknown = check_rows("lost", lost, u.size) != 0
        if unknown.all():
            rule = "leave out at least one person whose PIT is known"
            raise bad_input("lost", rule, "all people")
        cells = _anywhere(Cells(u, np.where(unknown, 1.0, u), reading=unknown))
    if person is not None:
        cells = cells.take(one_row_each(person, u.size, random_state))
    return Certificate(
        float(confidence),
        part_of_base(cells.before(check_link(link))),
        is_randomized=True,
        link=link,
        choice=Choice("simultaneous"),
        may_be_unknown=lost is not None,
        one_row_each=person is not None,
    )


class OffAtom(NamedTuple):
    """Outcomes off the atom of a hurdle, under the continuous part of the forecasts.

    Parameters
    ----------
    rows : ndarray of int, shape (k,)
        Rows of these people, and of those of whom it is not known.
    cells : Cells of k people
        Cells under the continuous part.
    base : Cells or None
        Those under the forecaster inside its link, before the draw.
    at : float or None
        The atom.
    """

    rows: Ints
    cells: Cells
    base: Cells | None
    at: float | None

    def take(self, rows: Ints) -> OffAtom:
        """Return the people among some rows, which are numbered by their place among these."""
        _, place, own = np.intersect1d(rows, self.rows, assume_unique=True, return_indices=True)
        base = None if self.base is None else self.base.take(own)
        return OffAtom(place, self.cells.take(own), base, self.at)


def certify_rows(
    cells: Cells,
    *,
    kind: OutcomeKind,
    base: Cells | None = None,
    off_atom: OffAtom | None = None,
    event: EventPart | None = None,
    times: Outcomes | None = None,
    at_horizon: Floats | None = None,
    groups: Any = None,
    confidence: float = 0.95,
    method: Method = "local-levels",
    mass: float | None = None,
    person: ArrayLike | None = None,
    random_state: RandomState = None,
) -> Certificate:
    """Certify forecasts of any kind of outcome from the served cells of all rows.

    Options are those of `certify_pit`, but `kind` may be "hurdle": `off_atom` contains the people
    whom bounds for every group are then for, and `event` the probabilities of an outcome off the
    atom. Of `times` that may be cut off, people are used who entered at least a horizon before the
    end of follow-up; `at_horizon` is the CDF of the deterministic forecaster at the horizon, shape
    (n,), the upper end of who is lost before it.
    """
    _check_options(cells, confidence, method, mass)
    is_continuous = kind is not OutcomeKind.COUNT
    if base is not None:
        _check_base(base, cells, method, is_continuous=is_continuous)
    n = cells.n_samples
    named = groups if isinstance(groups, Groups) else check_groups(groups, n)
    # the order of draws from the generator is fixed: one seed gives one certificate
    random = generator(random_state)
    rows, follow_up = _certifying(n, times, person, random)
    cells = cells.without_copies()
    if cells.draws is not None:
        check_own_draws(cells.draws, rows)
    if rows is not None:
        cells, base = cells.take(rows), None if base is None else base.take(rows)
        named = named.take(rows)
        event = None if event is None else event.take(rows)
        off_atom = None if off_atom is None else off_atom.take(rows)
        at_horizon = None if at_horizon is None else at_horizon[rows]
    if kind is OutcomeKind.HURDLE and (off_atom is None or not off_atom.rows.size):
        raise InputError(ALL_AT_ATOM)
    seen_off, link = None, None if base is None else base.link
    has_cells = off_atom is None and _has_widths(cells)
    is_rounded = has_cells and kind is OutcomeKind.CONTINUOUS
    if off_atom is not None:
        own = off_atom.base
        is_rounded = _has_widths(off_atom.cells)
        seen_off = part_of_rows(
            _anywhere(off_atom.cells),
            random,
            # rounded outcomes are at their positions in the cells
            base=None if own is None else _anywhere(own.at_points(own.averaged)),
            is_rounded=is_rounded,
            may_be_unknown=times is not None,
        )
        link = None if own is None else own.link
        base = None
    if at_horizon is not None:
        cells = cells if cells.is_randomized else _up_to(cells, at_horizon)
        base = None if base is None else _up_to(base, at_horizon)
    if base is not None and is_continuous:
        base = base.at_points(base.averaged)
    disjoint = disjoint_cells(named)
    masks = [] if disjoint is None else disjoint.masks()
    everyone = part_of_rows(
        cells,
        random,
        base=base,
        masks=named,
        disjoint=masks,
        is_rounded=is_rounded and off_atom is None,
        may_be_unknown=times is not None,
    )
    seed = int(random.integers(2**31))
    unions = None
    if disjoint is not None:
        events = () if event is None else tuple(map(event.take, masks))
        seen = () if kind is OutcomeKind.BINARY else everyone.cells
        unions = Unions(disjoint, seen, events, float(confidence), cells.is_randomized, seed)
    return Certificate(
        float(confidence),
        everyone,
        seen_off,
        event,
        kind,
        cells.is_randomized,
        link if method == "local-levels" else None,
        method,
        mass,
        seed,
        at=None if off_atom is None else off_atom.at,
        follow_up=follow_up,
        may_be_unknown=times is not None,
        is_rounded=is_rounded,
        has_cells=has_cells,
        has_draws=cells.n_draws == 1 or cells.draws is not None,
        one_row_each=person is not None,
        unions=unions,
    )


def _has_widths(cells: Cells) -> bool:
    """Whether cells of known outcomes have a width: these are atoms, or were rounded."""
    return bool((cells.high > cells.low)[cells.averaged].any())


def _anywhere(cells: Cells) -> Cells:
    """Return cells of who was lost, and may not even have the event, down to 0."""
    # people who do not belong to a population, but count with the largest value of every quantity,
    # only raise its bounds; in the part above their last time they would lower those of the rest
    low = np.where(cells.unknown[:, None], 0.0, cells.low)
    return replace(cells, low=low) if cells.unknown.any() else cells


def _up_to(cells: Cells, top: Floats) -> Cells:
    """Return cells of who is lost before the horizon up to the horizon: the outcome ends there."""
    high = np.where(cells.unknown[:, None], np.maximum(cells.low, top[:, None]), cells.high)
    return replace(cells, high=high, drawn=np.minimum(cells.drawn, high))


def _certifying(
    n: int, times: Outcomes | None, person: ArrayLike | None, random: np.random.Generator
) -> tuple[Ints | None, FollowUp | None]:
    """Return the rows that certify, None for all, and the follow-up of their people."""
    if times is None:
        return (None if person is None else one_row_each(person, n, random)), None
    if times.n_samples != n:
        raise bad_input("times", f"have one time per person ({n})", f"{times.n_samples} times")
    followed = times.is_followed
    rows = np.flatnonzero(followed)
    # who is not followed is left out whatever happened: the others are a sample of all people
    if not times.happened[rows].any():
        tau = "" if times.horizon is None else number_in_full(times.horizon)
        raise InputError(
            f"nobody who entered at least a horizon ({tau}) before the end of follow-up had the"
            " event by the horizon, so nothing can be certified; give an earlier horizon"
        )
    n_left_out = n - rows.size
    if person is not None:
        labels = check_person_labels(person, n)
        n_left_out = np.setdiff1d(labels[~followed], labels[rows]).size
        rows = np.sort(rows[one_row_each(labels[rows], rows.size, random)])
    states = (times.happened, times.has_reached, times.is_lost)
    events, reached, lost = (int(state[rows].sum()) for state in states)
    has_entry = times.entered is not None
    return rows, FollowUp(times.horizon, events, reached, lost, int(n_left_out), has_entry)


def _check_options(cells: Cells, confidence: float, method: Method, mass: float | None) -> None:
    refuse_weights(cells)
    check_fraction("confidence", confidence)
    check_choice("method", method, ("local-levels", "betting"))
    if (method == "betting") != (mass is not None):
        rule = "be given for method='betting', which bounds one group size, and for it alone"
        raise bad_input("mass", rule, f"mass={mass} with method={method!r}")
    if mass is not None:
        check_fraction("mass", mass, high_open=False)


def _check_base(base: Cells, cells: Cells, method: Method, *, is_continuous: bool) -> None:
    n = cells.n_samples
    if base.n_samples != n:
        raise bad_input("base", f"have one cell for each of the {n} rows", f"{base.n_samples} rows")
    if not cells.is_randomized:
        remedy = "give the draws of the link as r, or leave base out"
        raise bad_input("base", "be None for forecasts without a draw", repr(base.link), remedy)
    if is_continuous and method != "local-levels":
        rule = "be 'local-levels' where base is given"
        raise bad_input("method", rule, repr(method), "leave base out for another method")
    if not is_continuous and base.are_points and not cells.are_points:
        # positions in cells of atoms do not give the bounds of points (method: 12)
        remedy = "give Cells(low, high, link=link)"
        raise bad_input("base", "have the cells of outcomes with atoms", "points", remedy)


def refuse_weights(cells: Cells) -> None:
    """Refuse weighted cells, which are not a sample of the people."""
    if cells.weights is not None:
        raise InputError(f"certificates do not accept weights: {WEIGHTED}")


def _kind_of(kind: OutcomeKind | str | None, has_cells: bool) -> OutcomeKind:
    """Check the kind of outcome, or derive it from whether PITs have cells."""
    if kind is None:
        return OutcomeKind.COUNT if has_cells else OutcomeKind.CONTINUOUS
    return OutcomeKind(check_choice("kind", str(kind), ("continuous", "count", "binary")))


# --- 0/1 forecasts


def certify_events(
    probability: ArrayLike,
    event: ArrayLike,
    *,
    confidence: float = 0.95,
    lost: ArrayLike | None = None,
    person: ArrayLike | None = None,
    random_state: RandomState = None,
) -> Certificate:
    """Certify a 0/1 forecast from probabilities and events on rows that it has not seen.

    Bounds of event rates hold for all thresholds and group sizes at once, and so do those of biases
    for all sizes.

    Parameters
    ----------
    probability : array-like of shape (n,)
        Forecast probabilities of the event, between 0 and 1, one per person.
    event : array-like of shape (n,)
        Whether the event happened: 0 or 1, or booleans.
    confidence : float, default 0.95
        Probability that a bound holds.
    lost : array-like of bool, shape (n,), optional
        People of whom it is not known whether the event happened: they count as either, whichever
        makes a bound worse.
    person : array-like of shape (n,), optional
        Person labels, for people who have several rows: one row per person is used.
    random_state : int, generator or None
        Seed for the choice of rows.

    Returns
    -------
    Certificate

    Raises
    ------
    InputError
        If a value is out of range, or the lengths differ.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0, 0.4, size=2000)
    >>> proof = certify_events(p, rng.uniform(size=2000) < p)
    >>> proof.event_rate(below=0.1, mass=0.2) < 0.2
    True
    """
    check_fraction("confidence", confidence)
    part = EventPart.of(probability, event, lost)
    if person is not None:
        part = part.take(one_row_each(person, part.n_people, random_state))
    is_one = person is not None
    return Certificate(float(confidence), events=part, kind=OutcomeKind.BINARY, one_row_each=is_one)


# --- counts


def certify_counts(
    counts: PITCounts | None = None,
    *,
    is_randomized: bool = False,
    link: Link | None = None,
    kind: OutcomeKind | str | None = None,
    off_atom: PITCounts | None = None,
    events: EventPart | None = None,
    at: float = 0.0,
    confidence: float = 0.95,
) -> Certificate:
    """Certify a forecaster from counts of its PITs, for tables of any length.

    Errors and gaps are taken at the upper ends of their bins, so each bound holds with the same
    confidence as a bound of `certify_pit`. Bounds are wider than those from the PITs by at most:
    1/6400 for the overall error and for named groups; 1/16384 for every group, or (1/6400 + (1 -
    mass) / 16384) / mass where the complement decides; 1/400 for the chain. The bound for mPAIC is
    that of the PITs at an error smaller by 1/8192. Bounds for coverage are the same. With a link,
    the overall bound and those for every group widen by at most the share of base PITs in a bin
    times the change of `link.mean_pit` over it, summed over the bins and divided by the group size:
    by less than 0.002 for a size of 0.1 unless many PITs are in the first or last bin.

    Parameters
    ----------
    counts : PITCounts, optional
        Counts of one row per person, from rows that neither the fit nor the selection of the
        forecaster has seen. The groups were named before the rows were seen.
    is_randomized : bool, default False
        Whether the forecasts depend on a draw.
    link : Link, optional
        The link around the deterministic forecaster whose PITs are `counts.base`, or those of
        `off_atom`. The overall bound and those for every group then follow from these.
    kind : {"continuous", "count", "binary"}, optional
        As in `certify_pit`; for counts and 0/1 outcomes `link` must be None.
    off_atom : PITCounts, optional
        Counts of the PITs of the continuous part, of the people whose outcome is not the atom.
    events : EventPart, optional
        Counts of probabilities and events of the same people, from `count_events`; alone, they
        certify an event.
    at : float, default 0
        The atom.
    confidence : float, default 0.95
        Probability that a bound holds.

    Returns
    -------
    Certificate

    Raises
    ------
    InputError
        If the counts do not match this kind of forecaster, or contain no people.

    Examples
    --------
    >>> from evenhand.calibration import count_pits
    >>> from evenhand.draws import jittered
    >>> r = jittered(1000, 64, random_state=0)  # a forecaster whose PITs are its draws
    >>> counts = count_pits(r, r, random_state=0)
    >>> certify_counts(counts, is_randomized=True).group_error(0.2) < 0.05
    True
    """
    check_fraction("confidence", confidence)
    n = 0 if counts is None else counts.n_samples
    n_events = 0 if events is None else events.n_people
    if n == 0 and n_events == 0:
        raise bad_input("counts", "contain at least one person", "none")
    if counts is None:
        assert events is not None
        return Certificate(float(confidence), events=events, kind=OutcomeKind.BINARY)
    _check_counts(counts, off_atom, events, is_randomized)
    own = counts if off_atom is None else off_atom
    outcome = OutcomeKind.HURDLE if off_atom is not None else _kind_of(kind, counts.has_cells)
    if link is not None and outcome in (OutcomeKind.COUNT, OutcomeKind.BINARY):
        remedy = "leave link out: certify such outcomes from rows"
        raise bad_input("link", "be None for counts of outcomes with atoms", repr(link), remedy)
    if link is not None and own.base is None:
        remedy = "count the rows again with count_pits(..., base=...)"
        raise bad_input("counts", "have a base where a link is given", "none", remedy)
    everyone, off = (
        None if one is None else part_of_counts(one, link, is_randomized=is_randomized)
        for one in (counts, off_atom)
    )
    return Certificate(
        float(confidence),
        everyone,
        off,
        events,
        outcome,
        bool(is_randomized),
        link,
        at=None if off_atom is None else float(at),
        has_cells=off_atom is None and counts.has_cells,
        has_draws=counts.n_draws == 1 or counts.gap is not None,
    )


def _check_counts(
    counts: PITCounts, off_atom: PITCounts | None, events: EventPart | None, is_randomized: bool
) -> None:
    """Check that counts are those of the same people, and of this kind of forecaster."""
    if not is_randomized and (counts.n_draws > 1 or counts.gap is not None):
        remedy = "for a deterministic forecaster, count its one column of PITs without r"
        rule = "be True for counts of several draws or of known draws"
        raise bad_input("is_randomized", rule, is_randomized, remedy)
    checked = [] if events is None else [("events", events.n_people, counts.n_samples)]
    if off_atom is not None:
        if events is None:
            raise InputError("off_atom is given without events, of whom it is not the outcome")
        checked.append(("off_atom", off_atom.n_samples, events.n_events))
        if off_atom.n_samples == 0:
            raise InputError(ALL_AT_ATOM)
    for name, size, number in checked:
        if size != number:
            raise bad_input(name, f"contain {number} people", size, "count them on the same rows")
