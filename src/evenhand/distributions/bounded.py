"""Base class of distributions of outcomes with bounds."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from evenhand._validate import Ints
from evenhand.distributions.base import Distribution
from evenhand.distributions.support import Support


class Bounded(Distribution):
    """Distributions on one support, each from a distribution of the batch `base`."""

    event_dims: ClassVar[dict[str, int]] = {}

    def __init__(self, base: Distribution, support: Support) -> None:
        self.base = base
        self.support = support

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.base.batch_shape

    def take(self, rows: Any) -> Self:
        return type(self)(self.base.take(rows), self.support)

    def take_draws(self, columns: Ints) -> Self:
        return type(self)(self.base.take_draws(columns), self.support)

    def expand(self) -> Self:
        return type(self)(self.base.expand(), self.support)
