"""Command-line interface: parses options, calls the library and prints results."""

from evenhand.cli.commands import main

__all__ = ["main"]
