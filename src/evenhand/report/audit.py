"""An audit as page with charts, as text, short and in full, and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from evenhand._escape import shortened, visible
from evenhand._format import at_most, confidence_in_full, count, percent, points, points_in_full
from evenhand._table import SCREEN, folded_command, labelled, line_width, wrapped
from evenhand.report import tables
from evenhand.report.charts import (
    calibration_chart,
    is_survival,
    overview,
    pit_chart,
    survival_chart,
)
from evenhand.report.document import (
    Bullets,
    Document,
    Facts,
    Headline,
    Paragraph,
    Part,
    Section,
    Sentence,
    about_facts,
    document_html,
    document_markdown,
    document_text,
    embedded,
    headed,
    section,
    source_facts,
)
from evenhand.report.kinds import IN_FEATURES, Kind, in_one_line
from evenhand.report.next_steps import NextStep
from evenhand.report.slots import Slots, capitalized
from evenhand.results import AuditRows, Finding, Verdict

# --- the document of an audit: its slots, a picture, the worst groups, and folded details


def audit_html(rows: AuditRows) -> str:
    """Return an audit as one HTML page that opens offline; it contains nobody's id.

    Its script sorts and searches tables, and its content security policy blocks everything else.
    The page is readable without the script. Text from data is escaped.
    """
    return document_html(audit_document(rows))


def audit_document(rows: AuditRows) -> Document:
    """Return the document of an audit."""
    slots, kind = Slots(rows), Kind.of(rows)
    first, others = tables.first_groups(rows)
    # a page embeds the groups that it lists
    listed = {one.group for one in (*first, *others)}
    named = (rows.everyone, *(one for one in rows.named if one.group in listed))
    scan = tuple(one for one in rows.scan if one.group in listed)
    data = embedded(msgspec.structs.replace(rows, groups=named, scan=scan).to_dict())
    about = [rows.about.get(key) for key in ("population", "period", "purpose")]
    facts = [count(rows.n_samples, "row"), *about, rows.provenance.get("date")]
    opening: list[Part] = [Bullets([Sentence(text, f"{name}: ") for name, text in slots.others])]
    opening += [Paragraph(text, "warn") for text in slots.cautions]
    if lead := f"{slots.lead} {slots.found_on}".strip():
        opening.insert(0, Paragraph(lead))
    chart, picture = overview(rows), None
    if chart is not None:
        unit = Paragraph(f"Error: {kind.point[:1].lower()}{kind.point[1:]}", "hint")
        picture = Section(chart.title, [replace(chart, title=""), unit])
    folds = [*_groups(rows, first, others), *_folds(slots, rows, kind)]
    sources = about_facts(rows.about, rows.target), source_facts(rows.provenance)
    folds.append(section("provenance", "Where this comes from", "data, model, command", *sources))
    return Document(
        title=f"Audit of {shortened(rows.name, 200)}",
        facts=[shortened(one) for one in facts if one],
        status=Headline(slots.badge.capitalize(), TONES[rows.status.verdict], slots.verdict),
        lead=slots.title,
        opening=opening,
        picture=picture,
        next_step=list(_steps(slots.next[:1])),
        cards=list(_cards(slots, rows, kind)),
        sections=folds,
        data=data,
    )


TONES = {Verdict.PROBLEM: "problem", Verdict.NO_PROBLEM: "none", Verdict.TOO_FEW: "few"}


def _steps(steps: Sequence[NextStep]) -> Iterator[Part]:
    """Yield what to do, as a command if the audit was made by one."""
    for what, code, is_command in steps:
        yield Paragraph(what)
        if code:
            yield Paragraph(folded_command(code, SCREEN) if is_command else code, "code")


def _cards(slots: Slots, rows: AuditRows, kind: Kind) -> Iterator[Section]:
    """Yield what stands beside the picture."""
    if rows.bound:  # what can be proven without a draw is in a fold
        unions = rows.certificate is not None and rows.certificate.unions is not None
        yield Section("What is proven", [Bullets(slots.proven[unions:][:1])])
    everyone = [text for text in slots.everyone if text != slots.title]
    if everyone:
        yield Section("Everyone", [Bullets(everyone)])
    source, known, times = rows.provenance, rows.censoring, None
    if known is not None:
        times = count(known.n_events, "event")
        if kind.horizon:
            times += f" by {kind.horizon}, {known.n_reached:,} seen without it until then"
        times += f", {known.n_lost:,} lost before ({percent(known.n_lost / known.n_people)})"
    kinds = {
        "by the forecast": rows.by_forecast,
        "named": rows.named,
        "by features": rows.scanned,
        "found by search": rows.learned,
    }
    groups = [f"{len(found):,} {name}" for name, found in kinds.items() if found]
    named = dict.fromkeys((rows.target, rows.about.get("unit")))
    # the default of rare events (verdict: 3)
    is_share = kind.has_rates and math.isclose(5 * rows.tolerance, rows.everyone.predicted or 0.0)
    by_rate = ", a fifth of the mean probability" * is_share
    data = (source.get("data") or {}).get("name")
    drawn = f"randomized, {count(rows.n_draws, 'draw')} per row"
    facts = {
        # forecasts that are columns of the table have its name
        "Model": rows.name if rows.name != data else None,
        "Data": data,
        "Forecast of": ", ".join(in_one_line(one) for one in named if one) or kind.outcome,
        "Forecasts": drawn if rows.is_randomized else None,
        "Times": times,
        "Groups": "; ".join(["everyone", *groups]),
        "Tolerance": f"{points_in_full(rows.tolerance)} points{by_rate}",
    }
    yield Section("What was examined", [Facts(facts)])
    yield Section("What is not covered", [Bullets(slots.not_tested)])


# --- sections of an audit


def _groups(rows: AuditRows, first: list[Finding], others: list[Finding]) -> Iterator[Section]:
    """Yield the first groups, the worst first, then the other groups, folded."""
    confidence = confidence_in_full(rows.confidence)
    slope = ", or a slope outside 0.8 to 1.25" if rows.is_event else ""
    note = (
        f"Sorted by the lower end of the error. In brackets: joint {confidence} intervals. Problem:"
        f" a significant error estimated over {points_in_full(rows.tolerance)} points{slope}."
    )
    shown = [*tables.everyone(rows), *first]
    table = tables.groups("Groups", shown, rows, note=note, search="Find a group")
    yield section("groups", "Groups", "", table)
    n = sum(one.problem and one.same_as is None for one in others)
    hint = f"{n:,} with a problem found, {len(others) - n:,} without" if n else "no problem found"
    total = len(rows.named) + len(rows.scanned) + len(rows.learned)
    listed = len(first) + len(others)
    rest = f"The first {listed:,} of {total:,} groups are listed, problems before others."
    note = rest if total > listed else ""
    table = tables.groups("Other groups", others, rows, note=note, search="Find a group")
    yield section("others", "The other groups", hint, table)


PITS = (
    "With right forecasts a tenth of outcomes falls into each tenth of the predicted distribution."
    " Higher bars on the left mean that outcomes are lower than forecast, on the right that they"
    " are higher; a U shape means that forecasts are too narrow, a hump that they are too wide."
)
"""How to read the distribution of PITs."""


def _folds(slots: Slots, rows: AuditRows, kind: Kind) -> Iterator[Section]:
    """Yield the folded sections: what is proven, then details."""
    # a guarantee for every group comes before the details of the groups that were examined
    proven = _proven(slots, rows, kind)
    if rows.bound:
        yield proven
    note, given = "", rows.given_forecast
    if given is not None:
        reach = tables.estimate((rows.given or rows.everyone).size, points)
        note = f"Mean error of these groups, in points: {reach}, without the"
        note += f" {points(given.chance)} that right forecasts would show by chance."
    table = tables.groups("Groups by the forecast", rows.by_forecast, rows, note=note)
    yield section("own", "By the forecast itself", "are low and high ones equally right?", table)
    hint, title = "the continuous part of the forecasts", f"Outcomes other than {kind.atom}"
    table = tables.groups("Groups without the atom", rows.positive_part[: tables.LISTED], rows)
    yield section("positive", title, hint, table)
    title, table = "Predicted probabilities and rates", tables.reliability(rows)
    chart = calibration_chart(rows, of_rates=True)
    yield section("rates", title, "by group", chart, table)
    drawn = calibration_chart(rows, of_rates=False), pit_chart(rows)
    if any(drawn) and not kind.has_rates:
        assumed = f" This assumes that {IN_FEATURES}." if kind.has_range else ""
        parts = *drawn, Paragraph(f"{PITS}{assumed}")
        yield section("calibration", "Calibration of everyone", "distribution of PITs", *parts)
    chart = None if is_survival(rows) else survival_chart(rows)
    title, hint = f"Rates of the event by {kind.horizon}", "predicted and observed"
    yield section("survival", title, hint, chart, tables.survival(rows))
    texts = map(Paragraph, slots.decided)
    hint = "one rule, one family of tests"
    yield section("decided", "How this was decided", hint, *texts, Bullets(slots.gate))
    hint = "smaller log scores and CRPS are better"
    yield section("scores", "Scores", hint, tables.scores(rows), tables.probability_scores(rows))
    if not rows.bound:
        yield proven
    more = tables.miscoverage(rows), tables.membership(rows), tables.worst_groups(rows)
    hint = "; ".join(table.label.lower() for table in more if table is not None)
    yield section("more", "More about groups", hint, *headed(more))
    notes = [capitalized(one.text) for one in rows.notes]
    yield section("notes", "Notes", "what was left out or done otherwise", Bullets(notes))


def _proven(slots: Slots, rows: AuditRows, kind: Kind) -> Section:
    """Show what is proven for named groups, for unions of them, and for every group."""
    proof = rows.certificate
    hint = "bounds, assumptions and limits" if rows.bound else "without a draw: lower bounds only"
    title = "What is proven for groups that nobody named"
    if proof is None:
        return section("proof", title, hint)
    people = count(proof.n_samples, "person", "people")
    each = "together" if proof.link_bound is not None else "each by itself"
    texts = [*slots.proven]
    if proof.average_error is not None:
        texts.append(f"All people together: off by at most {at_most(proof.average_error)} points.")
    of_part = f" Bounds for every group are about {kind.people}." if kind.people != "people" else ""
    texts.append(
        f"From {people}; bounds hold {each}, with {confidence_in_full(proof.confidence)}"
        f" confidence.{of_part} Method: {proof.method}."
    )
    # every interval of a yes or no that is not a single value covers everything
    plain = () if kind.has_rates else rows.plain_intervals
    asked = [
        Sentence(f"{'yes' if one.answered else 'no'}, {one.why}.", f"{capitalized(one.question)}? ")
        for one in proof.questions
    ]
    shown = [
        Bullets(texts),
        tables.every_group(proof.every_group) if rows.bound else None,
        tables.plain_intervals(plain, may_be_lost=rows.censoring is not None),
        tables.event_bounds(proof.events or ()),
        tables.unions(proof.unions["cells"] if proof.unions else ()),
        tables.named_bounds(proof.groups),
        Bullets(asked, "Questions"),
        Bullets(proof.assumptions, "Assumed"),
        Bullets(proof.not_covered, "Not covered"),
    ]
    parts = list(headed(shown))
    if slots.next[1:]:
        parts += [Paragraph("To prove more", "heading"), *_steps(slots.next[1:])]
    return section("proof", title, hint, *parts)


# --- short text of an audit: verdict, worst case, other cases, what was not tested, next step

LINES = 12
"""Most lines, beside what a reader must not miss."""

LABEL = 17
"""Most characters of the column of labels."""

# at -1 there is no empty line, and at -2 nothing of everyone
ALWAYS = -2
"""Rank of parts of a short text that are never left out."""


def audit_text(rows: AuditRows, *, full: bool = False) -> str:
    """Return an audit as text of about 12 lines, or in full with all tables."""
    if full:
        return document_text(audit_document(rows))
    slots, width = Slots(rows), line_width(SCREEN)
    # without a problem, the verdict is followed by what the rows would have shown
    shown = "" if slots.name else slots.lead
    verdict = f"{slots.badge} {slots.verdict}" if slots.verdict else f"{slots.badge}."
    heading = f"{slots.heading} (all: {'--full' if rows.has_command else 'summary(full=True)'})"
    head = f"{wrapped(heading, width)}\n{wrapped(f'{verdict} {shown}', width)}\n"
    label, worst = slots.name, f"{capitalized(slots.fact)}. {slots.lead}"
    # a name with more lines than its text begins the text
    if wrapped(label, LABEL - 2).count("\n") > wrapped(worst, width - LABEL).count("\n"):
        label, worst = "Worst", f"{slots.title} {slots.lead}"
    # rank, label and text
    blocks = [(ALWAYS, label, worst)] if label else []
    for i, (name, text) in enumerate(slots.others):
        found = f"{name}: {text.split('; ')[0].removesuffix('.')}"
        blocks.append((2 + 2 * i, "" if i else "Also", found))
    if rows.leading is None or rows.leading not in rows.overall:
        by_own = rows.given is not None and rows.given.off
        n = 1 if slots.kind.has_rates or (rows.survival and not by_own) else 2
        rank = ALWAYS + 1 if slots.name else ALWAYS
        blocks.append((rank, "Everyone", " ".join(slots.everyone[:n])))
        blocks.append((1, "", " ".join(slots.everyone[n:4])))
    blocks += [(ALWAYS, "Caution", text) for text in slots.cautions]
    blocks += [(ALWAYS if rows.bound else 3, "Proven", text) for text in slots.proven[:1]]
    tested = (one.rstrip(".") for one in slots.not_tested[: 3 if rows.censoring else 2])
    untested = "; ".join(f"{one[:1].lower()}{one[1:]}" for one in tested)
    blocks += [(ALWAYS, "Not tested", untested), *((ALWAYS, "Gate", text) for text in slots.gate)]
    what, code, is_command = slots.next[0]
    code = folded_command(visible(code), width - 2) if is_command else visible(code, "\n")
    last = wrapped(f"Next  {what[:-1]}:" if code else f"Next  {what}", width)
    last += "\n  " + code.replace("\n", "\n  ") if code else ""
    # beside cautions, conditions of a gate and a guarantee, which take lines of their own
    least = 0 if slots.cautions or slots.gate or rows.bound else ALWAYS
    for most in range(3 + 2 * len(slots.others), least - 1, -1):
        listed = [block[1:] for block in blocks if block[2] and block[0] <= most]
        beside = "\n" * (most > ALWAYS + 1) + labelled(listed, width, LABEL)
        text = f"{head}{beside}\n{last}"
        if text.count("\n") < LINES:
            break
    return text


def audit_markdown(rows: AuditRows) -> str:
    """Return an audit as Markdown: its page without folds, the guarantees and a gate's values."""
    slots, document = Slots(rows), audit_document(rows)
    more = {"What is proven": slots.proven, "Gate": slots.gate}
    sections = [Section(title, [Bullets(texts)]) for title, texts in more.items() if texts]
    cards = [one for one in document.cards if one.title not in more]
    return document_markdown(replace(document, cards=[*sections, *cards]))
