"""Communities and Crime, the paper's first application, as published and with rows held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand._format import in_full
from evenhand._version import __version__
from evenhand.datasets import load_crime
from evenhand.studies.crime_claims import claims, kinds_of
from evenhand.studies.crime_figures import plot_sharpness, plot_sizes
from evenhand.studies.crime_split import MASSES, PROTOCOLS, Protocol, measure_split, simulate_null
from evenhand.studies.study import Exhibit, closing_message, compute_parts, rows_of, write_study
from evenhand.studies.sweep import (
    LIKELIHOOD,
    MASS,
    MAX_STEPS,
    NETWORK,
    PAIC,
    claims_text,
    counted,
    means_with_ends,
    yes_or_no,
)
from evenhand.studies.verdicts import spread_text, tally

NAMES: dict[str, str] = {"published": "as published", "apart": "rows kept apart"}
LEADS: dict[str, str] = {
    "published": "As published: the 500 rows of the figures also stopped the training.",
    "apart": "Training, validation and test rows kept apart.",
}


def run(
    out: Path,
    seed: int,
    say: Callable[[str], None],
    *,
    splits: int = 10,
    data: str | Path | None = None,
    jobs: int = 2,
    alphas: Sequence[float] = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0),
    link_alphas: Sequence[float] = (0.05, 0.08, 0.1, 0.15, 0.2, 0.3),
    max_steps: int = MAX_STEPS,
) -> str:
    """Run the study, or go on with it, and return what to show.

    Parameters
    ----------
    out : Path
        Folder of the study; parts that lie in it are not computed again.
    seed : int
        Of the first split; the others count on from it.
    say : callable
        Takes messages about progress.
    splits : int, default 10
        Random splits.
    data : str or Path, optional
        Of communities.data.
    jobs : int, default 2
        Splits that are computed at the same time.
    alphas, link_alphas : sequence of float
        Of the paper's network, 0.1 and 1 among them, and of the link around an ensemble.
    max_steps : int
        Most steps of a training.
    """
    # read first: a missing file ends the run before hours of training
    features = [str(name) for name in load_crime(data).X.columns]
    common: dict[str, Any] = {"alphas": list(alphas), "link_alphas": list(link_alphas)}
    common |= {"max_steps": max_steps, "version": __version__}
    seeds = [seed + i for i in range(splits)]
    tasks: list[dict[str, Any]] = [
        {"seed": s, "protocol": protocol} | common for s in seeds for protocol in PROTOCOLS
    ]
    nulls: list[dict[str, Any]] = [
        {"alpha": alpha, "seed": seed, "version": __version__} for alpha in (PAIC, LIKELIHOOD)
    ]
    say(
        f"crime: {counted(splits, 'split')} under {len(PROTOCOLS)} protocols; what is done already"
        " is not done again ..."
    )
    null = {
        part["alpha"]: dict(part)
        for part in compute_parts(simulate_null, nulls, out / "parts", jobs=jobs)
    }
    # the data are pinned by their checksum: where they lie is no part of a task
    work = partial(measure_split, data=None if data is None else str(data))
    parts = compute_parts(work, tasks, out / "parts", jobs=jobs, verbose=True)
    rows = pd.DataFrame(rows_of(tasks, parts, ("protocol", "seed")))
    # parts keep the whole curve over group sizes, claims look at one size
    rows["worst_error"] = [float(np.interp(MASS, MASSES, one)) for one in rows["worst_errors"]]
    found = pd.concat(
        [
            claims(rows[rows["protocol"] == p], features).assign(protocol=NAMES[p])
            for p in PROTOCOLS
        ],
        ignore_index=True,
    )
    lead = _lead(found, splits)
    results = {
        "study": "crime",
        "settings": common | {"splits": splits, "seeds": seeds, "masses": list(MASSES)},
        "claims": found.to_dict("records"),
        "rows": rows.to_dict("records"),
        "null": {str(alpha): part for alpha, part in null.items()},
    }
    write_study(out, "Communities and Crime", lead, list(_exhibits(rows, found, null)), results)
    return closing_message(out, lead)


def _lead(found: pd.DataFrame, splits: int) -> list[str]:
    """Sentences on the results."""
    sentences = [
        f"{counted(splits, 'random split')} of the same 1,994 communities; intervals are"
        " 95% t intervals over them, of shares of splits exact ones, and speak of other splits,"
        " not of other communities."
    ]
    for name, own in found.groupby("protocol", sort=False):
        sentences.append(f"{str(name).capitalize()}: {tally(own)}.")
        # one split decides nothing, so nothing has failed
        failed = own[own["verdict"] != "holds"] if splits > 1 else own.head(0)
        sentences += [
            f"{str(row.verdict).capitalize()}, {name}: {row.claim} ({row.measured}:"
            f" {spread_text(row)})."
            for row in failed.itertuples()
        ]
    return sentences


def _exhibits(
    rows: pd.DataFrame, found: pd.DataFrame, null: dict[float, dict[str, list[float]]]
) -> list[Exhibit]:
    exhibits = [
        Exhibit(
            "claims",
            "The paper's claims",
            claims_text(),
            table=found[["protocol", "claim", "measured", "value", "low", "high", "verdict"]],
        )
    ]
    for protocol in PROTOCOLS:
        own = rows[rows["protocol"] == protocol]
        exhibits += [_sharpness(own, protocol, recalibrated) for recalibrated in (False, True)]
        exhibits.append(_sizes(own, protocol, null))
        exhibits.append(_groups(own, protocol))
    return [*exhibits, _proofs(rows), _all(rows)]


def _sharpness(rows: pd.DataFrame, protocol: Protocol, recalibrated: bool) -> Exhibit:
    how = "recalibrated" if recalibrated else "as trained"
    return Exhibit(
        f"sharpness-{'recalibrated-' if recalibrated else ''}{protocol}",
        f"Sharpness against the worst group, {how}, {NAMES[protocol]}",
        f"{LEADS[protocol]} Each small dot is a split, each large one the mean of an alpha. Above:"
        f" the oracle's worst {in_full(MASS)} of the test rows. Below: the worst of the halves of"
        " features and their intersections."
        + (
            " In blue a link around a deterministic ensemble, and dotted what it would cost if the"
            " ensemble were right."
            if protocol == "apart" and not recalibrated
            else ""
        ),
        draw=partial(plot_sharpness, rows, recalibrated=recalibrated),
        alt=(
            "Eight panels: four measures of sharpness against the error of two kinds of worst"
            " group, along the alphas"
        ),
    )


def _sizes(
    rows: pd.DataFrame, protocol: Protocol, null: dict[float, dict[str, list[float]]]
) -> Exhibit:
    return Exhibit(
        f"group-size-{protocol}",
        f"Error of the worst group against its size, {NAMES[protocol]}",
        f"{LEADS[protocol]} Bands with a line are one standard deviation over splits. Bands without"
        " one: what the same search finds in calibrated forecasts, nine times in ten; those for"
        " alpha 0.1 have the entropic link of that alpha. A deterministic forecaster far below its"
        " band has too wide intervals for all, which shows at 100%.",
        draw=partial(plot_sizes, rows, null),
        alt=(
            "Two panels: the worst group's error against its size, at alpha 0.1 and 1, as trained"
            " and recalibrated"
        ),
    )


def _groups(rows: pd.DataFrame, protocol: Protocol) -> Exhibit:
    network = rows[rows["forecaster"] == NETWORK]
    table = []
    for alpha in (PAIC, LIKELIHOOD):
        for recalibrated in (False, True):
            own = network[(network["alpha"] == alpha) & (network["recalibrated"] == recalibrated)]
            worst = own.sort_values("interpretable_error", ascending=False).head(5)
            for row in worst.to_dict("records"):
                line: dict[str, Any] = {"alpha": alpha, "recalibrated": yes_or_no(recalibrated)}
                line |= {"least calibrated group": row["interpretable_group"], "split": row["seed"]}
                line |= {"kinds": ", ".join(kinds_of(row["interpretable_features"])) or "other"}
                line |= {"error": row["interpretable_error"]}
                line |= {"direction": row["interpretable_direction"]}
                table.append(line | {"p adjusted": row["interpretable_p"]})
    return Exhibit(
        f"groups-{protocol}",
        f"The least calibrated groups, {NAMES[protocol]}",
        f"{LEADS[protocol]} The group of the scan with the largest error in each split; shown are"
        " the splits where it is largest. Values are medians of the test rows; the p-value is"
        " Holm's, over all groups of the scan.",
        table=pd.DataFrame(table),
    )


def _proofs(rows: pd.DataFrame) -> Exhibit:
    """Errors that are certified, found by the oracle, learned and scanned, side by side."""
    # only rows that nothing was learned from prove something
    own = rows[(rows["protocol"] == "apart") & ~rows["recalibrated"]]
    table = []
    for (forecaster, alpha), part in own.groupby(["forecaster", "alpha"], sort=False):
        table.append(
            {
                "forecaster": forecaster,
                "alpha": alpha,
                "oracle's worst fifth": part["worst_error"].mean(),
                "certified for every fifth": part["certified_error"].mean(),
                "learned fifth": part["learned_error"].mean(),
                "its lower bound": part["learned_low"].mean(),
                "worst of the scan": part["interpretable_error"].mean(),
            }
        )
    return Exhibit(
        "proofs",
        "What is proven and what is found",
        "Means over splits, rows kept apart. The certificate bounds the error of every group of a"
        " fifth of the people with 95% confidence; of deterministic forecasts (alpha 1) nothing"
        " below 0.25 can be proven.",
        table=pd.DataFrame(table),
    )


def _all(rows: pd.DataFrame) -> Exhibit:
    names = [
        "nll",
        "cell_log_score",
        "crps",
        "mean_std",
        "average_error",
        "worst_error",
        "interpretable_error",
    ]
    table = []
    for (protocol, forecaster, recalibrated, alpha), part in rows.groupby(
        ["protocol", "forecaster", "recalibrated", "alpha"], sort=False
    ):
        row: dict[str, Any] = {
            "protocol": NAMES[str(protocol)],
            "forecaster": forecaster,
            "alpha": alpha,
        }
        row["recalibrated"] = yes_or_no(bool(recalibrated))
        table.append(row | means_with_ends(part, names))
    return Exhibit(
        "scores",
        "All scores",
        "Means over splits with the ends of their 95% t intervals.",
        table=pd.DataFrame(table),
        shown=len(table),
    )
