"""The least randomization that is certified.

How a model that people have becomes one that can be proven.
"""

from evenhand.selection.choice import randomize
from evenhand.selection.result import Selection

__all__ = ["Selection", "randomize"]
