"""Short text of an audit: status, main findings, what is proven, and the next step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand._escape import visible
from evenhand._format import UNKNOWN, Show, at_least, band, count, is_known, percent, points
from evenhand._table import folded_command, line_width, wrapped
from evenhand.report.findings import Findings, GroupFinding
from evenhand.report.judging import findings_of
from evenhand.report.names import short
from evenhand.report.next_steps import NextStep, has_command, next_steps
from evenhand.report.notes import Note
from evenhand.report.records import Estimate, Values
from evenhand.report.sentences import (
    finding_name,
    leak_sentences,
    off_in_brief,
    open_sentences,
)
from evenhand.report.status_words import status_box
from evenhand.report.times import counts_in_words
from evenhand.report.verdict import forecast_kind, headline, proof_in_brief, small_groups

LONGEST = 100
"""Most characters of a line."""

MARGIN = 9
"""Characters of the column of labels."""

NAME = 60
"""Most characters of the name of a group or of the audited model."""

OTHERS = 2
"""Most findings beside that of the headline."""


def audit_brief(audit: Values, notes: Sequence[Note] = ()) -> str:
    """Return the main findings of an audit, given as for `audit_text`, in about 15 lines."""
    findings = findings_of(audit, notes)
    width = min(line_width(), LONGEST)
    facts = f"{count(audit['n_samples'], 'row')}, {forecast_kind(findings)}"
    lines = [wrapped(f"Audit of {short(audit['name'], NAME)}: {facts}", width)]
    for label, texts in _paragraphs(findings):
        lines += _beside(label, texts, width)
    step = next(iter(next_steps(findings)), None)
    if step is not None:
        lines += _beside("Next", [step.what], width)
        lines += _code(step, findings, width)
    return "\n".join([*lines, *_beside("More", [_more(findings)], width)])


def _paragraphs(findings: Findings) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield labels with the texts beside them."""
    box = status_box(findings)
    yield "Status", [" ".join([f"{box.title.upper()}.", *box.sentences])]
    if findings.censoring is not None:
        yield "Times", [f"{counts_in_words(findings)}; errors are Kaplan-Meier estimates."]
    yield "Caution", _cautions(findings)
    yield "Finding", [" ".join([headline(findings), *open_sentences(findings)])]
    yield "Also", [_other(group, findings) for group in _others(findings)]
    yield "Overall", _overall(findings)
    if findings.leading is not None or not findings.is_bound_useful:
        yield "Proven", [proof_in_brief(findings)]
    yield "Unseen", small_groups(findings)


def _beside(label: str, texts: Sequence[str], width: int) -> Iterator[str]:
    """Yield texts, each on lines of its own, with a label in the margin of the first."""
    for text in texts:
        for line in wrapped(text, width - MARGIN).split("\n"):
            yield f"{label:{MARGIN}}{line}"
            label = ""


def _cautions(findings: Findings) -> list[str]:
    """Return what a reader must know before the findings: a caveat, and possible leaks."""
    caveat = findings.values.get("caveat")
    leaks = [str(one) for one in leak_sentences(findings)]
    more = [f"{count(len(leaks) - 1, 'other possible leak')}."] if len(leaks) > 1 else []
    return [*([str(caveat)] if caveat else []), *leaks[:1], *more]


def _others(findings: Findings) -> list[GroupFinding]:
    """Return the next findings beyond the tolerance; no two named or scanned share a feature."""
    learned = findings.learned_off
    found = [*findings.listed, *([] if learned is None else [learned.group])]
    others = [group for group in found if group is not findings.leading]
    return sorted(others, key=lambda group: group.rank)[:OTHERS]


def _other(group: GroupFinding, findings: Findings) -> str:
    reach = band(points, group.error.low, group.error.high)
    # learned groups have a lower bound alone
    least = f"at least {at_least(group.least)}" if group.least else "significant"
    error = f"{points(group.error.value)} points ({least if reach == UNKNOWN else reach})"
    how = off_in_brief(group, findings.terms)
    name = short(finding_name(group, findings), NAME)
    # the error of an event is half the difference of rates, which insurers read first
    return f"{name}: {how}; error {error}" if findings.terms.is_event else f"{name}: {error}; {how}"


def _overall(findings: Findings) -> list[str]:
    """Return error, coverage and bias of all people on a line."""
    group = findings.everyone
    if group is None:
        return []
    facts = [f"{points(group.error.value)} points ({_ends(points, group.error)})"]
    if not findings.terms.is_event and is_known(group.coverage_80.value):
        covered = group.coverage_80
        facts.append(
            f"80% intervals cover {percent(covered.value)} of outcomes ({_ends(percent, covered)})"
        )
    if group.is_mean_off:
        facts.append(
            f"{findings.terms.mean_side(group.reported_bias)} by"
            f" {findings.terms.size(group.reported_bias)}"
        )
    return ["; ".join(facts)]


def _ends(show: Show, of: Estimate) -> str:
    return band(show, of.low, of.high)


def _code(step: NextStep, findings: Findings, width: int) -> Iterator[str]:
    """Yield a step as a command if the audit was made by one, else as lines of Python."""
    is_shell, code = step.code(has_command(findings))
    text = "\n".join(map(visible, code.split("\n")))
    shown = folded_command(text, width - MARGIN - 2) if is_shell else text
    yield from (f"{'':{MARGIN}}  {line}" for line in shown.split("\n") if line)


def _more(findings: Findings) -> str:
    if has_command(findings):
        return "all groups, scores and guarantees: add --full, or --out report.html"
    return 'all groups, scores and guarantees: summary(full=True), to_html("report.html")'
