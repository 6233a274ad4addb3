"""Study of Give Me Some Credit, the paper's second application: when randomization pays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand._format import at_most
from evenhand._version import __version__
from reproduction.credit_banks import measure_cell, measure_rollout
from reproduction.credit_claims import advantages, choose_cells, credit_claims_of, judge_chosen
from reproduction.credit_exhibits import exhibits
from reproduction.credit_people import (
    N_CUSTOMERS,
    N_TRAIN,
    N_VALIDATION,
    SHARE_UNQUALIFIED,
    fingerprint_people,
)
from reproduction.study import closing_message, compute_parts, rows_of, write_study
from reproduction.sweep import LIKELIHOOD, MAX_STEPS, NETWORK, PAIC, Row, counted
from reproduction.verdicts import Claim, judge, spread_text, tally

FRESH = 10_000
"""Offset of the confirmation seeds from the seeds of the search."""

PLACE = ("wrong", "selected")
CLOSED = 0.1
"""Utility per person, if everybody applies, below which a bank counts as closed; other banks earn
0.4 to 0.7."""


def run(
    out: Path,
    seed: int,
    inform: Callable[[str], None],
    *,
    splits: int = 8,
    data: str | Path | None = None,
    jobs: int = 2,
    alphas: Sequence[float] = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0),
    wrong: Sequence[float] = (0.0, 0.5, 1.0, 2.0),
    selected: Sequence[float] = (0.0, 0.1, 0.2, 0.3),
    map_alphas: Sequence[float] = (0.1, 0.4),
    link_alphas: Sequence[float] = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0),
    map_rollouts: int = 5,
    confirm_rollouts: int = 20,
    max_steps: int = MAX_STEPS,
) -> str:
    """Run or resume the study, and return the text to print.

    Parameters
    ----------
    out : Path
        Folder of the study; results stored in it are not computed again.
    seed : int
        Seed of the first roll-out; the others have consecutive seeds.
    inform : callable
        Function that prints progress messages.
    splits : int, default 8
        Number of roll-outs of the paper's figures.
    data : str or Path, optional
        Path of the credit table.
    jobs : int, default 2
        Number of roll-outs computed in parallel.
    alphas : sequence of float
        Values of alpha of the paper's network in the figures, including 0.1 and 1.
    wrong, selected : sequence of float
        Factors of the map: the error of young people's labels in standard deviations, and the share
        of the least creditworthy people without labels.
    map_alphas, link_alphas : sequence of float
        Values of alpha, on the map, of the network and of the link around boosted trees.
    map_rollouts, confirm_rollouts : int
        Number of roll-outs of each cell of the map, and of new roll-outs of the chosen cells.
    max_steps : int
        Largest number of training steps.
    """
    table = None if data is None else str(data)
    # unlike crime, the table has no fixed checksum: tasks contain a fingerprint of its people
    common: Row = {"max_steps": max_steps, "people": fingerprint_people(table)}
    common |= {"version": __version__}

    compute = partial(_compute_rows, data=table, folder=out / "parts", jobs=jobs)
    inform(
        f"credit: {counted(splits, 'roll-out')} of the lending game; stored results are reused ..."
    )
    tasks = [{"seed": seed + i, "alphas": list(alphas)} | common for i in range(splits)]
    games = compute(measure_rollout, tasks)

    inform(
        f"credit: a map of {len(wrong)} x {len(selected)} banks, {map_rollouts} roll-outs each ..."
    )
    strengths: Row = {"alphas": list(map_alphas), "link_alphas": list(link_alphas)} | common
    places: list[Row] = [{"wrong": w, "selected": s} for w in wrong for s in selected]
    rollouts: list[Row] = [{"seed": seed + i} for i in range(map_rollouts)]
    tasks = [rollout | place | strengths for place in places for rollout in rollouts]
    cells = compute(measure_cell, tasks)
    found = advantages(cells)
    chosen = choose_cells(found)

    # new roll-outs, because the largest of many noisy gains is biased upwards
    inform(f"credit: the chosen cells on {confirm_rollouts} new roll-outs ...")
    seeds = range(seed + FRESH, seed + FRESH + confirm_rollouts)
    tasks = [_fresh_task(s, bank, place) | common for bank, place in chosen.items() for s in seeds]
    fresh = compute(measure_cell, tasks)

    settings = common | {
        "alphas": list(alphas),
        "wrong": list(wrong),
        "selected": list(selected),
        "settled": chosen,
        "seeds": {
            "game": list(range(seed, seed + splits)),
            "map": list(range(seed, seed + map_rollouts)),
            "confirm": list(seeds),
        },
    }
    tables = {"rows": games, "map": cells, "fresh": fresh}
    return _write_results(out, settings, tables, found, splits)


def _write_results(
    out: Path, settings: Row, measured: dict[str, pd.DataFrame], found: pd.DataFrame, splits: int
) -> str:
    """Decide the claims, write the folder of the study and return the text to print."""
    listed = credit_claims_of(measured["rows"])
    verdicts = {"claims": judge(listed), "confirmed": judge_chosen(measured["fresh"])}
    tables = verdicts | measured
    lead = _lead(tables, listed, splits)
    results: dict[str, Any] = {"study": "credit", "settings": settings}
    results |= {name: rows.to_dict("records") for name, rows in tables.items()}
    shown = exhibits(tables, found, settings["settled"])
    write_study(out, "Give Me Some Credit", lead, shown, results)
    return closing_message(out, lead)


def _compute_rows(
    work: Callable[..., Row], tasks: list[Row], *, data: str | None, folder: Path, jobs: int
) -> pd.DataFrame:
    """Compute the tasks, or read their stored results, and return one table of all rows."""
    parts = compute_parts(partial(work, data=data), tasks, folder, jobs=jobs, verbose=True)
    keep = [name for name in ("seed", *PLACE) if all(name in task for task in tasks)]
    return pd.DataFrame(rows_of(tasks, parts, keep))


def _fresh_task(seed: int, bank: str, place: dict[str, Any]) -> Row:
    """Return the task that confirms a chosen cell: one kind of bank at one alpha."""
    task: Row = {"seed": seed} | {name: place[name] for name in PLACE}
    own, other = ("alphas", "link_alphas") if bank == NETWORK else ("link_alphas", "alphas")
    return task | {own: [place["alpha"]], other: []}


def _lead(tables: dict[str, pd.DataFrame], listed: list[Claim], splits: int) -> list[str]:
    """Return sentences on the results."""
    verdicts = tables["claims"]
    headlines = verdicts[[claim.is_headline for claim in listed]]
    games = tables["rows"]
    drawn = games[games["share_unqualified"] == SHARE_UNQUALIFIED]
    trained = drawn[~drawn["recalibrated"]]
    certified = trained[trained["alpha"] == PAIC]["certified_error"].mean()
    plain = drawn[drawn["alpha"] == LIKELIHOOD]
    closed = (plain["utility_random"] < CLOSED).groupby(plain["recalibrated"]).sum()
    sentences = [
        (
            f"{counted(splits, 'roll-out')}: in each, a bank is trained on"
            f" {N_TRAIN + N_VALIDATION:,} people and then has {N_CUSTOMERS:,} other customers."
            " Intervals are 95% t intervals over roll-outs, separately for each claim. All"
            " roll-outs sample from the same table, so a person may occur in several."
        ),
        f"{tally(verdicts).capitalize()}.",
    ]
    for row in (*headlines.itertuples(), *tables["confirmed"].itertuples()):
        sentences.append(f"{row.claim}: {row.verdict} ({row.measured}: {spread_text(row)}).")
    if closed[False]:
        sentences.append(
            f"As trained, the network with alpha {LIKELIHOOD:g} approves hardly anybody in"
            f" {closed[False]} of {splits} roll-outs (it earns less than {CLOSED:g} per person even"
            f" if everybody applies), which makes its intervals wide; after recalibration in"
            f" {closed[True]}."
        )
    sentences += [
        (
            "A deterministic bank has the same total earnings whether its customers know it or"
            " everybody applies: people whom it refuses stay away, and people whom it approves"
            " apply, qualified or not. A link around its forecasts earns at most as much as the"
            " best deterministic cut on these forecasts. A link therefore earns more only if the"
            " bank's own cut is wrong: if people near the cut, who no longer apply under the link,"
            " are unqualified more often than the bank predicts."
        ),
        (
            f"The certificate of the network with alpha {PAIC:g}, as trained, averaged over"
            f" roll-outs: predicted probabilities are off by at most {at_most(certified)} points in"
            " every fifth of the people. For deterministic banks no bound below 25 points can be"
            " certified."
        ),
    ]
    return sentences
