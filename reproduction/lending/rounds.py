"""Repeated rounds of the lending game, in which applicants and bank may learn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import InputError, bad_input, check_choice, check_finite
from evenhand.columns import stack_rows
from evenhand.draws import KeyedDraws, RandomState, generator
from reproduction.lending.applicants import Applicants
from reproduction.lending.game import LendingGame, check_bank
from reproduction.lending.outcome import Round
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
    """Play rounds with new customers.

    In each round customers decide whether to apply, the bank answers the applicants, and later
    applicants learn from their utilities.

    Parameters
    ----------
    game : LendingGame
        The rules.
    bank : forecaster
        A fitted forecaster with `labels="none"`; otherwise an estimator that is first fitted on
        `start`.
    customers : iterable of (X, y) or (X, y, ids)
        Features and worthiness of the customers of each round, with their ids if `draws` are given;
        `[(X, y)]` is a one-shot game.
    applicants : Applicants
        Strategy of the customers.
    labels : {"none", "approved", "all"}, default "none"
        Customers whose worthiness the bank observes after each round and is refitted on, in
        addition to `start`: nobody, the approved customers, or all customers.
    start : (X, y), optional
        Training rows of the bank before the first round; required unless `labels` is "none".
    draws : KeyedDraws, optional
        Keyed draws of the ids, the same in every try and round; by default every try has a fresh
        draw.
    random_state : int, generator or None
        Source of fresh draws.

    Returns
    -------
    list of Round
        The rounds, each with its bank.

    Raises
    ------
    InputError
        If `start` is missing, or given with `labels="none"`, or customers are not tuples.

    Examples
    --------
    >>> from evenhand import RandomizedRegressor
    >>> from reproduction.lending import InformedApplicants
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
    if labels != "none" and start is None:
        raise InputError(
            f"start is missing: with labels={labels!r} the bank needs training rows before the"
            " first round; pass start=(X, y)"
        )
    if labels == "none" and start is not None:
        raise InputError(
            "start has no effect with labels='none', where the bank does not learn; leave it out"
        )
    check_bank(bank)
    if not hasattr(applicants, "applies") or isinstance(applicants, type):
        raise bad_input(
            "applicants", "be an Applicants object", repr(applicants), "pass InformedApplicants()"
        )
    random = generator(random_state)
    known = None if start is None else (start[0], check_finite("y", start[1]))
    if known is not None:
        bank = _fitted(bank, known)
    rounds: list[Round] = []
    for batch in customers:
        if not isinstance(batch, tuple | list) or len(batch) != (2 if draws is None else 3):
            kind = "(X, y)" if draws is None else "(X, y, ids)"
            size = f" of length {len(batch)}" if hasattr(batch, "__len__") else ""
            raise InputError(
                f"customers must be a list with one tuple {kind} per round, got a"
                f" {type(batch).__name__}{size}; a one-shot game has customers=[{kind}]"
            )
        X = batch[0]
        worth = check_finite("y", batch[1])
        # the bank of the first round was fitted on `start` above
        if rounds and known is not None:
            bank = _fitted(bank, known)
        applied = applicants.applies(game, bank, X, worth)
        ids = None if draws is None else batch[2]
        played = game.play(bank, X, worth, applied, draws=draws, ids=ids, random_state=random)
        rounds.append(played)
        if played.applied.any():
            asked = np.flatnonzero(played.applied)
            # people who did not apply have no utility to learn from
            applicants.learn(take_rows(X, asked), worth[asked], played.utilities[asked])
        if known is not None:
            # selective labels: outcomes are known only for approved people
            seen = (
                np.flatnonzero(played.approved) if labels == "approved" else np.arange(worth.size)
            )
            outcomes = np.concatenate([known[1], worth[seen]])
            known = stack_rows(known[0], take_rows(X, seen)), outcomes
    return rounds


def _fitted(bank: Any, known: tuple[Any, Any]) -> Any:
    from sklearn.base import clone

    return clone(bank).fit(*known)
