"""Choice of the least randomization that is certified (method: proof, choosing a link)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

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
"""Share of the people that the certificate is made on."""

ALPHAS = (0.05, 0.08, 0.12, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0)
"""Of a path of trained networks, in the order in which they are tested."""


@unreported()  # the rows are those that the table is split into
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
    """Give a model the least randomization with which every group, named or not, is certified.

    The rows are split: the model learns from one part, and on the other the largest `alpha` is
    taken whose certificate meets the target. Around a deterministic model any link may be chosen on
    the certifying rows, since one band bounds them all. Randomized models (`PAICRegressor`, or a
    list of fitted ones) are tested in a fixed order, from the most randomized on, until one fails.

    A model that learns nothing here is certified on all rows: a fitted one that predicts its own
    distribution, in a `FrozenEstimator`; a function; a list of such; fitted randomized forecasters.
    It must not have seen these rows, or the certificate is false: that is your word, and nothing
    here can check it.

    Parameters
    ----------
    estimator : estimator, function or sequence of forecasters
        A deterministic model of any kind that `RandomizedRegressor` takes, None for its default. Or
        an unfitted `PAICRegressor`, of which a path of alphas is trained. Or fitted randomized
        forecasters (`RandomizedRegressor`, `PAICRegressor`) in the order in which they are to be
        tested; `[model]` for one.
    X : DataFrame or array-like of shape (n, n_features)
        Rows.
    y : array-like of shape (n,)
        Continuous outcomes.
    max_group_error : float, default 0.3
        Largest W1 error that a group may have, between 0 and 1/2.
    group_mass : float, default 0.2
        Least share of people in a group.
    confidence : float, default 0.95
        Probability that what is certified is true.
    link : {"entropic", "laplace", "gaussian"}, default "entropic"
        The family of links around a deterministic model.
    by : str, list of str or callable, optional
        Groups for the deterministic alternative, as for `RecalibratedRegressor`; only where
        something is learned.
    recalibrate : bool, default False
        Whether a deterministic model is first recalibrated with PITs from the rows that it learns
        on, cross-fitted; a model that is far off needs much randomization otherwise. The link goes
        around the recalibrated model, and the price counts from it. A model that is not fitted
        again is recalibrated on the learning rows, and certified on the others.
    alternative : bool, default True
        Whether the deterministic alternative is made. Around a model that predicts its own
        distribution it takes five more fits, for PITs on rows not learned from, unless
        `recalibrate` asks for them anyway; around a plain regressor none.
    certify_share : float, default 0.3
        Share of the people that are kept for certifying, where something is learned.
    cluster : array-like of shape (n,), optional
        Labels of people who have several rows: no person is on both sides, and one row of each
        certifies. Folds within the learning rows may part a person: residuals, and PITs for
        mending, then look smaller than those of new people are, for which the randomization makes
        up; the certificate holds all the same.
    on_discrete : {"raise", "warn", "ignore"}, default "raise"
        What to do about an outcome that is not continuous: fewer than 20 values, or one in over 10%
        of rows. All rows are looked at once, and the models inside do not look again; with "raise",
        each side needs 20 rows, too.
    random_state : int, generator or None
        Of the split, the training and the draws.

    Returns
    -------
    Selection

    Raises
    ------
    InputError
        If the input does not fit, the split leaves too few rows on a side, or the target cannot be
        met on so few rows; the message names the rows needed.

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
    # recalibration learns maps, which needs rows of its own
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
    # each side must pass the check of continuous outcomes by itself
    least = MIN_DISTINCT if on_discrete == "raise" else 1
    rows = split_rows(table, outcomes, cluster, share, least, random)
    if is_randomized:
        selection = fixed_sequence_test(estimator, rows, target, random)
        if isinstance(estimator, PAICRegressor):
            # outcomes were checked here: the caller's setting counts for later fits
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
    """Test randomized models in a fixed order until the first that is not certified.

    The probability that a model passes whose group error is above the target is at most one minus
    the confidence, however many are tested (fixed-sequence testing; method: proof).
    """
    if isinstance(estimator, PAICRegressor):
        params = estimator.get_params(deep=False) | {"on_discrete": "ignore"}
        del params["alpha"]
        with naming_the_split(rows):
            models: Sequence[Any] = type(estimator).path(*rows.learning(), ALPHAS, **params)
    else:
        # the order is the caller's, fixed before these rows were seen
        models = [thawed(model) for model in estimator]
    X, y = rows.certifying()
    passed: tuple[Any, PITCertificate] | None = None
    for model in models:
        proof = _certify_model(model, X, y, target, random)
        if proof is None or proof.group_error(target.group_mass) > target.max_group_error:
            break
        # the chain of tests proves the target of each model that passes, not the bound that it
        # passes with
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
            f"a group error of at most {target.max_group_error:g} is not certified for mass"
            f" {target.group_mass:g} on {y.size:,} rows, not even for the most randomized of the"
            " models: bring more rows, allow a larger error, or put a more randomized model first"
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
    """What a model's PITs prove for the one mass that is asked; None if it takes no draw."""
    # draws of its own for each model
    draws = jittered(y.size, PIT_DRAWS, random)
    share = fresh((y.size, 1), random)
    step = spread_step(y)
    low, high = (y, y) if step is None else cell_ends(y, step)
    pit = np.empty_like(draws)
    for start in range(0, y.size, BLOCK_ROWS):
        block = slice(start, min(start + BLOCK_ROWS, y.size))
        # in blocks: a forecast over many draws takes memory for each
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
