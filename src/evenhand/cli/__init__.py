"""Command-line interface: parses options, calls the library and prints results."""

from evenhand.cli.auditing import audit, compare
from evenhand.cli.commands import main
from evenhand.cli.fitting import fit
from evenhand.cli.planning import demo, plan
from evenhand.cli.randomizing import randomize
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
