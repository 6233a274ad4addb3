"""Selection of the least certified randomization (method: proof, choosing a link)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand._format import number_in_full
from evenhand._validate import (
    MIN_DISTINCT,
    InputError,
    bad_input,
    check_choice,
    check_fraction,
    check_outcomes,
    outcomes_checked,
)
from evenhand.calibration import Cells, Outcomes, Rounding, as_outcomes, estimated_error
from evenhand.distributions import OutcomeKind, as_hurdle
from evenhand.draws import RandomState, generator, jittered
from evenhand.forecast import Forecast, check_forecast_of_times
from evenhand.forecasters import (
    SPREADS,
    Bounds,
    By,
    MixtureMLPRegressor,
    PAICRegressor,
    RandomizedRegressor,
    RecalibratedRegressor,
    SpreadKind,
    SurvivalModel,
    check_support,
    thawed,
)
from evenhand.links import Link
from evenhand.report import worth_sentences
from evenhand.selection.chosen_link import Wrapped, affordable_alpha, choose_link
from evenhand.selection.comparison import COMPARED_DRAWS, HeldOutScores, mean_with_error
from evenhand.selection.estimators import (
    DEFAULT_LINK,
    check_estimator,
    check_options,
    check_randomized_options,
    is_model_sequence,
    is_prefit,
    refuse_events,
)
from evenhand.selection.fixed_sequence import fixed_sequence_test
from evenhand.selection.result import GroupSearches, NotWorthItWarning, Selection
from evenhand.selection.rows import SplitRows, naming_the_split, split_rows
from evenhand.selection.target import MaxPrice, Target, family_of, goal_of
from evenhand.tables import as_table, copies_in_words, unreported

# --- choice of a link around a deterministic model


def fit_model(
    estimator: Any,
    rows: SplitRows,
    link: str,
    by: By | None,
    recalibrate: bool,
    alternative: bool,
    spread: SpreadKind,
    support: Bounds,
    random: np.random.Generator,
) -> tuple[RandomizedRegressor, RecalibratedRegressor | None]:
    """Fit a model once, with its recalibration; the link is chosen afterwards."""
    # one seed for all fits: link and alternative share their folds
    seed = int(random.integers(2**31))
    model = MixtureMLPRegressor(random_state=seed) if estimator is None else estimator
    fitted: dict[str, Any] = {"spread": spread, "support": support, "random_state": seed}
    randomized: dict[str, Any] = {"alpha": 1.0, "link": link}
    if rows.share is None:
        # a prefit model: fitting the wrapper learns nothing from these rows
        X, outcomes = rows.certifying()
        return RandomizedRegressor(model, **randomized, **fitted).fit(X, outcomes.value), None
    with naming_the_split(rows):
        if not (alternative or recalibrate):
            X, outcomes = rows.learning()
            around = RandomizedRegressor(model, **randomized, **fitted)
            return around.fit(X, outcomes.value, outcomes.weight), None
        recalibrated = RecalibratedRegressor(model, by=by, **fitted)
        recalibrated.fit(*rows.learning())
    # the base of a link is recalibrated overall only; maps by group are the alternative
    base = recalibrated.without_groups() if recalibrate and by is not None else recalibrated
    around = RandomizedRegressor.around(
        base, recalibrate=recalibrate, random_state=seed, **randomized
    )
    return around, recalibrated


def select_around(
    model: RandomizedRegressor,
    base: Forecast,
    recalibrated: RecalibratedRegressor | None,
    rows: SplitRows,
    target: Target,
    family: Link,
    alternative: bool,
    random: np.random.Generator,
) -> Selection:
    """Choose the link around a model, and compare its forecasts with those without a draw."""
    X, outcomes = rows.certifying()
    # the grid of all rows: that of a few rows may be coarser
    is_continuous = not base.has_atoms and not outcomes.are_times
    grid = Rounding.grid(rows.y) if is_continuous else None
    step = base.rounding(outcomes).step if is_continuous else None
    held = HeldOutScores(outcomes, grid, step, random)
    wrapped = Wrapped.of(base, outcomes, random)
    cells = held.cells(base) if base.has_atoms else wrapped.cells
    chosen = choose_link(wrapped, grid, family, target, rows, random)
    # the fit does not depend on alpha: the link is chosen afterwards
    model.set_params(alpha=chosen.link.alpha)
    lines = _deterministic_lines(held, X, base, cells, model, recalibrated, alternative)
    base_line = lines[1 if model.recalibrate else 0]
    draws = jittered(held.compared.size, COMPARED_DRAWS, random)
    served = base[held.compared].randomized(chosen.link.alpha, chosen.link, draws)
    randomized_line = {
        "forecaster": "randomized",
        "log_score": base_line["log_score"] + chosen.price,
        **mean_with_error(held.crps(served)),
        "width": base_line["width"] * (1 + chosen.wider),
        "average_error": estimated_error(chosen.cells),
        "certified_group_error": chosen.certificate.group_error(target.group_mass),
    }
    without = held.without_features(rows.y[rows.learn], base)
    worthy = None
    # what the features are worth, if it is known
    worth = without[0]["log_score"] - base_line["log_score"] if without else 0.0
    if 0 < worth < chosen.price:
        within = replace(target, goal=MaxPrice(worth))
        worthy = chosen.error_at(type(family)(affordable_alpha(chosen.costs, family, within)))
    return Selection(
        model=model,
        certificate=chosen.certificate,
        target=target,
        price=chosen.price,
        limit=chosen.limit,
        wider=chosen.wider,
        alternative=recalibrated if alternative else None,
        comparison=pd.DataFrame([*without, *lines, randomized_line]),
        n_learning=int(rows.learn.size),
        n_certifying=outcomes.n_samples,
        certifying=rows.certify,
        plain=chosen.plain,
        searches=GroupSearches(
            wrapped.searched(),
            X,
            target.group_mass,
            target.confidence,
            int(random.integers(2**31)),
        ),
        rounding_step=None if grid is None else grid.step,
        kind=base.outcome_kind,
        atom=wrapped.at,
        worthy_error=worthy,
    )


def _deterministic_lines(
    held: HeldOutScores,
    X: Any,
    base: Forecast,
    cells: Cells,
    model: RandomizedRegressor,
    recalibrated: RecalibratedRegressor | None,
    alternative: bool,
) -> list[dict[str, Any]]:
    """Score the unrandomized model and its recalibrations, overall and by group, if they exist."""
    if not model.recalibrate:
        lines = [held.line("as it is", base, cells)]
        if recalibrated is not None:
            name = "recalibrated" if recalibrated.by is None else "recalibrated by group"
            lines.append(held.line(name, recalibrated.recalibrate(base, X)))
        return lines
    assert recalibrated is not None
    as_it_is = recalibrated.base_forecast(X)
    lines = [held.line("as it is", as_it_is), held.line("recalibrated", base, cells)]
    if alternative and recalibrated.by is not None:
        by_group = recalibrated.recalibrate(as_it_is, X)
        lines.append(held.line("recalibrated by group", by_group))
    return lines


# --- times that may be cut off (outcomes: 5)

NO_HORIZON = (
    "horizon is missing: without a time up to which people are followed, a time that is cut off may"
    " have any error up to the largest, and no randomization can be certified; give the horizon"
)


def check_times(estimator: Any, times: Outcomes) -> Any:
    """Check times and their model, which becomes a survival model with their horizon."""
    if times.horizon is None:
        raise InputError(NO_HORIZON)
    if is_model_sequence(estimator) or not is_prefit(estimator):
        name = "a list of randomized models" if isinstance(estimator, list) else repr(estimator)
        raise InputError(
            "event is given, and models of times that may be cut off are fitted beforehand, on"
            f" other rows, and without a draw, got {name[:80]}; pass"
            " evenhand.forecasters.SurvivalModel(fitted model, horizon=...), or a function from X"
            " to Forecast.from_survival(times, survival, horizon)"
        )
    model = thawed(estimator)
    if isinstance(model, SurvivalModel) or not hasattr(model, "predict_survival_function"):
        return estimator
    return SurvivalModel(model, times.horizon)


def check_forecasts(base: Forecast, outcomes: Outcomes) -> None:
    """Refuse forecasts of times without events, and those whose atom is not the horizon."""
    if not outcomes.are_times:
        check_forecast_of_times(base, outcomes)
        check_outcomes(outcomes.value, kind=str(base.outcome_kind))
        return
    # the remedy is Python
    tau = f"{outcomes.horizon:.15g}"
    got = f"are of the kind {base.outcome_kind}"
    if base.outcome_kind is OutcomeKind.HURDLE:
        hurdle = as_hurdle(base.distribution)
        if hurdle.end == "high" and hurdle.at == outcomes.horizon:
            return
        got = f"have their atom at {number_in_full(hurdle.at)}"
    raise InputError(
        f"horizon is {tau}, and forecasts must have an atom at it, whose probability is not"
        f" randomized, but these {got}; make them with Forecast.from_survival(times, survival,"
        f" horizon={tau}) or SurvivalModel(model, horizon={tau})"
    )


# --- `randomize`

CERTIFY_SHARE = 0.3
"""Share of people held out for the certificate."""


@unreported()  # unseen values are not reported for a split of the same table
def randomize(
    estimator: Any,
    X: Any,
    y: ArrayLike | Outcomes,
    *,
    max_group_error: float | None = None,
    max_wider: float | None = None,
    max_price: float | None = None,
    group_mass: float = 0.2,
    confidence: float = 0.95,
    link: str = DEFAULT_LINK,
    by: By | None = None,
    recalibrate: bool = False,
    alternative: bool = True,
    certify_share: float = CERTIFY_SHARE,
    spread: SpreadKind = "learned",
    support: Bounds = None,
    random_state: RandomState = None,
) -> Selection:
    """Fit a model and choose the least randomization that certifies every group of a given size.

    The rows are split: the model is trained on one part, and the other part selects the largest
    `alpha` whose certificate meets the target. Around a deterministic model the link may be chosen
    on the certifying rows, because simultaneous bands bound all links. Randomized models
    (`PAICRegressor`, or a list of fitted models) are tested in a fixed order, from the most
    randomized on, until one fails; so are links around forecasts of counts and ordinal scores, at
    40 values of alpha from 0.01 to 1, each 12.5% larger than the one before. For outcomes with an
    atom at an end of their range the guarantee is for groups of the people whose outcome is not
    the atom: `group_mass` is a share of them.

    Instead of the error that must be certified, what may be paid can be given: `max_wider` or
    `max_price`. The smallest `alpha` that costs no more is then chosen, and the certificate gives
    the most that can be proven for it. For counts it is the smallest of the 40 values, whose bounds
    then hold simultaneously (Bonferroni). Give one of the three.

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
    y : array-like of shape (n,) or Outcomes
        Outcomes of the kind that the model predicts: continuous; counts or ordinal scores; or with
        an atom at an end of their range, such as money with zeros, of which only the continuous
        part is randomized. Outcomes 0 and 1 are refused: no randomization improves their forecasts.
        Times that may be cut off are `Outcomes` with events and a horizon. Their model is fitted
        beforehand, on other rows: `evenhand.forecasters.SurvivalModel`, or a function that returns
        `Forecast.from_survival` with the horizon. Only the time of an event is randomized, given
        that it happens by the horizon, and `group_mass` is a share of the people with the event by
        then. Who was lost before the horizon may be one of them and counts with the worst time.
        Weights of `Outcomes` are for the fits; with the largest weight of the design the certifying
        rows are thinned as well, otherwise each certifying person counts once. With persons nobody
        is in both parts, and one row per person certifies; cross-fitting folds of the training rows
        may split a person's rows, which makes more randomization necessary.
    max_group_error : float, optional
        Largest W1 error that a group may have, between 0 and 1/2; 0.25 if neither of the other two
        is given.
    max_wider : float, optional
        Largest relative increase of the mean width of 80% prediction intervals on the certifying
        people (on at most 2,000 of them): 0.1 for intervals at most 10% wider. At most 2.
    max_price : float, optional
        Largest loss of log score on the certifying people, in nats.
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
    spread : {"learned", "constant"}, default "learned"
        Spread of the residuals of a plain regressor, as for `RandomizedRegressor`.
    support : tuple of (float or None, float or None), optional
        Bounds `(low, high)` of the outcome around a deterministic model, as for
        `RandomizedRegressor`: `(0, None)` for money or durations.
    random_state : int, generator or None
        Seed of the split, the training and the draws.

    Returns
    -------
    Selection

    Raises
    ------
    InputError
        If the inputs do not match, the split leaves too few rows in a part, the estimator does not
        accept weights, or the target cannot be met with so few rows; the message names the number
        of rows needed.

    Warns
    -----
    UserWarning
        If rows are exact copies of others, so that they are not independent.

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

    The most that can be proven with prediction intervals that are at most 20% wider:

    >>> chosen = randomize(BayesianRidge(), X, y, max_wider=0.2, random_state=0)
    >>> chosen.wider <= 0.2, 0.35 < chosen.group_error < 0.4
    (True, True)
    """
    target = Target(goal_of(max_group_error, max_wider, max_price), group_mass, confidence)
    family = family_of(link)
    check_fraction("certify_share", certify_share)
    check_choice("spread", spread, SPREADS)
    check_estimator(estimator)
    is_randomized = isinstance(estimator, PAICRegressor) or is_model_sequence(estimator)
    outcomes = as_outcomes(y)
    if outcomes.are_times:
        estimator = check_times(estimator, outcomes)
    # recalibration fits maps, which needs training rows
    is_held_out = not recalibrate and is_prefit(estimator)
    if is_randomized:
        check_randomized_options(target.goal, link, by, recalibrate, spread, support)
    is_weighted = outcomes.weight is not None and outcomes.largest_weight is None
    check_options(by, alternative, is_held_out, is_weighted)
    table = X if hasattr(X, "columns") else np.asarray(X)
    n = outcomes.n_samples
    if len(table) != n:
        raise bad_input("y", f"have one outcome per row of X ({len(table)})", f"{n} outcomes")
    check_support(outcomes.value, support)
    if not outcomes.are_times:  # the forecasts show the kind of outcome, later
        check_outcomes(outcomes.value, kind=None)
        refuse_events(outcomes.value)
    random = generator(random_state)
    share = None if is_held_out else certify_share
    rows = split_rows(table, outcomes, share, MIN_DISTINCT, random)
    if outcomes.person is None:
        warning = copies_in_words(as_table(table), outcomes.value)
        if warning:
            warnings.warn(warning, UserWarning, stacklevel=3)
    # how continuous outcomes must be is checked once, when the kind of forecast is known
    with outcomes_checked():
        if is_randomized:
            selection = fixed_sequence_test(estimator, rows, target, random)
        else:
            model, recalibrated = fit_model(
                estimator, rows, family.name, by, recalibrate, alternative, spread, support, random
            )
    if is_randomized:
        check_outcomes(outcomes.value, kind=str(selection.kind))
    else:
        # computed once for PITs, scores, widths and the price
        base = model.base_forecast(rows.certifying()[0])
        check_forecasts(base, outcomes)
        selection = select_around(
            model, base, recalibrated, rows, target, family, alternative, random
        )
    if rows.thinned is not None:
        proof = replace(selection.certificate, thinned=rows.thinned)
        selection = replace(selection, certificate=proof)
    for reason in worth_sentences(selection.facts()):
        warnings.warn(reason, NotWorthItWarning, stacklevel=3)
    return selection
