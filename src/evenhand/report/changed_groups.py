"""Groups of a comparison of two audits, with their changes in words."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand._format import count, is_known, percent, points
from evenhand.report.document import Sentence, short
from evenhand.report.measures import reach_of, signed
from evenhand.report.records import Values

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
