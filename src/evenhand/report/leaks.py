"""Sentences on groups and features that the outcome may define."""

from __future__ import annotations

from typing import Any

from evenhand._format import is_known, whole_percent
from evenhand.report.sentences import Sentence, Values

LEAKS_LISTED = 5
"""Most possible leaks that are named one by one."""


def leak_sentences(audit: Values) -> list[Sentence]:
    """Name the groups and features that the outcome may define, each column once."""
    leaks: dict[Any, Values] = {}
    # a column may leak in two ways: how far it is a range of outcomes is the plainer reason
    rows = sorted(audit.get("possible_leaks") or [], key=lambda row: not is_known(row["apart"]))
    for row in rows:
        # a tuple, so that a named group is not taken for a column of the same name
        leaks.setdefault(row["column"] or (row["name"],), row)
    listed = [_leak_sentence(row) for row in list(leaks.values())[:LEAKS_LISTED]]
    others = len(leaks) - len(listed)
    return [*listed, Sentence(f"Possible leaks besides these: {others:,}.")] if others else listed


def _leak_sentence(row: Values) -> Sentence:
    kind = "feature" if row["column"] else "group"
    if is_known(row["rank_correlation"]):
        why = "its rank correlation with the outcome is above 0.99 and above that of the forecasts"
    else:
        why = f"it differs from a range of outcomes in {whole_percent(row['apart'])} of the rows"
    rest = f" may be defined by the outcome: {why}. "
    rest += "Groups must be known before the outcome: unless this one was, it is no finding."
    return Sentence(f"Possible leak: {kind} ", str(row["column"] or row["name"]), rest)
