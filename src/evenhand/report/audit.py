"""The document of an audit: verdict, cards and sections."""

from __future__ import annotations

from dataclasses import replace

from evenhand._format import band, count, whole
from evenhand._table import Cells, Column, Table, numeric
from evenhand.report.calibration import calibration_section
from evenhand.report.document import (
    Bullets,
    Document,
    Facts,
    PageData,
    Paragraph,
    Part,
    Section,
    Sentence,
    about_facts,
    short,
)
from evenhand.report.events import reliability_section, scores_section
from evenhand.report.findings import Findings
from evenhand.report.groups import (
    by_forecast_section,
    learned_section,
    membership_section,
    miscoverage_section,
    named_section,
    overview,
    positive_section,
    scanned_section,
)
from evenhand.report.measures import NAMES, formatter_of, units_of
from evenhand.report.next_steps import next_section
from evenhand.report.proof import limits_section, proof_section
from evenhand.report.provenance import provenance_section
from evenhand.report.records import Score, records
from evenhand.report.status import condition_lines, status_box
from evenhand.report.survival import survival_section
from evenhand.report.times import counts_in_words, times_section
from evenhand.report.verdict import forecast_kind, main_findings, not_covered, significance

AVERAGE_ERROR = NAMES["error"](0)
"""Name of the error of all rows among the scores."""

NAME_LENGTH = 200
"""Most characters of the name of an audit."""


def audit_document(findings: Findings, data: PageData | None = None) -> Document:
    """Return the document on the findings of an audit.

    Parameters
    ----------
    findings : Findings
        The findings.
    data : PageData, optional
        Data that the page embeds.
    """
    found = [
        by_forecast_section(findings),
        named_section(findings),
        positive_section(findings),
        membership_section(findings),
        scanned_section(findings),
        learned_section(findings),
    ]
    is_event = findings.terms.is_event
    # a probability has no coverage
    found.append(scores_section(findings) if is_event else miscoverage_section(findings))
    proof = proof_section(findings)
    rates = [survival_section(findings), reliability_section(findings)]
    # PITs of 0/1 outcomes show less than event rates by predicted probability
    calibration = None if is_event else calibration_section(findings)
    scores, last = _scores(findings), [limits_section(findings), _notes(findings)]
    # a guarantee for every group leads; without one the examined groups lead
    if findings.bound is not None:
        order = [proof, calibration, *rates, *found, scores, *last]
    else:
        order = [*found, *rates, calibration, scores, proof, *last]
    first = [next_section(findings), times_section(findings)]
    sections = [*first, *order, provenance_section(findings, data)]
    rows = count(findings.values["n_samples"], "row")
    return Document(
        title=f"Audit of {short(findings.values['name'], NAME_LENGTH)}",
        facts=[rows, forecast_kind(findings)],
        opening=_opening(findings),
        about=about_facts(findings.values),
        picture=overview(findings),
        cards=[card for card in _cards(findings) if card.parts],
        sections=[section for section in sections if section is not None],
        footer="Made by evenhand. The JSON of this audit contains the same values with all digits.",
        data=data,
    )


def _opening(findings: Findings) -> Section:
    found = main_findings(findings)
    conditions = map(Sentence, condition_lines(findings))
    parts: list[Part] = [
        status_box(findings),
        Paragraph(found.lead, "lead"),
        Bullets([*found.sentences, *conditions]),
        Paragraph(findings.terms.scale, "facts"),
        Paragraph(
            significance(findings),
            "facts",
            summary="How this was decided",
        ),
    ]
    return Section("Main findings", parts)


def _cards(findings: Findings) -> list[Section]:
    """Show the audited forecasts and the limits of the audit."""
    audit = findings.values
    source = audit.get("provenance") or {}
    data = source.get("data") or {}
    model_kind = (source.get("model") or {}).get("kind")
    step = audit.get("rounding_step")
    name = short(audit["name"], NAME_LENGTH)
    # the class is shown beside a name that differs from it
    has_name = model_kind is not None and model_kind.lower() != name.lower()
    audited = {
        "Model": f"{name} ({model_kind})" if has_name else name,
        "Data": data.get("name"),
        "Rows": whole(audit["n_samples"]),
        "Forecasts": forecast_kind(findings),
        "Outcomes": findings.terms.outcome if step is None else f"rounded to {step:g}",
        "Times": counts_in_words(findings) or None,
        "Groups": (
            f"{len(findings.by_forecast):,} by the forecast, {len(findings.named):,} named,"
            f" {len(findings.scanned):,} by features, {len(findings.learned):,} found by search"
        ),
    }
    return [
        Section("What was audited", [Facts(audited)]),
        Section("What is not covered", [Bullets.of(not_covered(findings))]),
    ]


def _with_one_interval(score: Score, findings: Findings) -> Score:
    """Return the average error with the interval of the same error among the named groups."""
    error = findings.everyone.error if findings.everyone else None
    # each is bootstrapped separately: a report must not give one number two intervals
    if error is None or score.measure != AVERAGE_ERROR or score.value != error.value:
        return score
    return replace(score, low=error.low, high=error.high)


def _scores(findings: Findings) -> Section | None:
    scores = records(Score, findings.values["scores"])
    if not scores:
        return None
    text = (
        "Means over rows and draws, each with its own (pointwise) 95% confidence interval. Smaller"
        " log scores and CRPS are better; smaller standard deviations and interval widths are"
        " sharper."
    )
    if findings.terms.is_event:
        text = (
            "Means over rows, each with its own (pointwise) 95% confidence interval. Smaller values"
            " are better."
        )
    if findings.values.get("rounding_step"):
        text += " The log score with cells uses the probability of each outcome's rounding cell."
    cells: Cells[Score] = {
        Column("measure"): lambda score: _measure_in_words(score, findings),
        numeric("value"): lambda score: formatter_of(score.unit)(score.value),
        numeric("95% interval"): lambda score: band(
            formatter_of(score.unit), score.low, score.high
        ),
        Column("unit"): lambda score: _unit_in_words(score.unit, findings),
    }
    table = Table.of("Scores", [_with_one_interval(score, findings) for score in scores], cells)
    return Section("Scores", [Paragraph(text), table], "scores")


def _measure_in_words(score: Score, findings: Findings) -> str:
    # the size of the error of times that are cut off is another measure
    if findings.terms.is_time and score.measure == AVERAGE_ERROR:
        return "average error, of the tested PITs"
    return str(score.measure)


def _unit_in_words(unit: str | None, findings: Findings) -> str:
    # the audit has machine-readable units; here shares are percentages and errors points
    words = {"share": "of outcomes", "probability": "points"}
    words[units_of(findings.values.get("target"))] = findings.terms.unit
    return words.get(str(unit), str(unit or "of outcomes"))


def _notes(findings: Findings) -> Section | None:
    notes = findings.values["notes"]
    return Section("Notes", [Bullets.of(notes)], "notes") if notes else None
