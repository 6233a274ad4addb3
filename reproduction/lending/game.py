"""Lending game: decisions, utilities and rounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._validate import Floats, InputError, Mask, bad_input, check_finite
from evenhand.decisions import BayesDecision, StepLoss
from evenhand.distributions import Distribution, Normal, Randomized
from evenhand.draws import KeyedDraws, RandomState, fresh, generator, nodes
from evenhand.forecast import Forecast
from evenhand.links import Link
from reproduction.lending.outcome import Round
from reproduction.lending.rules import LendingRules
from evenhand.tables import row_blocks, take_rows

YES = "yes"
NO = "no"

LINK_NODES = 2048
"""Half the number of draws at which a link is tabulated for its approval probability."""

SURE = 1e6
"""Largest normal score; larger ones are clipped."""

BLOCK_ROWS = 20_000
"""Number of people forecast at once."""


@dataclass(frozen=True)
class LendingGame(LendingRules):
    """Lending game of a bank that sees features and applicants who know their worthiness.

    A person is qualified if the worthiness `y` is at least `threshold`. The bank sees the features
    and forecasts `y`; it approves if approval has a larger expected gain than refusal. All amounts
    are in the same unit, such as the gain from a good loan.

    Parameters
    ----------
    threshold : float
        Smallest worthiness of a qualified person, in units of y.
    bank_gain, bank_loss : float, default 1 and 3
        Gain of the bank from approving a qualified person, and its loss from approving an
        unqualified one, both above 0. The bank approves if the predicted probability of
        `y < threshold` is at most `bank_gain / (bank_gain + bank_loss)`.
    gain_qualified, gain_unqualified : float, default 0.2 and 1
        Gain of an applicant from approval, above 0.
    refusal_cost : float, default 0.5
        Cost of an applicant who ends without a loan, above 0.
    retry_cost : float, default 0
        Cost of each further application after a refusal, at least 0.
    max_tries : int, default 1
        Largest number of applications of a person.

    References
    ----------
    Zhao, Ma & Ermon, ICML 2020, section 6.2; the defaults are theirs.

    Examples
    --------
    >>> game = LendingGame(threshold=0.5)
    >>> game.approve(Forecast.from_normal(mean=[0.6, 0.55], std=[0.1, 0.1]))
    array([ True, False])

    A qualified person applies if the approval probability is at least 5/7, an unqualified person if
    it is at least 1/3:

    >>> game.applies_if_informed(chance=[0.7, 0.72, 0.3, 0.34], y=[0.9, 0.9, 0.1, 0.1])
    array([False,  True, False,  True])
    """

    @property
    def risk(self) -> float:
        """Largest predicted probability of `y < threshold` with approval, 1/4 by default."""
        return self.bank_gain / (self.bank_gain + self.bank_loss)

    @property
    def break_even(self) -> tuple[float, float]:
        """Smallest approval probabilities at which qualified and unqualified people apply.

        They are 5/7 and 1/3 by default.
        """
        cost = self.refusal_cost
        return cost / (self.gain_qualified + cost), cost / (self.gain_unqualified + cost)

    @cached_property
    def decision(self) -> BayesDecision:
        """The bank's decision with non-negative losses and the actions "yes" and "no"."""
        # the losses are the maximal utility minus the utility, which gives the same decisions
        bad = StepLoss([self.threshold], [self.bank_gain + self.bank_loss, 0.0])
        return BayesDecision((YES, NO), {YES: bad, NO: self.bank_gain})

    def is_qualified(self, y: ArrayLike) -> Mask:
        """Return whether people are qualified, shape (n,)."""
        return np.asarray(check_finite("y", y) >= self.threshold)

    def approve(self, forecast: Forecast) -> Mask:
        """Return whether the bank approves each forecast, shape of the batch."""
        return np.asarray(self.decision.decide(forecast).index == 0)

    def approval_chance(self, bank: Any, X: Any, n_draws: int = 64) -> Floats:
        """Return each person's approval probability in one try, over the bank's draws.

        Parameters
        ----------
        bank : fitted forecaster
        X : table or array with n rows
        n_draws : int, default 64
            Number of draws (midpoints), for forecasters without a closed form. Links around
            deterministic forecasts have a closed form, and deterministic forecasts have
            probabilities of 0 and 1.

        Returns
        -------
        ndarray of shape (n,)
        """
        if len(X) == 0:
            raise InputError("X has no rows; pass at least one person")
        parts = []
        for rows in row_blocks(len(X), BLOCK_ROWS):
            people = take_rows(X, rows)
            # a forecast with one draw shows the type of the bank's forecasts
            one: Forecast = bank.forecast(people, 0.5)
            if isinstance(one.distribution, Randomized):
                parts.append(self.chance_of_link(one.distribution.base, one.distribution.link))
            elif not one.is_randomized:
                parts.append(self.approve(one).astype(np.float64))
            else:
                parts.append(self.approve(bank.forecast(people, nodes(n_draws))).mean(axis=1))
        return np.concatenate(parts)

    def chance_of_link(self, base: Distribution, link: Link) -> Floats:
        """Return the approval probability under a link around deterministic forecasts, shape (n,).

        The bank approves if the predicted probability of `y < threshold` is at most `K(risk; r)`,
        which decreases with the draw: the approval probability is the draw at which both are equal.
        They are compared as normal scores, so that probabilities near 0 and 1 keep their digits.
        """
        lower = base.logcdf(self.threshold)
        upper = base.logsf(self.threshold)
        score = np.where(lower < upper, special.ndtri_exp(lower), -special.ndtri_exp(upper))
        if link.alpha == 1:
            return np.asarray(score <= special.ndtri(self.risk), dtype=np.float64)
        # K(risk; r) does not depend on the person, so one table suffices
        r = _link_nodes()
        most = Randomized(Normal(0.0, np.ones(1)), link, r).ppf(self.risk)
        most, score = (np.clip(np.where(np.isnan(z), 0.0, z), -SURE, SURE) for z in (most, score))
        # `most` decreases with the draw, but np.interp needs increasing values
        return np.interp(score, most[::-1], r[::-1], left=1.0, right=0.0)

    def chance_in_tries(self, chance: ArrayLike, *, same_draw: bool = False) -> Floats:
        """Return the approval probability within `max_tries` from that of one try.

        Both are equal if all tries have the same draw.
        """
        one = _probabilities(chance)
        return one if same_draw else np.asarray(1 - (1 - one) ** self.max_tries)

    def expected_utility(
        self, chance: ArrayLike, y: ArrayLike, *, same_draw: bool = False
    ) -> Floats:
        """Return the expected utility of applying for people who know the bank, shape (n,).

        Parameters
        ----------
        chance : array-like of shape (n,)
            Approval probability in one try.
        y : array-like of shape (n,)
            Worthiness.
        same_draw : bool, default False
            Whether all tries of a person have the same draw, so that further tries only cost.
        """
        one, qualified = self._of_people(chance, y)
        # people know y and hence their gain; only the bank's answer is uncertain
        yes = self.chance_in_tries(one, same_draw=same_draw)
        gain = np.where(qualified, self.gain_qualified, self.gain_unqualified)
        # try i + 1 costs if the first i tries were refused
        refused = 1 - one
        retries = (
            (self.max_tries - 1) * refused
            if same_draw
            else sum(refused**i for i in range(1, self.max_tries))
        )
        return np.asarray(yes * gain - (1 - yes) * self.refusal_cost - self.retry_cost * retries)

    def expected_bank_utility(self, chance: ArrayLike, y: ArrayLike) -> Floats:
        """Return the bank's expected gain from each applicant over fresh draws, shape (n,)."""
        one, qualified = self._of_people(chance, y)
        return np.asarray(
            self.chance_in_tries(one) * np.where(qualified, self.bank_gain, -self.bank_loss)
        )

    def _of_people(self, chance: ArrayLike, y: ArrayLike) -> tuple[Floats, Mask]:
        one = _probabilities(chance)
        qualified = self.is_qualified(y)
        if one.shape != qualified.shape:
            raise bad_input(
                "chance", f"have one value per person ({qualified.size})", f"shape {one.shape}"
            )
        return one, qualified

    def applies_if_informed(
        self, chance: ArrayLike, y: ArrayLike, *, same_draw: bool = False
    ) -> Mask:
        """Return whether people who know the bank apply: if `expected_utility` is at least 0."""
        return np.asarray(self.expected_utility(chance, y, same_draw=same_draw) >= 0)

    def play(
        self,
        bank: Any,
        X: Any,
        y: ArrayLike,
        applied: ArrayLike | None = None,
        *,
        draws: KeyedDraws | None = None,
        ids: Iterable[Any] | None = None,
        random_state: RandomState = None,
    ) -> Round:
        """Play one round: applicants apply up to `max_tries` times, and the bank answers.

        Parameters
        ----------
        bank : fitted forecaster
        X : table or array with n rows
        y : array-like of shape (n,)
            Worthiness, which the bank does not see.
        applied : array-like of bool, shape (n,), optional
            Whether each person applies; by default everybody applies.
        draws : KeyedDraws, optional
            Keyed draws of the ids, the same in every try; by default every try has a fresh draw.
        ids : sequence of n ids, optional
            Ids of the people; required with `draws`.
        random_state : int, generator or None
            Source of fresh draws.

        Returns
        -------
        Round

        Raises
        ------
        InputError
            If the shapes do not match, or one of `draws` and `ids` is missing.
        """
        qualified = self.is_qualified(y)
        n = qualified.size
        asks = _check_players(bank, X, n, applied)
        keyed = _check_keyed(draws, ids, n)
        random = generator(random_state)
        approved = np.zeros(n, dtype=np.bool_)
        tries = np.zeros(n, dtype=np.intp)
        for block in row_blocks(n, BLOCK_ROWS):
            rows = block.start + np.flatnonzero(asks[block])
            if rows.size:
                # a keyed draw is the same in every try, so further tries change nothing
                r = (
                    fresh((rows.size, self.max_tries), random)
                    if keyed is None
                    else keyed[rows, None]
                )
                answers = self.approve(bank.forecast(take_rows(X, rows), r)).reshape(rows.size, -1)
                approved[rows] = answers.any(axis=1)
                tries[rows] = np.where(approved[rows], answers.argmax(axis=1) + 1, self.max_tries)
        return Round(self, qualified, asks, approved, tries, bank)


def check_bank(bank: Any) -> None:
    """Check that the bank is a forecaster."""
    if not hasattr(bank, "forecast"):
        remedy = "wrap it as RandomizedRegressor(bank)" if hasattr(bank, "predict") else ""
        raise bad_input("bank", "be a fitted forecaster", type(bank).__name__, remedy)


def _check_players(bank: Any, X: Any, n: int, applied: ArrayLike | None) -> Mask:
    """Check the arguments of a round, and return whether each person applies."""
    check_bank(bank)
    rows = len(X) if hasattr(X, "__len__") else 0
    if rows != n:
        raise bad_input("X", f"have one row per person of y ({n})", f"{rows} rows")
    asks = np.ones(n, dtype=np.bool_) if applied is None else np.asarray(applied)
    if asks.shape != (n,) or asks.dtype != np.bool_:
        raise bad_input(
            "applied",
            f"be one boolean per person ({n})",
            f"{asks.dtype} of shape {asks.shape}",
            "compute it by applicants.applies(game, bank, X, y)",
        )
    return asks


def _check_keyed(draws: KeyedDraws | None, ids: Iterable[Any] | None, n: int) -> Floats | None:
    """Return each person's keyed draw, or None without keyed draws."""
    if draws is None and ids is None:
        return None
    if draws is None or ids is None:
        missing = "draws are" if draws is None else "ids are"
        raise InputError(f"{missing} missing: keyed draws need both draws= and ids=; pass both")
    if not isinstance(draws, KeyedDraws):
        raise bad_input("draws", "be KeyedDraws", type(draws).__name__, "KeyedDraws(key, context)")
    keyed = draws(ids)
    if keyed.shape != (n,):
        raise bad_input("ids", f"have one id per person ({n})", f"{keyed.size} ids")
    return keyed


def _probabilities(chance: ArrayLike) -> Floats:
    probabilities = check_finite("chance", chance)
    if not ((probabilities >= 0) & (probabilities <= 1)).all():
        wrong = float(probabilities[(probabilities < 0) | (probabilities > 1)][0])
        raise bad_input("chance", "lie between 0 and 1", wrong, "give a fraction: 0.9, not 90")
    return probabilities


@lru_cache(maxsize=1)
def _link_nodes() -> Floats:
    """Return increasing draws from 1e-15 to 1 - 1e-15.

    They are evenly spaced in probability, and in normal scores to resolve values near 0 and 1.
    """
    tails = np.clip(special.ndtr(np.linspace(-8.0, 8.0, LINK_NODES)), 1e-15, 1 - 1e-15)
    return np.union1d(tails, np.linspace(0.0, 1.0, LINK_NODES + 1)[1:-1])
