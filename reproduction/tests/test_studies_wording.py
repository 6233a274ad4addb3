"""Exact wording of the messages of `reproduction` and the lending game."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand import InputError
from reproduction.lending import InformedApplicants, LearningApplicants, LendingGame, play_rounds
from reproduction import check_folder

GAME = LendingGame(threshold=0.5)
X = np.zeros((1, 1))


class Bank:
    """A bank that is never asked."""

    def forecast(self, X: Any, r: Any = None) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda: GAME.play("bank", X, [0.1]),
            "bank must be a fitted forecaster, got str",
        ),
        (
            lambda: GAME.play(Bank(), X, [0.1], applied=[1]),
            "applied must be one boolean per person (1), got int64 of shape (1,); compute it by"
            " applicants.applies(game, bank, X, y)",
        ),
        (
            lambda: GAME.play(Bank(), X, [0.1], ids=["a"]),
            "draws are missing: keyed draws need both draws= and ids=; pass both",
        ),
        (
            lambda: play_rounds(GAME, Bank(), [(X, [0.1])], InformedApplicants(), labels="all"),
            "start is missing: with labels='all' the bank needs training rows before the first"
            " round; pass start=(X, y)",
        ),
        (
            lambda: play_rounds(GAME, Bank(), [X], InformedApplicants()),
            "customers must be a list with one tuple (X, y) per round, got a ndarray of length 1;"
            " a one-shot game has customers=[(X, y)]",
        ),
        (
            lambda: LearningApplicants().predicted_utility(X, [0.1]),
            "the applicants have not learned anything yet; call learn first",
        ),
    ],
)
def test_messages_are_sentences(act: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        act()
    assert str(raised.value) == message


def test_a_folder_of_another_study_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text('{"study": "crime"}')
    with pytest.raises(InputError) as raised:
        check_folder(tmp_path, "toy")
    assert str(raised.value) == (
        f"--out {tmp_path} contains the study crime, not toy; name a new folder, or that of an"
        " earlier toy run"
    )
