"""Demonstration on generated doses: find the group, repair the model, prove the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from evenhand.columns import EVERYONE
from evenhand.demo.doses_files import write_work
from evenhand.demo.doses_text import doses_text
from evenhand.demo.models import (
    GROUP_SIZE,
    N_PART,
    N_TRIAL,
    Work,
    audited,
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

LEVEL = 0.8


def run_doses(
    out: Path, seed: int, inform: Callable[[str], None], command: str | None, width: int
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
    command : str or None
        The command line, for the reports.
    width : int
        Most characters of a printed line.
    """
    work = do_work(seed, inform)
    inform("writing reports ...")
    written = write_work(work, out, command)
    story = story_of(work)
    return Finished(doses_text(story, written, width), values_of("doses", story, written))


def do_work(seed: int, inform: Callable[[str], None]) -> Work:
    """Train, find, repair and prove."""
    tables = make_tables(seed)
    inform(f"training on {N_TRIAL:,} participants of the trial ...")
    model = train(tables.trial, seed)
    inform(f"finding groups among {N_PART:,} patients of the clinics ...")
    found = audited(model, tables.find, "model", {}, seed)
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
    return Work(tables, model, repaired, rule, chosen, found, before, after, chosen.audited(drawn))


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
    return Repaired(N_PART, N_PART, changes)


def _proven(work: Work) -> Proven:
    chosen = work.chosen
    return Proven(
        n=chosen.n_certifying,
        group_size=GROUP_SIZE,
        group_error=chosen.group_error,
        alpha=chosen.alpha,
        price=chosen.price,
        wider=chosen.wider,
        served=tuple(_served(work)),
    )


def _served(work: Work) -> list[Served]:
    """Return the forecasters of step 3, the model of the trial first."""
    chosen, patients = work.chosen, work.tables.prove
    scores = chosen.comparison.set_index("forecaster")
    floor, ceiling = chosen.certificate.coverage(LEVEL, GROUP_SIZE)
    served = [
        _unproven(work, "before"),
        _unproven(work, "repaired"),
        Served(
            "randomized",
            LEVEL,
            floor,
            ceiling,
            float(scores.loc["randomized", "width"]),
            float(scores.loc["randomized", "log_score"]),
            variant_coverage(chosen.model, patients, LEVEL),
        ),
    ]
    if chosen.plain is not None:
        interval = chosen.plain.interval
        width = (1 + chosen.plain.wider) * served[-1].width
        variant = variant_coverage(work.repaired, patients, interval.level)
        served.insert(
            2, Served("wider", interval.level, interval.floor, None, width, None, variant)
        )
    blind = scores.loc["without features"]
    return [
        *served,
        Served(
            "without features",
            LEVEL,
            None,
            None,
            float(blind["width"]),
            float(blind["log_score"]),
            None,
        ),
    ]


def _unproven(work: Work, name: str) -> Served:
    """Return a forecaster without a draw, for whose 80% intervals nothing is proven."""
    model, audit = (work.model, work.before) if name == "before" else (work.repaired, work.after)
    scores = audit.scores.set_index("measure")["value"]
    return Served(
        name,
        LEVEL,
        None,
        None,
        float(scores["80% interval width"]),
        float(scores["log score"]),
        variant_coverage(model, work.tables.prove, LEVEL),
    )
