"""Verdict of an audit: what was audited, what is significantly off, and what is proven."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand._format import (
    at_least,
    at_most,
    band,
    confidence_in_full,
    count,
    in_full,
    is_known,
    percent,
    plain_number,
    points,
)
from evenhand.certificates import DRAWS_ONLY
from evenhand.report.findings import (
    error_direction,
    everyone,
    evidence_in_words,
    farthest_off,
    group_sentences,
    is_mean_off,
    looked_at,
    off_everybody,
    off_in_words,
    repair_sentence,
)
from evenhand.report.leaks import leak_sentences
from evenhand.report.numbers import or_zero
from evenhand.report.sentences import WORDS, Sentence, Values, unit_of
from evenhand.search import NARROW, WIDE

MASS = 0.2
"""Size of the groups whose bounds the verdict names."""

LEAST_COVERED = 0.01
"""Least bound of an interval's coverage that is reported: a smaller one shows nothing."""

NOT_ALL_GROUPS = "Groups that nobody looked at: nothing is proven for them here."
OTHER_ROWS = "People, places and times that these rows do not stand for."
"""Limits of every audit, for audits whose certificate does not list its own."""

SCALE = (
    "Off by 0 points is perfect, by 50 the worst: how far stated chances are from true ones,"
    " averaged over all levels."
)
"""How to read the points."""

SURELY = (
    "Surely: of scanned groups at a risk of 5% over all of them at once; of named groups by bounds"
    " that hold at once, where there is a certificate, else by each band; of learned groups by each"
    " one's lower bound."
)
"""How to read the word "surely"."""


def forecast_kind(audit: Values) -> str:
    """Return what kind of forecasts was audited."""
    if not audit["is_randomized"]:
        return "deterministic forecasts"
    return f"randomized forecasts, {count(audit['n_draws'], 'draw')} per row"


MEANS_OF_DRAWS = (
    "Where outcomes are right-skewed, the draw itself raises the mean of served forecasts; predict"
    " and the column mean do not depend on the draw."
)


def verdict(audit: Values) -> tuple[str, list[Sentence]]:
    """Return the leading sentence of an audit, and the others, bad news first."""
    proven = proven_bounds(audit)
    groups = group_sentences(audit)
    overall = [text for text in [overall_sentence(audit)] if text]
    remark = [MEANS_OF_DRAWS] if _is_served_mean_high(audit) else []
    average = _average_sentences(audit)
    if proven is None:
        # nothing is proven for all groups, so the groups that were found lead
        lead = " ".join([*overall, _group_lead(audit) if groups else _no_group_off(audit)])
        before, after = remark, [*average, _no_proof_sentence(audit)]
        if groups and not audit["is_randomized"]:
            after.append(repair_sentence(audit))
    else:
        lead = _proof_sentence(audit, proven)
        if is_useless(proven):
            # a bound that says nothing must not push what is known to be wrong out of the lead
            lead = " ".join([*overall, lead])
            overall = []
        before = [*overall, *remark, *(["Even so, some groups are surely off."] if groups else [])]
        after = [*_proof_remarks(proven), *average, *([] if groups else [_no_group_off(audit)])]
    caveat = audit.get("caveat")
    warning = [Sentence(str(caveat), is_warning=True)] if caveat else []
    sentences = [*map(Sentence, before), *groups, *map(Sentence, after)]
    return lead, [*warning, *sentences, *leak_sentences(audit)]


def overall_sentence(audit: Values) -> str:
    """Return in which direction and by how much forecasts are off over everybody, if they are."""
    row = everyone(audit)
    if row is None:
        return ""
    # the mean first: a bias in the outcome's own unit is easier to act on than points
    if is_mean_off(row):
        ends = sorted((abs(or_zero(row["bias_low"])), abs(or_zero(row["bias_high"]))))
        # the bias is outcome minus forecast
        way = "high" if row["bias"] < 0 else "low"
        reach = band(plain_number, *ends)
        off = plain_number(abs(row["bias"]))
        return f"Forecasts are too {way} on average, by {off} ({reach}) in {unit_of(audit)}."
    low = off_everybody(audit)
    return _overall_error_sentence(row, low) if low else ""


def _is_served_mean_high(audit: Values) -> bool:
    row = everyone(audit)
    return bool(audit["is_randomized"]) and row is not None and is_mean_off(row) and row["bias"] < 0


def _overall_error_sentence(row: Values, low: float) -> str:
    direction = error_direction(row)
    subject, predicate = WORDS.get(direction, ("stated chances", "off, in no one direction"))
    # coverage is named where it is what is wrong
    covered = f": a stated 80% interval holds {percent(row['coverage_80'])} of outcomes"
    return (
        f"{subject.capitalize()} are surely {predicate} over everybody"
        f"{covered if direction in {NARROW, WIDE} else ''}; stated chances are off by an estimated"
        f" {points(row['error'])} percentage points, surely by at least {at_least(low)}."
    )


def _group_lead(audit: Values) -> str:
    """Return the sentence that some groups are off, with the worst of those that can be named."""
    row = farthest_off(audit)
    # only learned groups are off, which have no name
    if row is None:
        return "Some groups are surely off."
    return (
        f"Some groups are surely off. For one, {row['group']}:"
        f" {off_in_words(row, unit_of(audit), verb='are')}; stated chances are off by an estimated"
        f" {points(row['error'])} percentage points, {evidence_in_words(audit, row)}."
    )


def _no_group_off(audit: Values) -> str:
    if len(audit["groups"]) < 2 and not audit["scan"] and not audit["learned"]:
        return "No groups were looked at: name some, or give features."
    return (
        f"No group is surely off: {looked_at(audit)}. That does not prove that each of them is well"
        " calibrated."
    )


def is_useless(row: Values) -> bool:
    """Whether a bound for every group reads as no bound at all."""
    # compared as printed: a bound just below 1/2 is rounded up to it, the largest error there is
    return at_most(row["group_error"]) == at_most(0.5)


def _proof_sentence(audit: Values, row: Values) -> str:
    level = confidence_in_full(audit["certificate"]["confidence"])
    mass = in_full(row["mass"])
    if is_useless(row):
        return f"These rows prove nothing useful for every group of at least {mass} of people."
    opening = f"For every group of at least {mass} of people, "
    off = (
        f"stated chances are off by at most {at_most(row['group_error'])} percentage points"
        " averaged over all levels"
    )
    covered = row["coverage_80_low"]
    if not is_known(covered) or covered < LEAST_COVERED:
        return f"{opening}{off}, with {level} confidence."
    # the two bounds are two statements: nothing says how often both hold
    return (
        f"{opening}an interval stated as 80% holds at least {at_least(covered)}% of the time, and"
        f" {off}; each with {level} confidence."
    )


def _proof_remarks(row: Values) -> list[str]:
    """Return the upper bound of a coverage, where there is one."""
    # 100% bounds nothing
    high = row["coverage_80_high"]
    if is_useless(row) or not is_known(high) or at_most(high) == "100.0":
        return []
    return [
        f"The same 80% interval holds at most {at_most(high)}% of the time, each bound with the"
        " same confidence."
    ]


def _no_proof_sentence(audit: Values) -> str:
    if not audit["is_randomized"]:
        return (
            "What cannot be shown: with one forecast per person no data can prove calibration for"
            " groups of up to half of the people, unless they were named beforehand, however good"
            " the forecasts are. Groups that nobody looked at may be off."
        )
    if audit["n_draws"] == 1:
        return (
            "Only one draw per row is known, which proves nothing for groups not named: audit"
            " several draws per row."
        )
    return "Nothing is proven here for groups that were not named; the notes say why."


def _average_sentences(audit: Values) -> list[str]:
    return [
        f"Over everybody, stated chances are off by an estimated {points(row['error'])} percentage"
        f" points (95% band {band(points, row['error_low'], row['error_high'])}); a stated 80%"
        f" interval holds {percent(row['coverage_80'])} of outcomes."
        for row in audit["groups"][:1]
    ]


def limits_of(audit: Values, key: str) -> list[str]:
    """Return the assumptions or limits of a proof, without those on draws if there are none."""
    # an audit read from JSON has its limits as the certificate prints them, and nothing else
    texts = map(str, (audit["certificate"] or {}).get(key, []))
    return [text for text in texts if audit["is_randomized"] or text not in DRAWS_ONLY]


def not_covered(audit: Values) -> list[str]:
    """Return what an audit does not cover."""
    limits = [f"{text[:1].upper()}{text[1:]}." for text in limits_of(audit, "not_covered")]
    return [*([] if proven_bounds(audit) else [NOT_ALL_GROUPS]), *(limits or [OTHER_ROWS])]


def chance_sentence(rows: Sequence[Values]) -> str:
    """Return where worst groups in hindsight exceed chance; nothing if that is not known."""
    # the search fits noise: only what it finds beyond calibrated forecasts is evidence
    judged = [row for row in rows if is_known(row["null_high"]) and is_known(row["error"])]
    above = [in_full(row["mass"]) for row in judged if row["error"] > row["null_high"]]
    if above:
        return f"Above what calibrated forecasts show at shares of {', '.join(above)}."
    return "At no share is it above what calibrated forecasts show." if judged else ""


def proven_bounds(audit: Values) -> Values | None:
    """Return the bounds for every group of the share nearest a fifth; None if there are none."""
    # one PIT per person proves nothing for groups that were not named
    proof = audit["certificate"]
    if not audit["is_randomized"] or audit["n_draws"] == 1 or proof is None:
        return None
    rows: list[Values] = [row for row in proof["every_group"] if is_known(row["group_error"])]
    return min(rows, key=lambda row: abs(row["mass"] - MASS), default=None)
