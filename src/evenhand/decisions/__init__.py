"""Decisions of least expected loss, and bounds on how often their loss exceeds its expectation."""

from evenhand.decisions.bayes import BayesDecision, Decisions
from evenhand.decisions.guarantee import LossGuarantee, loss_guarantee
from evenhand.decisions.steps import StepLoss

__all__ = ["BayesDecision", "Decisions", "LossGuarantee", "StepLoss", "loss_guarantee"]
