"""Communities and Crime, the paper's first application: rerun as published and with all rows kept apart, and beyond."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand._words import percent
from evenhand.datasets import load_crime
from evenhand.experiments._crime_claims import LIKELIHOOD, PAIC, at_mass, claims, interval, kinds_of
from evenhand.experiments._crime_figures import plot_sharpness, plot_sizes
from evenhand.experiments._crime_split import MASS, MASSES, NETWORK, PROTOCOLS, Protocol, one_null, one_split
from evenhand.experiments.study import Exhibit, compute_parts, write_study

__all__ = ["run"]

ALPHAS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
LINK_ALPHAS = (0.05, 0.08, 0.1, 0.15, 0.2, 0.3)
MAX_STEPS = 2000

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
    data: str | None = None,
    jobs: int = 2,
    alphas: Sequence[float] = ALPHAS,
    link_alphas: Sequence[float] = LINK_ALPHAS,
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
    data : str, optional
        Path of communities.data.
    jobs : int, default 2
        Splits that are computed at the same time.
    alphas, link_alphas : sequence of float
        Of the paper's network, 0.1 and 1 among them, and of the link around an ensemble.
    max_steps : int
        Most steps of a training.
    """
    features = [str(name) for name in load_crime(data).X.columns]
    common: dict[str, Any] = {
        "alphas": list(alphas),
        "link_alphas": list(link_alphas),
        "data": data,
        "max_steps": max_steps,
    }
    tasks: list[dict[str, Any]] = [
        {"seed": seed + i, "protocol": protocol} | common for i in range(splits) for protocol in PROTOCOLS
    ]
    nulls: list[dict[str, Any]] = [{"alpha": alpha, "seed": seed} for alpha in (PAIC, LIKELIHOOD)]
    say(f"crime: {splits} splits under {len(PROTOCOLS)} protocols; what is done already is not done again ...")
    null = {part["alpha"]: part["errors"] for part in compute_parts(one_null, nulls, out / "parts", jobs=jobs)}
    parts = compute_parts(one_split, tasks, out / "parts", jobs=jobs, verbose=True)
    rows = pd.DataFrame(
        [
            {"protocol": task["protocol"], "seed": task["seed"]} | row
            for task, part in zip(tasks, parts, strict=True)
            for row in part["rows"]
        ]
    )
    rows["worst_error"] = [at_mass(errors) for errors in rows["worst_errors"]]
    found = pd.concat(
        [claims(rows[rows["protocol"] == p], features).assign(protocol=NAMES[p]) for p in PROTOCOLS], ignore_index=True
    )
    lead = _lead(found, splits)
    settings = common | {"splits": splits, "seeds": [seed + i for i in range(splits)], "masses": list(MASSES)}
    results = {
        "settings": {key: value for key, value in settings.items() if key != "data"},
        "claims": found.to_dict("records"),
        "rows": rows.to_dict("records"),
        "null": {str(alpha): errors for alpha, errors in null.items()},
    }
    write_study(out, "Communities and Crime", lead, list(_exhibits(rows, found, null)), results)
    shown = "\n".join(f"- {sentence}" for sentence in lead)
    return f"{shown}\n\nWritten to {out}: index.html, results.json, tables as csv, figures as SVG and PNG"


def _lead(found: pd.DataFrame, splits: int) -> list[str]:
    """What came out, in sentences."""
    sentences = [f"{splits} random splits; intervals are 95% t intervals over them, of shares of splits exact ones."]
    for name, own in found.groupby("protocol", sort=False):
        count = own["verdict"].value_counts()
        sentences.append(
            f"{str(name).capitalize()}: of {len(own)} claims {count.get('holds', 0)} hold, "
            f"{count.get('does not hold', 0)} do not, {count.get('undecided', 0)} cannot be decided."
        )
        failed = own[own["verdict"] == "does not hold"]
        sentences += [
            f"Does not hold {name}: {row.claim} ({row.measured}: {row.value:.3f}, {row.low:.3f} to {row.high:.3f})."
            for row in failed.itertuples()
        ]
    return sentences


def _exhibits(rows: pd.DataFrame, found: pd.DataFrame, null: dict[float, list[float]]) -> list[Exhibit]:
    exhibits = [
        Exhibit(
            "claims",
            "The paper's claims",
            "A claim holds if all of its interval lies on its side, and does not if all of it lies on the other.",
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
        f"{LEADS[protocol]} Each small dot is a split, each large one the mean of an alpha. Above: the oracle's worst "
        f"{percent(MASS)} of the test rows. Below: the worst of the halves of features and their intersections."
        + (
            " In blue a link around a deterministic ensemble, and dotted what it would cost if the ensemble were right."
            if protocol == "apart" and not recalibrated
            else ""
        ),
        draw=partial(plot_sharpness, rows, recalibrated=recalibrated),
        alt="Sharpness falls as the worst group's error falls, along the alphas",
    )


def _sizes(rows: pd.DataFrame, protocol: Protocol, null: dict[float, list[float]]) -> Exhibit:
    return Exhibit(
        f"group-size-{protocol}",
        f"Error of the worst group against its size, {NAMES[protocol]}",
        f"{LEADS[protocol]} Bands are one standard deviation over splits. Dashed: what the same search finds in "
        "calibrated forecasts. A deterministic forecaster that lies below its dashed line says too wide intervals to "
        "everybody, which shows at 100%; no calibrated one can.",
        draw=partial(plot_sizes, rows, null),
        alt="The worst group's error falls with its size; alpha 0.1 lies below alpha 1",
    )


def _groups(rows: pd.DataFrame, protocol: Protocol) -> Exhibit:
    network = rows[rows["forecaster"] == NETWORK]
    table = []
    for alpha in (PAIC, LIKELIHOOD):
        for recalibrated in (False, True):
            own = network[(network["alpha"] == alpha) & (network["recalibrated"] == recalibrated)]
            often = own["interpretable_group"].value_counts()
            table += [
                {
                    "alpha": alpha,
                    "recalibrated": "yes" if recalibrated else "no",
                    "least calibrated group": group,
                    "kinds": ", ".join(kinds_of(str(group))) or "other",
                    "splits": count,
                    "mean error": own.loc[own["interpretable_group"] == group, "interpretable_error"].mean(),
                    "beyond chance": int(
                        (own.loc[own["interpretable_group"] == group, "interpretable_p"] < 0.05).sum()
                    ),
                }
                for group, count in often.head(3).items()
            ]
    return Exhibit(
        f"groups-{protocol}",
        f"The least calibrated groups, {NAMES[protocol]}",
        f"{LEADS[protocol]} The group of the scan with the largest error, and in how many splits it was that; the last "
        "column counts the splits in which its error is beyond chance (Holm, 5%).",
        table=pd.DataFrame(table),
    )


def _proofs(rows: pd.DataFrame) -> Exhibit:
    """What is proven, what is found and what a learner finds, beside each other."""
    own = rows[(rows["protocol"] == "apart") & ~rows["recalibrated"]]
    table = []
    for (forecaster, alpha), part in own.groupby(["forecaster", "alpha"], sort=False):
        learned = part["learned_error"].mean() if "learned_error" in part else np.nan
        table.append(
            {
                "forecaster": forecaster,
                "alpha": alpha,
                "oracle's worst fifth": part["worst_error"].mean(),
                "certified for every fifth": part["certified_error"].mean(),
                "learned fifth": learned,
                "its lower bound": part["learned_low"].mean() if "learned_low" in part else np.nan,
                "worst of the scan": part["interpretable_error"].mean(),
            }
        )
    return Exhibit(
        "proofs",
        "What is proven and what is found",
        "Means over splits, rows kept apart. The certificate bounds the error of every group of a fifth of the people "
        "with 95% confidence; of deterministic forecasts (alpha 1) nothing below 0.25 can be proven.",
        table=pd.DataFrame(table),
    )


def _all(rows: pd.DataFrame) -> Exhibit:
    names = ["nll", "cell_log_score", "crps", "mean_std", "average_error", "worst_error", "interpretable_error"]
    table = []
    for (protocol, forecaster, recalibrated, alpha), part in rows.groupby(
        ["protocol", "forecaster", "recalibrated", "alpha"], sort=False
    ):
        row: dict[str, Any] = {"protocol": NAMES[str(protocol)], "forecaster": forecaster, "alpha": alpha}
        row["recalibrated"] = "yes" if recalibrated else "no"
        for name in names:
            mean, low, high = interval(part[name].to_numpy(dtype=np.float64))
            row |= {name: mean, f"{name}_low": low, f"{name}_high": high}
        table.append(row)
    return Exhibit(
        "scores",
        "All scores",
        "Means over splits with the ends of their 95% t intervals.",
        table=pd.DataFrame(table),
        shown=len(table),
    )
