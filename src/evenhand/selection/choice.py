"""Selection of the least certified randomization (method: proof, choosing a link)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand._format import in_full
from evenhand._validate import (
    MIN_DISTINCT,
    Floats,
    InputError,
    OnDiscrete,
    bad_input,
    check_continuous,
    check_finite,
    check_fraction,
)
from evenhand.audits import BLOCK_ROWS, PIT_DRAWS, spread_step
from evenhand.calibration import pathwise_errors
from evenhand.certificates import FixedSequenceCertificate, PITCertificate, RowEvidence, certify_pit
from evenhand.columns import unreported
from evenhand.draws import RandomState, fresh, generator, jittered
from evenhand.forecast import cell_ends
from evenhand.forecasters import By, PAICRegressor, thawed
from evenhand.selection.comparison import COMPARED_DRAWS, HeldOutScores
from evenhand.selection.estimators import (
    DEFAULT_LINK,
    check_estimator,
    check_options,
    is_model_sequence,
    is_prefit,
)
from evenhand.selection.link_choice import choose_link, fit_model
from evenhand.selection.result import Selection
from evenhand.selection.rows import (
    SplitRows,
    Target,
    least_price,
    naming_the_split,
    split_rows,
)
from evenhand.tables import take_rows

CERTIFY_SHARE = 0.3
"""Share of people held out for the certificate."""

ALPHAS = (0.05, 0.08, 0.12, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0)
"""Values of alpha for a path of trained networks, in the order of the tests."""


@unreported()  # unseen values are not reported for a split of the same table
def randomize(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    max_group_error: float = 0.3,
    group_mass: float = 0.2,
    confidence: float = 0.95,
    link: str = DEFAULT_LINK,
    by: By | None = None,
    recalibrate: bool = False,
    alternative: bool = True,
    certify_share: float = CERTIFY_SHARE,
    cluster: ArrayLike | None = None,
    on_discrete: OnDiscrete = "raise",
    random_state: RandomState = None,
) -> Selection:
    """Fit a model and choose the least randomization that certifies every group of a given size.

    The rows are split: the model is trained on one part, and the other part selects the largest
    `alpha` whose certificate meets the target. Around a deterministic model the link may be chosen
    on the certifying rows, because one simultaneous band bounds all links. Randomized models
    (`PAICRegressor`, or a list of fitted models) are tested in a fixed order, from the most
    randomized on, until one fails.

    Models that are not fitted here are certified on all rows: a fitted model that predicts a
    distribution, in a `FrozenEstimator`; a function; a list of these; fitted randomized
    forecasters. They must never have seen these rows, or the certificate is invalid; this cannot
    be checked.

    Parameters
    ----------
    estimator : estimator, function or sequence of forecasters
        A deterministic model of any kind that `RandomizedRegressor` accepts, None for its default.
        Or an unfitted `PAICRegressor`, which is trained along a path of alphas. Or a list of fitted
        randomized forecasters (`RandomizedRegressor`, `PAICRegressor`) in the order of the tests;
        `[model]` for one.
    X : DataFrame or array-like of shape (n, n_features)
        Rows.
    y : array-like of shape (n,)
        Continuous outcomes.
    max_group_error : float, default 0.3
        Largest W1 error that a group may have, between 0 and 1/2.
    group_mass : float, default 0.2
        Smallest group size, as a share of the people.
    confidence : float, default 0.95
        Confidence level of the certificate.
    link : {"entropic", "laplace", "gaussian"}, default "entropic"
        The family of links around a deterministic model.
    by : str, list of str or callable, optional
        Groups of the deterministic alternative, as for `RecalibratedRegressor`; only for models
        that are fitted here.
    recalibrate : bool, default False
        Whether a deterministic model is first recalibrated with cross-fitted PITs of the training
        rows; a badly calibrated model needs much randomization otherwise. The link then wraps the
        recalibrated model, and the price is relative to it. A model that is not refitted is
        recalibrated on the training rows and certified on the others.
    alternative : bool, default True
        Whether to fit the deterministic alternative. For a model that predicts a distribution it
        takes five more fits, for out-of-fold PITs, unless `recalibrate` needs them anyway; for a
        plain regressor none.
    certify_share : float, default 0.3
        Share of people held out for the certificate, if the model is fitted here.
    cluster : array-like of shape (n,), optional
        Labels of people who have several rows: no person is in both parts, and one row per person
        certifies. Cross-fitting folds of the training rows may split a person's rows: residuals,
        and PITs for recalibration, then look better than they are for new people, and more
        randomization is needed. The certificate stays valid.
    on_discrete : {"raise", "warn", "ignore"}, default "raise"
        What to do if the outcome is not continuous: fewer than 20 distinct values, or one value in
        over 10% of rows. All rows are checked once, and inner models do not check again; with
        "raise", each part needs at least 20 rows, too.
    random_state : int, generator or None
        Seed of the split, the training and the draws.

    Returns
    -------
    Selection

    Raises
    ------
    InputError
        If the inputs do not match, the split leaves too few rows in a part, or the target cannot be
        met with so few rows; the message names the number of rows needed.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = X[:, 0] + rng.normal(size=1000)
    >>> chosen = randomize(BayesianRidge(), X, y, max_group_error=0.35, random_state=0)
    >>> chosen.certificate.group_error(0.2) <= 0.35
    True
    >>> chosen.model.forecast(X[:2], r=[0.3, 0.8]).interval(0.8)[0].shape
    (2,)
    """
    target = Target.checked(max_group_error, group_mass, confidence, link)
    check_fraction("certify_share", certify_share)
    check_estimator(estimator)
    is_randomized = isinstance(estimator, PAICRegressor) or is_model_sequence(estimator)
    # recalibration fits maps, which needs training rows
    is_held_out = not recalibrate and is_prefit(estimator)
    check_options(link, by, recalibrate, alternative, is_randomized, is_held_out)
    outcomes = check_finite("y", y)
    table = X if hasattr(X, "columns") else np.asarray(X)
    if len(table) != outcomes.size:
        raise bad_input(
            "y", f"have one outcome per row of X ({len(table)})", f"{outcomes.size} outcomes"
        )
    check_continuous(outcomes, on_discrete=on_discrete)
    random = generator(random_state)
    share = None if is_held_out else certify_share
    # each part must pass the check of continuous outcomes
    least = MIN_DISTINCT if on_discrete == "raise" else 1
    rows = split_rows(table, outcomes, cluster, share, least, random)
    if is_randomized:
        selection = fixed_sequence_test(estimator, rows, target, random)
        if isinstance(estimator, PAICRegressor):
            # outcomes were checked above; later fits use the caller's setting
            selection.model.set_params(on_discrete=on_discrete)
        return selection
    model, recalibrated = fit_model(
        estimator, rows, target.family.name, by, recalibrate, alternative, random
    )
    for fitted in (model, recalibrated):
        if fitted is not None:
            fitted.set_params(on_discrete=on_discrete)
    return choose_link(model, recalibrated, rows, target, alternative, random)


def fixed_sequence_test(
    estimator: Any, rows: SplitRows, target: Target, random: np.random.Generator
) -> Selection:
    """Test randomized models in a fixed order until one is not certified.

    The probability that a model with a group error above the target passes is at most one minus the
    confidence, however many models are tested (fixed-sequence testing; method: proof).
    """
    if isinstance(estimator, PAICRegressor):
        params = estimator.get_params(deep=False) | {"on_discrete": "ignore"}
        del params["alpha"]
        with naming_the_split(rows):
            models: Sequence[Any] = type(estimator).path(*rows.learning(), ALPHAS, **params)
    else:
        # the caller fixed the order before seeing these rows
        models = [thawed(model) for model in estimator]
    X, y = rows.certifying()
    passed: tuple[Any, PITCertificate] | None = None
    for model in models:
        proof = _certify_model(model, X, y, target, random)
        if proof is None or proof.group_error(target.group_mass) > target.max_group_error:
            break
        # the sequence of tests proves the target for each model that passes, not its own bound
        bounds = FixedSequenceCertificate(
            target.max_group_error,
            target.group_mass,
            target.confidence,
            proof.n_samples,
            rows.one_row_each,
        )
        passed = model, proof.accounting_for(bounds)
    if passed is None:
        raise InputError(
            f"no model has a certified group error of at most {target.max_group_error:g} for groups"
            f" of {in_full(target.group_mass)} of people with {y.size:,} rows, not even the first;"
            " use more rows, allow a larger error, or put a more randomized model first"
        )
    return _selection_of_randomized(*passed, rows, target, random)


def _selection_of_randomized(
    model: Any, proof: PITCertificate, rows: SplitRows, target: Target, random: np.random.Generator
) -> Selection:
    X, y = rows.certifying()
    assert isinstance(proof.evidence, RowEvidence)
    pits = proof.evidence.pits
    held = HeldOutScores(y, None, random)
    forecast = model.forecast(X, jittered(y.size, COMPARED_DRAWS, random))
    line = held.line("randomized", forecast, pits.matrix) | {
        "certified_group_error": target.max_group_error
    }
    return Selection(
        model=model,
        certificate=proof,
        max_group_error=target.max_group_error,
        group_mass=target.group_mass,
        confidence=target.confidence,
        price=np.nan,
        limit=least_price(float(pathwise_errors(pits).mean())),
        wider=np.nan,
        alternative=None,
        comparison=pd.DataFrame([line]),
        n_learning=int(rows.learn.size),
        n_certifying=proof.n_samples,
        certifying=rows.certify,
    )


def _certify_model(
    model: Any, X: Any, y: Floats, target: Target, random: np.random.Generator
) -> PITCertificate | None:
    """Certify a model at the target's group size; return None if it is not randomized."""
    # each model has own draws
    draws = jittered(y.size, PIT_DRAWS, random)
    share = fresh((y.size, 1), random)
    step = spread_step(y)
    low, high = (y, y) if step is None else cell_ends(y, step)
    pit = np.empty_like(draws)
    for start in range(0, y.size, BLOCK_ROWS):
        block = slice(start, min(start + BLOCK_ROWS, y.size))
        # in blocks: a forecast over many draws needs memory for each draw
        forecast = model.forecast(take_rows(X, block), draws[block])
        if not forecast.is_randomized:
            return None
        pit[block] = forecast.cdf(low[block])
        if step is not None:
            pit[block] += share[block] * (forecast.cdf(high[block]) - pit[block])
    return certify_pit(
        pit,
        draws,
        confidence=target.confidence,
        method="betting",
        mass=target.group_mass,
        random_state=random,
    )
