"""Choice of a link around a deterministic model (method: proof, choosing a link)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Floats
from evenhand.audits import spread_step
from evenhand.calibration import calibration_error, interval_width
from evenhand.certificates import certify_link
from evenhand.draws import jittered
from evenhand.forecast import Forecast
from evenhand.forecasters import By, MixtureMLPRegressor, RandomizedRegressor, RecalibratedRegressor
from evenhand.selection.comparison import COMPARED_DRAWS, HeldOutScores
from evenhand.selection.estimators import without_outcome_checks
from evenhand.selection.result import Selection
from evenhand.selection.rows import SplitRows, Target, least_price, naming_the_split


def fit_model(
    estimator: Any,
    rows: SplitRows,
    link: str,
    by: By | None,
    recalibrate: bool,
    alternative: bool,
    random: np.random.Generator,
) -> tuple[RandomizedRegressor, RecalibratedRegressor | None]:
    """Fit a model once, with its recalibration; the link is chosen afterwards."""
    # one seed for all fits: link and alternative share their folds
    seed = int(random.integers(2**31))
    model = MixtureMLPRegressor(random_state=seed) if estimator is None else estimator
    inner = without_outcome_checks(model)
    params: dict[str, Any] = {
        "alpha": 1.0,
        "link": link,
        "on_discrete": "ignore",
        "random_state": seed,
    }
    if rows.share is None:
        # a prefit model: fitting the wrapper learns nothing from these rows
        return RandomizedRegressor(inner, **params).fit(*rows.certifying()), None
    with naming_the_split(rows):
        if not (alternative or recalibrate):
            return RandomizedRegressor(inner, **params).fit(*rows.learning()), None
        recalibrated = RecalibratedRegressor(
            inner, by=by, on_discrete="ignore", random_state=seed
        ).fit(*rows.learning())
    # the base of a link is recalibrated overall only; maps by group are the alternative
    base = recalibrated.without_groups() if recalibrate and by is not None else recalibrated
    around = RandomizedRegressor.around(base, recalibrate=recalibrate, **params)
    return around, recalibrated


def choose_link(
    model: RandomizedRegressor,
    recalibrated: RecalibratedRegressor | None,
    rows: SplitRows,
    target: Target,
    alternative: bool,
    random: np.random.Generator,
) -> Selection:
    """Choose the link with the least randomization that meets the target.

    One band over the base model's PITs bounds all links simultaneously, so the link may be chosen
    on the rows that certify it.
    """
    X, y = rows.certifying()
    # computed once for PITs, scores, widths and the price
    base = model.base_forecast(X)
    held = HeldOutScores(y, spread_step(y), random)
    pit = held.pit(base)
    proof = certify_link(pit, target.family, confidence=target.confidence)
    proof = proof.least_randomized(
        target.max_group_error, target.group_mass, certify_share=rows.share
    )
    proof = replace(proof, one_row_each=rows.one_row_each)
    # the fit does not depend on alpha: the link is chosen afterwards
    model.set_params(alpha=proof.link.alpha)
    draws = jittered(y.size, 16, random)  # the price is a mean over 16 draws per person
    randomized_pit = proof.link.ppf(pit[:, None], draws)
    # log h = log g - log k at the base's PIT: the price needs no further forecasts
    price = float(proof.link.logpdf(randomized_pit, draws).mean())
    lines = _deterministic_lines(held, X, base, pit, model, recalibrated, alternative)
    base_line = lines[1 if model.recalibrate else 0]
    part = base[held.compared]
    served = part.randomized(
        proof.link.alpha, proof.link, jittered(held.compared.size, COMPARED_DRAWS, random)
    )
    randomized_line = {
        "forecaster": "randomized",
        "log_score": base_line["log_score"] + price,
        "crps": held.crps(served),
        "average_error": calibration_error(randomized_pit),
        "certified_group_error": proof.group_error(target.group_mass),
    }
    widths = [float(interval_width(each, 0.8).mean()) for each in (served, part)]
    return Selection(
        model=model,
        certificate=proof,
        max_group_error=target.max_group_error,
        group_mass=target.group_mass,
        confidence=target.confidence,
        price=price,
        limit=least_price(proof.mean_error()),
        wider=widths[0] / widths[1] - 1,
        alternative=recalibrated if alternative else None,
        comparison=pd.DataFrame([*lines, randomized_line]),
        n_learning=int(rows.learn.size),
        n_certifying=proof.n_samples,
        certifying=rows.certify,
    )


def _deterministic_lines(
    held: HeldOutScores,
    X: Any,
    base: Forecast,
    pit: Floats,
    model: RandomizedRegressor,
    recalibrated: RecalibratedRegressor | None,
    alternative: bool,
) -> list[dict[str, Any]]:
    """Score the unrandomized model and its recalibrations, overall and by group, if they exist."""
    if not model.recalibrate:
        lines = [held.line("as it is", base, pit)]
        if recalibrated is not None:
            name = "recalibrated" if recalibrated.by is None else "recalibrated by group"
            lines.append(held.line(name, recalibrated.recalibrate(base, X)))
        return lines
    assert recalibrated is not None
    as_it_is = recalibrated.base_forecast(X)
    lines = [held.line("as it is", as_it_is), held.line("recalibrated", base, pit)]
    if alternative and recalibrated.by is not None:
        by_group = recalibrated.recalibrate(as_it_is, X)
        lines.append(held.line("recalibrated by group", by_group))
    return lines
