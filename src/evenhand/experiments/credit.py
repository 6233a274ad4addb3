"""Give Me Some Credit, the paper's second application: a bank and its customers, and where randomization pays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand import __version__
from evenhand.experiments._credit_claims import LIKELIHOOD, PAIC, advantages, claims, confirmed, settled
from evenhand.experiments._credit_exhibits import exhibits, spread_text
from evenhand.experiments._credit_world import (
    LINKED,
    N_CUSTOMERS,
    N_TRAIN,
    N_VALIDATION,
    NETWORK,
    one_cell,
    one_rollout,
)
from evenhand.experiments.study import compute_parts, write_study

__all__ = ["run"]

ALPHAS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
MAP_ALPHAS = (0.1, 0.4, 1.0)
LINK_ALPHAS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
WRONG = (0.0, 0.5, 1.0, 2.0)
SELECTED = (0.0, 0.1, 0.2, 0.3)
MAP_ROLLOUTS = 5
CONFIRM_ROLLOUTS = 20
FRESH = 10_000
"""Distance of the seeds that confirm from those that search."""

MAX_STEPS = 1100


def run(
    out: Path,
    seed: int,
    say: Callable[[str], None],
    *,
    splits: int = 8,
    data: str | Path | None = None,
    jobs: int = 2,
    alphas: Sequence[float] = ALPHAS,
    wrong: Sequence[float] = WRONG,
    selected: Sequence[float] = SELECTED,
    map_alphas: Sequence[float] = MAP_ALPHAS,
    link_alphas: Sequence[float] = LINK_ALPHAS,
    map_rollouts: int = MAP_ROLLOUTS,
    confirm_rollouts: int = CONFIRM_ROLLOUTS,
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
        The map's factors: by how many standard deviations labels of the young are too high, and the share of people,
        the least worthy, without labels.
    map_alphas, link_alphas : sequence of float
        Of the network and of the link around boosted trees on the map, 0.1 and 1 among them.
    map_rollouts, confirm_rollouts : int
        Roll-outs of each cell of the map, and fresh ones of the settled cells.
    max_steps : int
        Most steps of a training.
    """
    table = None if data is None else str(data)
    parts = partial(compute_parts, folder=out / "parts", jobs=jobs, verbose=True)
    common: dict[str, Any] = {"max_steps": max_steps, "version": __version__}
    of = f"{splits} roll-out{'s' * (splits > 1)}"
    say(f"credit: {of} of the game; what is done already is not done again ...")
    tasks: list[dict[str, Any]] = [{"seed": seed + i, "alphas": list(alphas)} | common for i in range(splits)]
    games = _rows(tasks, parts(partial(one_rollout, data=table), tasks), ("seed",))

    say(f"credit: a map of {len(wrong)} by {len(selected)} banks, {map_rollouts} roll-outs each ...")
    strengths: dict[str, Any] = {"alphas": list(map_alphas), "link_alphas": list(link_alphas)} | common
    tasks = [
        {"seed": seed + i, "wrong": w, "selected": s} | strengths
        for w in wrong
        for s in selected
        for i in range(map_rollouts)
    ]
    work = partial(one_cell, data=table)
    cells = _rows(tasks, parts(work, tasks), ("seed", "wrong", "selected"))
    found = advantages(cells)
    places = settled(found)

    say(f"credit: the settled cells on {confirm_rollouts} fresh roll-outs ...")
    tasks = [
        {"seed": seed + FRESH + i, "wrong": place["wrong"], "selected": place["selected"]}
        | {"alphas": [place["alpha"], LIKELIHOOD] if bank == NETWORK else []}
        | {"link_alphas": [place["alpha"], LIKELIHOOD] if bank == LINKED else []}
        | common
        for bank, place in places.items()
        for i in range(confirm_rollouts)
    ]
    fresh = _rows(tasks, parts(work, tasks), ("seed", "wrong", "selected"))

    verdicts, proofs = claims(games), confirmed(fresh)
    lead = _lead(verdicts, proofs, games, splits)
    settings = common | {"alphas": list(alphas), "wrong": list(wrong), "selected": list(selected), "settled": places}
    seeds = {"game": [seed + i for i in range(splits)], "map": [seed + i for i in range(map_rollouts)]}
    seeds["confirm"] = [seed + FRESH + i for i in range(confirm_rollouts)]
    results = {
        "study": "credit",
        "settings": settings | {"seeds": seeds},
        "claims": verdicts.to_dict("records"),
        "confirmed": proofs.to_dict("records"),
        "rows": games.to_dict("records"),
        "map": cells.to_dict("records"),
        "fresh": fresh.to_dict("records"),
    }
    write_study(out, "Give Me Some Credit", lead, exhibits(games, cells, fresh, verdicts, proofs, found), results)
    shown = "\n".join(f"- {sentence}" for sentence in lead)
    return f"{shown}\n\nWritten to {out}: index.html, results.json, tables as csv, figures as SVG and PNG"


def _rows(tasks: list[dict[str, Any]], parts: Any, keep: tuple[str, ...]) -> pd.DataFrame:
    """Rows of all parts, with what their tasks say of them."""
    return pd.DataFrame(
        [
            {name: task[name] for name in keep} | row
            for task, part in zip(tasks, parts, strict=True)
            for row in part["rows"]
        ]
    )


def _lead(verdicts: pd.DataFrame, proofs: pd.DataFrame, games: pd.DataFrame, splits: int) -> list[str]:
    """What came out, in sentences."""
    count = verdicts["verdict"].value_counts()
    certified = games[(games["alpha"] == PAIC) & ~games["recalibrated"]]["certified_error"].mean()
    sentences = [
        f"{splits} roll-out{'s' * (splits > 1)}: in each a bank learns from {N_TRAIN + N_VALIDATION:,} people and "
        f"meets {N_CUSTOMERS:,} others. Intervals are 95% t intervals over roll-outs, all from one table "
        "of people.",
        f"Of {len(verdicts)} claims {count.get('holds', 0)} hold, {count.get('does not hold', 0)} do not, "
        f"{count.get('undecided', 0)} cannot be decided.",
    ]
    for row in verdicts[verdicts["claim"].str.startswith("With rational")].itertuples():
        sentences.append(f"{row.claim}: {row.verdict} ({row.measured}: {spread_text(row)}).")
    sentences += [f"{row.claim}: {row.verdict} ({row.measured}: {spread_text(row)})." for row in proofs.itertuples()]
    sentences.append(
        "A deterministic bank earns the same in all from customers who know it as from everybody: whom it refuses "
        "stays away, whom it approves applies, qualified or not. A link around its forecasts earns at most what the "
        "best cut on them would. So randomization earns more only where the bank's own cut is wrong: where too many "
        "of those it says yes to are unqualified."
    )
    sentences.append(
        f"The certificate of the network at alpha {PAIC:g}: off by at most {100 * certified:.1f} points in every "
        "fifth, on average over roll-outs; of deterministic banks nothing below 25 can be proven."
    )
    return sentences
