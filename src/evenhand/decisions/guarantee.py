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
    four_digits,
    one_line,
    percent,
    plain_number,
)
from evenhand._validate import Floats, Ints, bad_input, check_finite, check_fraction, check_masses
from evenhand.calibration import check_own_draws
from evenhand.certificates import ONE_ROW_EACH
from evenhand.columns import check_groups
from evenhand.decisions.bayes import BayesDecision, check_forecast
from evenhand.decisions.realized_losses import RealizedLosses, Statement
from evenhand.draws import RandomState, generator, one_row_each
from evenhand.forecast import Forecast

CHECKED_LEVELS = (0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999)
"""Levels of the forecast quantiles at which losses are checked for sign and direction."""


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
    mixed : float
        Share of people for whom the direction of the chosen action's loss depends on the draw; NaN
        if there are too few draws per person.
    promised, realized : float
        Mean promised and realized loss.
    more_low, more_high : float
        Ends of a normal confidence interval for the mean of realized minus promised loss.
    confidence : float
        Confidence level of each kind of statement.
    one_row_each : bool
        Whether one row per person was selected: shares are then of people, not of rows.
    """

    table: pd.DataFrame
    factor: int
    why: str
    is_randomized: bool
    mixed: float
    promised: float
    realized: float
    more_low: float
    more_high: float
    confidence: float
    one_row_each: bool = False

    def summary(self) -> str:
        """Return the findings as text."""
        lines = [self._promise(), self._theorem()]
        lines += [self._line(row) for row in self.table.to_dict("records")]
        level = confidence_in_full(self.confidence)
        lines.append(
            f"Each line gives the share of these rows and, in parentheses, its {level} confidence"
            " interval. Proven: the loss exceeds k times the promise no more often than the bound,"
            " which is no statement about the mean loss. Open: the rows are too few to decide."
            " Bounds for every group of a given size hold for groups chosen in any way that does"
            " not depend on the draws."
        )
        lines += [ONE_ROW_EACH] if self.one_row_each else []
        return "\n".join(lines)

    def _promise(self) -> str:
        line = (
            f"The promised loss is {plain_number(self.promised)} on average, the realized"
            f" loss {plain_number(self.realized)}"
        )
        if not (self.more_low > 0 or self.more_high < 0):
            return line + "."
        side = "more" if self.more_low > 0 else "less"
        ends = sorted((abs(self.more_low), abs(self.more_high)))
        return (
            f"{line}: {band(plain_number, *ends)} {side} with {confidence_in_full(self.confidence)}"
            " confidence, so the forecasts are not calibrated for these decisions."
        )

    def _theorem(self) -> str:
        subject = "an individually calibrated forecaster"
        if not self.is_randomized:
            subject = "a forecaster that is calibrated on average"
        where = " in every group defined by features" if self.is_randomized else ""
        theorem = (
            f"Under {subject}, the loss exceeds k times the promise with probability at most"
            f" {self.factor}/k{where}: {self.why}."
        )
        if self.is_randomized:
            return theorem
        return f"{theorem} One group of a given size may contain all of these cases."

    def _line(self, row: Mapping[Any, Any]) -> str:
        if row["n"] == 0:
            return f"- group {row['group']!r} has no rows"
        what = f"- more than {row['k']:g} times the promise"
        bound = f"bound {at_most(row['bound'], percent)}: {row['verdict']}"
        if row["kind"] == "every":
            return f"{what}, {row['group']}: at most {at_most(row['high'], percent)}, {bound}"
        who = row["group"] if row["kind"] == "everyone" else f"group {row['group']!r}"
        interval = band(percent, row["low"], row["high"])
        return f"{what}, {who}: {percent(row['exceeded'])} ({interval}), {bound}"

    def __repr__(self) -> str:
        return one_line(
            self,
            n_samples=int(self.table["n"].max()),
            bound=f"{self.factor}/k",
            promised=self.promised,
            realized=self.realized,
            confidence=four_digits(self.confidence, "down"),
        )


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
    multiples = _check_multiples(k)
    shares = check_masses(masses)
    check_fraction("confidence", confidence)
    masks = check_groups(groups, n, y if X is None else X)
    random = generator(random_state)
    # bounds need independent rows: one random row per person is used
    rows = np.arange(n) if cluster is None else one_row_each(cluster, n, random)
    _check_draws(forecast, rows)
    # losses must be monotone at all possible outcomes, not only at the observed ones
    ways = decision.check_loss(_likely(forecast, outcomes), X)
    made = decision.decide(forecast, X)
    seen = RealizedLosses.of(
        made, decision.realized_loss(made, outcomes, X), ways, forecast.is_randomized
    ).take(rows)
    named = {name: mask[rows] for name, mask in masks.items()}
    statements = [
        statement
        for multiple in multiples
        for statement in seen.statements(multiple, named, shares, confidence, random)
    ]
    table = pd.DataFrame(statements, columns=Statement._fields)
    factor, why = seen.factor()
    more = seen.broken_promise(confidence)
    return LossGuarantee(
        table=table.assign(verdict=[statement.verdict for statement in statements]),
        factor=factor,
        why=why,
        is_randomized=forecast.is_randomized,
        mixed=seen.mixed,
        promised=float(seen.promised.mean()),
        realized=float(seen.losses.mean()),
        more_low=more[0],
        more_high=more[1],
        confidence=float(confidence),
        one_row_each=cluster is not None,
    )


def _check_multiples(k: float | Sequence[float]) -> list[float]:
    # for k < 1 the theorem's bound exceeds 1
    multiples = np.unique(check_finite("k", np.atleast_1d(k)))
    if (multiples < 1).any():
        remedy = "k=2 counts losses above twice the promise"
        raise bad_input("k", "be at least 1", float(multiples.min()), remedy)
    return [float(multiple) for multiple in multiples]


def _check_draws(forecast: Forecast, rows: Ints) -> None:
    """Refuse draws without a guarantee: shared by people, or not one in each of equal cells."""
    if forecast.r is not None:
        # draws of shape (1, m) apply to all people: broadcast, they are refused as shared
        draws = forecast.r if forecast.r.ndim == 2 else forecast.r[:, None]
        check_own_draws(np.broadcast_to(draws, (len(forecast), draws.shape[1])), rows)


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
