"""`audit`, `audit_pit` and `certify`: from forecasts on held-out rows to what they show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand import certificates
from evenhand._validate import Floats, bad_input, check_finite
from evenhand.audits import tables
from evenhand.audits.forecasts import check_rows, read_subject
from evenhand.audits.pictures import calibration_table, price_of
from evenhand.audits.provenance import draws_in_words, provenance_of
from evenhand.audits.result import Audit
from evenhand.audits.rows import HeldOut, hold_out, without_leaks
from evenhand.audits.scores import Band, mean_scores, pit_scores, score_table
from evenhand.audits.searches import (
    SearchOptions,
    certify_rows,
    check_search,
    learn_groups,
    scan_groups,
)
from evenhand.calibration import PITs, as_pits, pit_histogram
from evenhand.columns import Schema, UnseenValues, as_pandas, check_groups, unreported
from evenhand.draws import RandomState, generator
from evenhand.forecast import Forecast
from evenhand.report import Measure, Note, NoteKind, units_of

MASSES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
LEARNED_MASSES = (0.1, 0.2, 0.5)
"""Group sizes that are audited by default, as shares of the rows."""

MIN_SIZE = 150
"""Fewest rows of a scanned group, by default."""


def audit(
    model: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    groups: Any = None,
    features: Any = None,
    sample_weight: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    masses: Sequence[float] = MASSES,
    learned_masses: Sequence[float] = LEARNED_MASSES,
    min_size: int = MIN_SIZE,
    confidence: float = 0.95,
    n_simulations: int = 20,
    random_state: RandomState = None,
    name: str | None = None,
    target_name: str | None = None,
) -> Audit:
    """Audit a forecaster, or anybody's forecasts, on rows that it was not trained on.

    Parameters
    ----------
    model : forecaster or Forecast
        A fitted forecaster, which is asked for forecasts over 64 jittered draws, or forecasts that
        are made already.
    X : DataFrame or array-like of shape (n, n_features), optional
        Rows for the forecaster, and the table that columns in `groups` are taken from.
    y : array-like of shape (n,)
        Outcomes.
    groups : DataFrame, Series, dict of name to values, or list of column names, optional
        Named groups, known before the outcome. A DataFrame, Series or dict holds masks (booleans:
        one group each) or labels (other values: one group per value, or halves of many numbers or
        dates); a list names columns of X, read as labels. Rows are matched by position. A group
        that the outcome defines is off under any forecaster: it is named as a possible leak, not as
        a finding. The 95% band of each group holds for that group by itself, not for all of them
        together.
    features : DataFrame or array-like of shape (n, n_features), optional
        What groups are scanned and learned from, which may be more than the forecaster sees; X by
        default. It must be known before the outcome: what seems made from it is a possible leak,
        and no group is searched in it.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows for estimates. A row of weight 0 is left out. Where the others' weights
        differ, learned and worst groups ignore them, and no certificate is given.
    cluster : array-like of shape (n,), optional
        Labels of people who have several rows: one row of each, chosen at random, is audited.
    masses : sequence of float
        Group sizes of the oracle worst group and of the certificate, as shares of the rows.
    learned_masses : sequence of float
        Group sizes of the learned worst group.
    min_size : int, default 150
        Fewest rows of a scanned group.
    confidence : float, default 0.95
        Of the certificate and of the learned groups' lower bounds.
    n_simulations : int, default 20
        Simulated calibrated forecasters behind `null_mean` and its band.
    random_state : int, generator or None
        Seed of draws, of PITs within rounding cells, of bands and searches.
    name : str, optional
        What to call the forecaster in what people see.
    target_name : str, optional
        What to call the outcome there; by default the name of `y` where it is a Series, else "y".

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        If outcomes are missing, infinite, constant, too few or not continuous, or do not fit the
        forecasts; or if an option is out of its range or a feature cannot be read. Rows too few for
        a search are no error but a note.

    Notes
    -----
    Of more than 20,000 rows a random 20,000 are scored; PITs, groups and certificate use all.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=500)
    >>> found = audit(Forecast.from_normal(np.zeros(500), np.full(500, 2.0)), y=y, random_state=0)
    >>> round(found.score("90% coverage"), 2)
    1.0
    """
    if y is None:
        raise bad_input("y", "be given: an audit needs outcomes", "None")
    # refused before any forecast: these may take minutes
    options = check_search(masses, learned_masses, min_size, confidence, n_simulations)
    random = generator(random_state)
    outcomes = check_finite("y", y)
    target = name_of(y) if target_name is None else target_name
    table = check_rows(model, X, outcomes.size)
    held = hold_out(outcomes.size, table, features, groups, sample_weight, cluster, random, y=y)
    is_given = isinstance(model, Forecast)
    audited = model[held.kept] if is_given and held.kept.size < outcomes.size else model
    with unreported():  # they are counted for the audit
        subject = read_subject(audited, held.X, outcomes[held.kept], random, weights=held.weights)
    if subject.scored.size < held.kept.size:
        scored = Note(NoteKind.SCORED_ROWS, numbers=(subject.scored.size,))
        held = replace(held, notes=(*held.notes, scored))
    held = without_leaks(held, subject)
    # PITs were validated once, as the subject was read: all below take them as they are
    pits = subject.pits
    weights = None if pits.weights is None else pits.weights[subject.scored]
    scores = mean_scores(subject.scores, weights) | pit_scores(pits, random)
    found = _audited(pits, subject.residual, scores, held, options, random, target)
    title = name or ("forecast" if is_given else type(model).__name__)
    examples = subject.examples
    return replace(
        found,
        name=title,
        rounding_step=subject.step,
        examples=examples.assign(row=held.kept[examples["row"].to_numpy()]),
        price=price_of(model),
        provenance=provenance_of(
            title,
            type(model).__name__,
            outcomes,
            random_state,
            draws_in_words(pits, is_given=is_given),
        ),
        unseen=_unseen(model, held.X),
    )


def _unseen(model: Any, X: Any) -> UnseenValues | None:
    """Count the values of a table that the forecaster's training never had.

    None where that is not known.
    """
    # models of other libraries have no schema, arrays no columns
    schema = getattr(model, "schema_", None)
    if not isinstance(schema, Schema) or not hasattr(X, "columns"):
        return None
    return UnseenValues.of(schema, schema.apply(as_pandas(X), "X"))


def audit_pit(
    pit: ArrayLike | PITs,
    r: ArrayLike | None = None,
    X: Any = None,
    *,
    residual: ArrayLike | None = None,
    groups: Any = None,
    features: Any = None,
    sample_weight: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    masses: Sequence[float] = MASSES,
    learned_masses: Sequence[float] = LEARNED_MASSES,
    min_size: int = MIN_SIZE,
    confidence: float = 0.95,
    n_simulations: int = 20,
    random_state: RandomState = None,
    name: str = "PITs",
    target_name: str | None = None,
) -> Audit:
    """Audit a forecaster of which only PITs are known; sharpness is then not judged.

    Parameters
    ----------
    pit : PITs or array-like of shape (n,) or (n, m)
        PITs between 0 and 1: rows are people, columns draws; one column for a deterministic
        forecaster.
    r : array-like of shape (n,) or (n, m), optional
        The draws behind the PITs, each strictly between 0 and 1.
    X : DataFrame or array-like of shape (n, n_features), optional
        The table that columns in `groups` are taken from, and in which groups are searched where
        there are no `features`.
    residual : array-like of shape (n,), optional
        Outcome minus mean forecast, for the bias of groups in units of the outcome.
    groups, features, sample_weight, cluster : optional
        As in `audit`.
    masses, learned_masses, min_size, confidence, n_simulations, random_state, name : optional
        As in `audit`.
    target_name : str, optional
        What to call the outcome in what people see; by default the name of `residual` where it is a
        Series, else "y".

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        If PITs, draws or residuals do not fit each other, an option is out of its range or a
        feature cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> found = audit_pit(np.random.default_rng(0).beta(2, 2, size=500), random_state=0)
    >>> found.score("80% coverage") > 0.9  # forecasts too wide: PITs crowd about one half
    True
    """
    options = check_search(masses, learned_masses, min_size, confidence, n_simulations)
    pits = as_pits(pit, r, sample_weight)
    n = pits.n_samples
    random = generator(random_state)
    bias = None if residual is None else check_finite("residual", residual)
    if bias is not None and bias.size != n:
        raise bad_input("residual", f"have one value per row of PITs ({n})", bias.size)
    held = hold_out(n, X, features, groups, pits.weights, cluster, random, y=residual)
    # rows of a valid object are valid: no copy of all rows, and no second validation
    some = pits if held.kept.size == n else pits.take(held.kept)
    found = _audited(
        some,
        None if bias is None else bias[held.kept],
        pit_scores(some, random),
        held,
        options,
        random,
        name_of(residual) if target_name is None else target_name,
    )
    words = draws_in_words(pits, is_given=True)
    provenance = provenance_of(name, None, pits.matrix, random_state, words)
    return replace(found, name=name, provenance=provenance)


def certify(
    model: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    confidence: float = 0.95,
    groups: Any = None,
    method: certificates.Method = "local-levels",
    mass: float | None = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: RandomState = None,
) -> certificates.PITCertificate:
    """Certify a forecaster, or given forecasts, on rows not used to make or choose it.

    Parameters
    ----------
    model : forecaster or Forecast
        A fitted forecaster, which is asked for forecasts over 64 jittered draws, or forecasts that
        are made already.
    X : DataFrame or array-like of shape (n, n_features), optional
        Rows for the forecaster, and the table that columns in `groups` are taken from.
    y : array-like of shape (n,)
        Outcomes.
    confidence, method, mass, cluster, sample_weight, random_state
        As in `certificates.certify_pit`.
    groups : as in `audit`, optional
        Groups named before the rows were seen, by features known before the outcome: a group that
        outcomes define is off under any forecaster. The cut of a numeric column is its median here,
        which is nearly so.

    Returns
    -------
    Certificate

    Raises
    ------
    InputError
        If the input does not fit, or could not carry a guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> forecast = Forecast.from_normal(np.zeros(400), np.ones(400))
    >>> certify(forecast, y=rng.normal(size=400), random_state=0).average_error() < 0.15
    True
    """
    if y is None:
        raise bad_input("y", "be given: a certificate needs outcomes", "None")
    random = generator(random_state)
    outcomes = check_finite("y", y)
    masks = check_groups(groups, outcomes.size, y if X is None else X)
    rows = check_rows(model, X, outcomes.size)
    return certificates.certify_pit(
        read_subject(model, rows, outcomes, random).pits,
        confidence=confidence,
        groups=masks,
        method=method,
        mass=mass,
        cluster=cluster,
        sample_weight=sample_weight,
        random_state=random,
    )


def _audited(
    pits: PITs,
    residual: Floats | None,
    scores: dict[Measure, Band],
    held: HeldOut,
    options: SearchOptions,
    random: np.random.Generator,
    target: str | None,
) -> Audit:
    """Audit PITs: everything that needs no forecasts."""
    # all take their draws from one generator, so the order of these calls is part of the numbers
    proof, unproven = certify_rows(pits, held, options.confidence, random)
    groups = tables.group_table(pits, residual, held.groups, held.leaks, random)
    scan, unscanned = scan_groups(pits, residual, held, options, random)
    learned, unlearned = learn_groups(pits, residual, held, options, random)
    is_searched = held.searched is not None and (len(scan) > 0 or len(learned) > 0)
    # named, as in the table of another model's forecasts they are all other columns
    names = tuple(map(str, held.searched.columns)) if is_searched else ()
    searched = (Note(NoteKind.FEATURES, names),) if is_searched else ()
    return Audit(
        name="",
        n_samples=pits.n_samples,
        n_draws=pits.n_draws,
        is_randomized=pits.is_randomized,
        rounding_step=None,
        scores=score_table(scores, units_of(target)),
        measures=tuple(scores),
        groups=tables.with_scanned_as(groups, scan),
        scan=scan,
        learned=learned,
        worst_groups=tables.worst_group_table(
            pits, options.masses, proof, options.n_simulations, random
        ),
        certificate=proof,
        leaks=held.leaks,
        notes=(*held.notes, *unproven, *unscanned, *unlearned, *searched),
        histogram=pit_histogram(pits).table(),
        calibration=calibration_table(pits),
        target=target,
    )


def name_of(values: Any) -> str | None:
    """Return the name of a Series as text; None of what has none."""
    name = getattr(values, "name", None)
    return None if name is None or not str(name).strip() else str(name)
