"""Choice of a link around a deterministic model (method: proof, choosing a link)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Floats
from evenhand.audits import spread_step
from evenhand.calibration import Grid
from evenhand.distributions import OutcomeKind
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
from evenhand.planning import MaxPrice, Target
from evenhand.selection.chosen_link import affordable_alpha, continuous_choice
from evenhand.selection.comparison import (
    COMPARED_DRAWS,
    Cells,
    HeldOutScores,
    mean_with_error,
)
from evenhand.selection.costs import Costs
from evenhand.selection.hurdles import atom_of, hurdle_choice
from evenhand.selection.lattices import lattice_choice
from evenhand.selection.result import Selection
from evenhand.selection.rows import SplitRows, naming_the_split
from evenhand.selection.searches import GroupSearches
from evenhand.selection.times import TimesScores, times_choice


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
        recalibrated.fit(*rows.learning(), rows.learning_weight, **rows.learning_times())
    # the base of a link is recalibrated overall only; maps by group are the alternative
    base = recalibrated.without_groups() if recalibrate and by is not None else recalibrated
    around = RandomizedRegressor.around(
        base, recalibrate=recalibrate, random_state=seed, **randomized
    )
    return around, recalibrated


def choose_link(
    model: RandomizedRegressor,
    base: Forecast,
    recalibrated: RecalibratedRegressor | None,
    rows: SplitRows,
    target: Target,
    family: Link,
    alternative: bool,
    random: np.random.Generator,
) -> Selection:
    """Choose the link with the least randomization that meets the target, or the most it may cost.

    The choice is made on the rows that certify it, in a way that the certificate accounts for;
    `base` is the deterministic forecast of these rows.
    """
    X, y = rows.certifying()
    # the grid of all rows: that of a few rows may be coarser
    grid = None if base.has_atoms else Grid.of(rows.y)
    held = HeldOutScores(y, grid, None if base.has_atoms else spread_step(y), random)
    times = rows.certifying_times
    if times is not None:
        held = TimesScores(times, random)
    pit = held.pit(base)
    match base.outcome_kind:
        case OutcomeKind.COUNT:
            chosen = lattice_choice(base, y, family, target, rows, random)
        case OutcomeKind.HURDLE if times is not None:
            chosen = times_choice(base, times, family, target, rows, random)
        case OutcomeKind.HURDLE:
            chosen = hurdle_choice(base, y, family, target, rows, random)
        case _:
            assert not isinstance(pit, tuple)
            chosen = continuous_choice(Costs(base, pit, y, grid, random), family, target, rows)
    # the fit does not depend on alpha: the link is chosen afterwards
    model.set_params(alpha=chosen.link.alpha)
    lines = _deterministic_lines(held, X, base, pit, model, recalibrated, alternative)
    base_line = lines[1 if model.recalibrate else 0]
    draws = jittered(held.compared.size, COMPARED_DRAWS, random)
    served = base[held.compared].randomized(chosen.link.alpha, chosen.link, draws)
    randomized_line = {
        "forecaster": "randomized",
        "log_score": base_line["log_score"] + chosen.price,
        **mean_with_error(held.crps(served)),
        "width": base_line["width"] * (1 + chosen.wider),
        "average_error": held.average_error(chosen.pit),
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
        n_certifying=y.size,
        certifying=rows.certify,
        plain=chosen.plain,
        searches=GroupSearches(
            chosen.searched,
            X,
            target.group_mass,
            target.confidence,
            int(random.integers(2**31)),
        ),
        rounding_step=None if grid is None else grid.step,
        kind=base.outcome_kind,
        atom=atom_of(base),
        worthy_error=worthy,
    )


def _deterministic_lines(
    held: HeldOutScores,
    X: Any,
    base: Forecast,
    pit: Floats | Cells,
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
