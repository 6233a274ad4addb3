"""Base class of distributions of outcomes with bounds."""

from __future__ import annotations

from typing import ClassVar

from evenhand.distributions.base import Distribution
from evenhand.distributions.support import Support
from evenhand.distributions.wrappers import Wrapper


class Bounded(Wrapper):
    """Distributions on one support, each from a distribution of the batch `base`."""

    shared: ClassVar[tuple[str, ...]] = ("support",)

    def __init__(self, base: Distribution, support: Support) -> None:
        self.base = base
        self.support = support
