"""The document of an audit: verdict, cards, sections, times that are cut off and provenance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evenhand._format import band, count, percent, whole
from evenhand._table import Cells, Column, Table, numeric
from evenhand.report.calibration import (
    calibration_section,
    reliability_section,
    scores_section,
    survival_section,
)
from evenhand.report.document import (
    Bullets,
    Document,
    Facts,
    Heading,
    PageData,
    Paragraph,
    Part,
    Section,
    Sentence,
    about_facts,
    short,
)
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
from evenhand.report.records import Score, Values, records
from evenhand.report.sentences import forecast_kind, main_findings, not_covered, significance
from evenhand.report.status import condition_lines, status_box
from evenhand.report.terms import NO_HORIZON

# --- section on times that are cut off: what is known of them


CUT_OFF = (
    "Of who is cut off (censored), the event is only known to be later than the time at which they"
    " were last seen. Leaving these people out, or counting them as events, would make a right"
    " forecast look wrong."
)


def counts_in_words(findings: Findings) -> str:
    """Return the numbers of events, of people who reached the horizon and of times cut off."""
    censoring, horizon = findings.censoring, findings.terms.horizon
    if censoring is None:
        return ""
    facts = [count(censoring.n_events, "event") + (f" by {horizon}" if horizon else "")]
    if horizon:
        facts.append(f"{whole(censoring.n_reached)} seen without it until then")
    lost = percent(censoring.n_lost / censoring.n_people)
    return ", ".join([*facts, f"{count(censoring.n_lost, 'time')} cut off ({lost})"])


def times_section(findings: Findings) -> Section | None:
    """Show what is known of times that are cut off; nothing for other outcomes."""
    if findings.censoring is None:
        return None
    texts, followed = [f"{counts_in_words(findings)}.", CUT_OFF], findings.censoring.n_followed
    if followed is not None:
        texts.append(
            f"{whole(followed)} of all entered at least a horizon before the end of follow-up:"
            " guarantees use these, whatever happened to them."
        )
    texts += [] if findings.terms.horizon else [NO_HORIZON]
    return Section("Times that are cut off", [Paragraph(" ".join(texts))], "times")


# --- section on the provenance of an audit: model, data, draws, versions and command

NOT_RECORDED = "not recorded"


def provenance_section(findings: Findings, embedded: PageData | None = None) -> Section | None:
    """Show what is needed to repeat an audit; nothing if it was not recorded."""
    known = findings.values.get("provenance")
    if not known:
        return None
    model = known.get("model") or {}
    data = known.get("data") or {}
    listed = {
        "Model": model.get("name") or NOT_RECORDED,
        "Model class": model.get("kind"),
        # the hash stored in a model folder, which matches a report with its model
        "Hash of the model": _hash("sha256 over its files, as in model.json", model)
        or NOT_RECORDED,
        "Data": data.get("name") or NOT_RECORDED,
        "Rows": _rows(data),
        "Hash of the data": _hash("sha256 of the file", data),
        # it identifies data without a file
        "Hash of the values": _hash(
            "sha256 of the outcomes, or PITs, as 64-bit floats", known, "values_sha256"
        ),
        "Draws": known.get("draws") or NOT_RECORDED,
        "Seed": _seed(known.get("random_state")),
        "Versions": _versions(known),
        "Schema": findings.values.get("schema"),
        "Hash of the page": None
        if embedded is None
        else f"sha256 of the embedded data: {embedded.sha256}",
    }
    text = "The model, data and settings with which this audit can be repeated."
    parts = [Paragraph(text), Facts(listed), *_command(known)]
    return Section("Provenance", parts, "provenance", in_text=False)


def _hash(what: str, values: Values, key: str = "sha256") -> str | None:
    return f"{what}: {values[key]}" if values.get(key) else None


def _rows(data: Values) -> str | None:
    """Return the number of rows and, for a table in parts, of those searched."""
    if data.get("n_rows") is None:
        return None
    if data.get("n_parts") is None:
        return whole(data["n_rows"])
    searched = f"{whole(data['n_searched'])} rows sampled at random for searches and scores"
    return f"{whole(data['n_rows'])} in {whole(data['n_parts'])} parts; {searched}"


def _seed(value: Any) -> str:
    if value is None:
        return (
            "not set: random steps of the audit (bootstrap, simulations, learners) vary"
            " slightly between runs"
        )
    return f"{value}: random steps of the audit (bootstrap, simulations, learners) are repeatable"


def _versions(known: Values) -> str:
    packages = known.get("packages") or {}
    first = {"evenhand": known.get("evenhand"), "Python": known.get("python")}
    return (
        ", ".join(f"{name} {version}" for name, version in {**first, **packages}.items() if version)
        or NOT_RECORDED
    )


def _command(known: Values) -> list[Part]:
    command = known.get("command")
    if not command:
        return [Paragraph("Made from Python; no command was recorded.", "facts")]
    return [Heading("Command"), Paragraph(str(command), "code")]


# --- the document of an audit: verdict, cards and sections

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
        Paragraph(significance(findings), "facts", summary="How this was decided"),
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
