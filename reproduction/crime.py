"""Study of Communities and Crime, the paper's first application."""

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
from reproduction.crime_claims import crime_claims_of, kinds_of
from reproduction.crime_figures import plot_sharpness, plot_sizes
from reproduction.crime_split import MASSES, PROTOCOLS, Protocol, measure_split, simulate_null
from reproduction.study import Exhibit, closing_message, compute_parts, rows_of, write_study
from reproduction.sweep import (
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
from reproduction.verdicts import spread_text, tally

NAMES: dict[str, str] = {"published": "as published", "apart": "held-out test rows"}
LEADS: dict[str, str] = {
    "published": "As published: the 500 test rows were also used for early stopping.",
    "apart": "Training, validation and test rows are disjoint.",
}


def run(
    out: Path,
    seed: int,
    inform: Callable[[str], None],
    *,
    splits: int = 10,
    data: str | Path | None = None,
    jobs: int = 2,
    alphas: Sequence[float] = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0),
    link_alphas: Sequence[float] = (0.05, 0.08, 0.1, 0.15, 0.2, 0.3),
    max_steps: int = MAX_STEPS,
) -> str:
    """Run or resume the study, and return the text to print.

    Parameters
    ----------
    out : Path
        Folder of the study; results stored in it are not computed again.
    seed : int
        Seed of the first split; the others have consecutive seeds.
    inform : callable
        Function that prints progress messages.
    splits : int, default 10
        Number of random splits.
    data : str or Path, optional
        Path of communities.data.
    jobs : int, default 2
        Number of splits computed in parallel.
    alphas, link_alphas : sequence of float
        Values of alpha of the paper's network, including 0.1 and 1, and of the link around an
        ensemble.
    max_steps : int
        Largest number of training steps.
    """
    # read first, so that a missing file is found before hours of training
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
    inform(
        f"crime: {counted(splits, 'split')} under {len(PROTOCOLS)} protocols; stored results are"
        " reused ..."
    )
    null = {
        part["alpha"]: dict(part)
        for part in compute_parts(simulate_null, nulls, out / "parts", jobs=jobs)
    }
    # the checksum of the data is fixed, so their path is not part of a task
    work = partial(measure_split, data=None if data is None else str(data))
    parts = compute_parts(work, tasks, out / "parts", jobs=jobs, verbose=True)
    rows = pd.DataFrame(rows_of(tasks, parts, ("protocol", "seed")))
    # parts store the curve over group sizes; claims use one size
    rows["worst_error"] = [float(np.interp(MASS, MASSES, one)) for one in rows["worst_errors"]]
    found = pd.concat(
        [
            crime_claims_of(rows[rows["protocol"] == p], features).assign(protocol=NAMES[p])
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
    """Return sentences on the results."""
    sentences = [
        f"{counted(splits, 'random split')} of the same 1,994 communities. 95% intervals over"
        " splits (t intervals for means, Clopper-Pearson intervals for shares of splits) account"
        " for other splits, not for other communities."
    ]
    for name, own in found.groupby("protocol", sort=False):
        sentences.append(f"{str(name).capitalize()}: {tally(own)}.")
        # with one split all claims are undecided, so none is listed
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
        f"{LEADS[protocol]} Small dots are splits, large dots are means by alpha. Top: the oracle"
        f" worst group of {in_full(MASS)} of the test rows. Bottom: the worst group among halves of"
        " features and their intersections."
        + (
            " Blue: a link around a deterministic ensemble. Dotted: its score if the ensemble were"
            " the true distribution."
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
        f"{LEADS[protocol]} Bands with a line: mean and one standard deviation over splits. Hatched"
        " bands: 90% of the errors that the same search finds in calibrated forecasts, for alpha"
        " 0.1 with the entropic link of that alpha. A deterministic forecaster far below its"
        " hatched band has intervals that are too wide overall, as the error at 100% shows.",
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
        f"{LEADS[protocol]} The scanned group with the largest error in each split, for the splits"
        " with the largest errors. Cut values are medians of the test rows; p-values are adjusted"
        " by Holm's method over all scanned groups.",
        table=pd.DataFrame(table),
    )


def _proofs(rows: pd.DataFrame) -> Exhibit:
    """Return a table of certified, oracle, learned and scanned errors."""
    # certificates need rows that were not used for training
    own = rows[(rows["protocol"] == "apart") & ~rows["recalibrated"]]
    table = []
    for (forecaster, alpha), part in own.groupby(["forecaster", "alpha"], sort=False):
        table.append(
            {
                "forecaster": forecaster,
                "alpha": alpha,
                "oracle worst fifth": part["worst_error"].mean(),
                "certified for every fifth": part["certified_error"].mean(),
                "learned fifth": part["learned_error"].mean(),
                "its lower bound": part["learned_low"].mean(),
                "worst scanned group": part["interpretable_error"].mean(),
            }
        )
    return Exhibit(
        "proofs",
        "Certified and estimated group errors",
        "Means over splits with held-out test rows. The certificate bounds the error of every group"
        " of a fifth of the people with 95% confidence; for deterministic forecasts (alpha 1) with"
        " uniform PITs no bound below 0.40 can be certified.",
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
