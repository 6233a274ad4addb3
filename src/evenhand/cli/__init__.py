"""The command `evenhand`: parses, calls one thing below, prints."""

from evenhand.cli.commands import audit, demo, fit, main, predict, randomize, reproduce

__all__ = ["audit", "demo", "fit", "main", "predict", "randomize", "reproduce"]
