"""Files of the demonstration on generated doses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.demo.models import Work
from evenhand.demo.result import Written

if TYPE_CHECKING:
    from evenhand.audits import Audit

MODELS = ("model", "model-repaired", "model-randomized")
TABLES = ("trial.csv", "clinics-find.csv", "clinics-repair.csv", "clinics-prove.csv")
REPORT = "report.html"


def write_work(work: Work, out: Path, command: str | None) -> Written:
    """Write tables, models, audits, reports and the comparison; return their names."""
    from evenhand.audits import compare
    from evenhand.store import save

    out.mkdir(parents=True, exist_ok=True)
    tables = work.tables
    for name, part in zip(
        TABLES, (tables.trial, tables.find, tables.repair, tables.prove), strict=True
    ):
        _write_csv(part.table, out / name)
    _write_csv(work.tables.prove.truth.reset_index(), out / "truth.csv")
    for name, model in zip(MODELS, (work.model, work.repaired, work.chosen.model), strict=True):
        save(model, out / name)
    found, before, after, randomized = (
        _sourced(audit, out / model, out / table, command)
        for audit, model, table in (
            (work.found, MODELS[0], TABLES[1]),
            (work.before, MODELS[0], TABLES[3]),
            (work.after, MODELS[1], TABLES[3]),
            (work.randomized, MODELS[2], TABLES[3]),
        )
    )
    audits = {"": found, "-before": before, "-repaired": after, "-randomized": randomized}
    for ending, audit in audits.items():
        audit.to_json(out / f"audit{ending}.json")
        if ending != "-before":
            audit.to_html(out / f"report{ending}.html")
    compare(before, after).to_html(out / "comparison.html")
    return Written(
        out,
        (
            REPORT,
            "report-repaired.html",
            "report-randomized.html",
            "comparison.html",
            *(f"audit{ending}.json" for ending in audits),
            *(f"{name}/" for name in MODELS),
            *TABLES,
            "truth.csv",
        ),
        REPORT,
    )


def _write_csv(table: Any, path: Path) -> None:
    from evenhand._files import write_text

    write_text(path, table.to_csv(index=False, lineterminator="\n"))


def _sourced(found: Audit, model: Path, table: Path, command: str | None) -> Audit:
    """Add the model and the table of an audit to its provenance."""
    from evenhand.audits import with_sources

    return with_sources(found, command=command, model=model, data=table)
