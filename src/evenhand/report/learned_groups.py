"""Section on the worst groups that were learned from features."""

from __future__ import annotations

from evenhand._format import at_least, in_full, p_value, percent, points, whole
from evenhand._table import Cells, Column, Table, Value, numeric
from evenhand.report.document import Paragraph, Section
from evenhand.report.findings import Findings, LearnedFinding
from evenhand.report.groups import bias_cell, estimate_cell
from evenhand.report.sentences import how_off, learned_in_words
from evenhand.report.terms import IN_GROUP

LEARNED = (
    "For each group size, the worst group is learned from features on some of the rows and"
    " evaluated on others."
)


def learned_section(findings: Findings) -> Section | None:
    """Show the learned group of each size."""
    if not findings.learned:
        return None
    terms = findings.terms
    sizes = _censored_sizes() if terms.is_time else _sizes()
    bias: Cells[LearnedFinding] = {
        numeric(terms.bias, in_text=False): lambda f: bias_cell(f.group.bias, terms)
    }
    covered: Cells[LearnedFinding] = {
        numeric("80% coverage", in_text=False): lambda f: percent(f.group.coverage_80.value)
    }
    cells: Cells[LearnedFinding] = {
        Column("share of people"): lambda f: in_full(f.mass),
        **sizes,
        Column("finding"): lambda f: how_off(f.group, findings),
        **(bias if terms.has_bias else {}),
        **({} if terms.is_event else covered),
        numeric("adjusted p", in_text=False): lambda f: p_value(f.group.p_adjusted),
        numeric("rows"): lambda f: Value(whole(f.group.n), f"of {whole(f.n_judged)} evaluated"),
        Column("definition"): learned_in_words,
    }
    table = Table.of("Groups found by search", findings.learned, cells)
    title = "Groups found by search"
    return Section(title, [Paragraph(_explained(findings)), table], "learned")


def _explained(findings: Findings) -> str:
    if findings.terms.is_time:
        return (
            f"{LEARNED} Errors are Kaplan-Meier estimates, which assume that {IN_GROUP}; their"
            f" {findings.level} intervals are asymptotic and hold for all learned groups at once."
        )
    return (
        f"{LEARNED} Its estimated error is conservative: on average it does not exceed the true"
        " error, and it may be negative. The lower bounds of all learned groups hold jointly, with"
        f" {findings.level} confidence. The test is more powerful than the bound, which may be 0"
        " where a problem is found."
    )


def _sizes() -> Cells[LearnedFinding]:
    return {
        numeric("error (points)"): lambda f: points(f.group.error.value),
        numeric("lower bound"): lambda f: at_least(f.low),
    }


def _censored_sizes() -> Cells[LearnedFinding]:
    return {
        numeric("Kaplan-Meier error (points)"): lambda f: estimate_cell(f.group.error, points),
    }
