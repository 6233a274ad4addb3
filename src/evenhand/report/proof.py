"""Sections on the proof, its assumptions and the worst groups in hindsight."""

from __future__ import annotations

from evenhand._format import (
    at_least,
    at_most,
    band,
    bound,
    confidence_in_full,
    count,
    in_full,
    is_known,
    points,
    whole,
)
from evenhand.report.findings import by_size
from evenhand.report.page import Cell, Section, Value, bullets, paragraph, section, table
from evenhand.report.plots import worst_figure
from evenhand.report.sentences import Values
from evenhand.report.verdict import chance_sentence, limits_of, proven_bounds

NAMED = 400
"""Most named groups whose bounds are shown."""


def proof_section(audit: Values) -> Section | None:
    """Show the bounds for all groups and for named ones, and which questions the rows answer."""
    proof = audit["certificate"]
    if proof is None:
        return section(
            "What is proven", paragraph("There is no certificate; the notes say why."), key="proof"
        )
    draws = count(proof["n_draws"], "draw") if audit["is_randomized"] else "one forecast"
    # each bound holds for all groups of its size at once (method.md, 5)
    parts = [
        paragraph(
            f"Each statement holds with {confidence_in_full(proof['confidence'])} confidence at any"
            f" number of rows, from {count(proof['n_samples'], 'person', 'people')} with {draws}"
            " each. Over everybody, stated chances are off by at most"
            f" {bound(at_most, proof['average_error'])} points."
        )
    ]
    if proven_bounds(audit) is not None:
        parts += ["<h3>For every group</h3>", _every_group(proof)]
    if proof["groups"]:
        parts += ["<h3>For named groups, all at once</h3>", _named(audit, proof)]
    answers: list[list[Cell]] = [
        [f"{row['question']}?", "yes" if row["answered"] else "no", str(row["why"])]
        for row in proof["questions"]
    ]
    if answers:
        questions = table("Questions", ["question", "answered", "why"], answers)
        parts += ["<h3>What these rows can answer</h3>", questions]
    parts.append(paragraph(f"Method of the bounds: {proof['method']}.", "facts"))
    return section("What is proven", *parts, key="proof")


def _every_group(proof: Values) -> str:
    # a chain of theorems that ends at the worst error there is bounds nothing
    has_chain = any(
        is_known(row["chain"]) and at_most(row["chain"]) != at_most(0.5)
        for row in proof["every_group"]
    )
    header = [
        "every group of at least",
        "#off by at most (points)",
        *(["#by the paper's chain"] if has_chain else []),
        "#80% interval holds at least",
        "#at most",
    ]
    cells: list[list[Cell]] = [
        [
            f"{in_full(row['mass'])} of people",
            bound(at_most, row["group_error"]),
            *([bound(at_most, row["chain"])] if has_chain else []),
            bound(at_least, row["coverage_80_low"], "%"),
            bound(at_most, row["coverage_80_high"], "%"),
        ]
        for row in proof["every_group"]
    ]
    return table("Bounds for every group", header, cells)


def _named(audit: Values, proof: Values) -> str:
    # the certificate bounds groups of any size; small ones come last, as in the named table
    small = {row["group"] for row in audit["groups"] if row["too_small"]}
    bounded = [row | {"too_small": row["group"] in small} for row in proof["groups"]]
    rows = by_size(bounded, low="low")
    note = ""
    if rows[NAMED:]:
        note = paragraph(
            f"Shown are the {NAMED} of {whole(len(rows))} groups, those off by most for sure first."
        )
    header = ["group", "#rows", "#measured (points)", "#at least", "#at most"]
    cells: list[list[Cell]] = [
        [
            str(row["group"]),
            Value(whole(row["n"]), order=row["n"]),
            Value(points(row["error"]), order=row["error"]),
            Value(bound(at_least, row["low"]), order=row["low"]),
            Value(bound(at_most, row["high"]), order=row["high"]),
        ]
        for row in rows[:NAMED]
    ]
    return note + table("Bounds for named groups", header, cells, search="Find a named group")


def limits_section(audit: Values) -> Section | None:
    """Show what the proof assumes and does not cover."""
    listed = {
        "Assumed": limits_of(audit, "assumptions"),
        "Not covered": limits_of(audit, "not_covered"),
    }
    parts = [f"<h3>{title}</h3>{bullets(texts)}" for title, texts in listed.items() if texts]
    return section("What the proof rests on", *parts, key="limits") if parts else None


def oracle_section(audit: Values) -> Section | None:
    """Show the worst groups in hindsight, beside chance, learned groups and proof."""
    rows = audit["worst_groups"]
    is_proven = proven_bounds(audit) is not None
    if not rows:
        return None
    text = (
        "For each share of people, the rows whose forecasts look worst once the outcomes are seen."
        " Beside it, what the same search finds in calibrated forecasts of the same kind: mean, and"
        " 5% to 95%."
    )
    warning = ""
    # (1 - mass) / 2 is the score of a perfect deterministic forecaster (method.md, 6)
    if audit["n_draws"] == 1:
        warning = paragraph(
            "This measures what can be proven, not harm: with one forecast per person even the true"
            " distribution scores about (1 - share) / 2 here, 40 points for the worst fifth.",
            "warn",
        )
    where = chance_sentence(rows)
    remark = paragraph(where) if where else ""
    aside = f'<div class="aside">{warning}{paragraph(text)}{remark}</div>'
    # without a proof the bounds show nothing, and are not drawn
    numbers = _oracle_table(audit, is_proven=is_proven)
    drawn = worst_figure(rows, audit["learned"], numbers, is_proven=is_proven)
    title = f"{'W' if is_proven else 'Appendix: w'}orst groups picked in hindsight"
    both = f'<div class="pair"><div>{drawn}</div>{aside}</div>'
    return section(title, both, key="worst")


def _oracle_table(audit: Values, *, is_proven: bool) -> str:
    header = [
        "share of people",
        "#rows",
        "#off by (points)",
        "#if calibrated",
        *(["#certified, at most"] if is_proven else []),
    ]
    cells: list[list[Cell]] = [
        [
            in_full(row["mass"]),
            whole(row["n"]),
            points(row["error"]),
            (points(row["null_mean"]), band(points, row["null_low"], row["null_high"])),
            *([bound(at_most, row["certified"])] if is_proven else []),
        ]
        for row in audit["worst_groups"]
    ]
    return table("Worst groups picked in hindsight", header, cells)
