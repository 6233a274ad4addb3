"""Texts: rendering of documents, and the short text of an audit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from evenhand._escape import visible
from evenhand._format import count, percent, whole
from evenhand._table import Cells, Column, Table, folded_command, line_width, numeric, wrapped
from evenhand.report.audit import audit_document, counts_in_words
from evenhand.report.document import (
    Bullets,
    Document,
    Heading,
    Pair,
    Paragraph,
    Part,
    StatusBox,
    short,
)
from evenhand.report.findings import Findings, GroupFinding, findings_of
from evenhand.report.groups import bias_cell
from evenhand.report.next_steps import NextStep, has_command, next_steps
from evenhand.report.records import Values
from evenhand.report.sentences import (
    PROBLEM,
    everyone_in_words,
    group_in_words,
    headline,
    leak_sentences,
    least_size,
    open_sentences,
    proof_sentences,
    union_sentences,
)
from evenhand.report.status import condition_lines, status_box


def audit_text(audit: Values) -> str:
    """Return an audit, given as `Audit.to_dict()`, as text."""
    return document_text(audit_document(findings_of(audit)))


def document_text(document: Document) -> str:
    """Return a document as text, without cards and sections that only pages show."""
    parts = [wrapped(f"{document.title}: {', '.join(document.facts)}")]
    if document.opening is not None:
        parts += _texts(document.opening.parts)
    for section in document.sections:
        if section.in_text:
            parts += _titled(section.title, _texts(section.parts))
    return "\n\n".join(parts)


def _titled(title: str, texts: Iterable[str]) -> Iterator[str]:
    """Yield texts with a title in capitals above the first."""
    for i, text in enumerate(texts):
        yield text if i else f"{wrapped(title.upper())}\n{text}"


def _texts(parts: Iterable[Part]) -> list[str]:
    texts: list[str] = []
    heading = ""
    flat = ([*one.left, *one.right] if isinstance(one, Pair) else [one] for one in parts)
    for part in chain.from_iterable(flat):
        text = heading + _text(part)
        # a heading is printed above the part that follows it
        heading = f"{text}\n" if isinstance(part, Heading) else ""
        texts += [text] if text and not heading else []
    return texts


def _text(part: Part) -> str:
    """Return a part as text; figures and facts are omitted."""
    match part:
        case Paragraph() if part.kind == "code":
            # lines of a command end with a backslash, and must not be broken elsewhere
            return "\n".join(map(visible, part.text.split("\n")))
        case Paragraph() | Heading() | StatusBox():
            return wrapped(_in_words(part))
        case Bullets():
            width = line_width() - 2
            items = (wrapped(str(item), width).replace("\n", "\n  ") for item in part.items)
            return "\n".join(f"- {item}" for item in items)
        # tables of thousands of groups stay readable; the page and JSON contain more
        case Table():
            n, most = len(part.rows), part.printed
            rest = f"\n{most} of {n:,} rows are printed." if n > most else ""
            return part.text(most=most) + rest
        case _:
            return ""


def _in_words(part: Paragraph | Heading | StatusBox) -> str:
    match part:
        case StatusBox():
            return " ".join([part.title.upper(), *part.sentences])
        case Heading():
            return f"{part.text}:"
        case _:
            # hints are about what only a page has
            return "" if part.kind == "hint" else part.text


# --- short text of an audit: verdict, main findings, what is proven, and the next step

LONGEST = 100
"""Most characters of a line."""

MARGIN = 12
"""Characters of the column of labels."""

NAME = 60
"""Most characters of the name of a group or of the audited model."""


def audit_brief(audit: Values) -> str:
    """Return the main findings of an audit, given as for `audit_text`, in about 20 lines."""
    findings = findings_of(audit)
    width = min(line_width(), LONGEST)
    facts = [count(findings.values["n_samples"], "row"), count(len(findings.examined), "group")]
    box = status_box(findings)
    lines = [
        wrapped(f"Audit of {short(audit['name'], NAME)}: {', '.join(facts)}", width),
        wrapped(" ".join([box.title.upper(), *box.sentences]), width),
        "",
    ]
    for label, texts in _paragraphs(findings):
        lines += _beside(label, texts, width)
        if label == "Everyone" and findings.terms.is_event and findings.by_forecast:
            lines += ["", _by_tenth(findings).text(width), ""]
    step = next(iter(next_steps(findings)), None)
    if step is not None:
        lines += _beside("Next", [step.what], width)
        lines += _code(step, findings, width)
    return "\n".join([*lines, *_beside("All groups", [_more(findings)], width)])


def _paragraphs(findings: Findings) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield labels with the texts beside them."""
    if findings.censoring is not None:
        yield "Times", [f"{counts_in_words(findings)}; errors are Kaplan-Meier estimates."]
    yield "Caution", _cautions(findings)
    leading = findings.leading
    everyone = everyone_in_words(findings)
    lead = headline(findings)
    # the first sentence is about what cannot be proven, unless there is a bound
    proven = proof_sentences(findings)[0 if findings.is_bound_useful else 1 :][-1:]
    unions = union_sentences(findings, is_short=True)
    if unions and not findings.is_bound_useful:
        proven = []
    if lead not in (everyone, *proven):
        yield "Worst" if leading else "", [" ".join([lead, *open_sentences(findings)])]
    others = [group for group in findings.listed if group is not leading]
    yield "Also", [f"{short(one.name, NAME)}: {group_in_words(one, findings)}" for one in others]
    yield "Everyone", [everyone] * bool(everyone)
    yield "Proven", [*unions, *proven]
    least = least_size(findings)
    small = "" if least is None else f"groups of fewer than {least:,} rows; "
    yield "Not tested", [f"{small}changes since these rows"]
    yield "Gate", condition_lines(findings)


def _by_tenth(findings: Findings) -> Table:
    """Return predicted probabilities and event rates by tenth of the probability."""
    cells: Cells[GroupFinding] = {
        Column("probability"): lambda g: g.name.removeprefix("predicted probability "),
        numeric("rows"): lambda g: whole(g.n),
        numeric("predicted"): lambda g: percent(g.predicted),
        numeric("event rate"): lambda g: percent(g.rate),
        numeric("difference"): lambda g: bias_cell(g.bias, findings.terms),
        Column(""): lambda g: PROBLEM if g.is_problem else "",
    }
    return Table.of("By tenth of the probability", findings.by_forecast, cells)


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


def _code(step: NextStep, findings: Findings, width: int) -> Iterator[str]:
    """Yield a step as a command if the audit was made by one, else as lines of Python."""
    is_shell, code = step.code(has_command(findings))
    text = "\n".join(map(visible, code.split("\n")))
    shown = folded_command(text, width - MARGIN - 2) if is_shell else text
    yield from (f"{'':{MARGIN}}  {line}" for line in shown.split("\n") if line)


def _more(findings: Findings) -> str:
    if has_command(findings):
        return "add --full, or --out report.html"
    return 'summary(full=True), to_html("report.html")'
