"""An audit as one page of HTML: no script, nothing loaded from outside, made from the plain values of the audit."""

from __future__ import annotations

from evenhand._words import at_least, at_most
from evenhand.figures import plot_groups, plot_worst_group
from evenhand.report._numbers import band, bound, count, number, p_value, percent, points, tenth_percent, whole
from evenhand.report._page import Cell, bullets, figure, heading, page, paragraph, section, table
from evenhand.report._verdict import (
    SCALE,
    SURE,
    Values,
    chance_sentence,
    in_words,
    is_sure,
    kind,
    lean,
    proven_bounds,
    verdict,
)

__all__ = ["audit_html"]

SCANNED, NAMED, DRAWN = 20, 200, 24
"""Most rows shown of the scan and of the named groups, and most groups drawn."""


def audit_html(audit: Values) -> str:
    """Render an audit as one HTML page that opens offline.

    Of a deterministic model the groups lead, as nothing can be proven for every group; of a randomized one the proof.

    Parameters
    ----------
    audit : dict
        `Audit.to_dict()`, or what `json.load` makes of an audit written as JSON; its layout is in
        docs/audit-schema.rst. Values that are None, and lists that are empty, are left out or shown as "-".

    Returns
    -------
    str
        The page: tables, figures as SVG, no script, no link. Text from data is escaped.

    Examples
    --------
    >>> empty = dict.fromkeys(["scores", "groups", "scan", "learned", "worst_groups", "notes"], [])
    >>> head = {"name": "a <b> model", "n_samples": 100, "n_draws": 1, "is_randomized": False}
    >>> page = audit_html(head | empty | {"rounding_step": None, "certificate": None})
    >>> "<h1>Audit of a &lt;b&gt; model</h1>" in page
    True
    """
    found = [_named(audit), _scanned(audit), _learned(audit)]
    rest = [_scores(audit), _proof(audit), _limits(audit), _notes(audit)]
    if proven_bounds(audit) is not None:
        sections = [rest[1], _oracle(audit), *found, rest[0], *rest[2:]]
    else:
        sections = [*found, *rest, _oracle(audit)]
    made = paragraph("Made by evenhand. The same values, with all digits, are in the audit as JSON.")
    footer = f"<footer>{made}</footer>"
    body = "\n".join(part for part in (_head(audit), _verdict(audit), *sections, footer) if part)
    return page(f"Audit of {audit['name']}", body)


def _head(audit: Values) -> str:
    """Say what was audited."""
    facts = [count(audit["n_samples"], "row"), kind(audit)]
    if audit.get("rounding_step") is not None:
        facts.append(f"outcomes rounded to {audit['rounding_step']:g}")
    return f"{heading('Audit of ' + str(audit['name']))}\n{paragraph(' · '.join(facts), 'facts')}"


def _verdict(audit: Values) -> str:
    lead, sentences = verdict(audit)
    return (
        f'<div class="verdict"><h2>What this audit says</h2>{paragraph(lead, "lead")}{bullets(sentences)}'
        f"{paragraph(SCALE, 'facts')}</div>"
    )


def _named(audit: Values) -> str:
    rows = [*audit["groups"][:1], *sorted(audit["groups"][1:], key=lambda row: -(row["error"] or 0))]
    if not rows:
        return ""
    header = [
        "group",
        "#rows",
        "#off by (points)",
        "how",
        "#outcome minus forecast",
        "#80% interval holds",
        "#90% interval holds",
    ]
    cells: list[list[Cell]] = [
        [
            str(row["group"]),
            whole(row["n"]),
            ("-", "-")
            if row["too_small"]
            else (points(row["error"]), band(points, row["error_low"], row["error_high"])),
            lean(row) if row["too_small"] or (row["error_low"] or 0) > 0 else "not surely off",
            (number(row["bias"]), band(number, row["bias_low"], row["bias_high"])),
            *(
                (percent(row[key], 1), band(tenth_percent, row[f"{key}_low"], row[f"{key}_high"]))
                for key in ("coverage_80", "coverage_90")
            ),
        ]
        for row in rows[: NAMED + 1]
    ]
    text = (
        "Estimates with 95% bands, each group looked at by itself. Outcome minus forecast is in units of y: below 0, "
        "outcomes are lower than forecast."
    )
    if rows[NAMED + 1 :]:
        text += f" Shown are the {NAMED} of {whole(len(rows) - 1)} groups that are furthest off."
    dim = [i for i, row in enumerate(rows) if row["too_small"]]
    drawing = ""
    if len(rows) > 1:
        alt = "Error of each named group with its 95% band, in percentage points; the numbers are in the table."
        drawing = figure(lambda: plot_groups(rows[: DRAWN + 1]), alt, "named")
    return section("Named groups", paragraph(text), drawing, table("Named groups", header, cells, dim))


def _scanned(audit: Values) -> str:
    rows = audit["scan"]
    if not rows:
        return section(
            "Groups by features", paragraph("No groups were scanned: that takes features (see also the notes).")
        )
    off = sum(is_sure(row) for row in rows)
    text = (
        f"{count(len(rows), 'group')} looked at: values and halves of features, and their intersections two by two. "
        f"{off:,} of them {'has' if off == 1 else 'have'} an adjusted p-value below {SURE:g}; it holds for all at once."
    )
    if rows[SCANNED:]:
        text += f" Shown are the {SCANNED} surest."
    header = [
        "group",
        "#rows",
        "#off by (points)",
        "how",
        "#outcome minus forecast",
        "#80% interval holds",
        "#adjusted p",
    ]
    cells: list[list[Cell]] = [
        [
            str(row["group"]),
            whole(row["n"]),
            points(row["error"]),
            row["direction"] or "-",
            number(row["bias"]),
            percent(row["coverage_80"], 1),
            p_value(row["p_adjusted"]),
        ]
        for row in rows[:SCANNED]
    ]
    dim = [i for i, row in enumerate(rows[:SCANNED]) if not is_sure(row)]
    return section("Groups by features", paragraph(text), table("Groups by features", header, cells, dim))


def _learned(audit: Values) -> str:
    rows = audit["learned"]
    if not rows:
        return ""
    text = (
        "For each share of people the worst group that features can define, learned on some rows and judged on others. "
        "The error is estimated from below; each lower bound holds by itself."
    )
    header = [
        "share of people",
        "#rows",
        "#off by (points)",
        "#at least",
        "how",
        "#outcome minus forecast",
        "#80% interval holds",
        "#p",
        "in words",
    ]
    cells: list[list[Cell]] = [
        [
            percent(row["mass"]),
            (whole(row["n"]), f"of {whole(row['n_judged'])} judged"),
            points(row["error"]),
            bound(at_least, row["low"]),
            (row["direction"] or "-") if (row["low"] or 0) > 0 else "not surely off",
            number(row["bias"]),
            percent(row["coverage_80"], 1),
            p_value(row["p_value"]),
            in_words(row),
        ]
        for row in rows
    ]
    return section("Worst groups learned from features", paragraph(text), table("Learned groups", header, cells))


def _scores(audit: Values) -> str:
    rows = audit["scores"]
    if not rows:
        return ""
    text = "Means over rows and draws with 95% bands. Smaller log scores, CRPS, deviations and widths are sharper."
    cells: list[list[Cell]] = []
    for row in rows:
        show, unit = {"share": (tenth_percent, ""), "probability": (points, "points")}.get(
            row["unit"], (number, row["unit"])
        )
        cells.append(
            [str(row["measure"]), show(row["value"]), band(show, row["low"], row["high"]), str(unit or "of outcomes")]
        )
    return section("Scores", paragraph(text), table("Scores", ["measure", "#value", "#95% band", "unit"], cells))


def _proof(audit: Values) -> str:
    proof = audit["certificate"]
    if proof is None:
        return section("What is proven", paragraph("There is no certificate; the notes say why."))
    draws = count(proof["n_draws"], "draw") if audit["is_randomized"] else "one forecast"
    parts = [
        paragraph(
            f"Each statement holds with {percent(proof['confidence'])} confidence at any number of rows, from "
            f"{count(proof['n_samples'], 'person', 'people')} with {draws} each "
            f"(method: {proof['method']}). Over everybody, stated chances are off by at most "
            f"{bound(at_most, proof['average_error'])} points."
        )
    ]
    if proven_bounds(audit) is not None:
        header = [
            "every group of at least",
            "#off by at most (points)",
            "#by the paper's chain",
            "#80% interval holds at least",
            "#at most",
        ]
        cells: list[list[Cell]] = [
            [
                f"{percent(row['mass'])} of people",
                bound(at_most, row["group_error"]),
                bound(at_most, row["chain"]),
                bound(at_least, row["coverage_80_low"], "%"),
                bound(at_most, row["coverage_80_high"], "%"),
            ]
            for row in proof["every_group"]
        ]
        parts += ["<h3>For every group</h3>", table("Bounds for every group", header, cells)]
    if proof["groups"]:
        header = ["group", "#rows", "#measured (points)", "#at least", "#at most"]
        cells = [
            [
                str(row["group"]),
                whole(row["n"]),
                points(row["error"]),
                bound(at_least, row["low"]),
                bound(at_most, row["high"]),
            ]
            for row in proof["groups"][:NAMED]
        ]
        parts += ["<h3>For named groups, all at once</h3>", table("Bounds for named groups", header, cells)]
    answers: list[list[Cell]] = [
        [f"{row['question']}?", "yes" if row["answered"] else "no", str(row["why"])] for row in proof["questions"]
    ]
    if answers:
        parts += ["<h3>What these rows can answer</h3>", table("Questions", ["question", "answered", "why"], answers)]
    return section("What is proven", *parts)


def _limits(audit: Values) -> str:
    proof = audit["certificate"] or {}
    parts = [
        f"<h3>{title}</h3>{bullets(proof[key])}"
        for title, key in (("Assumed", "assumptions"), ("Not covered", "not_covered"))
        if proof.get(key)
    ]
    return section("What the proof rests on", *parts) if parts else ""


def _notes(audit: Values) -> str:
    return section("Notes", bullets(audit["notes"])) if audit["notes"] else ""


def _oracle(audit: Values) -> str:
    rows, is_proven = audit["worst_groups"], proven_bounds(audit) is not None
    if not rows:
        return ""
    text = (
        "For each share of people, the rows whose forecasts look worst once the outcomes are seen. Beside it, what the "
        "same search finds in calibrated forecasts of the same kind: mean, and 5% to 95%."
    )
    warning = ""
    if audit["n_draws"] == 1:
        warning = paragraph(
            "This measures what can be proven, not harm: with one forecast per person even the true distribution "
            "scores about (1 - share) / 2 here, 40 points for the worst fifth.",
            "warn",
        )
    where = chance_sentence(rows)
    # without a proof the bounds only say that nothing is known
    drawn = [dict(row) if is_proven else dict(row) | {"certified": None} for row in rows]
    alt = (
        "Error of the worst group against its share of the people, in percentage points; the numbers are in the table."
    )
    drawing = figure(lambda: plot_worst_group(drawn, learned=audit["learned"]), alt, "worst")
    header = [
        "share of people",
        "#rows",
        "#off by (points)",
        "#if calibrated",
        *(["#certified, at most"] if is_proven else []),
    ]
    cells: list[list[Cell]] = [
        [
            percent(row["mass"]),
            whole(row["n"]),
            points(row["error"]),
            (points(row["null_mean"]), band(points, row["null_low"], row["null_high"])),
            *([points(row["certified"])] if is_proven else []),
        ]
        for row in rows
    ]
    written = table("Worst groups picked in hindsight", header, cells)
    title = "Worst groups picked in hindsight" if is_proven else "Appendix: worst groups picked in hindsight"
    return section(title, warning, paragraph(text), paragraph(where) if where else "", drawing, written)
