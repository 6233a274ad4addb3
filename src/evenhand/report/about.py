"""Description of an audit for its readers: date, population, period, author and purpose."""

from __future__ import annotations

from evenhand.report.document import Facts
from evenhand.report.names import short
from evenhand.report.records import Values

NAME = 60
"""Most characters of the name of the outcome."""

ABOUT_KEYS = ("population", "period", "author", "purpose", "unit")
"""Keys with a fixed place, in their order."""


def about_facts(audit: Values) -> Facts:
    """Return the date of an audit and its description, the known keys first."""
    about = audit.get("about") or {}
    target = short(audit.get("target") or "the outcome", NAME)
    date = (audit.get("provenance") or {}).get("date")
    titles = {"unit": f"Unit of {target}"}
    order = [key for key in ABOUT_KEYS if key in about]
    order += [key for key in about if key not in ABOUT_KEYS]
    described: dict[str, str | None] = {"Date": date}
    for key in order:
        title = titles.get(key, f"{key[:1].upper()}{key[1:]}")
        # a key such as "date" must not replace the date of the audit
        while title in described:
            title += " (given)"
        described[title] = about[key]
    return Facts(described)
