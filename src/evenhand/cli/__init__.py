"""Command-line interface: parses options, calls the library and prints results."""

from evenhand.cli.auditing import audit, compare
from evenhand.cli.commands import demo, main
from evenhand.cli.fitting import fit
from evenhand.cli.randomizing import plan, randomize
from evenhand.cli.recalibrating import recalibrate
from evenhand.cli.replaying import outcomes, replay
from evenhand.cli.serving import predict
from evenhand.cli.watching import watch

__all__ = [
    "audit",
    "compare",
    "demo",
    "fit",
    "main",
    "outcomes",
    "plan",
    "predict",
    "randomize",
    "recalibrate",
    "replay",
    "watch",
]
