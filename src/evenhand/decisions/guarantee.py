"""Bounds on how often a decision's loss exceeds the loss promised by its forecast.

The promised loss of an action is its expectation under the forecast. If the loss is non-negative
and rises with the outcome, it exceeds `k` times the promise only where the PIT is above `1 - 1/k`;
if it falls, only where the PIT is below `1/k` (Markov's inequality). The distribution of PITs
therefore bounds the frequency of such losses among people for whom the forecaster is calibrated:
by `1/k` if the loss of the chosen action always has the same direction, by `2/k` otherwise. For
one person under an individually calibrated forecaster, the factor depends on whether the direction
changes with that person's draw (method: decisions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand._format import (
    Summarized,
    at_most,
    band,
    confidence_in_full,
    count,
    four_digits,
    in_full,
    one_line,
    percent,
)
from evenhand._validate import (
    Floats,
    Ints,
    Mask,
    bad_input,
    check_finite,
    check_fraction,
    check_masses,
)
from evenhand.calibration import (
    betting_cvar,
    check_own_draws,
    cvar,
    local_levels_band,
    share_bound,
    share_interval,
)
from evenhand.certificates import ONE_ROW_EACH
from evenhand.columns import check_groups
from evenhand.decisions.bayes import BayesDecision, check_forecast
from evenhand.draws import RandomState, generator, one_row_each
from evenhand.forecast import Forecast

CHECKED_LEVELS = (0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999)
"""Levels of the forecast quantiles at which losses are checked for sign and direction."""

ENOUGH_DRAWS = 16
"""Minimum number of draws per person to see whether the direction depends on the draw."""


@dataclass(frozen=True, eq=False, repr=False)
class LossGuarantee(Summarized):
    """Frequency of realized losses above `k` times the promised loss, with the theorem's bound.

    Parameters
    ----------
    table : DataFrame
        One row per group and k. `group`; `kind` ("everyone", "named", or "every" for every group of
        a given size); `mass`, the group size (NaN for named groups); `k`; `n`; `promised` and
        `realized`, mean losses (NaN in "every" rows); `exceeded`, the share of people and draws
        whose loss exceeds k times the promise, in "every" rows the share in the oracle worst group
        (chosen after seeing the outcomes); `low` and `high`, its confidence interval, simultaneous
        over named groups, and one-sided and simultaneous over sizes for "every"; `bound`, the bound
        of the theorem, which is for groups defined by features, while `low` and `high` are valid
        for any group; and `verdict`: "proven" if `high` is at most the bound, "broken" if `low`
        exceeds it (the forecaster is then not calibrated in that group, if features define it),
        "no claim" if the bound is 1, else "open": more rows may decide.
    factor : int
        1 if the bound for everyone is `1/k`, 2 if it is `2/k`; a named group may have a smaller
        factor.
    why : str
        The reason for the factor.
    is_randomized : bool
        Whether the forecasts depend on draws. If not, the bound is that of a forecaster that is
        calibrated on average (for a named group: in that group), and a group of a given size may
        contain all exceedances.
    confidence : float
        Confidence level of each kind of statement.
    one_row_each : bool
        Whether one row per person was selected: shares are then of people, not of rows.
    """

    table: pd.DataFrame
    factor: int
    why: str
    is_randomized: bool
    confidence: float
    one_row_each: bool = False

    def summary(self) -> str:
        """Return the findings as text."""
        subject, where = "a forecaster that is calibrated on average", ""
        if self.is_randomized:
            subject = "an individually calibrated forecaster"
            where = " in every group defined by features"
        theorem = (
            f"Under {subject}, the loss exceeds k times the promise with probability at most"
            f" {self.factor}/k{where}: {self.why}."
        )
        if not self.is_randomized:
            theorem += " One group of a given size may contain all of these cases."
        level = confidence_in_full(self.confidence)
        explained = (
            f"Each line gives the share of these rows and, in parentheses, its {level} confidence"
            " interval. Proven: the loss exceeds k times the promise no more often than the bound,"
            " which is no statement about the mean loss. Open: the rows are too few to decide."
            " Bounds for every group of a given size hold for groups chosen in any way that does"
            " not depend on the draws."
        )
        lines = [theorem, *(_line(row) for row in self.table.to_dict("records")), explained]
        return "\n".join(lines + [ONE_ROW_EACH] * self.one_row_each)

    def __repr__(self) -> str:
        return one_line(
            self,
            n_samples=int(self.table["n"].max()),
            bound=f"{self.factor}/k",
            confidence=four_digits(self.confidence, "down"),
        )


def _line(row: Mapping[Any, Any]) -> str:
    if row["n"] == 0:
        return f"- group {row['group']!r} has no rows"
    what = f"- more than {row['k']:g} times the promise"
    bound = f"bound {at_most(row['bound'], percent)}: {row['verdict']}"
    if row["kind"] == "every":
        return f"{what}, {row['group']}: at most {at_most(row['high'], percent)}, {bound}"
    who = row["group"] if row["kind"] == "everyone" else f"group {row['group']!r}"
    interval = band(percent, row["low"], row["high"])
    return f"{what}, {who}: {percent(row['exceeded'])} ({interval}), {bound}"


def loss_guarantee(
    decision: BayesDecision,
    forecast: Forecast,
    y: ArrayLike,
    *,
    X: Any = None,
    k: float | Sequence[float] = (2, 4, 10),
    groups: Any = None,
    masses: ArrayLike = (0.1, 0.2, 0.5),
    confidence: float = 0.95,
    cluster: ArrayLike | None = None,
    random_state: RandomState = None,
) -> LossGuarantee:
    """Estimate how often a decision's loss exceeds k times its promise, with the theorem's bound.

    Parameters
    ----------
    decision : BayesDecision
        A decision whose losses are non-negative and monotone in the outcome.
    forecast : Forecast
        Forecasts of n held-out people. If randomized, each person needs own draws, preferably
        several (`draws.jittered(n, 64)`): they show whether the direction of the chosen action's
        loss depends on the draw, and how often the promise to each person is broken.
    y : array-like of shape (n,)
        Outcomes.
    X : table or array with n rows, optional
        Further arguments of losses that are functions.
    k : float or list of float, default (2, 4, 10)
        Multiples of the promised loss, at least 1.
    groups : DataFrame, Series, dict of name to values, or list of columns of `X`, optional
        Groups chosen before seeing the rows, as in `evenhand.audit`. The theorem covers groups
        defined by features. A group defined by outcomes may have larger losses under any
        forecaster; it is measured all the same.
    masses : float or list of float
        Group sizes, as shares of the people, at which every group is bounded.
    confidence : float, default 0.95
        Confidence level for each k, separately for everyone, simultaneously for all named groups,
        and simultaneously for every group of all sizes.
    cluster : array-like of shape (n,), optional
        Labels of people who have several rows: one row per person, chosen at random, is used.
    random_state : int, generator or None
        Seed of that choice and of the order of bets.

    Returns
    -------
    LossGuarantee

    Raises
    ------
    InputError
        If the inputs do not match, a loss is negative or not monotone, or people share draws.

    Notes
    -----
    A loss that is a function is checked for its sign and direction at the given outcomes and at
    quantiles of the forecasts. The bounds in `high` do not assume calibration: they follow from the
    rows alone. With one draw per person they are Clopper-Pearson bounds, otherwise betting bounds
    on the share of each person's draws.

    References
    ----------
    Zhao, Ma & Ermon, ICML 2020, the theorem on decisions, whose second part is true only under the
    condition given here.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.decisions import StepLoss
    >>> from evenhand.draws import jittered
    >>> y = np.random.default_rng(0).normal(size=2000)
    >>> base = Forecast.from_normal(np.zeros(2000), np.ones(2000))
    >>> forecast = base.randomized(0.1, r=jittered(2000, 32, 0))
    >>> bank = BayesDecision(("yes", "no"), {"yes": StepLoss([0.0], [4.0, 0.0]), "no": 1.0})
    >>> found = loss_guarantee(bank, forecast, y, k=2, masses=0.5, random_state=0)
    >>> found.factor, found.table["verdict"].tolist()
    (1, ['proven', 'proven'])
    """
    check_forecast(forecast)
    outcomes = check_finite("y", y)
    n = len(forecast)
    if outcomes.shape != (n,):
        raise bad_input("y", f"have one outcome per forecast ({n})", f"shape {outcomes.shape}")
    multiples = np.unique(check_finite("k", np.atleast_1d(k)))
    if (multiples < 1).any():  # the theorem's bound would exceed 1
        remedy = "k=2 counts losses above twice the promise"
        raise bad_input("k", "be at least 1", float(multiples.min()), remedy)
    shares = check_masses(masses)
    check_fraction("confidence", confidence)
    masks = check_groups(groups, n, y if X is None else X)
    random = generator(random_state)
    # bounds need independent rows: one random row per person is used
    rows = np.arange(n) if cluster is None else one_row_each(cluster, n, random)
    if forecast.r is not None:
        # draws of shape (1, m) apply to all people: broadcast, they are refused as shared
        draws = forecast.r if forecast.r.ndim == 2 else forecast.r[:, None]
        check_own_draws(np.broadcast_to(draws, (n, draws.shape[1])), rows)
    # losses must be monotone at all possible outcomes, not only at the observed ones
    ways = decision.check_loss(_likely(forecast, outcomes), X)
    ways = np.broadcast_to(ways, (n, ways.shape[1]))[rows]
    made = decision.decide(forecast, X)
    chosen = np.take_along_axis(ways, made.index.reshape(n, -1)[rows], axis=1)
    promised = made.promised.reshape(n, -1)[rows]
    losses = decision.realized_loss(made, outcomes, X).reshape(n, -1)[rows]
    factor, why = _factor(ways, chosen, forecast.is_randomized)
    # Bonferroni correction for the named groups
    shared = 1 - (1 - confidence) / max(len(masks), 1)
    parts = [("everyone", "everyone", 1.0, confidence, np.ones(rows.size, dtype=np.bool_))]
    parts += [(name, "named", np.nan, shared, mask[rows]) for name, mask in masks.items()]
    table = []
    for multiple in multiples.tolist():
        # the share of each person's draws; a constant loss equals its promise up to rounding
        exceeded = (losses > (1 + 1e-9) * multiple * promised).mean(axis=1)
        for name, kind, mass, level, mask in parts:
            bound = min(
                1.0, _factor(ways[mask], chosen[mask], forecast.is_randomized)[0] / multiple
            )
            interval = _interval(exceeded[mask], losses.shape[1], level, random)
            means = [_mean(values[mask]) for values in (promised, losses, exceeded)]
            n_rows = int(mask.sum())
            table.append((name, kind, mass, multiple, n_rows, *means, *interval, bound))
        most = _of_worst(exceeded, losses.shape[1], shares, confidence)
        for mass, high in zip(shares.tolist(), most, strict=True):
            # without draws average calibration allows all exceedances in the same group
            bound = min(1.0, factor / multiple / (1.0 if forecast.is_randomized else mass))
            means = [np.nan, np.nan, cvar(exceeded, mass)]
            every = f"every group of {in_full(mass)}", "every", mass
            table.append((*every, multiple, rows.size, *means, 0.0, high, bound))
    columns = ["group", "kind", "mass", "k", "n", "promised", "realized", "exceeded"]
    found = pd.DataFrame(table, columns=[*columns, "low", "high", "bound"])
    verdicts = [_verdict(*row) for row in found[["low", "high", "bound"]].to_numpy()]
    return LossGuarantee(
        table=found.assign(verdict=verdicts),
        factor=factor,
        why=why,
        is_randomized=forecast.is_randomized,
        confidence=float(confidence),
        one_row_each=cluster is not None,
    )


def _factor(ways: Ints, chosen: Ints, is_randomized: bool) -> tuple[int, str]:
    """Return 1 or 2, for a bound of 1/k or 2/k, and the reason.

    `ways` (n, n_actions) are the directions of the losses of all actions, `chosen` (n, m) those of
    the chosen action at each draw: 1 if the loss rises with the outcome, -1 if it falls.
    """
    if not is_randomized:
        # calibration is over people, not draws: the directions of all people count
        if _both(chosen.reshape(1, -1)).any():
            return 2, "losses of chosen actions rise in both directions, so both tails count"
        return 1, "the loss of the chosen action rises in the same direction for all people"
    # per person: without actions of opposite directions no draw can change the tail
    if not _both(ways).any():
        return 1, "the losses of all actions are monotone in the same direction, or constant"
    m = chosen.shape[1]
    if m < ENOUGH_DRAWS:
        # with few draws per person, actions that other draws would choose go unnoticed
        return 2, (
            f"losses of different actions rise in both directions, and {count(m, 'draw')} per"
            " person cannot show whether the direction depends on the draw: use at least"
            f" {ENOUGH_DRAWS}, draws.jittered(n, 64)"
        )
    mixed = float(_both(chosen).mean())
    if mixed:
        return 2, (
            f"for {percent(mixed)} of people the direction in which the loss of the chosen action"
            " rises depends on the draw, so both tails count"
        )
    return 1, (
        "the direction in which the loss of the chosen action rises changes with the draw for no"
        f" person, over {m} draws each"
    )


def _both(ways: Ints) -> Mask:
    """Return whether each row contains both directions."""
    return np.asarray((ways > 0).any(axis=1) & (ways < 0).any(axis=1))


def _interval(
    shares: Floats, n_draws: int, confidence: float, random: np.random.Generator
) -> tuple[float, float]:
    """Return a confidence interval for the mean of shares of each person's draws."""
    if shares.size == 0:  # one row per person may leave a group without rows
        return 0.0, 1.0
    if n_draws == 1:
        # one draw each: independent trials, for which Clopper-Pearson intervals are exact
        return share_interval(round(shares.sum()), shares.size, confidence)
    # shares in [0, 1]: a betting bound on each side, at half the error probability
    side = 1 - (1 - confidence) / 2
    low = 1 - betting_cvar(1 - shares, 1.0, 1.0, side, random)
    return low, betting_cvar(shares, 1.0, 1.0, side, random)


def _of_worst(shares: Floats, n_draws: int, masses: Floats, confidence: float) -> list[float]:
    """Return bounds on the mean share in any group of each size, simultaneous over sizes."""
    if n_draws > 1:
        worst = local_levels_band(shares, 1.0, confidence)
        return [worst.cvar(mass) for mass in masses.tolist()]
    # one draw per person: the worst group contains all people whose loss exceeds the bound
    most = share_bound(round(shares.sum()), shares.size, confidence)
    return [min(1.0, most / mass) for mass in masses.tolist()]


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else np.nan


def _verdict(low: float, high: float, bound: float) -> str:
    """Return the verdict of the rows on a bound."""
    if bound >= 1:
        return "no claim"
    if high <= bound:
        return "proven"
    return "broken" if low > bound else "open"


def _likely(forecast: Forecast, y: Floats) -> Floats:
    """Return outcomes at which to check losses: observed ones and quantiles of some forecasts."""
    n = len(forecast)
    # 200 people at most, and 257 outcomes of each kind
    some = forecast[np.linspace(0, n - 1, min(n, 200)).astype(np.intp)]
    # only some people, evenly spaced: losses are users' functions and may be slow
    quantiles = some.ppf(CHECKED_LEVELS).ravel()
    levels = np.linspace(0.0, 1.0, 257)
    return np.concatenate(
        (np.quantile(y, levels), np.quantile(quantiles[np.isfinite(quantiles)], levels))
    )
