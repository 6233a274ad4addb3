"""Entries that several files of tests add to logs."""

from __future__ import annotations

from evenhand.service import DecisionLog, Entry


def forecast(name: str, subject: str = "ada") -> Entry:
    return Entry("forecast", f"id-{name}", f"request-{name}", subject, {"name": name, "r": 0.1})


def filled(log: DecisionLog, n_entries: int) -> None:
    """Add entries of three subjects in one transaction."""
    log.run(lambda t: [t.add(forecast(str(i), f"subject-{i % 3}")) for i in range(n_entries)])
