"""Groups of a comparison of two audits, with their changes in words."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand._format import count, is_known, percent, points
from evenhand.report.comparison import reach_of, signed
from evenhand.report.document import Sentence
from evenhand.report.names import short
from evenhand.report.records import Values

WORDS = {"error": "error", "coverage_80": "80% coverage", "coverage_90": "90% coverage"}
"""Names of measures."""

ORDER = ("worse", "mixed", "better", "changed", "not significant", "unknown")
CHANGED = ORDER[:4]
"""Outcomes of groups with a significant change."""


@dataclass(frozen=True)
class ChangedGroup:
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
        """Groups beyond tolerance come first, then worse ones, then the largest changes."""
        largest = max((abs(self.of(m, "change") or 0.0) for m in WORDS), default=0.0)
        is_off = self.outcome in CHANGED
        return not (self.is_beyond and is_off), ORDER.index(self.outcome), -largest

    @property
    def sentence(self) -> Sentence:
        """What changed significantly."""
        changed = [measure for measure in WORDS if self.is_significant(measure)]
        size = "" if self.is_beyond else ", within the tolerance"
        words = "; ".join(_change_in_words(self, measure) for measure in changed)
        before = {outcome: f"{outcome.capitalize()}: " for outcome in CHANGED}
        before["mixed"] = "Better and worse: "
        rest = f" ({count(int(self.values['n']), 'row')}){size}: {words}."
        is_warning = self.outcome in ("worse", "mixed") and self.is_beyond
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
