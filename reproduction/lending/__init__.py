"""Lending game between a bank and applicants who learn from its decisions (method: decisions)."""

from reproduction.lending.applicants import (
    Applicants,
    InformedApplicants,
    LearningApplicants,
    RandomApplicants,
)
from reproduction.lending.game import LendingGame
from reproduction.lending.outcome import Round
from reproduction.lending.rounds import play_rounds

__all__ = [
    "Applicants",
    "InformedApplicants",
    "LearningApplicants",
    "LendingGame",
    "RandomApplicants",
    "Round",
    "play_rounds",
]
