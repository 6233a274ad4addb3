"""Give Me Some Credit, the paper's second application: where randomization pays for a bank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand._format import at_most
from evenhand._version import __version__
from evenhand.studies.credit_banks import measure_cell, measure_rollout
from evenhand.studies.credit_claims import advantages, choose_cells, claims, judge_chosen
from evenhand.studies.credit_exhibits import exhibits
from evenhand.studies.credit_people import (
    N_CUSTOMERS,
    N_TRAIN,
    N_VALIDATION,
    SHARE_UNQUALIFIED,
    fingerprint_people,
)
from evenhand.studies.study import closing_message, compute_parts, rows_of, write_study
from evenhand.studies.sweep import LIKELIHOOD, MAX_STEPS, NETWORK, PAIC, Row, counted
from evenhand.studies.verdicts import Claim, judge, spread_text, tally

FRESH = 10_000
"""Distance of the seeds that confirm from those that search."""

PLACE = ("wrong", "selected")
CLOSED = 0.1
"""Utility per person, everybody applying, under which a bank is as good as closed: the others
earn 0.4 to 0.7."""


def run(
    out: Path,
    seed: int,
    say: Callable[[str], None],
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
    """Run the study, or go on with it, and return what to show.

    Parameters
    ----------
    out : Path
        Folder of the study; parts that lie in it are not computed again.
    seed : int
        Of the first roll-out; the others count on from it.
    say : callable
        Takes messages about progress.
    splits : int, default 8
        Roll-outs of the paper's figures.
    data : str or Path, optional
        Of the credit table.
    jobs : int, default 2
        Roll-outs that are computed at the same time.
    alphas : sequence of float
        Of the paper's network in the figures, 0.1 and 1 among them.
    wrong, selected : sequence of float
        The map's factors: by how many standard deviations labels of the young are too high, and the
        share of people, the least worthy, without labels.
    map_alphas, link_alphas : sequence of float
        Of the network and of the link around boosted trees on the map.
    map_rollouts, confirm_rollouts : int
        Roll-outs of each cell of the map, and fresh ones of the settled cells.
    max_steps : int
        Most steps of a training.
    """
    table = None if data is None else str(data)
    # the table is not pinned by a checksum as that of crime is: parts say which people they are
    # about
    common: Row = {"max_steps": max_steps, "people": fingerprint_people(table)}
    common |= {"version": __version__}

    compute = partial(_compute_rows, data=table, folder=out / "parts", jobs=jobs)
    say(
        f"credit: {counted(splits, 'roll-out')} of the game; what is done already is not done"
        " again ..."
    )
    tasks = [{"seed": seed + i, "alphas": list(alphas)} | common for i in range(splits)]
    games = compute(measure_rollout, tasks)

    say(
        f"credit: a map of {len(wrong)} by {len(selected)} banks, {map_rollouts} roll-outs each ..."
    )
    strengths: Row = {"alphas": list(map_alphas), "link_alphas": list(link_alphas)} | common
    places: list[Row] = [{"wrong": w, "selected": s} for w in wrong for s in selected]
    rollouts: list[Row] = [{"seed": seed + i} for i in range(map_rollouts)]
    tasks = [rollout | place | strengths for place in places for rollout in rollouts]
    cells = compute(measure_cell, tasks)
    found = advantages(cells)
    chosen = choose_cells(found)

    # fresh roll-outs: the largest of many noisy gains is too large on those that it was chosen on
    say(f"credit: the settled cells on {confirm_rollouts} fresh roll-outs ...")
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
    """Judge the claims, write the folder of the study and return what to show."""
    listed = claims(measured["rows"])
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
    """Compute the tasks, or read their parts, as one table of all rows."""
    parts = compute_parts(partial(work, data=data), tasks, folder, jobs=jobs, verbose=True)
    keep = [name for name in ("seed", *PLACE) if all(name in task for task in tasks)]
    return pd.DataFrame(rows_of(tasks, parts, keep))


def _fresh_task(seed: int, bank: str, place: dict[str, Any]) -> Row:
    """Task that confirms a chosen cell: one kind of bank at one alpha."""
    task: Row = {"seed": seed} | {name: place[name] for name in PLACE}
    own, other = ("alphas", "link_alphas") if bank == NETWORK else ("link_alphas", "alphas")
    return task | {own: [place["alpha"]], other: []}


def _lead(tables: dict[str, pd.DataFrame], listed: list[Claim], splits: int) -> list[str]:
    """Sentences on the results."""
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
            f"{counted(splits, 'roll-out')}: in each a bank learns from"
            f" {N_TRAIN + N_VALIDATION:,} people and meets {N_CUSTOMERS:,} others. Intervals are"
            " 95% t intervals over roll-outs, each claim by itself; all roll-outs draw from one"
            " table, and a person may come in several."
        ),
        f"{tally(verdicts).capitalize()}.",
    ]
    for row in (*headlines.itertuples(), *tables["confirmed"].itertuples()):
        sentences.append(f"{row.claim}: {row.verdict} ({row.measured}: {spread_text(row)}).")
    if closed[False]:
        sentences.append(
            f"As trained, the network of alpha {LIKELIHOOD:g} says yes to hardly anybody in"
            f" {closed[False]} of {splits} roll-outs (it earns under {CLOSED:g} even if everybody"
            f" applies), which makes its intervals wide; recalibrated in {closed[True]}."
        )
    sentences += [
        (
            "A deterministic bank earns the same in all from customers who know it as from"
            " everybody: whom it refuses stays away, whom it approves applies, qualified or not. A"
            " link around its forecasts earns at most what the best cut on them would. So a link"
            " earns more only where the bank's own cut is wrong: where those nearest to it, whom"
            " the link shuts out, are unqualified more often than the bank says."
        ),
        (
            f"The certificate of the network at alpha {PAIC:g}, as trained: off by at most"
            f" {at_most(certified)} points in every fifth, on average over roll-outs; of"
            " deterministic banks nothing below 25 can be proven."
        ),
    ]
    return sentences
