"""An audit as one page of HTML.

Nothing loaded from outside, made from the plain values of the audit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evenhand._format import at_most, band, count, number, percent, points, stated, whole
from evenhand.report.chart import known
from evenhand.report.examples import examples_section
from evenhand.report.findings import farthest_off, how_sure, with_notes
from evenhand.report.group_tables import learned_section, named_section, scanned_section
from evenhand.report.notes import Note
from evenhand.report.numbers import without_nan
from evenhand.report.page import (
    Cell,
    Section,
    bullets,
    details,
    escape,
    facts,
    heading,
    page,
    paragraph,
    section,
    short,
    table,
)
from evenhand.report.plots import calibration_figure, pit_figure, scale_figure
from evenhand.report.price import price_section
from evenhand.report.proof import limits_section, oracle_section, proof_section
from evenhand.report.provenance import provenance_section
from evenhand.report.sentences import Sentence, Values
from evenhand.report.verdict import (
    SCALE,
    SURELY,
    is_useless,
    kind,
    not_covered,
    proven_bounds,
    verdict,
)

__all__ = ["audit_html"]


def audit_html(audit: Values, notes: Sequence[Note] = ()) -> str:
    """Render an audit as one HTML page that opens offline.

    Of a deterministic model the groups lead, as nothing can be proven for every group; of a
    randomized one the proof.

    Parameters
    ----------
    audit : dict
        `Audit.to_dict()`, or what `json.load` makes of an audit written as JSON; its layout is in
        docs/audit-schema.rst. Values that are None, and lists that are empty, are left out or shown
        as "-".
    notes : sequence of Note
        `Audit.notes`, which explain what is missing; JSON holds only their sentences.

    Returns
    -------
    str
        The page: tables, figures as SVG, a script of its own that sorts tables and tells values,
        and a policy that lets nothing else run or be loaded. Without the script all of it can be
        read. Text from data is escaped.

    Examples
    --------
    >>> empty = dict.fromkeys(["scores", "groups", "scan", "learned", "worst_groups", "notes"], [])
    >>> head = {"name": "a <b> model", "n_samples": 100, "n_draws": 1, "is_randomized": False}
    >>> page = audit_html(head | empty | {"rounding_step": None, "certificate": None})
    >>> "<h1>Audit of a &lt;b&gt; model</h1>" in page
    True
    """
    audit = with_notes(without_nan(audit), notes)
    found = [named_section(audit), scanned_section(audit), learned_section(audit)]
    proof = proof_section(audit)
    oracle = oracle_section(audit)
    calibration = _calibration(audit)
    limits = limits_section(audit)
    rest = [_scores(audit), examples_section(audit), price_section(audit)]
    if proven_bounds(audit) is not None:
        order = [proof, calibration, oracle, *found, *rest, limits, _notes(audit)]
    else:
        order = [*found, calibration, *rest, proof, limits, _notes(audit), oracle]
    sections = [part for part in [*order, provenance_section(audit)] if part is not None]
    made = paragraph(
        "Made by evenhand. The same values, with all digits, are in the audit as JSON."
    )
    parts = [
        _head(audit),
        _first_screen(audit, _contents(sections)),
        *sections,
        f"<footer>{made}</footer>",
    ]
    return page(f"Audit of {short(audit['name'], 200)}", "\n".join(parts), is_live=True)


def _head(audit: Values) -> str:
    """Write what was audited."""
    told = [count(audit["n_samples"], "row"), kind(audit)]
    title = heading("Audit of " + short(audit["name"], 200))
    return f"{title}\n{paragraph(' · '.join(told), 'facts')}"


def _first_screen(audit: Values, contents: str) -> str:
    """Write the verdict; beside it a scale of errors, what was audited and its limits."""
    lead, sentences = verdict(audit)
    listed = "".join(map(_item, sentences))
    meaning = details("What surely means", paragraph(SURELY, "facts"))
    said = (
        '<div class="verdict"><h2>What this audit'
        f" says</h2>{paragraph(lead, 'lead')}<ul>{listed}</ul>"
        f"{paragraph(SCALE, 'facts')}{meaning}</div>"
    )
    return (
        f'<div class="top">\n{said}\n<div'
        f' class="cards">{_scale(audit)}{_cards(audit)}</div>\n{contents}\n</div>'
    )


def _item(sentence: Sentence) -> str:
    """Write a sentence with the name of its group in bold."""
    name = f"<strong>{escape(sentence.name)}</strong>" if sentence.name else ""
    kind_of = ' class="warn"' if sentence.is_warning else ""
    return f"<li{kind_of}>{escape(sentence.before)}{name}{escape(sentence.rest)}</li>"


def _scale(audit: Values) -> str:
    """Show on one scale everybody, the group that is farthest off for sure, and what is proven."""
    everybody = audit["groups"][:1]
    worst = farthest_off(audit)
    proven = proven_bounds(audit)
    marks = [
        ("blue", "circle", row["error"], f"everybody: {points(row['error'])} points")
        for row in everybody
        if known(row["error"])
    ]
    if worst is not None and known(worst["error"]):
        words = (
            f"{short(worst['group'], 60)}: estimated {points(worst['error'])} points,"
            f" {how_sure(audit, worst)}"
        )
        marks.append(("orange", "diamond", worst["error"], words))
    if proven is not None and not is_useless(proven):
        most = f"at most {at_most(proven['group_error'])} points"
        words = f"every group of {stated(proven['mass'])} of people, proven: {most}"
        marks.append(("red", "square", proven["group_error"], words))
    drawn = scale_figure(marks)
    return drawn and f"<section><h2>How far stated chances are off</h2>{drawn}</section>"


def _cards(audit: Values) -> str:
    source = audit.get("provenance") or {}
    data = source.get("data") or {}
    model = source.get("model") or {}
    step = audit.get("rounding_step")
    told = {
        "Model": _name_and_kind(short(audit["name"], 200), model.get("kind")),
        "Data": data.get("name"),
        "Rows": whole(audit["n_samples"]),
        "Forecasts": kind(audit),
        "Outcomes": None if step is None else f"rounded to {step:g}",
        "Groups": _looked_at(audit),
    }
    limits = "".join(f"<li>{escape(sentence)}</li>" for sentence in not_covered(audit))
    return (
        f"<section><h2>What was audited</h2>{facts(told)}</section>"
        f"<section><h2>What this does not cover</h2><ul>{limits}</ul></section>"
    )


def _name_and_kind(name: str, kind_of_model: str | None) -> str:
    is_told = kind_of_model is None or kind_of_model.lower() == name.lower()
    return name if is_told else f"{name} ({kind_of_model})"


def _looked_at(audit: Values) -> str:
    named = len(audit["groups"][1:])
    return f"{named:,} named, {len(audit['scan']):,} by features, {len(audit['learned']):,} learned"


def _contents(sections: Iterable[Section]) -> str:
    """Link to each section of the page by its title."""
    links = "".join(
        f'<li><a href="#{part.key}">{escape(part.heading)}</a></li>' for part in sections
    )
    return f'<nav aria-label="Sections"><ul>{links}</ul></nav>'


def _calibration(audit: Values) -> Section | None:
    """Show how stated chances come true over everybody; nothing if that is not known."""
    figures = [drawn for drawn in (pit_figure(audit), calibration_figure(audit)) if drawn]
    if not figures:
        return None
    text = (
        "Of all outcomes a tenth should fall in each tenth of its own forecast. Bars that rise to"
        " the left say that outcomes are lower than forecast, to the right higher; a valley says"
        " that forecasts are too narrow, a hill too wide."
    )
    both = "".join(f"<div>{drawn}</div>" for drawn in figures)
    return section(
        "Calibration over everybody",
        paragraph(text),
        f'<div class="pair">{both}</div>',
        key="calibration",
    )


def _scores(audit: Values) -> Section | None:
    rows = audit["scores"]
    if not rows:
        return None
    text = (
        "Means over rows and draws with 95% bands. Smaller log scores, CRPS, deviations and widths"
        " are sharper."
    )
    cells: list[list[Cell]] = []
    for row in rows:
        show, unit = {"share": (percent, ""), "probability": (points, "points")}.get(
            row["unit"], (number, row["unit"])
        )
        cells.append(
            [
                str(row["measure"]),
                show(row["value"]),
                band(show, row["low"], row["high"]),
                str(unit or "of outcomes"),
            ]
        )
    written = table("Scores", ["measure", "#value", "#95% band", "unit"], cells)
    return section("Scores", paragraph(text), written, key="scores")


def _notes(audit: Values) -> Section | None:
    return section("Notes", bullets(audit["notes"]), key="notes") if audit["notes"] else None
