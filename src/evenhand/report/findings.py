"""Findings on groups: which are significantly off, in which direction, and by how much."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from evenhand._format import (
    at_least,
    count,
    in_full,
    is_known,
    p_value,
    plain_number,
    points,
    whole_percent,
)
from evenhand.report.notes import NO_SCAN, Note, NoteKind, notes_of
from evenhand.report.numbers import or_zero
from evenhand.report.sentences import (
    ADJUSTED_LEVEL,
    LEAST_REPORTED,
    Sentence,
    Values,
    direction_in_words,
    unit_of,
)
from evenhand.search import HIGHER, LOWER, MIXED, NARROW, POSSIBLE_LEAK, WIDE, Direction

NAMED_LISTED = 2
GROUPS_LISTED = 3
"""Most named groups, and most groups named or scanned, that sentences list one by one."""

NOT_OFF = "not surely off"


def by_size(rows: Sequence[Values], low: str = "error_low") -> list[Values]:
    """Sort groups: those judged first, by the lower bound of their error, then by its estimate."""

    def place(row: Values) -> tuple[bool, bool, float, float]:
        # the proven or banded part of an error first: estimates of small groups are large by chance
        return (
            bool(row.get("too_small")),
            bool(row.get("possible_leak")),
            -or_zero(row[low]),
            -or_zero(row["error"]),
        )

    return sorted(rows, key=place)


def is_sure(row: Values) -> bool:
    """Whether a scanned group is significantly off."""
    return is_known(row["p_adjusted"]) and bool(row["p_adjusted"] < ADJUSTED_LEVEL)


def everyone(audit: Values) -> Values | None:
    """Return the row of all people, which leads the named groups; None without groups."""
    return audit["groups"][0] if audit["groups"] else None


def error_direction(row: Values) -> Direction:
    """Return the direction of a named group's error, from its mean PIT and coverage."""
    error = or_zero(row["error"])
    mean = row["mean_pit"]
    # a mean PIT away from 1/2 is an error of at least that much: is it most of the error
    if is_known(mean) and abs(mean - 0.5) >= max(error / 2, 1e-9):
        return LOWER if mean < 0.5 else HIGHER
    # the level explains little of it; the spread does where the band of coverage leaves out 80%
    if is_known(row["coverage_80_high"]) and row["coverage_80_high"] < 0.8:
        return NARROW
    if is_known(row["coverage_80_low"]) and row["coverage_80_low"] > 0.8:
        return WIDE
    return MIXED


def is_mean_off(row: Values) -> bool:
    """Whether the 95% band of outcome minus forecast leaves out 0."""
    low = or_zero(row.get("bias_low"))
    high = or_zero(row.get("bias_high"))
    return is_known(row["bias"]) and (low > 0 or high < 0)


def how_off(row: Values, *, is_off: bool, unit: str) -> str:
    """Return in which direction a group is off and by how much, by one rule for all tables."""
    if row.get("too_small"):
        return "too few rows to tell"
    if row.get("possible_leak"):
        return POSSIBLE_LEAK
    if is_off:
        return off_in_words(row, unit)
    # a mean that is off by its own band is worth a look even where the group, judged with all
    # others, is not off
    side = "lower" if or_zero(row["bias"]) < 0 else "higher"
    return f"{NOT_OFF}; mean {side}, by its own band alone" if is_mean_off(row) else NOT_OFF


def off_in_words(row: Values, unit: str, *, verb: str = "") -> str:
    """Return direction and size of a group's error; a verb makes it a clause."""
    # scanned and learned groups have a tested direction, named ones only their estimates
    direction = row["direction"] if "direction" in row else error_direction(row)
    if is_mean_opposed(row, direction):
        # levels and mean disagree where a few large misses weigh most: one sentence must not say
        # both of outcomes
        ranks, side = ("lower", "above") if direction == LOWER else ("higher", "below")
        return (
            f"outcomes rank {ranks} than forecast, but their mean is"
            f" {plain_number(abs(row['bias']))} {unit} {side} the mean forecast"
        )
    return direction_in_words(direction, verb=verb) + by_units(row, direction, unit)


def is_bias_reported(row: Values) -> bool:
    """Whether the mean of outcome minus forecast is reported."""
    bias = row["bias"]
    # a named group has a band for its mean, and one that includes 0 shows no direction
    return is_known(bias) and bias != 0 and ("bias_low" not in row or is_mean_off(row))


def is_mean_opposed(row: Values, direction: str | None) -> bool:
    """Whether outcomes and their mean lie on different sides of the forecasts."""
    return (
        direction in {LOWER, HIGHER}
        and is_bias_reported(row)
        and (row["bias"] < 0) != (direction == LOWER)
    )


def by_units(row: Values, direction: str | None, unit: str) -> str:
    """Return by how much outcomes miss forecasts on average; nothing where it is not reported."""
    if not is_bias_reported(row):
        return ""
    size = f"{plain_number(abs(row['bias']))} {unit}"
    if direction in {LOWER, HIGHER}:
        return f", by {size} on average"
    return f"; on average outcomes are {size} {'below' if row['bias'] < 0 else 'above'} forecast"


def least_named(audit: Values) -> dict[Any, float]:
    """Return the certified lower bounds of named groups, by name."""
    return {
        row["group"]: or_zero(row["low"]) for row in (audit["certificate"] or {}).get("groups", [])
    }


def is_learned_off(row: Values) -> bool:
    """Whether a learned group is significantly off."""
    return or_zero(row["low"]) >= LEAST_REPORTED


def scan_name(row: Values) -> Any:
    """Return the name that the scan has for the rows of a group."""
    # a named group may be a value of a feature, and the same rows are tested once
    return row.get("scanned_as") or row["group"]


def off_named(audit: Values) -> list[Values]:
    """Return the named groups that are significantly off, by falling lower bound of their error."""
    # verdict, tables and drawings share this judgement, so that they cannot contradict each other
    least = least_named(audit)
    scanned = {row["group"] for row in audit["scan"] if is_sure(row)}
    judged = {row["group"] for row in audit["scan"]} | set(least)

    def is_off(row: Values) -> bool:
        if row["too_small"] or row.get("possible_leak"):
            return False
        # the scan and the certificate hold for all groups at once: either suffices
        if {row["group"], scan_name(row)} & judged:
            return scan_name(row) in scanned or least.get(row["group"], 0.0) >= LEAST_REPORTED
        # a band of a group alone counts only where no judgement of all groups at once is known
        return or_zero(row["error_low"]) >= LEAST_REPORTED

    off = [row for row in audit["groups"][1:] if is_off(row)]
    return sorted(off, key=lambda row: (-sure_least(audit, row), -or_zero(row["error"])))


def off_everybody(audit: Values) -> float:
    """Return the lower bound of the error over everybody; 0 if it is too small to be reported."""
    row = everyone(audit)
    if row is None:
        return 0.0
    # everybody is one group, not one of many: its own band is evidence as well
    low = max(or_zero(row["error_low"]), least_named(audit).get(row["group"], 0.0))
    return low if low > LEAST_REPORTED else 0.0


def off_names(audit: Values) -> set[Any]:
    """Return the names of named groups that are significantly off, everyone among them."""
    overall = {row["group"] for row in audit["groups"][:1] if off_everybody(audit)}
    return overall | {row["group"] for row in off_named(audit)}


def sure_least(audit: Values, row: Values) -> float:
    """Return the lower bound of a group's error; 0 if none that can be reported is known."""
    least = least_named(audit)
    if row["group"] in least:
        low = least[row["group"]]
    elif scan_name(row) in {other["group"] for other in audit["scan"]}:
        # a scanned group has a p-value for all groups at once; its own band would claim more
        low = 0.0
    else:
        low = or_zero(row.get("error_low"))
    return low if low >= LEAST_REPORTED else 0.0


def off_scanned(audit: Values) -> list[Values]:
    """Return scanned groups that are significantly off and not named, by rising p-value."""
    named = {name for row in audit["groups"] for name in (row["group"], scan_name(row))}
    # the same rows may have several names, as where two features split people alike: equal size
    # and error identify them, they are listed once, and named groups come first
    others: dict[Any, Values] = {}
    for row in audit["scan"]:
        if is_sure(row) and row["group"] not in named:
            others.setdefault((row["n"], row["error"]), row)
    return list(others.values())


def listed_groups(audit: Values) -> tuple[list[Values], list[Values]]:
    """Return the named and the scanned groups that sentences list one by one."""
    named = off_named(audit)[:NAMED_LISTED]
    return named, off_scanned(audit)[: GROUPS_LISTED - len(named)]


def farthest_off(audit: Values) -> Values | None:
    """Return the listed group with the largest lower bound; None if none is significantly off."""
    named, scanned = listed_groups(audit)
    return max(
        [*named, *scanned],
        key=lambda row: (sure_least(audit, row), or_zero(row["error"])),
        default=None,
    )


def evidence_in_words(audit: Values, row: Values) -> str:
    """Return the evidence for a group's error: its lower bound, else its adjusted p-value."""
    low = sure_least(audit, row)
    if low:
        return f"surely by at least {at_least(low)}"
    adjusted = [
        r["p_adjusted"] for r in audit["scan"] if r["group"] == scan_name(row) and is_sure(r)
    ]
    return f"surely off (adjusted p {p_value(adjusted[0], '= ')})" if adjusted else "surely off"


def group_sentences(audit: Values) -> list[Sentence]:
    """Return sentences on the groups that are significantly off, five at most."""
    named, scanned = listed_groups(audit)
    listed = [_finding(audit, "Named group ", row) for row in named]
    listed += [_finding(audit, "Group ", row) for row in scanned]
    return [*listed, *_learned_sentences(audit), *_in_all(audit, len(listed))]


def _finding(audit: Values, before: str, row: Values) -> Sentence:
    rest = (
        f" ({count(row['n'], 'row')}): {how_off(row, is_off=True, unit=unit_of(audit))}; off by an"
        f" estimated {points(row['error'])} points, {evidence_in_words(audit, row)}."
    )
    return Sentence(before, str(row["group"]), rest)


def _learned_sentences(audit: Values) -> list[Sentence]:
    off = list(filter(is_learned_off, audit["learned"]))
    if not off:
        return []
    # one sentence: learned groups of several sizes mostly overlap
    row = max(off, key=lambda row: row["low"])
    text = (
        f"In a group of {in_full(row['mass'])} of people, {_defined(row)}"
        f" ({count(row['n'], 'row')}), {off_in_words(row, unit_of(audit), verb='are')}; off by an"
        f" estimated {points(row['error'])} points, surely by at least {at_least(row['low'])}."
    )
    return [Sentence(text)]


def _in_all(audit: Values, n_listed: int) -> list[Sentence]:
    named = off_named(audit)
    scanned = [row for row in audit["scan"] if is_sure(row)]
    others = off_scanned(audit)
    if len(named) + len(others) <= n_listed:
        return []
    parts = [f"{len(named):,} of {n_named(audit):,} named groups"] if named else []
    parts += [f"{len(scanned):,} of {n_scanned(audit):,} scanned groups"] if scanned else []
    text = f"In all {' and '.join(parts)} are surely off: see the tables."
    # groups that share a feature with the first share many of its rows
    first = set(others[0].get("features") or []) if others else set()
    related = [row for row in others[1:] if first & set(row.get("features") or [])]
    if related:
        overlap = "overlaps" if len(related) == 1 else "overlap"
        text += (
            f" {len(related):,} of them {overlap} with {others[0]['group']}; others may only"
            " reflect it."
        )
    return [Sentence(text)]


def n_named(audit: Values) -> int:
    """Count the named groups that were judged: possible leaks were not."""
    return sum(not row.get("possible_leak") for row in audit["groups"][1:])


def n_scanned(audit: Values) -> int:
    """Count the groups that the scan judged: those without a test were not."""
    return sum(is_known(row["p_adjusted"]) for row in audit["scan"])


def in_words(row: Values) -> str:
    """Return the conditions that nearly define a learned group, or its main features."""
    if row["description"]:
        return (
            f"nearly: {row['description']}, {whole_percent(or_zero(row['description_share']))} of"
            " people"
        )
    return "by " + ", ".join(map(str, row["features"])) if row["features"] else "no short rule"


def _defined(row: Values) -> str:
    """Return how a learned group is defined, for a sentence."""
    if row["description"]:
        return f"nearly those with {row['description']}"
    names = list(map(str, row["features"]))
    if not names:
        return "which features define by no short rule"
    return f"defined by {', '.join(names[:-1])}{' and ' if names[1:] else ''}{names[-1]}"


def with_notes(audit: Values, notes: Iterable[Note]) -> Values:
    """Return an audit as plain values with typed notes, which JSON holds as sentences."""
    return {**audit, "typed_notes": tuple(notes)}


def _notes_of(audit: Values, *kinds: NoteKind) -> tuple[Note, ...]:
    return notes_of(audit.get("typed_notes", ()), *kinds)


def why_no_scan(audit: Values) -> str:
    """Return the note on a scan that could not run; without one, what is known of the reason."""
    return " ".join(map(str, _notes_of(audit, *NO_SCAN)[:1])) or no_scan(audit)


def no_scan(audit: Values) -> str:
    """Return in a few words why no groups were scanned."""
    if _notes_of(audit, *NO_SCAN):
        return "too few rows"
    has_features = audit["learned"] or _notes_of(audit, NoteKind.COLUMN_NOT_SCANNED)
    return "the notes say why" if has_features else "that takes features"


def looked_at(audit: Values) -> str:
    """Return how many groups were looked at, and whether a scan ran."""
    searched = {"scanned": n_scanned(audit), "learned": len(audit["learned"])}
    counts = [count(n_named(audit), "named group")]
    counts += [count(n, f"{search} group") for search, n in searched.items() if n]
    no = "" if searched["scanned"] else f"; no scan: {no_scan(audit)}"
    return f"{', '.join(counts)} looked at, none surely off{no}"


def repair_sentence(audit: Values) -> str:
    """Return how to recalibrate a group that is off, without randomness."""
    row = farthest_off(audit)
    # recalibration by group takes one column; an intersection of two has none
    column = None if row is None else _column_of(audit, row)
    if column is None:
        return "To mend it without randomness: see the guides on mending."
    return f'To mend it without randomness: RecalibratedRegressor(model, by="{column}").'


def _column_of(audit: Values, row: Values) -> str | None:
    """Return the column that alone defines a group; None if there is none."""
    named = {other["group"] for other in audit["groups"]}
    if row["group"] not in named:
        features = row.get("features") or []
        return str(features[0]) if len(features) == 1 else None
    columns = {
        str(name)
        for other in audit["scan"]
        if other["group"] not in named
        for name in other["features"]
    }
    # a named group may come from outside the features, where the model cannot see its column
    column = row.get("column")
    return str(column) if column in columns else None
