"""Text of the demonstration on generated doses."""

from __future__ import annotations

from evenhand._format import at_least, at_most, band, in_full, log_score, nats, number, percent
from evenhand._table import Cells, Column, Table, numeric, wrapped
from evenhand.demo.result import Estimate, Found, Proven, Repaired, Served, Story, Written


def doses_text(story: Story, written: Written, width: int) -> str:
    """Return the demonstration as text of a given width: three steps, then the files."""
    steps = [
        wrapped(_setting(story), width),
        _found(story.found, width),
        _repaired(story.repaired, width),
        _proven(story.proven, story.variant_share, width),
        _written_text(written, width),
    ]
    return "\n\n".join(steps)


def _setting(story: Story) -> str:
    return (
        "Weekly doses of a blood thinner; the table is generated, so the truth is known. The model"
        f" was trained on {story.n_trial:,} people of a trial without women over 60."
    )


def _found(found: Found, width: int) -> str:
    return _step(
        f"1. FIND: audit the model on {found.n:,} patients of the clinics",
        f"80% intervals cover {_estimate(found.coverage)} of doses. Worst group found:"
        f" {found.group}, off by at least {at_least(found.error_low)} points with 95% confidence.",
        width,
    )


def _repaired(repaired: Repaired, width: int) -> str:
    title = (
        f"2. REPAIR: recalibrate by group on {repaired.n_repair:,} others; check on"
        f" {repaired.n_fresh:,} fresh patients"
    )
    columns = [Column("80% intervals cover"), numeric("before"), numeric("after")]
    changes = [[row.group, _estimate(row.before), _estimate(row.after)] for row in repaired.changes]
    off = [f"{n} of {repaired.n_scanned}" for n in (repaired.n_off_before, repaired.n_off_after)]
    rows = [*changes, ["scanned groups that are off", *off]]
    table = Table("Coverage before and after the repair", columns, rows)
    return f"{wrapped(title, width)}\n{table.text(width)}"


def _proven(proven: Proven, variant_share: float, width: int) -> str:
    title = (
        f"3. PROVE: for every group of at least {in_full(proven.group_size)} of patients, named or"
        " not"
    )
    cells: Cells[Served] = {
        Column("forecast"): _name,
        numeric("proven coverage"): _bounds,
        numeric("width (mg)"): lambda row: number(row.width),
        numeric("log score"): lambda row: log_score(row.log_score),
        numeric("gene variant*"): lambda row: percent(row.variant),
    }
    table = Table.of("Proven coverage and its price", proven.served, cells)
    bound = (
        "Randomized probabilities are off by at most"
        f" {at_most(proven.group_error)} points. Price: {percent(proven.wider, decimals=0)} wider"
        f" intervals, {nats(proven.price)}. Without a draw, only a floor can be proven."
    )
    note = (
        f"* True coverage for the {percent(variant_share, decimals=0)} of patients with a gene"
        " variant that no column records."
    )
    return "\n".join(
        [wrapped(title, width), table.text(width), wrapped(bound, width), wrapped(note, width)]
    )


def _name(row: Served) -> str:
    return {
        "before": "model, 80% interval",
        "repaired": "repaired, 80%",
        "wider": f"repaired, {in_full(row.level)}",
        "randomized": "randomized, 80%",
        "without features": "without features",
    }[row.name]


def _bounds(row: Served) -> str:
    if row.floor is None:
        return "none"
    if row.ceiling is None:
        return f"at least {at_least(row.floor, percent)}"
    return f"{at_least(row.floor, percent)} to {at_most(row.ceiling, percent)}"


def _step(title: str, text: str, width: int) -> str:
    """Return a step: its title, and a paragraph."""
    return f"{wrapped(title, width)}\n{wrapped(text, width)}"


def _estimate(found: Estimate) -> str:
    """Return an estimated share with its interval."""
    return f"{percent(found.value)} ({band(percent, found.low, found.high)})"


def _written_text(written: Written, width: int) -> str:
    """Return the names of the files, and which report to open."""
    folder = f"{written.out}{'/' if not str(written.out).endswith('/') else ''}"
    files = wrapped(f"Written to {folder}: {', '.join(written.files)}", width)
    return f"{files}\n\nOpen {written.out / written.report}"
