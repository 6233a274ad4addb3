"""Selection of the least randomization of a model that is certified."""

from evenhand.selection.choice import randomize
from evenhand.selection.result import Selection

__all__ = ["Selection", "randomize"]
