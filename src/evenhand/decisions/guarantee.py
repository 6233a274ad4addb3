"""How often the loss of a decision exceeds what its forecast promised (method: decisions).

The forecast that chooses an action promises a loss, its expectation. If the loss is non-negative
and rises with the outcome, it exceeds `k` times the promise only where the PIT is above `1 - 1/k`;
if it falls, only where the PIT is below `1/k` (Markov). So the distribution of PITs bounds how
often: by `1/k` if the direction of the chosen action is always the same, by `2/k` if not, over
whatever the forecaster is calibrated for. For one person under an individually calibrated
forecaster what counts is whether the direction depends on that person's draw.
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
    at_least,
    at_most,
    band,
    confidence_in_full,
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
"""Levels of these quantiles."""


@dataclass(frozen=True, eq=False, repr=False)
class LossGuarantee(Summarized):
    """How often the realized loss exceeds `k` times the promised one, and what the theorem allows.

    Parameters
    ----------
    table : DataFrame
        A row per group and k. `group`; `kind` ("everyone", "named", or "every" for every group of a
        mass); `mass` (NaN for named groups); `k`; `n`; `promised` and `realized`, mean losses (NaN
        in "every" rows); `exceeded`, the share of people and draws whose loss exceeds k times the
        promise, in "every" rows that of the people who fared worst, picked with the outcomes seen;
        `low` and `high`, what confidence leaves possible for it: for everyone, for all named groups
        together, from above for every group of all masses together; `bound`, the theorem's, which
        is for groups by features, while `low` and `high` hold for any; and `verdict`: "proven" if
        `high` is within the bound, "broken" if `low` is beyond it (then the forecaster is not
        calibrated there, if features define the group), "no claim" if the bound is 1, else "open":
        more rows would tell.
    factor : int
        1 where the bound for everyone is `1/k`, 2 where it is `2/k`; a named group may do better
        than everyone.
    why : str
        What decided that.
    is_randomized : bool
        Whether a draw stands behind the forecasts. If not, the bound is that of a forecaster that
        is calibrated on average (in a named group: in that group), and every group of a mass may
        have all of the misses.
    mixed : float
        Share of people whose chosen action loses in different directions under different draws; NaN
        if one draw per person does not show it.
    promised, realized : float
        Mean promised and realized loss.
    more_low, more_high : float
        Ends of a normal interval for the mean of what is realized more than promised.
    confidence : float
        Of each kind of statement.
    one_row_each : bool
        Whether one row of each person was taken, of several: shares are then of people, not of
        rows.
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
        subject = "individually calibrated" if self.is_randomized else "calibrated on average"
        lines = [
            self._promise(),
            (
                f"A forecaster that is {subject} exceeds k times its promise with probability at"
                f" most {self.factor}/k, in every group by features: {self.why}."
                if self.is_randomized
                else (
                    f"A forecaster that is {subject} exceeds k times its promise with probability"
                    f" at most {self.factor}/k: {self.why}. In a group of a given size all of its"
                    " misses may come together."
                )
            ),
        ]
        lines += [self._line(row) for row in self.table.to_dict("records")]
        lines.append(
            f"In brackets what {confidence_in_full(self.confidence)} confidence leaves possible,"
            " line by line; before them the share in the rows at hand. Proven: exceeded no more"
            " often than the bound, which says nothing of the mean. Open: more rows would tell."
            " Groups of a size are bounded however they are chosen, if not by the draws."
        )
        lines += [ONE_ROW_EACH] if self.one_row_each else []
        return "\n".join(lines)

    def _promise(self) -> str:
        line = f"Promised loss {self.promised:.4g} on average, realized {self.realized:.4g}"
        if not (self.more_low > 0 or self.more_high < 0):
            return line + "."
        side = "more" if self.more_low > 0 else "less"
        ends = sorted((abs(self.more_low), abs(self.more_high)))
        return (
            f"{line}: by {band(plain_number, *ends)} {side}, so the forecasts are not calibrated"
            " where they decide."
        )

    def _line(self, row: Mapping[Any, Any]) -> str:
        if row["n"] == 0:
            return f"- group {row['group']!r} has no rows"
        share = percent(row["exceeded"])
        bound = f"bound {at_most(row['bound'])}%: {row['verdict']}"
        if row["kind"] == "every":
            return (
                f"- more than {row['k']:g} times, {row['group']}: at most {at_most(row['high'])}%,"
                f" {bound}"
            )
        who = row["group"] if row["kind"] == "everyone" else f"group {row['group']!r}"
        ends = f"{at_least(row['low'])}% to {at_most(row['high'])}%"
        return f"- more than {row['k']:g} times, {who}: {share} ({ends}), {bound}"

    def __repr__(self) -> str:
        return one_line(
            self,
            n_samples=int(self.table["n"].max()),
            bound=f"{self.factor}/k",
            promised=self.promised,
            realized=self.realized,
            confidence=self.confidence,
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
    """Measure how often a decision's loss exceeds k times its promise, beside the theorem's bound.

    Parameters
    ----------
    decision : BayesDecision
        Its losses must be non-negative and monotone in the outcome.
    forecast : Forecast
        Of n held-out people. If randomized, with each person's own draws, best several
        (`draws.jittered(n, 64)`): they show whether the direction of the chosen action depends on
        the draw, and how often the promise to each person is broken.
    y : array-like of shape (n,)
        Outcomes.
    X : table or array with n rows, optional
        What losses depend on besides the outcome.
    k : float or list of float, default (2, 4, 10)
        Multiples of the promised loss, at least 1.
    groups : DataFrame, Series, dict of name to values, or list of columns of `X`, optional
        Groups named before the rows were seen, as in `evenhand.audit`. The theorem is about groups
        by features; a group by outcomes may fare worse under any forecaster, but is measured, too.
    masses : float or list of float
        Sizes of groups, as shares of the people, for which every group is bounded.
    confidence : float, default 0.95
        Probability that a statement is true, for each k: the one over everyone, those of all named
        groups together, those of every group of all masses together.
    cluster : array-like of shape (n,), optional
        Labels of people who have several rows: one row of each, chosen at random, is used.
    random_state : int, generator or None
        Of that choice and of the order of bets.

    Returns
    -------
    LossGuarantee

    Raises
    ------
    InputError
        If the input does not fit, a loss is negative or not monotone, or people share their draws.

    Notes
    -----
    A loss that is a function is checked for its sign and direction at the outcomes given and at
    quantiles of the forecasts. Bounds in `high` need no calibration: they are proven by the rows
    alone. With one draw per person they are Clopper and Pearson's, else bets on the share of each
    person's draws.

    References
    ----------
    Zhao, Ma & Ermon, ICML 2020, the theorem on decisions, whose second part holds under the
    condition given here only.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.decisions import StepLoss
    >>> from evenhand.draws import jittered
    >>> y = np.random.default_rng(0).normal(size=2000)
    >>> stated = Forecast.from_normal(np.zeros(2000), np.ones(2000))
    >>> forecast = stated.randomized(0.1, r=jittered(2000, 32, 0))
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
    # bounds need independent people: of several rows of one person a random one is used
    rows = np.arange(n) if cluster is None else one_row_each(cluster, n, random)
    _check_draws(forecast, rows)
    # directions must hold at outcomes that may occur, not only at those that did
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
    # below 1 the theorem's bound is above 1 and claims nothing
    multiples = np.unique(check_finite("k", np.atleast_1d(k)))
    if (multiples < 1).any():
        raise bad_input(
            "k", "be at least 1", float(multiples.min()), "2 asks for losses of twice the promise"
        )
    return [float(multiple) for multiple in multiples]


def _check_draws(forecast: Forecast, rows: Ints) -> None:
    """Refuse draws that prove nothing: shared by people, or not one in each of equal cells."""
    if forecast.r is not None:
        # draws of shape (1, m) are everybody's: once broadcast they are refused as shared
        draws = forecast.r if forecast.r.ndim == 2 else forecast.r[:, None]
        check_own_draws(np.broadcast_to(draws, (len(forecast), draws.shape[1])), rows)


def _likely(forecast: Forecast, y: Floats) -> Floats:
    """Outcomes at which losses are checked: observed ones, and quantiles of some forecasts."""
    n = len(forecast)
    # 200 people at most, and 257 outcomes of each kind
    some = forecast[np.linspace(0, n - 1, min(n, 200)).astype(np.intp)]
    # of few people, evenly chosen: losses are the user's functions, and may be slow
    quantiles = some.ppf(CHECKED_LEVELS).ravel()
    levels = np.linspace(0.0, 1.0, 257)
    return np.concatenate(
        (np.quantile(y, levels), np.quantile(quantiles[np.isfinite(quantiles)], levels))
    )
