"""An audit as one page of HTML, made from its plain values; nothing is loaded from outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evenhand._format import at_most, band, count, in_full, number, percent, points, whole
from evenhand.report.chart import known
from evenhand.report.examples import examples_section
from evenhand.report.findings import everyone, evidence_in_words, farthest_off, with_notes
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
    forecast_kind,
    is_useless,
    not_covered,
    proven_bounds,
    verdict,
)

__all__ = ["audit_html"]


def audit_html(audit: Values, notes: Sequence[Note] = ()) -> str:
    """Render an audit as one HTML page that opens offline.

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
    # what is proven for every group leads; where nothing is, the groups that were looked at, and
    # groups picked in hindsight become an appendix, as they measure provability, not harm
    if proven_bounds(audit) is not None:
        order = [proof, calibration, oracle, *found, *rest, limits, _notes(audit)]
    else:
        order = [*found, calibration, *rest, proof, limits, _notes(audit), oracle]
    sections = [part for part in [*order, provenance_section(audit)] if part is not None]
    made = paragraph(
        "Made by evenhand. The same values, with all digits, are in the audit as JSON."
    )
    title = f"Audit of {short(audit['name'], 200)}"
    what = f"{count(audit['n_samples'], 'row')} · {forecast_kind(audit)}"
    head = f"{heading(title)}\n{paragraph(what, 'facts')}"
    first = _first_screen(audit, _contents(sections))
    footer = f"<footer>{made}</footer>"
    return page(title, "\n".join([head, first, *sections, footer]), is_live=True)


def _first_screen(audit: Values, contents: str) -> str:
    """Write the verdict; beside it a scale of errors, what was audited and its limits."""
    lead, sentences = verdict(audit)
    listed = "".join(map(_item, sentences))
    # folded away: who reads many reports knows it
    meaning = details("What surely means", paragraph(SURELY, "facts"))
    words = (
        '<div class="verdict"><h2>What this audit'
        f" says</h2>{paragraph(lead, 'lead')}<ul>{listed}</ul>"
        f"{paragraph(SCALE, 'facts')}{meaning}</div>"
    )
    cards = f'<div class="cards">{_scale(audit)}{_cards(audit)}</div>'
    return f'<div class="top">\n{words}\n{cards}\n{contents}\n</div>'


def _item(sentence: Sentence) -> str:
    """Write a sentence with the name of its group in bold."""
    # names come from data: in bold they cannot be mistaken for words of the report
    name = f"<strong>{escape(sentence.name)}</strong>" if sentence.name else ""
    style = ' class="warn"' if sentence.is_warning else ""
    return f"<li{style}>{escape(sentence.before)}{name}{escape(sentence.rest)}</li>"


def _scale(audit: Values) -> str:
    """Show on one scale everybody, the group that is farthest off for sure, and what is proven."""
    overall = everyone(audit)
    worst = farthest_off(audit)
    proven = proven_bounds(audit)
    marks = []
    if overall is not None and known(overall["error"]):
        words = f"everybody: {points(overall['error'])} points"
        marks.append(("blue", "circle", overall["error"], words))
    if worst is not None and known(worst["error"]):
        words = (
            f"{short(worst['group'], 60)}: estimated {points(worst['error'])} points,"
            f" {evidence_in_words(audit, worst)}"
        )
        marks.append(("orange", "diamond", worst["error"], words))
    if proven is not None and not is_useless(proven):
        most = f"at most {at_most(proven['group_error'])} points"
        words = f"every group of {in_full(proven['mass'])} of people, proven: {most}"
        marks.append(("red", "square", proven["group_error"], words))
    drawn = scale_figure(marks)
    return drawn and f"<section><h2>How far stated chances are off</h2>{drawn}</section>"


def _cards(audit: Values) -> str:
    source = audit.get("provenance") or {}
    data = source.get("data") or {}
    model_kind = (source.get("model") or {}).get("kind")
    step = audit.get("rounding_step")
    name = short(audit["name"], 200)
    # models without a name of their own are named by their kind
    has_name = model_kind is not None and model_kind.lower() != name.lower()
    n_named, n_scanned, n_learned = (
        len(rows) for rows in (audit["groups"][1:], audit["scan"], audit["learned"])
    )
    audited = {
        "Model": f"{name} ({model_kind})" if has_name else name,
        "Data": data.get("name"),
        "Rows": whole(audit["n_samples"]),
        "Forecasts": forecast_kind(audit),
        "Outcomes": None if step is None else f"rounded to {step:g}",
        "Groups": f"{n_named:,} named, {n_scanned:,} by features, {n_learned:,} learned",
    }
    limits = "".join(f"<li>{escape(sentence)}</li>" for sentence in not_covered(audit))
    return (
        f"<section><h2>What was audited</h2>{facts(audited)}</section>"
        f"<section><h2>What this does not cover</h2><ul>{limits}</ul></section>"
    )


def _contents(sections: Iterable[Section]) -> str:
    """Link to each section of the page by its title."""
    links = "".join(
        f'<li><a href="#{part.key}">{escape(part.heading)}</a></li>' for part in sections
    )
    return f'<nav aria-label="Sections"><ul>{links}</ul></nav>'


def _calibration(audit: Values) -> Section | None:
    """Show calibration over everybody; nothing if it is not known."""
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
        # units of the audit are machine-readable; here a share is a percentage and an error points
        show, unit = {"share": (percent, "of outcomes"), "probability": (points, "points")}.get(
            row["unit"], (number, str(row["unit"] or "of outcomes"))
        )
        reach = band(show, row["low"], row["high"])
        cells.append([str(row["measure"]), show(row["value"]), reach, unit])
    written = table("Scores", ["measure", "#value", "#95% band", "unit"], cells)
    return section("Scores", paragraph(text), written, key="scores")


def _notes(audit: Values) -> Section | None:
    return section("Notes", bullets(audit["notes"]), key="notes") if audit["notes"] else None
