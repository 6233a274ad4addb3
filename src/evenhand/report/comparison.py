"""Comparison of two audits: differences in words, changes of groups, text and page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand._format import (
    UNKNOWN,
    Show,
    at_least,
    at_most,
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
from evenhand.report.document import (
    Bullets,
    Document,
    Facts,
    PageData,
    Paragraph,
    Part,
    Section,
    Sentence,
    about_facts,
    short,
)
from evenhand.report.measures import UNITS, Measure, formatter_of, reach_of, signed
from evenhand.report.page import document_html
from evenhand.report.records import Values
from evenhand.report.text import document_text
from evenhand.results import MASS

SIZES = {
    "CRPS": ("CRPS is", ("worse", "better", "large")),
    "log loss": ("log loss is", ("worse", "better", "large")),
    "Brier score": ("the Brier score is", ("worse", "better", "large")),
    "mean std": ("the predicted std is", ("larger", "smaller", "large")),
    "interval width": ("prediction intervals are", ("wider", "narrower", "wide")),
}
"""Subjects of sentences on measures that are compared by ratios, and the words for these."""

OTHER_SIZE = ("the value is", ("larger", "smaller", "large"))
"""The same for other measures."""

BOUNDS: dict[str, Callable[[float | None, Show], str]] = {
    "certified error": at_most,
    "least coverage": at_least,
    "most coverage": at_most,
}
"""Measures that are certified bounds, and how they are printed."""


def certified_sentences(values: Values, measures: Sequence[Measure]) -> list[Sentence]:
    """Return the bounds for every group of the size of a verdict, if one needs a draw."""
    return [
        Sentence(
            f"Certified for every group of at least {in_full(measure.level)} of people: off by at"
            f" most {at_most(row['before'])} points before, {at_most(row['after'])} points after."
        )
        for measure, row in zip(measures, values["measures"], strict=True)
        if measure.what == "certified error"
        and math.isclose(measure.level, MASS)
        # without a draw no bound is below this one (method: sharp certificate)
        and min(row["before"], row["after"]) < (1 - MASS) / 2
    ]


def measures_table(values: Values, measures: Sequence[Measure]) -> Table:
    """Return the table of all measures of two audits, with a sentence on each.

    `values` are those of `Comparison.to_dict()`.
    """
    rows = [
        [
            str(row["measure"]),
            *(_compared(measure, row[key]) for key in ("before", "after")),
            row["in_words"],
        ]
        for measure, row in zip(measures, values["measures"], strict=True)
    ]
    columns = [Column("measure"), *map(numeric, values["names"]), Column("in words")]
    return Table("Comparison", columns, rows)


def _compared(measure: Measure, value: float | None) -> str:
    show = formatter_of(UNITS.get(measure.what))
    rounded = BOUNDS.get(measure.what)
    shown = show(value) if rounded is None else rounded(value, show)
    return f"{shown} points" if show is points else shown


def difference_in_words(
    measure: Measure, first: float, second: float, names: tuple[str, str]
) -> str:
    """Return a sentence on the difference of a measure between two forecasters."""
    if measure.what in BOUNDS:
        return _bounds_in_words(measure, first, second, names)
    # log scores may be negative: their differences are meaningful, their ratios are not
    if measure.what in ("log score", "cell log score"):
        return _sharpness_in_words(second - first, names)
    if measure.what in UNITS and measure.what not in SIZES:
        return _share_in_words(measure, first, second)
    subject, words = SIZES.get(measure.what, OTHER_SIZE)
    return f"{subject} {_ratio(first, second, words)}"


def _bounds_in_words(measure: Measure, first: float, second: float, names: tuple[str, str]) -> str:
    """Return both bounds in words: their difference is no bound of the difference."""
    rounded = BOUNDS[measure.what]
    show = formatter_of(UNITS[measure.what])
    bound = f"{'at least' if rounded is at_least else 'at most'} {rounded(second, show)}"
    text = (
        f"{bound} points in every such group" if show is points else f"80% intervals cover {bound}"
    )
    return f"{text}; {names[0]}: {rounded(first, show)}"


def _share_in_words(measure: Measure, first: float, second: float) -> str:
    """Return the difference of two errors or coverages in words."""
    is_coverage = measure.what in ("coverage", "whole coverage")
    show = percent if is_coverage else points
    before, now = show(first), show(second)
    # compared as printed, to avoid "5.0, up from 5.0"
    change = "unchanged" if before == now else f"{'up' if second > first else 'down'} from {before}"
    if is_coverage:
        whole = " of whole values" if measure.what == "whole coverage" else ""
        intervals = f"{in_full(measure.level)} prediction intervals{whole}"
        return f"{intervals} cover {now} of outcomes, {change}"
    return f"predicted probabilities are off by {now} points, {change}"


def _sharpness_in_words(gap: float, names: tuple[str, str]) -> str:
    # gaps that would be printed as 0.00
    if abs(gap) < 0.005:
        return f"the log score of {names[1]} equals that of {names[0]}"
    return f"the log score of {names[1]} is {nats(abs(gap))} {'worse' if gap > 0 else 'better'}"


def _ratio(first: float, second: float, words: tuple[str, str, str]) -> str:
    """Compare two values: "20% wider", "20% narrower", "2.1 times as wide", "about as wide"."""
    more, less, plain = words
    if first == second:
        return f"about as {plain}"
    # a forecaster without spread has width 0: the ratio is infinite
    ratio = second / first if first else math.inf
    if ratio == math.inf:
        return f"infinitely {more}"
    if ratio >= 2:
        return f"{ratio:.1f} times as {plain}"
    # below half a percent, which would be printed as 0%
    if abs(ratio - 1) < 0.005:
        return f"about as {plain}"
    return f"{percent(abs(ratio - 1), decimals=0)} {more if ratio > 1 else less}"


# --- groups of a comparison of two audits, with their changes in words

WORDS = {"error": "error", "coverage_80": "80% coverage", "coverage_90": "90% coverage"}
"""Names of measures."""

ORDER = ("worse", "better", "not significant", "unknown")
CHANGED = ORDER[:2]
"""Outcomes of groups with a significant change."""


@dataclass(frozen=True)
class ChangedGroup:
    """Changes of a group."""

    values: Values

    @property
    def name(self) -> str:
        return str(self.values["group"])

    @property
    def outcome(self) -> str:
        return str(self.values["outcome"])

    @property
    def is_important(self) -> bool:
        return bool(self.values["important"])

    def of(self, measure: str, column: str) -> float | None:
        """Return a column of a measure; None if the kind of outcome does not have it."""
        value: float | None = self.values.get(f"{measure}_{column}")
        return value

    @property
    def people(self) -> tuple[object, ...]:
        """Key of its rows: size, coverages and bias before and after identify them."""
        # errors of scanned groups are binned, those of named groups are not
        sure = [self.of(one, at) for one in WORDS if one != "error" for at in ("before", "after")]
        means = [self.of("bias", at) for at in ("before", "after")]
        if not all(map(is_known, means)):
            means = [self.of("error", at) for at in ("before", "after")]
        # sums in another order differ in their last digits
        rounded = [f"{value:.9g}" if is_known(value) else None for value in (*sure, *means)]
        return int(self.values["n"]), *rounded

    def is_significant(self, measure: str) -> bool:
        """Whether the interval of a change excludes 0."""
        low, high = self.of(measure, "change_low"), self.of(measure, "change_high")
        return is_known(low) and is_known(high) and (low > 0 or high < 0)

    @property
    def order(self) -> tuple[bool, int, float]:
        """Important groups come first, then worse ones, then the largest changes."""
        change = abs(self.of("error", "change") or 0.0)
        return not self.is_important, ORDER.index(self.outcome), -change

    @property
    def sentence(self) -> Sentence:
        """What changed significantly."""
        changed = [measure for measure in WORDS if self.is_significant(measure)]
        size = "" if self.is_important else ", within the tolerance"
        words = "; ".join(_change_in_words(self, measure) for measure in changed)
        before = {outcome: f"{outcome.capitalize()}: " for outcome in CHANGED}
        rest = f" ({count(int(self.values['n']), 'row')}){size}: {words}."
        is_warning = self.outcome == "worse" and self.is_important
        return Sentence(before.get(self.outcome, ""), short(self.name, 200), rest, is_warning)


def _change_in_words(row: ChangedGroup, measure: str) -> str:
    show = points if measure == "error" else percent
    before, after = row.of(measure, "before"), row.of(measure, "after")
    low, high = row.of(measure, "change_low"), row.of(measure, "change_high")
    unit = " points" if measure == "error" else ""
    return (
        f"{WORDS[measure]} from {show(before)} to {show(after)}{unit}"
        f" (change {signed(row.of(measure, 'change'))} points, {reach_of(low, high)})"
    )


# --- the document of a comparison of two audits: verdict, groups and scores

SHOWN = 400
"""Most groups in the table of a page."""

LISTED = 10
"""Most groups without a significant change in text."""

PRINTED = 21
"""Most rows of the table of groups in text."""

NAMED = 3
"""Most groups of each outcome that the main findings name."""

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


def comparison_document(
    values: Values, measures: Sequence[Measure], most_unchanged: int = SHOWN
) -> Document:
    """Return the document of a comparison.

    Parameters
    ----------
    values : dict
        `Comparison.to_dict()`.
    measures : sequence of Measure
        Measures of the rows of `values["measures"]`.
    most_unchanged : int
        Most groups without a significant change in the table of groups.
    """
    before, after = (short(str(name), 60) for name in values["names"])
    rows = [ChangedGroup(row) for row in values["groups"]]
    rows = [*rows[:1], *sorted(rows[1:], key=lambda row: row.order)]
    sections = [
        _groups(values, rows, most_unchanged),
        _scores(values, measures),
        # of groups, text has the table with intervals; the page has all measures
        Section(
            "All measures",
            [measures_table(values, measures)],
            "measures",
            in_text=not values["is_paired"],
        ),
    ]
    if values["notes"]:
        sections.append(Section("Notes", [Bullets.of(values["notes"])], "notes"))
    data = PageData.of(values)
    sections.append(_provenance(values, data))
    title = f"Comparison of {before} and {after}"
    return Document(
        title=title,
        facts=[count(int(values["n_samples"]), "row"), f"before: {before}", f"after: {after}"],
        opening=_opening(values, measures, rows),
        about=about_facts({**values, "provenance": _after(values)}),
        sections=[section for section in sections if section is not None],
        footer="Made by evenhand. The JSON of this comparison contains all digits.",
        data=data,
    )


def comparison_text(values: Values, measures: Sequence[Measure]) -> str:
    """Return a comparison, given as `Comparison.to_dict()`, as text."""
    return document_text(comparison_document(values, measures, LISTED))


def comparison_html(values: Values, measures: Sequence[Measure]) -> str:
    """Return a comparison, given as `Comparison.to_dict()`, as one page of HTML."""
    return document_html(comparison_document(values, measures))


def _after(values: Values) -> Values:
    """Return the provenance of the second audit; empty if it is not recorded."""
    return (values.get("provenance") or {}).get("after") or {}


def _provenance(values: Values, data: PageData) -> Section:
    """Show which audits were compared, and the hash of the page."""
    known = values.get("provenance") or {}
    facts: dict[str, str | None] = {}
    for name, key in zip(values["names"], ("before", "after"), strict=True):
        audit = known.get(key) or {}
        model = (audit.get("model") or {}).get("sha256")
        facts[f"Audit {key}"] = short(str(name), 60)
        facts[f"Date {key}"] = audit.get("date")
        facts[f"Command {key}"] = audit.get("command")
        facts[f"Hash of the model {key}"] = None if model is None else f"sha256: {model}"
        facts[f"Version {key}"] = audit.get("evenhand")
    facts["Schema"] = values["schema"]
    facts["Hash of the page"] = f"sha256 of the embedded data: {data.sha256}"
    return Section("Provenance", [Facts(facts)], "provenance", in_text=False)


def _counts(rows: Sequence[ChangedGroup]) -> dict[str, int]:
    return {outcome: sum(row.outcome == outcome for row in rows) for outcome in ORDER}


def lead_of(values: Values, rows: Sequence[ChangedGroup]) -> str:
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
    total = count(len(groups), "group")
    is_any = any(n[outcome] for outcome in CHANGED)
    # that no group got worse is what a comparison is asked for
    parts = [
        f"{n[outcome]:,} {words}" if n[outcome] else f"none {words}"
        for outcome, words in (("better", "got better"), ("worse", "got worse"))
        if is_any
    ]
    small = f" {count(n['unknown'], 'group is', 'groups are')} too small for an interval."
    small = small if n["unknown"] else ""
    if not parts:
        return f"None of {total} changed significantly.{small}"
    beyond = sum(row.is_important for row in groups)
    changes = f" Changes beyond the tolerance: {beyond:,} of {sum(n[one] for one in CHANGED):,}."
    return f"Of {total}, {', '.join(parts)}.{changes}{small}"


def _opening(values: Values, measures: Sequence[Measure], rows: Sequence[ChangedGroup]) -> Section:
    lead = lead_of(values, rows)
    parts: list[Part] = [Paragraph(lead, "lead")]
    listed = _group_sentences(rows)
    listed += certified_sentences(values, measures)
    limits = f"Tolerance: {points_in_full(values['tolerance'])} points."
    parts += [Bullets(listed), Paragraph(limits, "facts")]
    if values["is_paired"]:
        text = HOW.format(confidence=in_full(values["confidence"]))
        text += HOW_OF_EVENTS if is_of_events(values) else ""
        parts.append(Paragraph(text, "facts", summary="How changes are judged"))
    return Section("Main findings", parts)


def _group_sentences(rows: Sequence[ChangedGroup]) -> list[Sentence]:
    """Return sentences on groups that changed, important ones alone if there are any."""
    changed = [row for row in rows if row.outcome in CHANGED]
    important = [row for row in changed if row.is_important] or changed
    listed: list[Sentence] = []
    for outcome in CHANGED:
        found = [row for row in important if row.outcome == outcome]
        named = _distinct(found)[:NAMED]
        listed += [row.sentence for row in named]
        more = len(found) - len(named)
        if more > 0:
            listed.append(Sentence(f"{count(more, 'other group')} got {outcome}."))
    within = len(changed) - len(important)
    if within:
        listed.append(
            Sentence(f"{count(within, 'change is', 'changes are')} within the tolerance.")
        )
    return listed


def _distinct(rows: Sequence[ChangedGroup]) -> list[ChangedGroup]:
    """Return one row for each set of people, that with the shortest name."""
    found: dict[tuple[object, ...], ChangedGroup] = {}
    for row in rows:
        known = found.setdefault(row.people, row)
        if len(row.name) < len(known.name):
            found[row.people] = row
    return list(found.values())


def _groups(values: Values, rows: Sequence[ChangedGroup], most_unchanged: int) -> Section:
    groups = _distinct(rows[1:])
    changed = [row for row in groups if row.outcome in CHANGED][:SHOWN]
    rest = [row for row in groups if row.outcome not in CHANGED][:most_unchanged]
    shown = [*rows[:1], *changed, *rest]
    cells: Cells[ChangedGroup] = {
        Column("group"): lambda row: row.name,
        Column("outcome"): _outcome,
        numeric("error (points)"): lambda row: _two(row, "error", points),
        **(EVENT_CELLS if is_of_events(values) else COVERAGE_CELLS),
        numeric("rows"): lambda row: Value(whole(int(row.values["n"])), order=row.values["n"]),
    }
    dim = [i for i, row in enumerate(shown) if row.outcome not in CHANGED]
    text = (
        "Values before and after, and below them the change in points with its paired interval."
        " Groups that changed by more than the tolerance come first."
    )
    if len(rows) > len(groups) + 1:
        text += (
            f" {count(len(groups), 'group has', 'groups have')} distinct rows: of several names of"
            " the same rows the shortest is used."
        )
    if len(groups) + 1 > len(shown):
        text += (
            f" The table has everyone and {len(shown) - 1:,} of {whole(len(groups))} groups, those"
            " with the largest changes."
        )
    search = "Find a group"
    table = Table.of("Groups", shown, cells, dim=dim, search=search, printed=PRINTED)
    return Section("Groups", [Paragraph(text), table], "groups")


def is_of_events(values: Values) -> bool:
    """Whether outcomes are 0/1, which have no coverage."""
    return "rate" in values["groups"][0]


COVERAGE_CELLS: Cells[ChangedGroup] = {
    numeric("80% coverage"): lambda row: _two(row, "coverage_80", percent),
    numeric("90% coverage", in_text=False): lambda row: _two(row, "coverage_90", percent),
}

EVENT_CELLS: Cells[ChangedGroup] = {
    numeric("predicted"): lambda row: _both(row, "predicted", percent),
    numeric("observed"): lambda row: percent(row.values["rate"]),
    numeric("difference", in_text=False): lambda row: _two(row, "bias", signed),
    numeric("slope"): lambda row: _both(row, "slope", number),
    numeric("log loss", in_text=False): lambda row: _both(row, "log_loss", number),
}


def _outcome(row: ChangedGroup) -> str:
    is_small = row.outcome in CHANGED and not row.is_important
    return f"{row.outcome}, within tolerance" if is_small else row.outcome


def _both(row: ChangedGroup, measure: str, show: Callable[..., str]) -> str:
    """Write a value before and after."""
    before, after = row.of(measure, "before"), row.of(measure, "after")
    return f"{show(before)} → {show(after)}" if is_known(before) or is_known(after) else UNKNOWN


def _two(row: ChangedGroup, measure: str, show: Callable[..., str]) -> Value:
    """Write a value before and after, with the change and its interval; sorted by the change."""
    change = row.of(measure, "change")
    reach = reach_of(row.of(measure, "change_low"), row.of(measure, "change_high"))
    below = signed(change) if reach == UNKNOWN else f"{signed(change)}, {reach}"
    return Value(_both(row, measure, show), below, change)


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
            signed(row["change"], number), reach_of(row["low"], row["high"], number), row["change"]
        ),
    }
    return Section("Scores", [Paragraph(text), Table.of("Scores", rows, cells)], "scores")
