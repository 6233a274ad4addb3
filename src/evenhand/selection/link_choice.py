"""Choice of a link around a deterministic model (method: proof, choosing a link)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Floats
from evenhand.audits import spread_step
from evenhand.calibration import Grid, calibration_error
from evenhand.certificates import LinkCertificate, certify_link, wider_interval
from evenhand.draws import jittered
from evenhand.forecast import Forecast
from evenhand.forecasters import (
    Bounds,
    By,
    MixtureMLPRegressor,
    RandomizedRegressor,
    RecalibratedRegressor,
    SpreadKind,
)
from evenhand.links import Link
from evenhand.planning import (
    LEVEL,
    MaxGroupError,
    MaxPrice,
    MaxWider,
    Target,
    bound_of,
    least_alpha,
)
from evenhand.selection.comparison import COMPARED_DRAWS, HeldOutScores
from evenhand.selection.costs import Costs
from evenhand.selection.result import PlainInterval, Selection
from evenhand.selection.rows import SplitRows, least_price, naming_the_split
from evenhand.selection.searches import GroupSearches


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
        return RandomizedRegressor(model, **randomized, **fitted).fit(*rows.certifying()), None
    with naming_the_split(rows):
        if not (alternative or recalibrate):
            return RandomizedRegressor(model, **randomized, **fitted).fit(
                *rows.learning(), rows.learning_weight
            ), None
        recalibrated = RecalibratedRegressor(model, by=by, **fitted)
        recalibrated.fit(*rows.learning(), rows.learning_weight)
    # the base of a link is recalibrated overall only; maps by group are the alternative
    base = recalibrated.without_groups() if recalibrate and by is not None else recalibrated
    around = RandomizedRegressor.around(
        base, recalibrate=recalibrate, random_state=seed, **randomized
    )
    return around, recalibrated


def choose_link(
    model: RandomizedRegressor,
    recalibrated: RecalibratedRegressor | None,
    rows: SplitRows,
    target: Target,
    family: Link,
    alternative: bool,
    random: np.random.Generator,
) -> Selection:
    """Choose the link with the least randomization that meets the target, or the most it may cost.

    The bands over the base model's PITs bound all links simultaneously, so the link may be chosen
    on the rows that certify it.
    """
    X, y = rows.certifying()
    # computed once for PITs, scores, widths and the price
    base = model.base_forecast(X)
    # the grid of all rows: that of a few rows may be coarser
    grid = Grid.of(rows.y)
    held = HeldOutScores(y, grid, spread_step(y), random)
    pit = held.pit(base)
    costs = Costs(base, pit, y, grid, random)
    proof = replace(_certified(costs, family, target, rows.share), one_row_each=rows.one_row_each)
    # the fit does not depend on alpha: the link is chosen afterwards
    model.set_params(alpha=proof.link.alpha)
    price = costs.price(proof.link)
    wider = costs.wider(proof.link)
    lines = _deterministic_lines(held, X, base, pit, model, recalibrated, alternative)
    base_line = lines[1 if model.recalibrate else 0]
    draws = jittered(held.compared.size, COMPARED_DRAWS, random)
    served = base[held.compared].randomized(proof.link.alpha, proof.link, draws)
    randomized_line = {
        "forecaster": "randomized",
        "log_score": base_line["log_score"] + price,
        "crps": held.crps(served),
        "width": base_line["width"] * (1 + wider),
        "average_error": calibration_error(costs.randomized_pit(proof.link)),
        "certified_group_error": proof.group_error(target.group_mass),
    }
    lines = [*held.without_features(rows.y[rows.learn]), *lines, randomized_line]
    return Selection(
        model=model,
        certificate=proof,
        target=target,
        price=price,
        limit=least_price(proof.mean_error()),
        wider=wider,
        alternative=recalibrated if alternative else None,
        comparison=pd.DataFrame(lines),
        n_learning=int(rows.learn.size),
        n_certifying=proof.n_samples,
        certifying=rows.certify,
        plain=_plain_interval(proof, costs, wider, target),
        searches=GroupSearches(
            pit, X, target.group_mass, target.confidence, int(random.integers(2**31))
        ),
        rounding_step=None if grid is None else grid.step,
    )


def _certified(costs: Costs, family: Link, target: Target, share: float | None) -> LinkCertificate:
    """Certify all links, and read the certificate for the link that keeps to the goal."""
    pit = costs.pit
    proof = certify_link(
        pit, family, confidence=target.confidence, bound=bound_of(target, family, pit.size)
    )
    goal = target.goal
    link = type(family)
    match goal:
        case MaxGroupError():
            return proof.least_randomized(goal.most, target.group_mass, certify_share=share)
        case MaxWider():
            alpha = least_alpha(lambda alpha: costs.wider(link(alpha)), goal.most)
        case MaxPrice():
            alpha = least_alpha(lambda alpha: costs.price(link(alpha)), goal.most)
    return proof.with_link(link(alpha))


def _plain_interval(
    proof: LinkCertificate, costs: Costs, wider: float, target: Target
) -> PlainInterval | None:
    """Return the interval without a draw that covers at least as much as the randomized one."""
    floor, _ = proof.coverage(LEVEL, target.group_mass)
    found = wider_interval(costs.pit, floor, target.group_mass, confidence=target.confidence)
    if found is None or floor <= 0:
        return None
    width = costs.base_width(found.level) / (costs.base_width(LEVEL) * (1 + wider))
    return PlainInterval(found, width - 1)


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
