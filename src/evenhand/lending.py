"""Lending game between a bank and applicants who learn from its decisions (method: decisions)."""

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
