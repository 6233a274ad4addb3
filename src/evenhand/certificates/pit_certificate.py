"""Certificates from PITs or from counts of PITs (method: proof)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand._format import four_digits, one_line
from evenhand._validate import Floats, InputError, bad_input, check_choice, check_fraction
from evenhand.calibration import Cells, PITCounts, SurvivalBand, as_cells, share_bound
from evenhand.certificates.assumptions import (
    CHOSEN,
    FIXED,
    FIXED_LINK,
    MEANINGS,
    OWN_CELLS,
    OWN_TIES,
    SAMPLE,
    UNIFORM_DRAWS,
    WEIGHTED,
    FollowUp,
    questions,
)
from evenhand.certificates.certificate import NAMED_COLUMNS, WORST, Certificate, Method
from evenhand.certificates.deterministic_intervals import (
    LOW_SHARE,
    WiderInterval,
    floors_line,
    plain_coverage,
)
from evenhand.certificates.event_certificate import MASSES, SHOWN_MASS, EventCertificate
from evenhand.certificates.evidence import (
    CountEvidence,
    LinkBase,
    RowEvidence,
    TimesEvidence,
    Values,
    row_evidence,
)
from evenhand.certificates.link_certificate import (
    LinkCertificate,
    certify_link,
    certify_link_counts,
)
from evenhand.certificates.link_evidence import Bound
from evenhand.certificates.promise import NOTHING_PROMISED, Promise
from evenhand.distributions import OutcomeKind
from evenhand.draws import RandomState, generator
from evenhand.links import Link

# --- the paper's chain: mPAIC, PAIC, every group (method: proof)


def chained_bound(mpaic_curve: Callable[[Floats], Floats], mass: float) -> float:
    """Return the bound for the W1 error of every group of a size, 0 to 1/2.

    Parameters
    ----------
    mpaic_curve : callable
        Simultaneous upper bounds for `P(|h[X, R](Y) - R| >= error)` at all thresholds.
    mass : float
        Smallest share of people in the group.
    """
    # a person with a pathwise error above the target has |h - R| >= e with probability at least
    # (target - e) / (1 - e); by Markov such people are at most a share delta (1 - e) / (target - e)
    # of all people, and at most that share over mass of a group
    threshold = np.linspace(0.0, WORST, 201)
    delta = mpaic_curve(threshold)
    e = threshold[:, None]
    target = threshold[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        outside = np.where(target > e, delta[:, None] * (1 - e) / (target - e), np.inf)
    bounds = np.where(outside < mass, target + outside / mass, WORST)
    return min(float(bounds.min()), WORST)


# --- certificates

AVERAGE_SHARE = 0.1
"""Share of the risk of `group_error` that is spent on the overall error.

The overall error tightens the bound at large masses.
"""


@dataclass(frozen=True, eq=False, repr=False)
class PITCertificate(Certificate):
    """Bounds on calibration errors of a forecaster, from PITs or counts of PITs of held-out rows.

    Each method makes one statement that holds with `confidence`: `group_error` for all masses
    simultaneously, `named` for all named groups simultaneously, `coverage` for all masses
    simultaneously at one level, `mpaic` for one threshold, `mpaic_curve` for all thresholds. For
    `k` statements that hold jointly, certify with `1 - (1 - confidence) / k` (Bonferroni).

    If the forecaster is a link around a deterministic one, `average_error`, `group_error` and
    `coverage` are those of a `LinkCertificate` of its PITs, which are tighter; all of them hold
    jointly. For a deterministic forecaster `coverage` follows from the share of all people whom the
    interval covers, and its lower bounds at the levels 0.9, 0.95, 0.98 and 0.99 hold jointly.

    Outcomes with atoms have randomized PITs. Bounds for every group average over positions in the
    cells (outcomes: 2), coverage is that of intervals of whole values, and all other bounds are
    computed from one drawn position per person.

    Parameters
    ----------
    confidence : float
        Probability, over the rows and draws, that a statement is true.
    method : {"local-levels", "betting"}
        Method of the bounds for every group.
    mass : float or None
        The single mass of the betting bounds; None for the methods that bound all masses.
    is_randomized : bool
        Whether the forecasts depend on a draw.
    evidence : RowEvidence, CountEvidence or TimesEvidence
        PITs of each person, their counts, or what is known of them.
    seed : int
        Seed for the order of the rows in betting bounds.
    one_row_each : bool
        Whether people have several rows and one row per person was used: group sizes are then
        shares of people, not of rows.
    bounds : Certificate or None
        Certificate of the link, or of a choice of the randomization on these people, whose bounds
        `average_error`, `group_error` and `coverage` return; None if they rest on `evidence`.
    is_chosen : bool
        Whether the randomization was chosen on these people, as `bounds` alone account for.
    kind : OutcomeKind
        Kind of outcome that the forecasts describe.
    events : EventCertificate or None
        Bounds of event rates and biases, for 0/1 outcomes and for events by a horizon.
    follow_up : FollowUp or None
        For times that may be cut off, how many were; None for other outcomes.
    """

    confidence: float
    method: Method
    mass: float | None
    is_randomized: bool
    evidence: RowEvidence | CountEvidence | TimesEvidence
    seed: int = 0
    one_row_each: bool = False
    bounds: Certificate | None = None
    is_chosen: bool = False
    kind: OutcomeKind = OutcomeKind.CONTINUOUS
    events: EventCertificate | None = None
    follow_up: FollowUp | None = None

    def __repr__(self) -> str:
        mass = SHOWN_MASS if self.mass is None else self.mass
        shown = self.bounds_every_group
        return one_line(
            self,
            method=self.method,
            n_samples=self.n_samples,
            n_draws=self.n_draws,
            confidence=four_digits(self.confidence, "down"),
            bound=self.bound,
            average_error=four_digits(self.average_error(), "up"),
            group_error=four_digits(self.group_error(mass), "up") if shown else None,
            group_mass=mass if shown else None,
            groups=len(self.evidence.group_names),
        )

    @property
    def n_samples(self) -> int:
        """Number of people."""
        return self.evidence.n_samples

    @property
    def n_draws(self) -> int:
        """Number of draws per person."""
        return self.evidence.n_draws

    @property
    def has_cells(self) -> bool:  # type: ignore[override]
        """Whether PITs are cells: outcomes have atoms, or were rounded."""
        return self.evidence.has_cells

    @property
    def link(self) -> Link | None:
        """Link around a deterministic forecaster that the bounds are for; None if there is none."""
        return self.bounds.link if isinstance(self.bounds, LinkCertificate) else None

    @property
    def bound(self) -> Bound | None:
        """Bound of the `LinkCertificate` that the bounds for every group rest on, if any."""
        return self.bounds.bound if isinstance(self.bounds, LinkCertificate) else None

    @property
    def bounds_every_group(self) -> bool:
        """Whether every group can have a useful bound: for links, and from several draws each."""
        return self.bounds is not None or self.n_draws > 1

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions under which the bounds hold."""
        if self.bounds is not None:
            fixed = () if self.is_chosen else (FIXED_LINK,)
            return (*self.bounds.assumptions, *fixed, *self._on_pits())
        drawn = (UNIFORM_DRAWS,) if self.is_randomized else ()
        return (SAMPLE, FIXED, *drawn, *self._on_pits())

    def _on_pits(self) -> tuple[str, ...]:
        """Return the assumptions on the PITs."""
        spread = OWN_CELLS if self.kind is OutcomeKind.CONTINUOUS else OWN_TIES
        return (*((spread,) if self.has_cells else ()), *self.evidence.assumptions)

    @property
    def not_covered(self) -> tuple[str, ...]:
        """Situations that the bounds do not cover."""
        is_partly_chosen = self.is_chosen and self.evidence.group_names
        return super().not_covered + ((CHOSEN,) if is_partly_chosen else ())

    def accounting_for(self, choice: Certificate) -> PITCertificate:
        """Return the certificate with bounds that account for a choice made on the same people.

        Parameters
        ----------
        choice : Certificate
            Bounds for every group that hold whatever was chosen.

        Raises
        ------
        InputError
            If `choice` has another confidence.
        """
        if choice.confidence != self.confidence:
            rule = f"have the confidence of the certificate ({self.confidence:g})"
            raise bad_input("choice", rule, choice.confidence)
        return replace(
            self,
            bounds=choice,
            is_chosen=True,
            method=choice.method,
            mass=choice.mass,
            one_row_each=choice.one_row_each,
        )

    def average_error(self) -> float:
        """Upper bound for the overall W1 error, 0 to 1/2; available for any forecaster."""
        if self.bounds is not None:
            return self.bounds.average_error()
        return self.evidence.error_interval(self.confidence)[1]

    def named_table(self) -> pd.DataFrame:
        return self._named.copy()

    def _all_lines(self) -> list[str]:
        # in pooled PITs of 0/1 outcomes too high and too low probabilities cancel (verdict: 2)
        return [] if self.kind is OutcomeKind.BINARY else super()._all_lines()

    @cached_property
    def _named(self) -> pd.DataFrame:
        names = self.evidence.group_names
        rows = []
        for name in names:
            group = self.evidence.group(name)
            # Bonferroni: the intervals of all named groups hold jointly
            interval = group.error_interval(1 - (1 - self.confidence) / len(names))
            rows.append((name, group.n_samples, group.error(), *interval))
        return pd.DataFrame(rows, columns=NAMED_COLUMNS)

    def group_error(self, mass: float) -> float:
        """Upper bound for the W1 error, 0 to 1/2, of every group of at least this share of people.

        For a deterministic forecaster of continuous outcomes the bound is at least 1/4 for groups
        of up to half of the people, because it bounds the pathwise error. Nothing below
        `(1 - mass) / 2` can be certified if its PITs are uniform; see `questions`.

        Raises
        ------
        InputError
            For 0/1 outcomes, of which no data can prove it; see `bias` and `event_rate`.
        """
        check_fraction("mass", mass, high_open=False)
        self._refuse_events("group_error")
        if self.bounds is not None:
            return self.bounds.group_error(mass)
        if self.method == "betting":  # all of the risk goes to the one mass
            return self._worst_mean(self.evidence.errors, mass, WORST, self.confidence)
        overall = self.evidence.error_interval(1 - (1 - self.confidence) * AVERAGE_SHARE)[1]
        if mass == 1:
            return min(self._band.cvar(1.0), overall)
        # triangle inequality for a group and its complement, weighted by their shares:
        # d(S) <= (d(all) + (1 - mass) CVaR_(1 - mass)) / mass
        rest = (overall + (1 - mass) * self._band.cvar(1 - mass)) / mass
        return min(self._band.cvar(mass), rest, WORST)

    def _refuse_events(self, name: str) -> None:
        if self.kind is OutcomeKind.BINARY:
            raise InputError(
                f"0/1 outcomes have no certified {name}: whether probabilities are right in every"
                " group cannot be proven; use bias(mass) or event_rate(mass, below=...)"
            )

    @cached_property
    def _band(self) -> SurvivalBand:
        confidence = 1 - (1 - self.confidence) * (1 - AVERAGE_SHARE)
        return self.evidence.errors.band(WORST, confidence)

    def coverage(self, level: float, mass: float) -> tuple[float, float]:
        check_fraction("level", level)
        check_fraction("mass", mass, high_open=False)
        self._refuse_events("coverage")
        if self.bounds is not None:
            return self.bounds.coverage(level, mass)
        found = self.evidence
        if not self.is_randomized:
            n_missed, n_hit = (of(level).at_least(1.0) for of in (found.missed, found.inside))
            return plain_coverage(n_missed, n_hit, self.n_samples, level, mass, self.confidence)
        # the CVaR of people's shares of misses bounds coverage from below, that of their shares of
        # hits from above; the risk is split between both (method.md, 5: no loss from Jensen)
        risk = 1 - self.confidence
        missed = self._worst_mean(found.missed(level), mass, 1.0, 1 - risk * LOW_SHARE)
        inside = found.inside(level)
        return 1 - missed, self._worst_mean(inside, mass, 1.0, 1 - risk * (1 - LOW_SHARE))

    def plain_intervals(self, mass: float) -> tuple[WiderInterval, ...]:
        """Return the floors of intervals of the deterministic forecaster, without a draw.

        These are the `wider_intervals` of its PITs; empty if they are not known.
        """
        return self.evidence.plain_intervals(
            mass, confidence=self.confidence, is_randomized=self.is_randomized
        )

    def _worst_mean(self, values: Values, mass: float, top: float, confidence: float) -> float:
        if self.mass is not None and mass != self.mass:
            remedy = "use method='local-levels' for bounds at all masses"
            rule = f"be {self.mass}, the single mass of this betting certificate"
            raise bad_input("mass", rule, mass, remedy)
        return values.worst_mean(self.method, mass, top, confidence, self.seed)

    def mpaic(self, error: float) -> float:
        """Upper bound for `P(|h[X, R](Y) - R| >= error)`, the delta of the paper's mPAIC.

        Clopper-Pearson bound from one draw per row, for a single threshold. Needs the draws. For
        an outcome with an atom, `h[X, R](Y)` is the randomized PIT.

        Raises
        ------
        InputError
            If the draws are not known.
        """
        check_fraction("error", error, low_open=False, high_open=False)
        # one draw per row, so that the indicators are independent
        gaps = self._known_gaps()
        return share_bound(gaps.at_least(error), gaps.total(), self.confidence)

    def mpaic_curve(self, errors: ArrayLike) -> Floats:
        """Simultaneous upper bounds for `P(|h[X, R](Y) - R| >= error)` at all thresholds, by DKW.

        Same shape as `errors`. Looser than `mpaic`, which holds for one threshold. Needs the draws.
        """
        thresholds = np.asarray(errors, dtype=np.float64)
        for error in thresholds.ravel():
            check_fraction("error", error, low_open=False, high_open=False)
        gaps = self._known_gaps()
        n = gaps.total()
        reached = np.array([gaps.at_least(error) for error in thresholds.flat])
        # the band of Dvoretzky, Kiefer and Wolfowitz on one side (Massart 1990)
        margin = np.sqrt(np.log(1 / (1 - self.confidence)) / (2 * n))
        bounds = np.minimum(1 - (n - reached) / n + margin, 1.0)
        return np.asarray(bounds.reshape(thresholds.shape))

    def chain(self, mass: float) -> float:
        """Return the bound for every group, 0 to 1/2, that follows from the paper's own results.

        It chains simultaneous bounds on mPAIC (the concentration proposition, in the direction that
        a certificate needs), then PAIC, then groups. Looser than `group_error`; needs the draws.
        """
        check_fraction("mass", mass, high_open=False)
        return chained_bound(self.mpaic_curve, mass)

    def promise(self, mass: float) -> Promise:
        """Return what is promised for every group of a size, in the form that a watch tests.

        With `bounds` it is their promise; of 0/1 forecasts it is the bias. Of other randomized
        forecasters it is the mean of `|PIT - r|`, r the one draw that is served: the CVaR of these
        gaps, which is at least the group error and may exceed `group_error`.
        """
        check_fraction("mass", mass, high_open=False)
        if self.bounds is not None:
            return self.bounds.promise(mass)
        if self.events is not None and self.kind is OutcomeKind.BINARY:
            return self.events.promise(mass)
        if not self.is_randomized:
            raise InputError(NOTHING_PROMISED)
        target = self._worst_mean(self._known_gaps(), mass, 1.0, self.confidence)
        return Promise("gap", mass, target, self.confidence)

    def _known_gaps(self) -> Values:
        if self.evidence.gaps is None:
            raise InputError(
                "mPAIC compares PITs with their draws, and these PITs have no draws; give r"
            )
        return self.evidence.gaps

    @cached_property
    def questions(self) -> pd.DataFrame:
        """Questions that these rows can or cannot answer: `question`, `answered`, `why`."""
        return questions(self.is_randomized, self.link is not None, self.n_draws, self.kind)

    def table(self, masses: ArrayLike = MASSES) -> pd.DataFrame:
        """Return the bounds for every group, one row per group size, with the paper's chain.

        Columns: `mass`, `group_error`, `chain` (NaN if the draws are not known or the randomization
        was chosen on these people), `coverage_80_low`, `coverage_80_high` (NaN if counts do not
        include that level). For 0/1 outcomes `mass`, `bias_low` and `bias_high` of `events`.
        """
        if self.kind is OutcomeKind.BINARY:
            shares = np.atleast_1d(masses).tolist() if self.events is not None else []
            bias = [(mass, *self.bias(mass)) for mass in shares]
            return pd.DataFrame(bias, columns=["mass", "bias_low", "bias_high"])
        table = super().table(masses)
        has_chain = self.evidence.gaps is not None and not self.is_chosen
        chain = [self.chain(mass) if has_chain else np.nan for mass in table["mass"]]
        table.insert(2, "chain", chain)
        return table

    def _coverage_80(self, mass: float) -> tuple[float, float]:
        is_known = self.bounds is not None or self.evidence.knows(0.8)
        return self.coverage(0.8, mass) if is_known else (np.nan, np.nan)

    def _forecasts(self) -> str:
        draws = f"{self.n_draws} draw{'' if self.n_draws == 1 else 's'}"
        under = "" if self.link is None else f", under {self.link!r}"
        return f"{draws if self.is_randomized else 'one deterministic forecast'} each{under}"

    def _group_lines(self, of: str = "people") -> list[str]:
        if self.kind is OutcomeKind.BINARY:
            return [] if self.events is None else self.events.lines()
        # with one forecast per person these bounds are at least 1/4: not worth a line
        lines = super()._group_lines(of) if self.bounds_every_group else []
        floors = floors_line(self.plain_intervals(self.mass or SHOWN_MASS), of)
        lines += [floors] if floors else []
        if self.bound is not None:
            lines.append(
                f"The bounds for all {of} and for every group are computed from the PITs of the"
                f" deterministic forecaster inside the link ({self.bound} bound) and hold jointly."
            )
        if self.is_chosen:
            lines.append(
                "Bounds for every group account for the choice of the randomization on these"
                " people."
            )
        return lines

    def _remarks(self) -> list[str]:
        meaning = [MEANINGS[self.kind]] if self.kind in MEANINGS else []
        return meaning + [
            f"Cannot be answered: {row['question']}? {row['why'][:1].upper()}{row['why'][1:]}."
            for row in self.questions.to_dict("records")
            if not row["answered"]
        ]


# --- certification


def certify_pit(
    pit: ArrayLike | Cells,
    r: ArrayLike | None = None,
    *,
    confidence: float = 0.95,
    groups: Any = None,
    base: LinkBase | None = None,
    method: Method = "local-levels",
    mass: float | None = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    kind: OutcomeKind | str | None = None,
    events: EventCertificate | None = None,
    random_state: RandomState = None,
) -> PITCertificate:
    """Certify a forecaster from its PITs on rows that neither its fit nor its selection has seen.

    Parameters
    ----------
    pit : Cells or array-like of shape (n,) or (n, m)
        PITs between 0 and 1: rows are people, columns are draws. A single column without `r` means
        a deterministic forecaster. Outcomes with atoms have PITs with cells (`Cells.between`):
        bounds for every group then average over the position in the cell, coverage is that of
        intervals of whole values, and all other bounds use the drawn positions. Coverage of rounded
        outcomes under continuous forecasts (`kind="continuous"`) uses the drawn positions, too.
    r : array-like of shape (n,) or (n, m), optional
        The draws behind the PITs: fresh for each person, one in each of m cells (`draws.jittered`).
        Draws shared by all people, such as midpoints, are refused because they understate errors.
        If PITs with several columns are given without `r`, such draws are assumed.
    confidence : float, default 0.95
        Probability that a bound holds.
    groups : DataFrame, Series, or dict of name to values, optional
        Groups named before the rows were seen, by features known before the outcome: booleans are
        masks, other values are labels, as in `evenhand.audit`.
    base : LinkBase, optional
        For a link around a deterministic forecaster: the link, and the PITs of that forecaster on
        the same rows, which are not compared with `pit`. The overall bound and those for every
        group are then those of `certify_link`. For counts and ordinal scores these bounds do not
        hold (outcomes: Theorem 2c), so the base, with its cells, only shows what its intervals
        prove without a draw.
    method : {"local-levels", "betting"}, default "local-levels"
        Method of the bounds for every group: equal local levels hold for all masses
        simultaneously; betting gives tighter bounds for a single mass. A link has only local
        levels.
    mass : float, optional
        The single mass of `method="betting"`.
    cluster : array-like of shape (n,), optional
        Person labels, for people who have several rows. One row per person, chosen at random, is
        used, and group sizes are shares of people, not of rows. Without labels, rows with the same
        draws are refused.
    sample_weight : None
        Refused: weighted rows are not a sample of the people. If the weights are known and at most
        `W` times their mean, certify without weights and read `group_error(mass / W)`.
    kind : {"continuous", "count", "binary"}, optional
        Kind of outcome that the forecasts describe (`Forecast.outcome_kind`). By default "binary"
        with `events`, else "count" for PITs with cells, else "continuous". PITs of rounded outcomes
        under continuous forecasts have cells, too. For an outcome with an atom and a continuous
        part use `certify_hurdle`.
    events : EventCertificate, optional
        For 0/1 outcomes: bounds of event rates and biases from the same people, by
        `certify_events`.
    random_state : int, generator or None
        Seed for the draw and the row chosen per person, and for the order of bets.

    Returns
    -------
    PITCertificate

    Raises
    ------
    InputError
        If the input is invalid or cannot support a guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.draws import jittered
    >>> r = jittered(1000, 64, random_state=0)  # a forecaster whose PITs are its draws
    >>> certificate = certify_pit(r, r, random_state=0)
    >>> certificate.group_error(0.2) < 0.05, certificate.mpaic(0.0) == 1.0
    (True, True)

    Bounds for a link around a deterministic forecaster need one draw per person only:

    >>> from evenhand.certificates import LinkBase
    >>> from evenhand.links import Entropic
    >>> u = np.random.default_rng(1).uniform(size=1000)  # PITs of a calibrated base
    >>> link, draws = Entropic(0.1), np.random.default_rng(2).uniform(size=1000)
    >>> served = certify_pit(link.ppf(u, draws), draws, base=LinkBase(u, link))
    >>> served.group_error(0.2) < 0.3
    True

    A deterministic forecaster, even the true distribution, cannot be certified for every group:

    >>> certify_pit(np.random.default_rng(0).uniform(size=1000)).group_error(0.2) > 0.25
    True
    """
    pits = as_cells(pit, r)
    outcome = _kind_of(kind, events, not pits.are_points)
    check_options(pits, confidence, method, mass, sample_weight)
    has_bounds = base is not None and outcome is OutcomeKind.CONTINUOUS
    if has_bounds and method != "local-levels":
        rule = "be 'local-levels' where base is given"
        raise bad_input("method", rule, repr(method), "leave base out for another method")
    # the order of draws from the generator is fixed: one seed gives one certificate
    random = generator(random_state)
    rows = row_evidence(pits, groups, cluster, random, base)
    is_rounded = rows.has_cells and outcome is OutcomeKind.CONTINUOUS
    rows = replace(rows, is_rounded=is_rounded)
    _check_events(events, rows.n_samples, confidence)
    made = PITCertificate(
        confidence=float(confidence),
        method=method,
        mass=mass,
        is_randomized=rows.pits.is_randomized,
        evidence=rows,
        seed=int(random.integers(2**31)),
        one_row_each=cluster is not None,
        kind=outcome,
        events=events,
    )
    if rows.base is None or not has_bounds:
        return made
    return replace(made, bounds=certify_link(rows.base.pit, rows.base.link, confidence=confidence))


def check_options(
    pits: Cells,
    confidence: float,
    method: Method,
    mass: float | None,
    sample_weight: ArrayLike | None,
) -> None:
    """Check the options of a certificate from PITs."""
    if sample_weight is not None or pits.weights is not None:
        raise InputError(f"certificates do not accept sample_weight: {WEIGHTED}")
    check_fraction("confidence", confidence)
    check_choice("method", method, ("local-levels", "betting"))
    if method == "betting" and mass is None:
        raise InputError(
            "method='betting' bounds a single group size, and mass is None; give one, such as"
            " mass=0.2"
        )
    if method != "betting" and mass is not None:
        raise InputError(
            f"mass is for method='betting' only, got mass={mass} with method={method!r}; leave it"
            " out: these bounds hold for every mass"
        )
    if mass is not None:
        check_fraction("mass", mass, high_open=False)


def _kind_of(
    kind: OutcomeKind | str | None, events: EventCertificate | None, has_cells: bool
) -> OutcomeKind:
    """Check the kind of outcome, or derive it from what is known."""
    if kind is None:
        other = OutcomeKind.COUNT if has_cells else OutcomeKind.CONTINUOUS
        return other if events is None else OutcomeKind.BINARY
    if kind == OutcomeKind.HURDLE:
        raise InputError(
            "an outcome with an atom and a continuous part has two certificates in one; use"
            " certify_hurdle"
        )
    made = OutcomeKind(check_choice("kind", kind, ("continuous", "count", "binary")))
    if events is not None and made is not OutcomeKind.BINARY:
        raise bad_input("events", "be None unless kind is 'binary'", repr(events))
    return made


def _check_events(events: EventCertificate | None, n: int, confidence: float) -> None:
    """Check that events belong to as many people, with the same confidence."""
    if events is None:
        return
    if events.n_samples != n:
        rule = f"be those of the same people ({n})"
        raise bad_input("events", rule, f"{events.n_samples} people")
    if events.confidence != confidence:
        rule = f"have the confidence of the certificate ({confidence:g})"
        raise bad_input("events", rule, events.confidence)


def certify_counts(
    counts: PITCounts,
    *,
    is_randomized: bool,
    link: Link | None = None,
    confidence: float = 0.95,
    kind: OutcomeKind | str | None = None,
    events: EventCertificate | None = None,
) -> PITCertificate:
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
    counts : PITCounts
        Counts of one row per person, from rows that neither the fit nor the selection of the
        forecaster has seen. The groups were named before the rows were seen.
    is_randomized : bool
        Whether the forecasts depend on a draw.
    link : Link, optional
        The link around the deterministic forecaster whose PITs are `counts.base`. The overall bound
        and those for every group are then those of `certify_link_counts`.
    confidence : float, default 0.95
        Probability that a bound holds.
    kind : {"continuous", "count", "binary"}, optional
        As in `certify_pit`; for counts and 0/1 outcomes `link` must be None.
    events : EventCertificate, optional
        For 0/1 outcomes: bounds of event rates and biases from counts of the same people, by
        `certify_event_counts`.

    Returns
    -------
    PITCertificate

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
    if counts.n_samples == 0:
        raise bad_input("counts", "contain at least one person", "none")
    if not is_randomized and (counts.n_draws > 1 or counts.gap is not None):
        remedy = "for a deterministic forecaster, count its one column of PITs without r"
        rule = "be True for counts of several draws or of known draws"
        raise bad_input("is_randomized", rule, is_randomized, remedy)
    outcome = _kind_of(kind, events, counts.inside_whole is not None)
    _check_events(events, counts.n_samples, confidence)
    bounds = None
    if link is not None:
        if outcome is not OutcomeKind.CONTINUOUS:
            remedy = "leave link out: these bounds rest on the pathwise errors"
            raise bad_input("link", "be None for outcomes with atoms", repr(link), remedy)
        if counts.base is None:
            remedy = "count the rows again with count_pits(..., base=...)"
            raise bad_input("counts", "have a base where a link is given", "none", remedy)
        bounds = certify_link_counts(counts.base, link, confidence=confidence)
    return PITCertificate(
        confidence=float(confidence),
        method="local-levels",
        mass=None,
        is_randomized=bool(is_randomized),
        evidence=CountEvidence(counts),
        bounds=bounds,
        kind=outcome,
        events=events,
    )
