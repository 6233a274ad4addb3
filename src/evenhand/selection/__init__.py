"""The least randomization that is certified: how a model that people have becomes one that can be proven."""

from evenhand.selection._choose import randomize
from evenhand.selection._result import Selection

__all__ = ["Selection", "randomize"]
