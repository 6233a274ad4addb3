"""Rounds that follow each other.

Applicants learn about the bank, and the bank from those it approved.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import bad_input, check_choice, check_finite
from evenhand.columns import stack_rows
from evenhand.draws import KeyedDraws, RandomState, generator
from evenhand.studies.lending.applicants import Applicants
from evenhand.studies.lending.game import LendingGame, check_bank
from evenhand.studies.lending.outcome import Round
from evenhand.tables import take_rows


def play_rounds(
    game: LendingGame,
    bank: Any,
    customers: Iterable[tuple[Any, ...]],
    applicants: Applicants,
    *,
    labels: Literal["none", "approved", "all"] = "none",
    start: tuple[Any, ArrayLike] | None = None,
    draws: KeyedDraws | None = None,
    random_state: RandomState = None,
) -> list[Round]:
    """Play round after round with new customers.

    In each round customers decide whether to apply, the bank answers those who do, and the
    applicants of later rounds learn what they got.

    Parameters
    ----------
    game : LendingGame
        The rules.
    bank : forecaster
        Fitted, if it stays as it is; otherwise an estimator that is fitted on `start` first.
    customers : iterable of (X, y) or (X, y, ids)
        Features and worthiness of the customers of each round, with their ids if `draws` are keyed;
        one of them, `[(X, y)]`, is a game of one shot.
    applicants : Applicants
        How they decide.
    labels : {"none", "approved", "all"}, default "none"
        Whose worthiness the bank sees after each round and learns from, beside `start`: nobody's
        (it stays as it is), that of people it approved, or of all customers.
    start : (X, y), optional
        What the bank learns from before the first round; needed unless `labels` is "none".
    draws : KeyedDraws, optional
        Gives each id its draw, the same in every try and round; if not given, every try meets a
        fresh draw.
    random_state : int, generator or None
        Source of fresh draws.

    Returns
    -------
    list of Round
        Each with the bank that answered.

    Raises
    ------
    InputError
        If `start` is missing or given without need, or customers are no tuples.

    Examples
    --------
    >>> from evenhand import RandomizedRegressor
    >>> from evenhand.studies.lending import InformedApplicants
    >>> from sklearn.linear_model import BayesianRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=300)
    >>> rounds = play_rounds(
    ...     LendingGame(threshold=0.0),
    ...     RandomizedRegressor(BayesianRidge(), alpha=0.8),
    ...     [(X[100:200], y[100:200]), (X[200:], y[200:])],
    ...     InformedApplicants(),
    ...     labels="approved",
    ...     start=(X[:100], y[:100]),
    ...     random_state=0,
    ... )
    >>> len(rounds)
    2
    """
    check_choice("labels", labels, ("none", "approved", "all"))
    # a bank that learns needs labels before its first round
    if (labels == "none") != (start is None):
        raise bad_input(
            "start", "be given where the bank learns, and only there", f"labels={labels!r}"
        )
    check_bank(bank)
    if not hasattr(applicants, "applies") or isinstance(applicants, type):
        raise bad_input("applicants", "be such as InformedApplicants()", repr(applicants))
    random = generator(random_state)
    known = None if start is None else (start[0], check_finite("y", start[1]))
    if known is not None:
        bank = _fitted(bank, known)
    rounds: list[Round] = []
    for batch in customers:
        if not isinstance(batch, tuple | list) or len(batch) != (2 if draws is None else 3):
            remedy = "a game of one shot has customers=[(X, y)]"
            kind = "(X, y)" if draws is None else "(X, y, ids)"
            raise bad_input(
                "customers", f"hold {kind} for each round", type(batch).__name__, remedy
            )
        X = batch[0]
        worth = check_finite("y", batch[1])
        # the first round is played with the bank fitted on `start` above
        if rounds and known is not None:
            bank = _fitted(bank, known)
        applied = applicants.applies(game, bank, X, worth)
        ids = None if draws is None else batch[2]
        played = game.play(bank, X, worth, applied, draws=draws, ids=ids, random_state=random)
        rounds.append(played)
        if played.applied.any():
            asked = np.flatnonzero(played.applied)
            # who stayed away teaches nobody what applying brings
            applicants.learn(take_rows(X, asked), worth[asked], played.utilities[asked])
        if known is not None:
            # selective labels: an outcome is known of those only who got a loan
            seen = (
                np.flatnonzero(played.approved) if labels == "approved" else np.arange(worth.size)
            )
            outcomes = np.concatenate([known[1], worth[seen]])
            known = stack_rows(known[0], take_rows(X, seen)), outcomes
    return rounds


def _fitted(bank: Any, known: tuple[Any, Any]) -> Any:
    from sklearn.base import clone

    return clone(bank).fit(*known)
