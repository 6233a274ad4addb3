"""Comparison of two models or audits as text and page: verdict, groups and scores."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from evenhand._escape import short
from evenhand._format import (
    UNKNOWN,
    band,
    count,
    in_full,
    is_known,
    number,
    percent,
    plain_number,
    points,
    points_in_full,
    ratio,
    whole,
)
from evenhand._table import Cells, Column, Table, Value, numeric
from evenhand.report.document import (
    Bullets,
    Document,
    Facts,
    Paragraph,
    Part,
    Section,
    about_facts,
    document_html,
    document_text,
    embedded,
    short_text,
)
from evenhand.report.kinds import formatter_of, reach_of, signed
from evenhand.results import Values

NAME = 60
"""Most characters of the name of an audit, or of a group in a sentence."""

Show = Callable[..., str]

COVERED: dict[str, tuple[Column, Show]] = {
    "coverage_80": (numeric("80% interval covers"), percent),
    "error": (numeric("error (points)"), points),
}
"""Measures of groups, with their columns; a short text has the first three."""

EVENTS: dict[str, tuple[Column, Show]] = {
    "rate": (numeric("observed"), percent),
    "predicted": (numeric("predicted"), percent),
    "bias": (numeric("difference (points)"), signed),
    "slope": (numeric("slope"), ratio),
    "log_loss": (numeric("log score"), number),
    "error": (numeric("error (points)"), points),
}
"""Those of 0/1 outcomes."""


# --- groups and their verdicts

NO_PROOF = "A problem in one audit alone does not prove that the group changed."

IN_WORDS = {"not significant": "", "unknown": "no interval", "no problem": ""}
"""Words of a table for outcomes; of others, the outcome itself."""

ORDER = ("worse", "better", "problem after", "problem before", "problem in both")
"""Outcomes of groups in the order in which these are listed; others come last."""


def is_slight(row: Values) -> bool:
    """Whether a significant change is within the tolerance."""
    return row["outcome"] in ("worse", "better") and not row["important"]


def order_of(row: Values) -> tuple[bool, int, float]:
    """Important groups come first, then worse ones, then the largest changes."""
    place = [*ORDER, row["outcome"]].index(row["outcome"])
    return not row["important"], place, -abs(row["error_change"] or 0.0)


def distinct(rows: Sequence[Values]) -> list[Values]:
    """Return one row for each set of people, that with the shortest name.

    Its size, coverages and bias before and after identify it.
    """
    found: dict[tuple[object, ...], Values] = {}
    for row in sorted(rows, key=lambda row: len(row["group"])):
        # sums in another order differ in their last digits; errors of scanned groups are binned
        sure = {
            name: f"{value:.9g}" if is_known(value) else None
            for name, value in row.items()
            if re.fullmatch("(coverage_[89]0|bias)_(before|after)", name)
        }
        found.setdefault((row["n"], *sure.values()), row)
    return list(found.values())


class Changes:
    """What a comparison found, given as `Comparison.to_dict()`."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.is_paired: bool = values["is_paired"]
        self.tolerance = f"{points_in_full(values['tolerance'])} points"
        # everyone, then the groups that changed most
        everyone, *rows = values["groups"]
        self.groups: list[Values] = [everyone, *sorted(distinct(rows), key=order_of)]
        self.is_event = "slope_before" in everyone
        data = values["provenance"]["after"].get("data") or {}
        n, n_after = values["n_samples"], everyone.get("n_after")
        size = count(n, "row") + (f" of {short(data['name'], NAME)}" if data.get("name") else "")
        # the second audit may have other rows
        if n_after not in (None, n):
            size = f"{n:,} and {count(n_after, 'row')}"
        self.facts = [size, count(len(self.groups), "group")]

    @property
    def verdict(self) -> str:
        """In how many groups the error got better and worse, or is a problem."""
        total, slight = count(len(self.groups), "group"), sum(map(is_slight, self.groups))
        n = Counter(row["outcome"] for row in self.groups if not is_slight(row))
        if not self.is_paired:
            both, new = n["problem in both"], n["problem after"]
            before, after = both + n["problem before"], both + new
            if not before + after:
                return f"NO PROBLEM FOUND in {total}, before or after."
            now = f"in {after or 'none'} after" + (f", {new:,} of them new." if new else ".")
            return f"PROBLEM in {before or 'none'} of {total} before, {now}"
        text = f"BETTER in {count(n['better'], 'group')}, worse in none."
        if n["worse"]:
            text = f"WORSE in {count(n['worse'], 'group')}, better in {n['better'] or 'none'}."
        elif not n["better"]:
            text = f"NO CHANGE {f'beyond {self.tolerance}' if slight else 'FOUND'} in {total}."
        if slight:
            changed = count(slight, "group")
            text += f" In {changed} the error changed by less than {self.tolerance}."
        if few := n["unknown"]:
            text += f" {count(few, 'group has', 'groups have')} no interval."
        return text

    @property
    def sentences(self) -> Iterator[str]:
        """Remarks on audits that are not paired, and everyone's scores."""
        if not self.is_paired:
            yield from self.values["notes"][:1]
            yield from [NO_PROOF] * any(row["important"] for row in self.groups)
        known = {row["measure"]: (row["before"], row["after"]) for row in self.values["measures"]}
        parts = []
        if self.is_event:
            error, slope = (_pair(self.groups[0], name) for name in ("error", "slope"))
            parts.append(f"{_to(error, points)} points off by score")
            if all(map(is_known, slope)):
                parts.append(f"slope {_to(slope, ratio)} (right is 1)")
        elif width := known.get("80% interval width"):
            unit = short(self.values["about"].get("unit", ""), NAME)
            parts.append(f"80% interval {_to(width, plain_number)} {unit}".strip() + " wide")
        for name, shown in (("CRPS", "CRPS"), ("log loss", "log score")):
            if name in known:
                parts.append(f"{shown} {_to(known[name], number)} (smaller is better)")
        if parts:
            yield f"Everyone: {'; '.join(parts)}."

    def table(self, rows: Sequence[Values], *, is_short: bool = False, **options: Any) -> Table:
        """Return groups; in a short text with few measures, and without changes."""
        measures = EVENTS if self.is_event else COVERED
        printed = list(measures) if not is_short else list(measures)[:3]
        if is_short and not self.is_paired:
            printed = ["error"]

        def verdict(row: Values) -> str:
            found = IN_WORDS.get(row["outcome"], row["outcome"])
            return f"slightly {found}" if is_slight(row) else str(found)

        def size(row: Values) -> Value:
            n, after = row["n"], row.get("n_after", row["n"])
            return Value(whole(n) + (f" → {whole(after)}" if after != n else ""), order=n)

        cells: Cells[Values] = {
            Column("group"): lambda row: short(row["group"], NAME) if is_short else row["group"],
            numeric("rows"): size,
        }
        for measure in printed:
            column, show = measures[measure]
            cells[column] = _writer(measure, show, has_change=not (is_short and self.is_paired))
        cells[Column("verdict")] = verdict
        return Table.of("Groups", rows, cells, **options)


Pair = tuple[float | None, float | None]


def _pair(row: Values, measure: str) -> Pair:
    return row[f"{measure}_before"], row[f"{measure}_after"]


def _to(pair: Pair, show: Show, join: str = " to ") -> str:
    return join.join(map(show, pair))


def _writer(measure: str, show: Show, *, has_change: bool) -> Callable[[Values], Value]:
    """Return a function that writes a measure before and after, and its interval."""

    def written(row: Values) -> Value:
        if measure in row:
            return Value(show(row[measure]), order=row[measure])
        pair, change = _pair(row, measure), row.get(f"{measure}_change")
        shown = _to(pair, show, " → ") if any(map(is_known, pair)) else UNKNOWN
        if f"{measure}_before_low" in row:
            # the own intervals of both audits
            sides = (
                [row[f"{measure}_{at}_{end}"] for end in ("low", "high")]
                for at in ("before", "after")
            )
            ends = (reach_of(*one) if show is signed else band(show, *one) for one in sides)
            return Value(shown, " → ".join(ends), change)
        if not has_change or not is_known(change):
            return Value(shown, order=change)
        reach = reach_of(row[f"{measure}_change_low"], row[f"{measure}_change_high"])
        return Value(shown, signed(change) + (f", {reach}" if reach != UNKNOWN else ""), change)

    return written


# --- text of at most 16 lines

LINES = 16
"""Most lines of a short text."""

ROWS = 5
"""Most groups in a short text."""


def comparison_text(values: Values, *, full: bool = False) -> str:
    """Return a comparison, given as `Comparison.to_dict()`, as text; `full` has all groups."""
    if full:
        return document_text(comparison_document(values))
    found = Changes(values)
    before, after = (short(str(name), 24) for name in values["names"])
    is_command = bool(values["provenance"]["after"].get("command"))
    more = "--full, or --out comparison.html" if is_command else "summary(full=True)"
    head = f"Before: {before}. After: {after}. {', '.join(found.facts)}"
    tail = Bullets.of([*found.sentences, f"All groups: {more}"])
    for n in range(ROWS, 0, -1):
        table = found.table(found.groups[:n], is_short=True)
        text = short_text(head, found.verdict, table, tail)
        if text.count("\n") < LINES:
            break
    return text


# --- page and full text

SHOWN = 400
"""Most groups in a table of a page."""

FIRST = 11
"""Everyone and ten groups, in the first table."""

HOW = (
    "A change is the value after minus the value before, on the same rows. A group got better or"
    " worse if the interval of the change of its error excludes 0. The intervals of a measure"
    " contain the true changes of all groups jointly with {confidence} confidence"
    " (Bonferroni); they are asymptotic, and groups of under 50 rows have none. The intervals of"
    " the error allow for its bias near 0, so that small errors need large changes."
)

HOW_OF_EVENTS = (
    " The error of a group is the difference of event rate and mean probability; that of everyone"
    " is the mean of such differences over people by score, so that errors of low and high scores"
    " do not cancel."
)
"""Addition for 0/1 outcomes."""

HOW_UNPAIRED = (
    "Each audit decides by its own intervals, which contain the truth jointly for all of its"
    " groups."
)


def comparison_html(values: Values) -> str:
    """Return a comparison, given as `Comparison.to_dict()`, as one page of HTML."""
    return document_html(comparison_document(values))


def comparison_document(values: Values) -> Document:
    """Return the document of a comparison, given as `Comparison.to_dict()`."""
    found, data = Changes(values), embedded(values)
    before, after = (short(str(name), NAME) for name in values["names"])
    how = HOW_UNPAIRED
    if found.is_paired:
        how = HOW.format(confidence=in_full(values["confidence"]))
        how += HOW_OF_EVENTS if found.is_event else ""
    note = "Values before and after, and in brackets " + (
        "the change with its paired interval." if found.is_paired else "their intervals."
    )
    note += f" Tolerance: {found.tolerance}."
    others = found.groups[FIRST:]
    rest = ""
    if len(others) > SHOWN:
        n = count(len(others) - SHOWN, "group")
        rest = f" {n} with the smallest changes are in the JSON alone."
    options: dict[str, Any] = {"search": "Find a group", "printed": SHOWN}
    first = found.table(found.groups[:FIRST], note=note, **options)
    table = found.table(others[:SHOWN], note=f"{note}{rest}", **options)
    about = {**values, "provenance": values["provenance"]["after"]}
    sections = [
        Section("Groups", [first], "groups"),
        Section("The other groups", [table] if others else [], "others", "smaller changes"),
        Section("Scores", _scores(values), "scores", "of all rows"),
        Section("How changes are judged", [Paragraph(how)], "how", "intervals of changes"),
        Section(
            "Notes",
            [Bullets.of(values["notes"])] if values["notes"] else [],
            "notes",
            "what was left out or done otherwise",
        ),
        Section(
            "Where this comes from",
            [about_facts(about), _sources(values)],
            "provenance",
            "both audits",
        ),
    ]
    return Document(
        title=f"Comparison of {before} and {after}",
        facts=[*found.facts, f"before: {before}", f"after: {after}"],
        lead=found.verdict,
        opening=[Bullets.of(found.sentences)],
        sections=[section for section in sections if section.parts],
        footer="Works offline, without ids of people. The JSON of this comparison has all digits.",
        data=data,
    )


def _sources(values: Values) -> Facts:
    """Return which audits were compared."""
    facts: dict[str, str | None] = {}
    for key, audit in values["provenance"].items():
        facts |= {
            f"Date {key}": audit.get("date"),
            f"Command {key}": audit.get("command"),
            f"Hash of the model {key}": (audit.get("model") or {}).get("sha256"),
            f"Version {key}": audit.get("evenhand"),
        }
    return Facts(facts | {"Schema": values["schema"]})


def _scores(values: Values) -> list[Part]:
    """Show scores and certified bounds of all rows, with paired intervals where there are any."""
    paired = {row["measure"]: row for row in values["scores"]}

    def written(row: Any, at: str) -> str:
        show = formatter_of(row["unit"])
        toward = "up" if row["measure"].startswith("certified") else "nearest"
        return show(row[at], toward) + (" points" if show is points else "")

    def change(row: Any) -> str | Value:
        if (one := paired.get(row["measure"])) is None:
            return UNKNOWN
        reach = reach_of(one["low"], one["high"], number)
        return Value(signed(one["change"], number), reach, one["change"])

    cells: Cells[Any] = {
        Column("measure"): lambda row: row["measure"],
        numeric("before"): lambda row: written(row, "before"),
        numeric("after"): lambda row: written(row, "after"),
    }
    text = "Of all rows. Smaller log scores and CRPS are better."
    if paired:
        cells[numeric("change")] = change
        text += f" Changes have paired {in_full(values['confidence'])} intervals, each by itself."
    table = Table.of("Scores", values["measures"], cells)
    return [Paragraph(text), table]
