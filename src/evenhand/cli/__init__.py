"""The command `evenhand`: parses, calls one thing below, prints."""

from evenhand.cli.auditing import audit
from evenhand.cli.commands import main
from evenhand.cli.experiments import demo, reproduce
from evenhand.cli.fitting import fit
from evenhand.cli.serving import predict, randomize

__all__ = ["audit", "demo", "fit", "main", "predict", "randomize", "reproduce"]
