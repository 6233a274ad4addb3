"""The document of a comparison of two audits: verdict, groups and scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand._format import (
    count,
    in_full,
    is_known,
    nats,
    number,
    percent,
    points,
    points_in_full,
    whole,
)
from evenhand._table import Cells, Column, Table, Value, numeric
from evenhand.report.charts import Axis, Chart, Point, Points
from evenhand.report.comparison import measures_table
from evenhand.report.document import Bullets, Document, Facts, Paragraph, Part, Section, Sentence
from evenhand.report.measures import Measure, formatter_of
from evenhand.report.names import short, tip_name
from evenhand.report.page import document_html
from evenhand.report.records import Values
from evenhand.report.text import document_text

SHOWN = 400
"""Most groups in the table of a page."""

NAMED = 5
"""Most groups that the main findings name."""

ENDS = (0.05, 0.1, 0.2, 0.5)
"""Possible ends of the scale on which changes are drawn; the smallest that fits is used."""

WORDS = {"error": "error", "coverage_80": "80% coverage", "coverage_90": "90% coverage"}
LEVELS = {"error": 0.0, "coverage_80": 0.8, "coverage_90": 0.9}
ORDER = ("worse", "mixed", "better", "no significant change", "unknown")

HOW = (
    "A change is the value after minus the value before, on the same rows. A group got better or"
    " worse if the interval of the change of its error excludes 0, or that of a coverage excludes 0"
    " and the estimate is nearer to the level, or farther from it. The intervals of errors and"
    " coverages of all groups contain the true changes jointly with {confidence} confidence"
    " (Bonferroni); they are asymptotic, and groups of under 50 rows have none. The intervals of"
    " the error allow for its bias near 0, so that small errors need large changes."
)


@dataclass(frozen=True)
class _Row:
    """Changes of a group."""

    values: Values
    tolerance: Values

    @property
    def name(self) -> str:
        return str(self.values["group"])

    @property
    def outcome(self) -> str:
        return str(self.values["outcome"])

    @property
    def is_beyond(self) -> bool:
        return bool(self.values["beyond_tolerance"])

    def of(self, measure: str, column: str) -> float | None:
        """Return a column of a measure."""
        value: float | None = self.values[f"{measure}_{column}"]
        return value

    def is_significant(self, measure: str) -> bool:
        """Whether the interval of a change excludes 0."""
        low, high = self.of(measure, "change_low"), self.of(measure, "change_high")
        return is_known(low) and is_known(high) and (low > 0 or high < 0)

    @property
    def order(self) -> tuple[bool, int, float]:
        """Groups beyond tolerance come first, then worse ones, then the largest changes."""
        largest = max((abs(self.of(m, "change") or 0.0) for m in WORDS), default=0.0)
        is_off = self.outcome in ("worse", "mixed", "better")
        return not (self.is_beyond and is_off), ORDER.index(self.outcome), -largest

    @property
    def sentence(self) -> Sentence:
        """What changed significantly."""
        changed = [measure for measure in WORDS if self.is_significant(measure)]
        size = "" if self.is_beyond else ", within the tolerance"
        words = "; ".join(_change_in_words(self, measure) for measure in changed)
        before = {"worse": "Worse: ", "mixed": "Better and worse: ", "better": "Better: "}
        rest = f" ({count(int(self.values['n']), 'row')}){size}: {words}."
        is_warning = self.outcome != "better" and self.is_beyond
        return Sentence(before.get(self.outcome, ""), short(self.name, 200), rest, is_warning)


def _change_in_words(row: _Row, measure: str) -> str:
    show = points if measure == "error" else percent
    before, after = row.of(measure, "before"), row.of(measure, "after")
    low, high = row.of(measure, "change_low"), row.of(measure, "change_high")
    unit = " points" if measure == "error" else ""
    return (
        f"{WORDS[measure]} from {show(before)} to {show(after)}{unit}"
        f" (change {_signed(row.of(measure, 'change'))} points, {_reach(low, high)})"
    )


def _signed(value: float | None, show: Callable[..., str] = points, toward: str = "nearest") -> str:
    if not is_known(value):
        return "-"
    # a change that is printed as 0 has no sign
    text = show(value, toward)
    return f"+{text}" if value > 0 and text.strip("0.,") else text


def _reach(low: float | None, high: float | None, show: Callable[..., str] = points) -> str:
    if not (is_known(low) and is_known(high)):
        return "-"
    return f"{_signed(low, show, 'down')} to {_signed(high, show, 'up')}"


def comparison_document(values: Values, measures: Sequence[Measure]) -> Document:
    """Return the document of a comparison.

    Parameters
    ----------
    values : dict
        `Comparison.to_dict()`.
    measures : sequence of Measure
        Measures of the rows of `values["measures"]`.
    """
    before, after = (short(str(name), 60) for name in values["names"])
    rows = [_Row(row, values["tolerance"]) for row in values["groups"]]
    rows = [*rows[:1], *sorted(rows[1:], key=lambda row: row.order)]
    sections = [
        _groups(values, rows),
        _scores(values, measures),
        Section("All measures", [measures_table(values, measures)], "measures"),
    ]
    if values["notes"]:
        sections.append(Section("Notes", [Bullets.of(values["notes"])], "notes"))
    title = f"Comparison of {before} and {after}"
    return Document(
        title=title,
        facts=[count(int(values["n_samples"]), "row"), f"before: {before}", f"after: {after}"],
        opening=_opening(values, rows),
        cards=_cards(values, rows),
        sections=[section for section in sections if section is not None],
        footer="Made by evenhand. The JSON of this comparison contains all digits.",
    )


def comparison_text(values: Values, measures: Sequence[Measure]) -> str:
    """Return a comparison, given as `Comparison.to_dict()`, as text."""
    return document_text(comparison_document(values, measures))


def comparison_html(values: Values, measures: Sequence[Measure]) -> str:
    """Return a comparison, given as `Comparison.to_dict()`, as one page of HTML."""
    return document_html(comparison_document(values, measures), is_live=True)


def _counts(rows: Sequence[_Row]) -> dict[str, int]:
    return {outcome: sum(row.outcome == outcome for row in rows) for outcome in ORDER}


def lead_of(values: Values, rows: Sequence[_Row]) -> str:
    """Return the verdict: how many groups got better and worse."""
    groups = rows[1:]
    if not values["is_paired"]:
        return (
            "Without values of single rows there is no verdict on groups: only estimates are"
            " compared."
        )
    if not groups:
        return f"No groups are compared. Everyone: {rows[0].outcome}."
    n = _counts(groups)
    worse = sum(row.is_beyond for row in groups if row.outcome in ("worse", "mixed"))
    better = sum(row.is_beyond for row in groups if row.outcome == "better")
    text = (
        f"{_share(n['better'], better, 'better')} and {_share(n['worse'], worse, 'worse')} of"
        f" {count(len(groups), 'group')}"
    )
    if n["better"] == n["worse"] == n["mixed"] == 0:
        text = f"None of {count(len(groups), 'group')} got significantly better or worse"
    if n["mixed"]:
        text += f"; {n['mixed']:,} got better in one respect and worse in another"
    if n["unknown"]:
        text += f"; {n['unknown']:,} are too small for an interval"
    return f"{text}."


def _share(n: int, beyond: int, word: str) -> str:
    if n == 0:
        return f"none got {word}"
    important = "" if beyond == n else f" ({beyond:,} by more than the tolerance)"
    return f"{n:,} got {word}{important}"


def _opening(values: Values, rows: Sequence[_Row]) -> Section:
    lead = lead_of(values, rows)
    parts: list[Part] = [Paragraph(lead[:1].upper() + lead[1:], "lead")]
    some = [row for row in rows if row.outcome in ("worse", "mixed", "better")]
    worse = [row.sentence for row in some if row.outcome != "better"]
    better = [row.sentence for row in some if row.outcome == "better"]
    listed: list[Sentence] = []
    for sentences, word in ((worse, "worse"), (better, "better")):
        listed += sentences[:NAMED]
        if len(sentences) > NAMED:
            listed.append(Sentence(f"{len(sentences) - NAMED:,} more got {word}; see the table."))
    listed += _score_sentences(values)
    tolerance = values["tolerance"]
    limits = (
        f"Tolerance: {points_in_full(tolerance['error'])} points of error,"
        f" {points_in_full(tolerance['coverage'])} points of coverage."
    )
    parts += [Bullets(listed), Paragraph(limits, "facts")]
    if values["is_paired"]:
        text = HOW.format(confidence=in_full(values["confidence"]))
        parts.append(Paragraph(text, "facts", summary="How changes are judged"))
    return Section("Main findings", parts)


def _score_sentences(values: Values) -> list[Sentence]:
    """Return sentences on the changes of scores whose intervals exclude 0."""
    found = []
    for row in values["scores"]:
        if row["low"] > 0 or row["high"] < 0:
            is_log = row["measure"].startswith("log score")
            show = nats if is_log else number
            word = "up" if row["change"] > 0 else "down"
            reach = f"{show(abs(row['change']))}, {_reach(row['low'], row['high'], number)}"
            found.append(
                Sentence(f"Overall, {row['measure']} is {word} by {reach} (pointwise interval).")
            )
    return found


def _cards(values: Values, rows: Sequence[_Row]) -> list[Section]:
    counts = _counts(rows[1:])
    shown = {outcome.capitalize(): whole(n) for outcome, n in counts.items() if n}
    facts = {
        "Before": short(str(values["names"][0]), 60),
        "After": short(str(values["names"][1]), 60),
        "Rows": whole(int(values["n_samples"])),
        "Intervals": f"paired, {in_full(values['confidence'])}" if values["is_paired"] else "none",
    }
    return [Section("What was compared", [Facts(facts)]), Section("Groups", [Facts(shown)])]


def _groups(values: Values, rows: Sequence[_Row]) -> Section:
    shown = rows[: SHOWN + 1]
    columns = ("change", "change_low", "change_high")
    ends = [abs(row.of("error", key) or 0.0) for row in shown for key in columns]
    top = next((end for end in ENDS if max(ends, default=0.0) <= end), ENDS[-1])
    scale = Column(f"from -{points_in_full(top)} to {points_in_full(top)}", in_text=False)
    cells: Cells[_Row] = {
        Column("group"): lambda row: row.name,
        Column("outcome"): _outcome,
        numeric("error (points)"): lambda row: _two(row, "error", points),
        numeric("change"): lambda row: _change(row, "error"),
        scale: lambda row: Value("", order=row.of("error", "change"), drawing=_drawing(row, top)),
        numeric("80% coverage"): lambda row: _two(row, "coverage_80", percent),
        numeric("change in points"): lambda row: _change(row, "coverage_80"),
        numeric("90% coverage", in_text=False): lambda row: _two(row, "coverage_90", percent),
        numeric("its change in points", in_text=False): lambda row: _change(row, "coverage_90"),
        numeric("rows"): lambda row: Value(whole(int(row.values["n"])), order=row.values["n"]),
    }
    dim = [i for i, row in enumerate(shown) if row.outcome in ("no significant change", "unknown")]
    text = (
        "Values before and after, and the change in points with its paired interval. Groups that"
        " changed by more than the tolerance come first."
    )
    if len(rows) > len(shown):
        text += f" {SHOWN} of {whole(len(rows) - 1)} groups are shown."
    table = Table.of("Groups", shown, cells, dim=dim, search="Find a group")
    return Section("Groups", [Paragraph(text), table], "groups")


def _outcome(row: _Row) -> str:
    changed = row.outcome in ("worse", "mixed", "better")
    return f"{row.outcome}, within tolerance" if changed and not row.is_beyond else row.outcome


def _two(row: _Row, measure: str, show: Callable[..., str]) -> Value:
    before, after = row.of(measure, "before"), row.of(measure, "after")
    return Value(f"{show(before)} → {show(after)}", order=after)


def _change(row: _Row, measure: str) -> Value:
    change = row.of(measure, "change")
    reach = _reach(row.of(measure, "change_low"), row.of(measure, "change_high"))
    return Value(_signed(change), reach, change)


def _drawing(row: _Row, top: float) -> Chart | None:
    """Draw the change of the error with its interval, on a scale from `-top` to `top`."""
    change, low, high = (row.of("error", key) for key in ("change", "change_low", "change_high"))
    if not is_known(change):
        return None
    across = (low, high) if is_known(low) and is_known(high) else None
    tip = f"{tip_name(row.name)}: error changes by {_signed(change)} points ({_reach(low, high)})."
    is_worse = row.outcome in ("worse", "mixed")
    point = Point(change, 0.5, tip, is_off=is_worse, across=across)
    axis = Axis(-top, top, ticks=[k * top / 2 for k in range(-2, 3)])
    alt = f"Change of the error, from -{points_in_full(top)} to {points_in_full(top)} points"
    return Chart(alt, axis, [Points([point])], size="cell")


def _scores(values: Values, measures: Sequence[Measure]) -> Section | None:
    """Show the changes of mean scores of all rows."""
    rows = values["scores"]
    if not rows:
        return None
    text = (
        f"Means over all rows with paired {in_full(values['confidence'])} intervals of their"
        " changes, each by itself. Smaller log scores and CRPS are better."
    )
    units = {str(measure): formatter_of(measure.unit("")) for measure in measures}

    def show(row: Any) -> Callable[..., str]:
        return units.get(row["measure"], number)

    cells: Cells[Any] = {
        Column("score"): lambda row: row["measure"],
        numeric("before"): lambda row: show(row)(row["before"]),
        numeric("after"): lambda row: show(row)(row["after"]),
        numeric("change"): lambda row: Value(
            _signed(row["change"], number), _reach(row["low"], row["high"], number), row["change"]
        ),
    }
    return Section("Scores", [Paragraph(text), Table.of("Scores", rows, cells)], "scores")
