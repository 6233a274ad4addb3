"""Bounds of the outcome: validation, the map that is learned from them, and its application."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats
from sklearn.tree import DecisionTreeRegressor

from evenhand._format import in_full, percent
from evenhand._validate import MILD_ATOM, Floats, InputError, Ints, bad_input
from evenhand.distributions import Distribution, Support, Transformed, Truncated
from evenhand.tables import TableEncoder, take_rows

# --- choice of the bend of a support's map: from a logarithm near a bound to a line far from it

# A logarithm makes proportional noise constant, but it stretches additive noise where outcomes are
# near the bound. The bend decides between the two, before a model is fitted.

N_BENDS = 8
"""Number of bends that are compared."""

LEAST_BEND = 0.1
"""Smallest bend, relative to the median distance of outcomes from the nearer bound."""

TREE_ROWS = 2000
"""Largest number of rows on which bends are compared."""


def choose_bend(low: float, high: float, outcomes: Floats, rows: Any) -> float:
    """Return the bend with the largest likelihood of normal noise with constant variance.

    The noise is what outcomes on the line differ from the mean of their group. Groups are the
    leaves of a tree for the rank of the outcome, which no increasing map changes; it is grown on
    one half of the rows and used on the other half. The largest bend is the largest distance from
    the nearer bound, so that the map is a line beyond it and errors of a model there do not grow
    exponentially.

    Parameters
    ----------
    low, high : float
        Bounds, infinite on a side without bound.
    outcomes : ndarray of shape (n,)
        Outcomes inside the bounds.
    rows : DataFrame or ndarray of shape (n, n_features), or None
        Features; None compares outcomes to their overall mean.
    """
    distance = np.minimum(outcomes - low, high - outcomes)
    most = float(distance.max())
    bends = np.geomspace(min(LEAST_BEND * float(np.median(distance)), most), most, N_BENDS)
    # a fixed seed, as the choice must not change the draws of the model's own generator
    random = np.random.default_rng(0)
    order = random.permutation(outcomes.size)[:TREE_ROWS]
    y = outcomes[order]
    group = np.zeros(y.size, dtype=np.intp) if rows is None else _groups(take_rows(rows, order), y)
    losses = [_loss(Support(low, high, bend=float(bend)), y, group) for bend in bends]
    return float(bends[int(np.argmin(losses))])


def _loss(support: Support, y: Floats, group: Ints) -> float:
    """Negative log likelihood per row of normal noise around the means of the groups."""
    line = support.to_line(y)
    counts = np.bincount(group)
    noise = line - (np.bincount(group, line) / np.maximum(counts, 1))[group]
    freedom = max(y.size - int((counts > 0).sum()), 1)
    return float(0.5 * np.log((noise**2).sum() / freedom) - support.log_slope(y).mean())


def _groups(rows: Any, y: Floats) -> Ints:
    """Return the leaf of each row in a tree grown on the other half of the rows."""
    features = np.nan_to_num(np.asarray(TableEncoder().fit_transform(rows)))
    rank = stats.rankdata(y)
    is_first = np.arange(y.size) < y.size // 2
    leaf = np.zeros(y.size, dtype=np.intp)
    least = max(5, round(0.5 * np.sqrt(y.size)))
    for learn, start in ((is_first, 0), (~is_first, y.size)):
        tree = DecisionTreeRegressor(min_samples_leaf=least, random_state=0)
        tree.fit(features[learn], rank[learn])
        # leaves of the two trees have different numbers
        leaf[~learn] = tree.apply(features[~learn]) + start
    return leaf


# --- bounds of the outcome: validation, the map that is learned from them, and its application

Bounds = tuple[float | None, float | None] | None
"""Bounds of the outcome; None or an infinite number on a side without bound."""

FARTHEST_BOUND = 1e12
"""Largest distance of a bound from the outcomes, relative to their range."""


def check_bounds(support: Any) -> tuple[float, float] | None:
    """Return the bounds as floats, infinite on a side without bound; None without bounds."""
    if support is None:
        return None
    rule = "be a pair (low, high) with low < high, with None on a side without bound"
    refusal = bad_input("support", rule, repr(support)[:80], "for amounts of money pass (0, None)")
    # a set has no order, and the characters of a text are not bounds
    if isinstance(support, str | bytes | set | dict):
        raise refusal
    try:
        low, high = support
        bounds = (-np.inf if low is None else float(low), np.inf if high is None else float(high))
    except (TypeError, ValueError):
        raise refusal from None
    if not bounds[0] < bounds[1] or bounds[0] == np.inf or bounds[1] == -np.inf:
        raise refusal
    return None if np.isinf(bounds).all() else bounds


def stored_bounds(support: Bounds) -> list[float | None] | None:
    """Return the bounds as JSON values."""
    bounds = check_bounds(support)
    return None if bounds is None else [None if np.isinf(end) else end for end in bounds]


def check_support(
    outcomes: Floats, support: Bounds, weight: Floats | None = None, *, name: str = "y"
) -> None:
    """Refuse bounds that are invalid, and outcomes outside of them or too often at them.

    Rows of weight 0 are not checked.

    Raises
    ------
    InputError
        If an outcome is outside the bounds, more than 2% of the outcomes are at a bound, or a bound
        is so far away that rounding would change forecasts.
    """
    bounds = check_bounds(support)
    if bounds is None:
        return
    used = np.ones(outcomes.size, dtype=np.bool_) if weight is None else weight > 0
    outside = used & ((outcomes < bounds[0]) | (outcomes > bounds[1]))
    if outside.any():
        row = int(np.argmax(outside))
        count = int(outside.sum())
        rule = f"lie within support={_named(bounds)}"
        remedy = "correct that row" if count == 1 else f"correct the {count:,} rows outside"
        remedy = f"{remedy}, or widen the support"
        raise bad_input(f"{name}[{row}]", rule, f"{outcomes[row]:g}", remedy)
    kept = outcomes[used]
    for bound in filter(np.isfinite, bounds):
        distance = float(np.abs(kept - bound).min())
        if distance > FARTHEST_BOUND * float(np.ptp(kept)) > 0:
            rule = f"have bounds at most {FARTHEST_BOUND:g} times the range of {name} away from it"
            remedy = "pass None on a side where no outcome is near the bound"
            raise bad_input("support", rule, f"{bound:g}", remedy)
        is_at = kept == bound
        share = float(is_at.mean())
        # a single row is more than 2% of fewer than 50 rows
        if share > MILD_ATOM and is_at.sum() > 1:
            raise InputError(
                f"{name} is {bound:g}, a bound of support={_named(bounds)}, in"
                f" {percent(share, 'up')} of the rows, and at most {in_full(MILD_ATOM)} may be at a"
                " bound, because forecasts are continuous there; model that value separately, or"
                " leave support out"
            )


def learn_support(
    support: Bounds, outcomes: Floats, rows: Any, *, is_map: bool = True
) -> Support | None:
    """Learn the map to the line from checked training outcomes; None without bounds.

    Outcomes at a bound are moved inside by half the smallest distance of the others. `rows` are the
    features of the outcomes, or None.
    """
    bounds = check_bounds(support)
    if bounds is None:
        return None
    low, high = bounds
    distance = np.minimum(outcomes - low, high - outcomes)
    if not distance.any():
        raise bad_input("y", f"have values inside support={_named(bounds)}", "its bounds only")
    edge = float(distance[distance > 0].min()) / 2
    found = Support(low, high, edge=edge, is_map=is_map)
    if not is_map:
        return found
    return replace(found, bend=choose_bend(low, high, found.inside(outcomes), rows))


def to_line(support: Support, outcomes: Floats) -> Floats:
    """Map training outcomes to the line, those at a bound moved inside by `support.edge`."""
    return support.to_line(support.inside(outcomes)) if support.is_map else outcomes


def on_support(support: Support, distribution: Distribution) -> Distribution:
    """Map predicted distributions to the support, or truncate distributions of the outcome."""
    return (Transformed if support.is_map else Truncated)(distribution, support)


def _named(bounds: tuple[float, float]) -> str:
    low, high = ("None" if np.isinf(end) else f"{end:g}" for end in bounds)
    return f"({low}, {high})"
