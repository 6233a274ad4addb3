"""The lending game: a bank, its applicants and what they learn about it (method: decisions)."""

from __future__ import annotations

from evenhand.studies.lending import (
    Applicants,
    InformedApplicants,
    LearningApplicants,
    LendingGame,
    RandomApplicants,
    Round,
    play_rounds,
)

__all__ = [
    "Applicants",
    "InformedApplicants",
    "LearningApplicants",
    "LendingGame",
    "RandomApplicants",
    "Round",
    "play_rounds",
]
