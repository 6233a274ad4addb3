"""Demonstration on generated doses: find the group, repair the model, prove the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.columns import EVERYONE
from evenhand.demo.doses_files import write_work
from evenhand.demo.doses_text import doses_text
from evenhand.demo.models import (
    FOUND_SIZES,
    GROUP_SIZE,
    N_PART,
    N_TRIAL,
    Part,
    Work,
    audited,
    judged,
    make_tables,
    randomized,
    train,
    worst_rule,
)
from evenhand.demo.result import (
    Change,
    Estimate,
    Finished,
    Found,
    Proven,
    Repaired,
    Served,
    Story,
    values_of,
)
from evenhand.demo.truth import variant_coverage

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.audits import Audit

LEVEL = 0.8


def run(
    out: Path,
    seed: int,
    inform: Callable[[str], None],
    *,
    command: str | None = None,
    width: int = 80,
) -> Finished:
    """Run the demonstration on generated doses, and write its files.

    Parameters
    ----------
    out : Path
        Folder for tables, models, audits and reports.
    seed : int
        Seed of the tables, the training and the draws.
    inform : callable
        Function that prints progress messages.
    command : str, optional
        The command line, for the reports.
    width : int, default 80
        Most characters of a printed line.
    """
    from evenhand.store import check_folder

    # checked before anything is computed
    check_folder(out)
    work = do_work(seed, inform)
    inform("writing reports ...")
    written = write_work(work, out, command)
    story = story_of(work)
    return Finished(doses_text(story, written, width), values_of(story, written))


def do_work(seed: int, inform: Callable[[str], None]) -> Work:
    """Train, find, repair and prove."""
    tables = make_tables(seed)
    inform(f"training on {N_TRIAL:,} participants of the trial ...")
    model = train(tables.trial, seed)
    inform(f"finding groups among {N_PART:,} patients of the clinics ...")
    found = audited(model, tables.find, "model", {}, seed, FOUND_SIZES)
    rule = worst_rule(found)
    inform(f"repairing the model with {N_PART:,} others ...")
    repaired = found.repair(model, tables.repair.X, tables.repair.y, random_state=seed)
    inform(f"proving on {N_PART:,} fresh patients ...")
    fresh = tables.prove
    group = {rule.name: rule.mask(fresh.X)}
    chosen = randomized(repaired, fresh, seed)
    # the same rows and the same seed, so that differences are due to the models
    before, after, drawn = (
        audited(subject, fresh, name, group, seed)
        for subject, name in (
            (model, "model"),
            (repaired, "repaired model"),
            (chosen.model, "randomized model"),
        )
    )
    proof = judged(chosen.audited(drawn))
    return Work(tables, model, repaired, rule, chosen, found, before, after, proof)


def story_of(work: Work) -> Story:
    """Return the numbers of the three steps."""
    truth = work.tables.prove.truth
    return Story(
        n_trial=N_TRIAL,
        n_clinics=3 * N_PART,
        variant_share=float(truth["variant"].mean()),
        found=_found(work),
        repaired=_repaired(work),
        proven=_proven(work),
    )


def _found(work: Work) -> Found:
    found, rule = work.found, work.rule
    learned = found.learned.rename(columns={"low": "error_low"})
    masses = {group.name: group.mass for group in found.off_groups or ()}
    mass = masses[rule.name]
    if mass is None:
        row = found.scan.loc[found.scan["group"] == rule.name].iloc[0]
    else:
        row = learned.loc[learned["mass"] == mass].iloc[0]
    return Found(
        n=found.n_samples,
        coverage=Estimate.of_coverage(found.groups.iloc[0]),
        group=rule.name,
        share=float(rule.mask(work.tables.find.X).mean()),
        error=float(row["error"]),
        error_low=float(row["error_low"]),
    )


def _repaired(work: Work) -> Repaired:
    after = work.after.groups.set_index("group")
    changes = tuple(
        Change(
            str(row["group"]),
            int(row["n"]),
            Estimate.of_coverage(row),
            Estimate.of_coverage(after.loc[row["group"]]),
        )
        for _, row in work.before.groups.iterrows()
        if row["group"] in {EVERYONE, work.rule.name}
    )
    return Repaired(
        n_repair=N_PART,
        n_fresh=N_PART,
        changes=changes,
        n_scanned=len(work.after.scan),
        n_off_before=int(work.before.scan["off"].sum()),
        n_off_after=int(work.after.scan["off"].sum()),
    )


def _proven(work: Work) -> Proven:
    chosen = work.chosen
    return Proven(
        n=chosen.n_certifying,
        group_size=GROUP_SIZE,
        group_error=chosen.group_error,
        alpha=chosen.alpha,
        price=chosen.price,
        wider=chosen.wider,
        served=_served(work),
    )


def _served(work: Work) -> tuple[Served, ...]:
    """Return the forecasters of step 3, the model of the trial first."""
    chosen, patients = work.chosen, work.tables.prove
    score, width = _column(chosen.comparison, "log_score"), _column(chosen.comparison, "width")
    floor, ceiling = chosen.certificate.coverage(LEVEL, GROUP_SIZE)
    randomized = Served(
        "randomized",
        LEVEL,
        floor,
        ceiling,
        width["randomized"],
        score["randomized"],
        variant_coverage(chosen.model, patients, LEVEL),
    )
    blind = "without features"
    return (
        _unproven("before", work.model, work.before, patients),
        _unproven("repaired", work.repaired, work.after, patients),
        *_wider(work, randomized.width),
        randomized,
        Served(blind, LEVEL, None, None, width[blind], score[blind], None),
    )


def _column(comparison: pd.DataFrame, name: str) -> dict[str, float]:
    """Return a column of a comparison of forecasters by their names."""
    return dict(zip(comparison["forecaster"], comparison[name].astype(float), strict=True))


def _wider(work: Work, width: float) -> list[Served]:
    """Return the wider interval without a draw with the floor of the randomized one, if any."""
    plain = work.chosen.plain
    if plain is None:
        return []
    level = plain.interval.level
    variant = variant_coverage(work.repaired, work.tables.prove, level)
    width *= 1 + plain.wider
    return [Served("wider", level, plain.interval.floor, None, width, None, variant)]


def _unproven(name: str, model: Any, audit: Audit, patients: Part) -> Served:
    """Return a forecaster without a draw, for whose 80% intervals nothing is proven."""
    from evenhand.audits import Measure

    width = audit.score(Measure("interval width", LEVEL))
    step = audit.rounding_step
    # that of rounding cells, as `Selection.comparison` has it
    score = audit.score("log score" if step is None else Measure("cell log score", step))
    return Served(name, LEVEL, None, None, width, score, variant_coverage(model, patients, LEVEL))
