"""Selection of the least randomization with a certified group error."""

from evenhand.selection.choice import randomize
from evenhand.selection.result import Selection

__all__ = ["Selection", "randomize"]
