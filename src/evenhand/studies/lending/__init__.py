"""Lending game between a bank and applicants who learn from its decisions (method: decisions)."""

from evenhand.studies.lending.applicants import (
    Applicants,
    InformedApplicants,
    LearningApplicants,
    RandomApplicants,
)
from evenhand.studies.lending.game import LendingGame
from evenhand.studies.lending.outcome import Round
from evenhand.studies.lending.rounds import play_rounds

__all__ = [
    "Applicants",
    "InformedApplicants",
    "LearningApplicants",
    "LendingGame",
    "RandomApplicants",
    "Round",
    "play_rounds",
]
