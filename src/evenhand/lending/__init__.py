"""A bank, its applicants and what they learn about it: the lending game (method: decisions)."""

from evenhand.lending.applicants import Applicants, InformedApplicants, LearningApplicants, RandomApplicants
from evenhand.lending.game import LendingGame
from evenhand.lending.outcome import Round
from evenhand.lending.rounds import play_rounds

__all__ = [
    "Applicants",
    "InformedApplicants",
    "LearningApplicants",
    "LendingGame",
    "RandomApplicants",
    "Round",
    "play_rounds",
]
