"""Entry points of calibration audits and certificates: `audit`, `audit_pit` and `certify`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from evenhand import search as searches
from evenhand._format import number_in_full
from evenhand._validate import InputError, Ints, bad_input, check_finite
from evenhand.audits.counted import RowCounts
from evenhand.audits.forecasts import Audited, RowCells, read_subject
from evenhand.audits.group_tests import TestedGroups, tested_groups
from evenhand.audits.result import Audit, check_people, provenance_of
from evenhand.audits.rows import (
    STANDARD,
    HeldOut,
    Search,
    check_about,
    copies_among,
    grid_share_of,
    note_outcomes,
)
from evenhand.audits.scores import (
    learned_groups,
    scores_of,
    tables_beside,
    with_learned_sizes,
    with_sizes,
    worst_groups,
)
from evenhand.audits.verdict import UNDECIDED, decided
from evenhand.calibration import COVERED, LEAST_EFFECTIVE, NULL_VARIANCES, Pit, as_cells
from evenhand.certificates import (
    WEIGHTED,
    Certificate,
    EventPart,
    Method,
    OffAtom,
    Thinned,
    certify_rows,
)
from evenhand.distributions import OutcomeKind
from evenhand.draws import RandomState, generator, one_row_each
from evenhand.outcomes import Outcomes, as_outcomes, thinned_rows
from evenhand.report import NoteKind, notes_of, units_of
from evenhand.results import AuditRows, Finding, Miscoverage, WorstGroup, rows_from
from evenhand.tables import Schema, UnseenValues, as_pandas, check_groups, unreported

# --- certificates by the kind of outcome


def certificate_of(rows: RowCells, **options: Any) -> Certificate:
    """Certify rows; `options` are those of `certify_pit`."""
    times, part, events = rows.times, rows.positive, rows.events
    kind = rows.kind or (OutcomeKind.CONTINUOUS if rows.cells.are_points else OutcomeKind.COUNT)
    is_hurdle = kind is OutcomeKind.HURDLE
    if times is not None and is_hurdle and (part is None or part.at != times.horizon):
        atom = "" if part is None else f" with an atom at {number_in_full(part.at)}"
        raise InputError(
            "times that may be cut off are certified under continuous forecasts and under those"
            f" with an atom at the horizon, and these are of the kind {kind}{atom}; make them"
            " with Forecast.from_survival(times, survival, horizon)"
        )
    # the other method bounds pathwise errors over draws, of any forecaster; a base of counts only
    # shows what its intervals prove
    has_base = options.get("method", "local-levels") == "local-levels"
    event = None
    lost = None if times is None else times.is_lost
    if events is not None:
        event = EventPart.of(events.probability, events.happened, lost)
    elif times is not None and rows.at_horizon is not None and not rows.cells.is_randomized:
        # without a draw, whether the event happens by the horizon is a 0/1 forecast
        event = EventPart.of(rows.at_horizon, times.happened, lost)
    off_atom = None
    if part is not None:
        own = part.base if has_base else None
        off_atom = OffAtom(part.rows, part.cells.without_weights(), own, part.at)
    return certify_rows(
        rows.cells,
        kind=kind,
        base=rows.base if has_base or kind is OutcomeKind.COUNT else None,
        off_atom=off_atom,
        event=event,
        times=times,
        at_horizon=None if is_hurdle else rows.at_horizon,
        **options,
    )


# --- searches; one that has too few rows gives a note, not an error


def certify_held(rows: RowCells, held: HeldOut, random: np.random.Generator) -> Certificate | None:
    """Certify the rows; if there is no guarantee, add a note with the reason and return None."""
    # groups are chosen before seeing the rows, so they can share the level (method: proof)
    try:
        proof = certificate_of(
            rows,
            confidence=held.options.confidence,
            groups=held.groups.known(),
            random_state=random,
        )
    except InputError as error:  # people share draws, or the draws do not cover [0, 1]
        held.add_note(NoteKind.NO_CERTIFICATE, reason=str(error))
        return None
    return replace(proof, one_row_each=held.outcomes.person is not None)


def conditional_coverage(rows: RowCells, held: HeldOut) -> tuple[Miscoverage, ...]:
    """Estimate how far the coverage of intervals, given the features, differs from their level.

    Probabilities of 0/1 outcomes have no intervals.
    """
    features, _ = held.learnable
    if features is None or rows.binary is not None:
        return ()
    why = "whether an interval covers a time that is cut off may be unknown"
    if not rows.cells.unknown.any():
        try:
            # the order of the rows has a fixed seed, so it does not depend on the searches before
            table = searches.conditional_miscoverage(
                rows.cells, features, COVERED, confidence=held.options.confidence, random_state=0
            )
            return rows_from(Miscoverage, table)
        except InputError as error:
            why = str(error).partition("; ")[0]
    held.add_note(NoteKind.NO_MISCOVERAGE, reason=why)
    return ()


# --- parts that need only PITs, in their order


class AuditedRows(NamedTuple):
    """An audit with the rows that it read, which a comparison pairs with those of another."""

    audit: Audit
    rows: RowCells
    held: HeldOut
    tested: TestedGroups


def audit_rows(
    rows: RowCells,
    held: HeldOut,
    random: np.random.Generator,
    target: str | None,
    *,
    ids: Sequence[str] | None,
    counted: RowCounts | None = None,
    **described: Any,
) -> AuditedRows:
    """Run all parts of an audit.

    `ids` are those of all rows, `counted` are counts of all rows of which these are a sample, and
    `described` are fields of the audit that describe it.
    """
    options = held.options
    if rows.is_censored:
        # the mean of times that are cut off is not that of times until the event
        rows = replace(rows, residual=None)
    cells = rows.tested
    grid_share = grid_share_of(rows, held)
    note_outcomes(rows, held)
    # learned and worst groups and guarantees are those of a sample that needs no weights
    plain, thin = _thinned(rows, held, random)
    # all share one random generator, so the order of these calls affects the numbers
    proof = None if thin is None else certify_held(plain, thin, random)
    # whatever prevents a certificate of a sample prevents one of all rows
    if proof is not None and counted is not None:
        proof = counted.certified(proof, options.confidence)
    n_learned = 0
    if thin is not None and thin.searched is not None:
        n_learned = searches.n_learnable(plain.cells.n_samples, options.learned_masses)
    # who is lost may or may not have the event by the horizon: times have no such part
    part = rows.positive if rows.times is None else None
    part = None if part is None or part.rows.size < searches.FEW_ROWS else part
    level = (1 - options.confidence) / (1 if part is None else 2)
    of_all = None if counted is None else counted.summed()
    tested = tested_groups(rows, held, random, n_learned=n_learned, level=level, counted=of_all)
    learned = [] if thin is None else learned_groups(plain, thin, tested.family, random)
    if rows.is_censored:
        tested = with_sizes(tested, rows, held, random)
        learned = with_learned_sizes(learned, plain, options.confidence, random)
    worst: tuple[WorstGroup, ...] = ()
    if thin is not None and rows.binary is None:
        worst = worst_groups(plain, options, proof, random)
    kept = held.kept if thin is None else thin.kept
    miscoverage = conditional_coverage(rows, held)
    _note_searched(held, tested, n_found=len(learned))
    everyone = tested.groups[0]
    members = tested.members | {one.mass or one.group: kept[some] for one, some in learned}
    found = AuditRows(
        status=UNDECIDED,
        n_samples=cells.n_samples,
        n_draws=cells.n_draws,
        is_randomized=cells.is_randomized,
        outcome_kind=None if rows.kind is None else rows.kind.value,
        target=target,
        rounding_step=rows.step,
        grid_share=grid_share,
        tolerance=options.tolerance_for(everyone.predicted, tested.family.variance),
        family=tested.family,
        groups=tuple(tested.groups),
        scan=tuple(tested.scan),
        by_forecast=tuple(tested.by_forecast),
        learned=tuple(one for one, _ in learned),
        positive_part=() if part is None else _positive_groups(part, held, random, level),
        given_forecast=tested.given if rows.keys else None,
        scores=scores_of(rows, everyone, units_of(target), are_counted=counted is not None),
        miscoverage=miscoverage,
        worst_groups=worst,
        notes=tuple(held.notes),
        **tables_beside(rows, held, tested, proof),
        **described,
    )
    found = found if counted is None else counted.over(found)
    # outcomes off the atom are points, whatever their number
    found = decided(found, options.tolerance_for(None, NULL_VARIANCES["level"]))
    return AuditedRows(Audit(found, proof, members, ids), rows, held, tested)


def _thinned(
    rows: RowCells, held: HeldOut, random: np.random.Generator
) -> tuple[RowCells, HeldOut | None]:
    """Keep each row with the probability that makes the kept ones a plain sample (verdict: 4).

    Return the rows and the held-out rows, None if there is no such sample.
    """
    weight, largest = held.outcomes.weight, held.outcomes.largest_weight
    if weight is None:
        return rows, held
    if largest is None:
        held.add_note(NoteKind.NO_THINNING)
        return rows, None
    n = held.kept.size
    kept, seed = thinned_rows(weight, largest, random)
    if kept.size < LEAST_EFFECTIVE:
        held.add_note(NoteKind.FEW_AFTER_THINNING, numbers=(n, kept.size))
        return rows, None
    held.add_note(NoteKind.THINNED, numbers=(kept.size, n, seed))
    return rows.take(kept), held.take(kept)


def _note_searched(held: HeldOut, tested: TestedGroups, *, n_found: int) -> None:
    """Add a note on the columns that were searched: by default all others of a table."""
    if held.searched is None or not (tested.scan or n_found):
        return
    # without the columns that both searches left out, which have notes of their own
    kinds = NoteKind.COLUMN_NOT_SCANNED, NoteKind.COLUMN_NOT_LEARNED
    unscanned, unlearned = (
        {name for one in notes_of(held.notes, kind) for name in one.subject} for kind in kinds
    )
    names = [str(name) for name in held.searched.columns if str(name) not in unlearned]
    if scanned := [name for name in names if name not in unscanned]:
        held.add_note(NoteKind.FEATURES, scanned)
    if n_found and (learned := [name for name in names if name in unscanned]):
        held.add_note(NoteKind.LEARNED_ALONE, learned)


def _positive_groups(
    part: RowCells, held: HeldOut, random: np.random.Generator, level: float
) -> tuple[Finding, ...]:
    """Return the groups of the people whose outcome is not the atom of a hurdle.

    Everyone comes first, then the groups by the forecast, then named groups.
    """
    some = replace(held, features=None).take(part.rows)
    found = tested_groups(part, some, random, n_learned=0, level=level, counted=None)
    # on other rows the mean is that of the whole forecast, but the width that of this part
    own = (
        one if one.key == "80% width" else msgspec.structs.replace(one, rule=None)
        for one in found.by_forecast
    )
    return found.groups[0], *own, *found.groups[1:]


def series_name(values: Any) -> str | None:
    """Return the name of a Series as text, or None if there is none."""
    name = getattr(values, "name", None)
    return None if name is None or not str(name).strip() else str(name)


# --- entry points


def audit(
    model: Any,
    X: Any = None,
    y: ArrayLike | Outcomes | None = None,
    *,
    groups: Any = None,
    features: Any = None,
    ids: ArrayLike | Sequence[object] | None = None,
    search: Search = STANDARD,
    random_state: RandomState = None,
    name: str | None = None,
    target_name: str | None = None,
    about: Mapping[str, str] | None = None,
) -> Audit:
    """Audit the calibration of a forecaster, or of given forecasts, on held-out rows.

    Parameters
    ----------
    model : forecaster or Forecast
        A fitted forecaster, which is evaluated with 64 jittered draws per row, or the forecasts
        themselves. A fitted classifier with `predict_proba`, a fitted survival model of lifelines
        or scikit-survival and other models that predict distributions are audited as forecasters.
        The kind of outcome is that of the forecasts: a count, an amount with zeros, an event coded
        as 0 and 1, or continuous.
    X : DataFrame or array-like of shape (n, n_features), optional
        Input rows of the forecaster, and the table that contains the columns listed in `groups`.
    y : array-like of shape (n,) or Outcomes
        Outcomes. `Outcomes` have the event and the horizon of times that may be cut off, weights
        and persons as well. Rows of weight 0 are left out. If the other weights differ, tests and
        intervals are those of weighted means with their empirical variance, which are asymptotic,
        groups of fewer than 150 effective rows are not tested, and without a largest weight no
        groups are learned and nothing is certified.
    groups : DataFrame, Series, dict of name to values, or list of column names, optional
        Named groups, known before the outcome. A DataFrame, Series or dict holds masks (booleans:
        one group each), probabilities of membership (floats from 0 to 1, some strictly between: one
        group each, see `Audit.membership`) or labels (other values: one group per value, or two
        halves where a column has many distinct numbers or dates); a list names columns of X, read
        as labels. Rows are matched by position. A group that the outcome defines is miscalibrated
        under any forecaster: it is reported as a possible leak, not as a finding. Confidence
        intervals of named and scanned groups hold for all of them simultaneously.
    features : DataFrame or array-like of shape (n, n_features), optional
        Features in which groups are scanned and learned; they may include columns that the
        forecaster does not use. X by default. Features must be known before the outcome: a feature
        that seems to be derived from it is reported as a possible leak and excluded from the
        search.
    ids : array-like of shape (n,), optional
        Ids of the people: `Audit.members` and `Audit.to_csv` list the members of groups by them.
    search : Search, optional
        Options of tests and searches: sizes of groups, tolerance and confidence.
    random_state : int, generator or None
        Seed of the draws, of PITs within rounding cells, of the bootstrap and of searches.
    name : str, optional
        Name of the forecaster in reports.
    target_name : str, optional
        Name of the outcome in reports; by default the name of `y` if it is a Series, else "y".
    about : dict of str to str, optional
        Description of the audit for readers of reports. The keys "population", "period", "author",
        "purpose" and "unit" (of the outcome, such as "mg per week") have a fixed place; any other
        key is listed after them.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        If outcomes are missing, infinite, constant or fewer than 20, or do not match the forecasts;
        or if a feature cannot be read. Too few rows for a search give a note in the result, not an
        error.

    Notes
    -----
    Everyone, groups by the level and the spread of the forecast itself, named and scanned groups
    and learned groups are one family: with the confidence, none is called off although its
    forecasts are calibrated. People with similar forecasts are compared since errors of opposite
    sign cancel in a pooled number. Of 0/1 outcomes all errors are differences of event rates and
    mean probabilities; of everyone it is their mean distance by tenth of the score.

    An outcome with a positive probability has a cell of PITs, from the distribution function just
    below to that at the outcome. Estimates and tests of the mean PIT average over the positions of
    PITs in their cells; tests of the spread and bounds use one position per person, drawn from
    `random_state`. An outcome with atoms under a continuous forecast is audited by its rounding
    cells, and `Audit.grid_share` is the share of the average error that rounding may explain.

    Of times that may be cut off, tests use randomized PITs of the censored distribution, which
    assume that being cut off is independent of the time given the features; sizes of errors are
    those of Kaplan-Meier estimates of PITs, with bounds that assume nothing (outcomes: 5, see
    `Audit.censoring`). Randomized forecasts are tested at times completed by the distributions
    under which they are calibrated, such as those inside a link.

    With more than 20,000 rows, scores are computed on a random sample of 20,000; PITs, groups and
    the certificate use all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand import Forecast
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=500)
    >>> found = audit(Forecast.from_normal(np.zeros(500), np.full(500, 2.0)), y=y, random_state=0)
    >>> round(found.score("90% coverage"), 2)
    1.0
    """
    return audited(
        model,
        X,
        y,
        search=search,
        groups=groups,
        features=features,
        ids=ids,
        random_state=random_state,
        name=name,
        target_name=target_name,
        about=about,
    ).audit


def audited(
    model: Any,
    X: Any,
    y: ArrayLike | Outcomes | None,
    *,
    search: Search,
    groups: Any = None,
    features: Any = None,
    ids: ArrayLike | Sequence[object] | None = None,
    random_state: RandomState = None,
    name: str | None = None,
    target_name: str | None = None,
    about: Mapping[str, str] | None = None,
    counted: RowCounts | None = None,
) -> AuditedRows:
    """Return what `audit` does, with the rows that it read.

    `counted` are counts of all rows of a table, if the rows are a random sample of it.
    """
    if y is None:
        raise InputError("y is missing: an audit compares forecasts with outcomes; pass y=")
    # options are checked before forecasts are made, which may take minutes
    described = check_about(about)
    random = generator(random_state)
    outcomes = as_outcomes(y, X)
    target = series_name(outcomes.given) if target_name is None else target_name
    n = outcomes.n_samples
    people = check_people(ids, n)
    read = Audited.of(model, X, n)
    held = HeldOut.of(search, outcomes, read.X, features, groups, random)
    # all rows need no copy
    read = read if held.kept.size == n else read.take(held.kept)
    title = name or ("forecast" if read.is_given else type(model).__name__)
    with unreported():  # the audit itself reports unseen values
        subject = read_subject(read, held.outcomes, random)
    copies = copies_among(held.features if read.X is None else read.X, subject)
    held = held.without_leaks(subject)
    if subject.scored.size < held.kept.size:
        held.add_note(NoteKind.SCORED_ROWS, numbers=(subject.scored.size,))
    made = outcomes.value, random_state, subject.cells
    found = audit_rows(
        subject,
        held,
        random,
        target,
        name=title,
        about=described,
        caveat=None if copies is None else f"{copies}.",
        ids=people,
        counted=counted,
        provenance=provenance_of(title, type(model).__name__, *made, is_given=read.is_given),
    )
    return found._replace(audit=found.audit.with_unseen(_unseen(*read)))


def _unseen(model: Any, X: Any) -> UnseenValues | None:
    """Count values of a table that are absent from the training table; None if it is unknown."""
    # models of other libraries have no schema, arrays no columns
    schema = getattr(model, "schema_", None)
    if not isinstance(schema, Schema) or not hasattr(X, "columns"):
        return None
    return UnseenValues.of(schema, schema.apply(as_pandas(X), "X"))


def audit_pit(
    pit: Pit,
    r: ArrayLike | None = None,
    X: Any = None,
    *,
    residual: ArrayLike | None = None,
    groups: Any = None,
    features: Any = None,
    sample_weight: ArrayLike | None = None,
    largest_weight: float | None = None,
    person: ArrayLike | None = None,
    ids: ArrayLike | Sequence[object] | None = None,
    search: Search = STANDARD,
    random_state: RandomState = None,
    name: str = "PITs",
    target_name: str | None = None,
    about: Mapping[str, str] | None = None,
) -> Audit:
    """Audit calibration from PITs alone; sharpness is not assessed.

    Parameters
    ----------
    pit : Cells, array-like of shape (n,) or (n, m), or tuple (low, high) of two such arrays
        PITs between 0 and 1, or the ends of their cells for outcomes with atoms, as from
        `Forecast.pit_interval`: rows are people, columns are draws; one column for a deterministic
        forecaster. Positions in the cells are drawn from `random_state`, one per person.
    r : array-like of shape (n,) or (n, m), optional
        The draws that the PITs were computed with, each strictly between 0 and 1.
    X : DataFrame or array-like of shape (n, n_features), optional
        The table that contains the columns listed in `groups`; groups are searched in it unless
        `features` are given.
    residual : array-like of shape (n,), optional
        Outcome minus mean forecast, for the bias of groups in units of the outcome.
    groups, features, ids : optional
        As in `audit`.
    sample_weight, largest_weight, person : optional
        As `weight`, `largest_weight` and `person` of `Outcomes`.
    search, random_state, name : optional
        As in `audit`.
    target_name : str, optional
        Name of the outcome in reports; by default the name of `residual` if it is a Series, else
        "y".
    about : dict of str to str, optional
        As in `audit`.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        If PITs, draws and residuals do not match, or a feature cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> found = audit_pit(np.random.default_rng(0).beta(2, 2, size=500), random_state=0)
    >>> found.score("80% coverage") > 0.9  # forecasts too wide: PITs crowd about one half
    True
    """
    described = check_about(about)
    random = generator(random_state)
    cells = as_cells(pit, r, sample_weight, random)
    n = cells.n_samples
    if residual is not None and (size := check_finite("residual", residual).size) != n:
        raise bad_input("residual", f"have one value per row of PITs ({n})", size)
    people = check_people(ids, n)
    known = Outcomes(
        np.zeros(n) if residual is None else residual,
        weight=cells.weights if sample_weight is None else sample_weight,
        largest_weight=largest_weight,
        person=person,
    )
    held = HeldOut.of(search, known, X, features, groups, random)
    bias = None if residual is None else held.outcomes.value
    # rows of validated PITs need no second validation, and all rows need no copy
    some = cells if held.kept.size == n else cells.take(held.kept)
    return audit_rows(
        RowCells.of_pits(some, bias),
        held,
        random,
        series_name(residual) if target_name is None else target_name,
        name=name,
        about=described,
        ids=people,
        provenance=provenance_of(name, None, cells.drawn, random_state, cells, is_given=True),
    ).audit


def certify(
    model: Any,
    X: Any = None,
    y: ArrayLike | Outcomes | None = None,
    *,
    confidence: float = 0.95,
    groups: Any = None,
    method: Method = "local-levels",
    mass: float | None = None,
    random_state: RandomState = None,
) -> Certificate:
    """Certify a forecaster, or given forecasts, on rows not used for training or model selection.

    Parameters
    ----------
    model : forecaster or Forecast
        A fitted forecaster, which is evaluated with 64 jittered draws per row, or the forecasts
        themselves. Fitted models of other libraries, such as classifiers with `predict_proba`, are
        certified as forecasters.
    X : DataFrame or array-like of shape (n, n_features), optional
        Input rows of the forecaster, and the table that contains the columns listed in `groups`.
    y : array-like of shape (n,) or Outcomes
        Outcomes. `Outcomes` have the event, the horizon, weights and persons as well. Only people
        are used who entered at least a horizon before the end of follow-up, if it is known.
    confidence, method, mass, random_state
        As in `certificates.certify_pit`. With the default method, a forecaster or a forecast that
        is a link around a deterministic forecaster has the bounds of `certificates.certify_link`,
        from the PITs of that forecaster; one draw per person then suffices.
    groups : as in `audit`, optional
        Groups chosen before seeing these rows, by features known before the outcome: a group that
        the outcome defines is miscalibrated under any forecaster. A numeric column is cut at its
        median in these rows; this dependence on the rows is ignored.

    Returns
    -------
    Certificate

    Raises
    ------
    InputError
        If the inputs do not match, or allow no guarantee.

    Warns
    -----
    UserWarning
        If rows are exact copies of others, so that they are not independent.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand import Forecast
    >>> rng = np.random.default_rng(0)
    >>> forecast = Forecast.from_normal(np.zeros(400), np.ones(400))
    >>> certify(forecast, y=rng.normal(size=400), random_state=0).average_error() < 0.15
    True
    """
    if y is None:
        raise InputError("y is missing: a certificate needs outcomes; pass y=")
    random = generator(random_state)
    outcomes = as_outcomes(y, X)
    n = outcomes.n_samples
    masks = check_groups(groups, n, outcomes.given if X is None else X)
    read = Audited.of(model, X, n)
    kept, thinned = _plain_rows(outcomes, random)
    if kept is not None:
        outcomes, masks = outcomes.take(kept), masks.take(kept)
        read = read.take(kept)
    subject = read_subject(read, outcomes.without_weights(), random)
    if outcomes.person is None and (warning := copies_among(read.X, subject)):
        warnings.warn(warning, UserWarning, stacklevel=2)
    proof = certificate_of(
        subject,
        confidence=confidence,
        groups=masks,
        method=method,
        mass=mass,
        person=outcomes.person,
        random_state=random,
    )
    return replace(proof, thinned=thinned)


def _plain_rows(
    outcomes: Outcomes, random: np.random.Generator
) -> tuple[Ints | None, Thinned | None]:
    """Return the rows that need no weights, None for all: of each person at most one."""
    weight, largest = outcomes.weight, outcomes.largest_weight
    if weight is None or outcomes.are_plain:
        return None, None
    if largest is None:
        raise InputError(f"certificates do not accept weights alone: {WEIGHTED}")
    rows = np.arange(weight.size)
    if outcomes.person is not None:
        # one row each first: of several rows of a person one would be kept more often
        rows = np.sort(one_row_each(outcomes.person, rows.size, random))
    kept, thinned = Thinned.of(weight[rows], largest, random)
    return rows[kept], thinned
