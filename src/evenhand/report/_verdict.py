"""What an audit says in words: what was audited, what is surely off, and what is proven."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evenhand._words import at_least, at_most
from evenhand.report._numbers import band, bound, count, is_known, p_value, percent, points

Values = Mapping[str, Any]
"""An audit as plain values, or a row of one of its tables."""

SURE = 0.05
"""Adjusted p-value under which a group is surely off."""

MASS = 0.2
"""Share of the people whose bounds for every group are told of in words."""

LEAST_TOLD = 0.0005
"""Least bound that is told of: a smaller one would read as 0.0 points."""

LEAST_COVERED = 0.01
"""Least bound of an interval's coverage that is told of: a smaller one would read as 0%."""

TOLD = 3
"""Most groups of a kind that are told of in words."""

NOT_ALL_GROUPS = "Groups that nobody looked at: nothing is proven for them here."
OTHER_ROWS = "People, places and times that these rows do not stand for."
"""What no audit covers, said where a certificate does not say it."""

LOWER, HIGHER = "outcomes lower than forecast", "outcomes higher than forecast"
NARROW, WIDE = "intervals too narrow", "intervals too wide"

SCALE = (
    "Off by 0 points is perfect, by 50 the worst: stated against true chances, averaged over all levels. Surely: of "
    "scanned groups at a risk of 5% over all of them at once; of named groups by bounds that hold at once, where "
    "there is a certificate, else by each band; of learned groups by each one's lower bound."
)
"""How to read the points, and the word "surely"."""


def kind(audit: Values) -> str:
    """Say what sort of forecasts was audited."""
    if not audit["is_randomized"]:
        return "deterministic forecasts"
    return f"randomized forecasts, {count(audit['n_draws'], 'draw')} per row"


def verdict(audit: Values) -> tuple[str, list[str]]:
    """Say what the audit shows in one sentence, and in others, the surest first, what else and what it cannot show."""
    proven = proven_bounds(audit)
    sure = [*_sure_named(audit), *_sure_scanned(audit), *_sure_learned(audit)]
    average = list(_average_sentences(audit))
    if proven is not None:
        found = "Even so, some groups are surely off." if sure else _headline(audit)
        return _proof_sentence(audit, proven), [*_proof_remarks(proven), *average, found, *sure]
    lead = _headline_of(farthest_off(audit)) if sure else _headline(audit)
    return lead, [*sure, *average, _no_proof_sentence(audit)]


def _headline_of(row: Values | None) -> str:
    """Say that some groups are off, and of one that can be named in which direction and by how much."""
    if row is None:
        return "Some groups are surely off."
    how = row["direction"] if "direction" in row else lean(row)
    said = ""
    if how in {LOWER, HIGHER, NARROW, WIDE}:
        subject, _, way = how.partition(" ")
        said = f"{subject} are {way}{_by_units(row, how)}; "
    off = f"stated chances are off by {points(row['error'])} percentage points"
    return f"Some groups are surely off. For one, {row['group']}: {said}{off}."


def _headline(audit: Values) -> str:
    if audit["groups"] and (audit["groups"][0]["error_low"] or 0) > 0:
        return "The forecasts are surely off over everybody; no group in particular is surely off."
    if len(audit["groups"]) < 2 and not audit["scan"] and not audit["learned"]:
        return "No groups were looked at: name some, or give features."
    return "No group is surely off among those looked at. That does not prove that each of them is well calibrated."


def _proof_sentence(audit: Values, row: Values) -> str:
    confidence, mass = percent(audit["certificate"]["confidence"]), percent(row["mass"])
    if row["group_error"] >= 0.4995:
        return f"The rows are too few to prove anything for every group of at least {mass} of people."
    interval = ""
    if is_known(row["coverage_80_low"]) and row["coverage_80_low"] >= LEAST_COVERED:
        interval = f"the 80% interval holds at least {at_least(row['coverage_80_low'], 0)}% of the time; "
    return (
        f"With {confidence} confidence: for every group of at least {mass} of people, {interval}averaged over all "
        f"probability levels, stated chances are off by at most {at_most(row['group_error'], 0)} percentage points."
    )


def _proof_remarks(row: Values) -> list[str]:
    """Say the other end of a proof, where it has one."""
    high = row["coverage_80_high"]
    if row["group_error"] >= 0.4995 or not is_known(high) or at_most(high, 0) == "100":
        return []
    return [f"The same 80% interval holds at most {at_most(high, 0)}% of the time, with the same confidence."]


def _no_proof_sentence(audit: Values) -> str:
    if not audit["is_randomized"]:
        return (
            "What cannot be shown: with one forecast per person no data can prove calibration for groups that were not "
            "named beforehand, however good the forecasts are. Groups that nobody looked at may be off."
        )
    if audit["n_draws"] == 1:
        return "Only one draw per row is known, which proves nothing for groups not named: audit several draws per row."
    return "Nothing is proven here for groups that were not named; the notes say why."


def _average_sentences(audit: Values) -> Iterable[str]:
    for row in audit["groups"][:1]:
        text = f"Over everybody, stated chances are off by {points(row['error'])} percentage points"
        text += f" (95% band {band(points, row['error_low'], row['error_high'])})"
        yield text + f"; a stated 80% interval holds {percent(row['coverage_80'], 1)} of outcomes."


def _sure_named(audit: Values) -> list[str]:
    off, least = _off_named(audit), _least_named(audit)
    told = []
    for row in off[:TOLD]:
        low = least.get(row["group"], 0.0)
        surely = f", surely by {at_least(low)} or more" if low >= LEAST_TOLD else ""
        told.append(f"Named group {_finding(row, row['group'], lean(row))}{surely}.")
    return told + ([f"{count(len(off) - TOLD, 'more named group')} surely off: see the table."] if off[TOLD:] else [])


def _least_named(audit: Values) -> dict[Any, float]:
    return {row["group"]: row["low"] or 0.0 for row in (audit["certificate"] or {}).get("groups", [])}


def _off_named(audit: Values) -> list[Values]:
    """Named groups that are surely off, the farthest first."""
    least = _least_named(audit)
    scanned = {row["group"] for row in audit["scan"] if is_sure(row)}
    judged = {row["group"] for row in audit["scan"]} | set(least)

    def is_off(row: Values) -> bool:
        if row["group"] in judged:
            return row["group"] in scanned or least.get(row["group"], 0.0) >= LEAST_TOLD
        # a band of a group alone counts only where no judgement of all groups at once is known
        return (row["error_low"] or 0.0) >= LEAST_TOLD

    off = [row for row in audit["groups"][1:] if not row["too_small"] and is_off(row)]
    return sorted(off, key=lambda row: -(row["error"] or 0))


def _sure_scanned(audit: Values) -> list[str]:
    off, others = [row for row in audit["scan"] if is_sure(row)], _off_scanned(audit)
    told = [
        f"Group {_finding(row, row['group'], row['direction'])} (adjusted p {p_value(row['p_adjusted'], '= ')})."
        for row in others[:TOLD]
    ]
    more = f"In all {len(off):,} of {len(audit['scan']):,} scanned groups are surely off; many overlap."
    return told + ([more] if len(off) > len(told) else [])


def _off_scanned(audit: Values) -> list[Values]:
    """Scanned groups that are surely off and not among the named ones, the surest first."""
    named = {row["group"] for row in audit["groups"]}
    # the same rows may go by several names: they are told of once, and named groups were told of before
    others: dict[Any, Values] = {}
    for row in audit["scan"]:
        if is_sure(row) and row["group"] not in named:
            others.setdefault((row["n"], row["error"]), row)
    return list(others.values())


def farthest_off(audit: Values) -> Values | None:
    """Of the groups that the verdict tells of by name, the one that is farthest off; None if none is surely off."""
    told = [*_off_named(audit)[:TOLD], *_off_scanned(audit)[:TOLD]]
    return max(told, key=lambda row: row["error"] or 0, default=None)


def not_covered(audit: Values) -> list[str]:
    """Say what an audit does not cover."""
    limits = [
        f"{text[:1].upper()}{text[1:]}." for text in map(str, (audit["certificate"] or {}).get("not_covered", []))
    ]
    return [*([] if proven_bounds(audit) else [NOT_ALL_GROUPS]), *(limits or [OTHER_ROWS])]


def _sure_learned(audit: Values) -> list[str]:
    off = [row for row in audit["learned"] if (row["low"] or 0.0) >= LEAST_TOLD]
    if not off:
        return []
    row = max(off, key=lambda row: row["low"])
    where = f"{percent(row['mass'])} of people that features define ({in_words(row)})"
    return [f"Of {_finding(row, where, row['direction'])}, surely by {bound(at_least, row['low'])} or more."]


def in_words(row: Values) -> str:
    """Say what a learned group is: conditions that nearly define it, or the features that it rests on."""
    if row["description"]:
        return f"nearly: {row['description']}, {percent(row['description_share'], 0)} of people"
    return "by " + ", ".join(map(str, row["features"])) if row["features"] else "no short rule"


def _finding(row: Values, name: Any, direction: str | None) -> str:
    """Say which group is off, in which direction and by how much."""
    how = "in no one direction" if direction in {None, "mixed", "as forecast"} else direction
    text = f"{name} ({count(row['n'], 'row')}): {how}{_by_units(row, direction)}"
    return text + f"; off by {points(row['error'])} points"


def _by_units(row: Values, direction: str | None) -> str:
    bias = row["bias"]
    if is_known(bias) and direction in {LOWER, HIGHER} and (bias < 0) == (direction == LOWER):
        return f", by {_plain(abs(bias))} units of y on average"
    return ""


def chance_sentence(rows: Sequence[Values]) -> str:
    """Say where worst groups picked in hindsight are worse than chance makes them; nothing if that is not known."""
    above = [percent(row["mass"]) for row in rows if is_known(row["null_high"]) and row["error"] > row["null_high"]]
    if above:
        return f"Above what calibrated forecasts show at shares of {', '.join(above)}."
    if any(is_known(row["null_high"]) for row in rows):
        return "At no share is it above what calibrated forecasts show."
    return ""


def lean(row: Values) -> str:
    """Direction of a named group's error, from its mean PIT and coverage."""
    if row["too_small"]:
        return "too few rows to tell"
    error, mean = row["error"] or 0.0, row["mean_pit"]
    # a mean PIT away from 1/2 is an error of at least that much: is it most of the error
    if is_known(mean) and abs(mean - 0.5) >= max(error / 2, 1e-9):
        return LOWER if mean < 0.5 else HIGHER
    if is_known(row["coverage_80_high"]) and row["coverage_80_high"] < 0.8:
        return NARROW
    if is_known(row["coverage_80_low"]) and row["coverage_80_low"] > 0.8:
        return WIDE
    return "mixed"


def _plain(value: float) -> str:
    return f"{float(f'{value:.3g}'):,.10g}"


def proven_bounds(audit: Values) -> Values | None:
    """Bounds for every group of a fifth of the people, or of the share they were made for; None if there are none."""
    proof = audit["certificate"]
    if not audit["is_randomized"] or audit["n_draws"] == 1 or proof is None:
        return None
    rows: list[Values] = [row for row in proof["every_group"] if is_known(row["group_error"])]
    return min(rows, key=lambda row: abs(row["mass"] - MASS), default=None)


def is_sure(row: Values) -> bool:
    """Whether a scanned group is surely off."""
    return is_known(row["p_adjusted"]) and bool(row["p_adjusted"] < SURE)
