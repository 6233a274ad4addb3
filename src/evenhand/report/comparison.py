"""Comparison of two models or audits as text and page: verdict, groups and scores."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
from evenhand._table import SCREEN, Cells, Column, Table, Value, line_width, numeric, wrapped
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
    hash_of,
)
from evenhand.report.kinds import formatter_of, reach_of, signed
from evenhand.results import Values

NAME = 60
"""Most characters of the name of an audit, or of a group in a sentence."""

Show = Callable[..., str]


# --- words by kind of outcome


@dataclass(frozen=True)
class Words:
    """What texts and pages show of the groups of a kind of outcome.

    Parameters
    ----------
    listed : dict of str to (Column, function)
        Measures on a page, and how their values are written.
    printed : tuple of str
        Those in a short text.
    undecided : tuple of str
        Measures whose changes are mentioned if those of the error have no verdict: the one that is
        printed, the one whose interval counts, a name, and the value that is right.
    """

    listed: Mapping[str, tuple[Column, Show]]
    printed: tuple[str, ...]
    undecided: tuple[str, str, str, str]


COVERED = Words(
    {
        "coverage_80": (numeric("80% interval covers"), percent),
        "error": (numeric("error (points)"), points),
    },
    ("coverage_80", "error"),
    ("coverage_80", "coverage_80", "coverage", "80%"),
)
EVENTS = Words(
    {
        "rate": (numeric("observed"), percent),
        "predicted": (numeric("predicted"), percent),
        "bias": (numeric("difference (points)"), signed),
        "slope": (numeric("slope"), ratio),
        "log_loss": (numeric("log score"), number),
        "error": (numeric("error (points)"), points),
    },
    ("rate", "predicted", "bias"),
    ("predicted", "bias", "the prediction", "the rate"),
)


# --- groups and their verdicts

NO_PROOF = "A problem in one audit alone does not prove that the group changed."

IN_WORDS = {"not significant": "", "unknown": "no interval", "no problem": ""}
"""Words of a table for outcomes; of others, the outcome itself."""

ORDER = ("worse", "better", "problem after", "problem before", "problem in both")
"""Outcomes of groups in the order in which these are listed; others come last."""


def is_slight(row: Values) -> bool:
    """Whether a significant change is within the tolerance."""
    return row["outcome"] in ("worse", "better") and not row["important"]


def verdict_of(row: Values) -> str:
    """Return the verdict on a group as a table has it."""
    found = IN_WORDS.get(row["outcome"], row["outcome"])
    return f"slightly {found}" if is_slight(row) else str(found)


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


@dataclass(frozen=True)
class Changes:
    """What a comparison found, given as `Comparison.to_dict()`."""

    values: Values

    @cached_property
    def groups(self) -> list[Values]:
        """Everyone, then the groups that changed most."""
        everyone, *rows = self.values["groups"]
        return [everyone, *sorted(distinct(rows), key=order_of)]

    @property
    def words(self) -> Words:
        return EVENTS if "slope_before" in self.groups[0] else COVERED

    @property
    def facts(self) -> list[str]:
        """Number of rows, also of the second audit if it has others, and of groups."""
        data = self.values["provenance"]["after"].get("data") or {}
        n, n_after = self.values["n_samples"], self.groups[0].get("n_after")
        rows = count(n, "row") + (f" of {short(data['name'], NAME)}" if data.get("name") else "")
        if n_after not in (None, n):
            rows = f"{n:,} and {count(n_after, 'row')}"
        return [rows, count(len(self.groups), "group")]

    @property
    def tolerance(self) -> str:
        return f"{points_in_full(self.values['tolerance'])} points"

    @property
    def verdict(self) -> str:
        """In how many groups the error got better and worse, or is a problem."""
        total, slight = count(len(self.groups), "group"), sum(map(is_slight, self.groups))
        n = Counter(row["outcome"] for row in self.groups if not is_slight(row))
        if not self.values["is_paired"]:
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
        """Changes that have no verdict, and everyone's scores."""
        if self.values["is_paired"]:
            yield from self._undecided()
        else:
            yield from self.values["notes"][:1]
            yield from [NO_PROOF] * any(row["important"] for row in self.groups)
        known = {row["measure"]: (row["before"], row["after"]) for row in self.values["measures"]}
        parts = []
        if self.words is EVENTS:
            error, slope = (_pair(self.groups[0], name) for name in ("error", "slope"))
            parts.append(f"{_to(error, points)} points off by score")
            if all(map(is_known, slope)):
                parts.append(f"slope {_to(slope, ratio)} (right is 1)")
        elif width := known.get("80% interval width"):
            unit = short(self.values["about"].get("unit", ""), NAME)
            parts.append(" ".join(f"80% interval {_to(width, plain_number)} {unit} wide".split()))
        for name, shown in (("CRPS", "CRPS"), ("log loss", "log score")):
            if name in known:
                parts.append(f"{shown} {_to(known[name], number)} (smaller is better)")
        if parts:
            yield f"Everyone: {'; '.join(parts)}."

    def _undecided(self) -> Iterator[str]:
        shown, measure, name, right = self.words.undecided
        rows = [
            row
            for row in self.groups
            if row["outcome"] == "not significant"
            # the interval of the change excludes 0
            and max(row[f"{measure}_change_low"] or 0, -(row[f"{measure}_change_high"] or 0)) > 0
        ]
        if rows:
            row = max(rows, key=lambda row: abs(row[f"{measure}_change"]))
            yield (
                f"In {count(len(rows), 'group')} {name} changed, but these rows do not show whether"
                f" it is nearer to {right} now. Largest: {short(row['group'], NAME)}, from"
                f" {_to(_pair(row, shown), percent)} ({count(row['n'], 'row')})."
            )


Pair = tuple[float | None, float | None]


def _pair(row: Values, measure: str) -> Pair:
    return row[f"{measure}_before"], row[f"{measure}_after"]


def _to(pair: Pair, show: Show, join: str = " to ") -> str:
    return join.join(map(show, pair))


# --- text of at most 16 lines

LINES = 16
"""Most lines of a short text."""

ROWS = 5
"""Most groups in a short text."""


def comparison_text(values: Values, *, full: bool = False) -> str:
    """Return a comparison, given as `Comparison.to_dict()`, as text; `full` has all groups."""
    if full:
        return document_text(comparison_document(values))
    found, width = Changes(values), line_width(SCREEN)
    before, after = (short(str(name), 24) for name in values["names"])
    is_command = bool(values["provenance"]["after"].get("command"))
    more = "--full, or --out comparison.html" if is_command else "summary(full=True)"
    first = [f"Before: {before}. After: {after}. {', '.join(found.facts)}", found.verdict]
    last = [*found.sentences, f"All groups: {more}"]
    head, tail = ("\n".join(wrapped(one, width) for one in texts) for texts in (first, last))
    for n in range(ROWS, 0, -1):
        table = Table.of("Groups", found.groups[:n], _cells(found, is_short=True)).text(width)
        if head.count("\n") + table.count("\n") + tail.count("\n") + 5 <= LINES:
            break
    return f"{head}\n\n{table}\n\n{tail}"


def _own(row: Values, measure: str, show: Show) -> list[str]:
    """Write the own intervals of an estimate before and after."""
    ends = ([row[f"{measure}_{at}_{end}"] for end in ("low", "high")] for at in ("before", "after"))
    return [reach_of(*one) if show is signed else band(show, *one) for one in ends]


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
    if found.values["is_paired"]:
        how = HOW.format(confidence=in_full(values["confidence"]))
        how += HOW_OF_EVENTS if found.words is EVENTS else ""
    notes = [Bullets.of(values["notes"])] if values["notes"] else []
    folds: dict[str, tuple[str, str, Sequence[Part]]] = {
        "The other groups": ("others", "smaller changes", _groups(found, found.groups[FIRST:])),
        "Scores": ("scores", "of all rows", _scores(values)),
        "How changes are judged": ("how", "intervals of changes", [Paragraph(how)]),
        "Notes": ("notes", "what was left out or done otherwise", notes),
        "Where this comes from": ("provenance", "both audits", _provenance(values, data)),
    }
    return Document(
        title=f"Comparison of {before} and {after}",
        facts=[*found.facts, f"before: {before}", f"after: {after}"],
        lead=found.verdict,
        opening=[Bullets.of(found.sentences)],
        sections=[
            Section("Groups", _groups(found, found.groups[:FIRST]), "groups"),
            *(
                Section(title, parts, key, hint)
                for title, (key, hint, parts) in folds.items()
                if parts
            ),
        ],
        footer="Works offline, without ids of people. The JSON of this comparison has all digits.",
        data=data,
    )


def _provenance(values: Values, data: str) -> list[Part]:
    """Show which audits were compared, and the hash of the page."""
    facts: dict[str, str | None] = {}
    for key, audit in values["provenance"].items():
        model = (audit.get("model") or {}).get("sha256")
        facts |= {
            f"Date {key}": audit.get("date"),
            f"Command {key}": audit.get("command"),
            f"Hash of the model {key}": None if model is None else f"sha256: {model}",
            f"Version {key}": audit.get("evenhand"),
        }
    facts["Schema"] = values["schema"]
    facts["Hash of the page"] = hash_of(data)
    return [about_facts({**values, "provenance": values["provenance"]["after"]}), Facts(facts)]


def _groups(found: Changes, rows: Sequence[Values]) -> list[Part]:
    """Show groups with their values before and after; nothing without any."""
    shown = rows[:SHOWN]
    note = "Values before and after, and in brackets " + (
        "the change with its paired interval." if found.values["is_paired"] else "their intervals."
    )
    note += f" Tolerance: {found.tolerance}."
    if rest := len(rows) - len(shown):
        note += f" {count(rest, 'group')} with the smallest changes are in the JSON alone."
    label = "Groups" if rows[:1] == found.groups[:1] else "Other groups"
    table = Table.of(label, shown, _cells(found), search="Find a group", printed=SHOWN, note=note)
    return [table] if rows else []


def _cells(found: Changes, *, is_short: bool = False) -> Cells[Values]:
    """Return the columns of groups; in a short text those of few measures, and no changes."""
    words, is_paired = found.words, found.values["is_paired"]
    printed = words.printed if is_paired else ("error",)
    cells: Cells[Values] = {
        Column("group"): lambda row: short(row["group"], NAME) if is_short else row["group"],
        numeric("rows"): _rows,
    }
    for measure in printed if is_short else words.listed:
        column, show = words.listed[measure]
        cells[column] = _writer(measure, show, has_change=not (is_short and is_paired))
    cells[Column("verdict")] = verdict_of
    return cells


def _rows(row: Values) -> Value:
    """Write the number of rows of a group, and that of the second audit if it is another."""
    n, after = row["n"], row.get("n_after", row["n"])
    return Value(whole(n) + (f" → {whole(after)}" if after != n else ""), order=n)


def _writer(measure: str, show: Show, *, has_change: bool) -> Callable[[Values], Value]:
    """Return a function that writes a measure before and after, and its interval."""

    def written(row: Values) -> Value:
        if measure in row:
            return Value(show(row[measure]), order=row[measure])
        pair, change = _pair(row, measure), row.get(f"{measure}_change")
        shown = _to(pair, show, " → ") if any(map(is_known, pair)) else UNKNOWN
        if f"{measure}_before_low" in row:
            return Value(shown, " → ".join(_own(row, measure, show)), change)
        if not has_change or not is_known(change):
            return Value(shown, order=change)
        reach = reach_of(row[f"{measure}_change_low"], row[f"{measure}_change_high"])
        return Value(shown, signed(change) + (f", {reach}" if reach != UNKNOWN else ""), change)

    return written


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
