"""Demonstration on the diabetes data: train, certify, audit, compare and save a model."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.audits import Audit
    from evenhand.datasets import Dataset
    from evenhand.selection import Selection

__all__ = ["Finished", "run"]

TARGETS = (0.3, 0.35, 0.4, 0.45)
"""Targets for the group error in the order of trial; the first is met on nearly all splits. The
model is trained once, for the last."""

GROUP_MASS = 0.2
CERTIFY_SHARE = 0.4

WIDTH = 110
"""Width of the printed paragraphs."""

EXPLANATION = (
    "An error of 0 points is perfect calibration, 50 points is the worst possible. The"
    " deterministic model is sharper, but there may be groups of patients for which its predicted"
    " probabilities are far off, and no held-out data could rule that out. For the randomized"
    " model, a certificate bounds the error of every group of at least a fifth of the patients, and"
    " the coverage of its prediction intervals from both sides, jointly with 95% confidence; the"
    " price is less sharp forecasts. A larger allowed error lowers the price. A lower bound of"
    " coverage alone needs no draw: wider intervals of the deterministic model have one, too.",
    "Alpha was chosen on these same patients. The bounds for every group account for that; the"
    " bounds for named groups, the 95% confidence intervals and the p-values do not.",
)


@dataclass(frozen=True)
class Finished:
    """Result of the demo: the text to print, and plain values for JSON."""

    text: str
    values: dict[str, Any]


def run(
    out: Path, seed: int, inform: Callable[[str], None], command: str | None = None
) -> Finished:
    """Run the demo and return its result.

    Parameters
    ----------
    out : Path
        Folder for the model and the audits.
    seed : int
        Seed of the split, the training and the draws.
    inform : callable
        Function that prints progress messages.
    command : str, optional
        The command line, for the reports.
    """
    import warnings

    from evenhand._files import write_text
    from evenhand._validate import DiscreteOutcomeWarning
    from evenhand.audits import compare
    from evenhand.datasets import load_diabetes
    from evenhand.store import check_folder, save

    # checked before minutes of training
    check_folder(out)
    data = load_diabetes()
    with warnings.catch_warnings():
        # outcomes of this table are integers; with so few rows a few of them are frequent
        warnings.simplefilter("ignore", DiscreteOutcomeWarning)
        chosen = _certified(data.X, data.y, seed, inform)
        out.mkdir(parents=True, exist_ok=True)
        save(chosen.model, out / "model")
        inform("auditing ...")
        deterministic, randomized = _audits(chosen, data, out / "model", seed, command)
    deterministic.to_json(out / "audit-deterministic.json")
    replace(deterministic, name="the diabetes model").to_html(out / "report-deterministic.html")
    randomized.to_json(out / "audit-randomized.json")
    replace(randomized, name="the diabetes model with a draw").to_html(out / "report.html")
    comparison = compare(deterministic, randomized)
    write_text(out / "comparison.csv", comparison.table.to_csv(index=False))
    folder = f"{out}{'/' if not str(out).endswith('/') else ''}"
    text = "\n\n".join(
        (
            "Progression of diabetes after one year, for"
            f" {chosen.n_certifying} patients held out from training",
            _guarantee(chosen),
            comparison.summary(),
            *(textwrap.fill(paragraph, WIDTH) for paragraph in EXPLANATION),
            f"Written to {folder}: model/, audit-deterministic.json, audit-randomized.json,"
            " comparison.csv,\nreport-deterministic.html, report.html",
            f"Open {out / 'report.html'}",
        )
    )
    values = {
        "schema": "evenhand.demo/1",
        "out": str(out),
        "n_certifying": chosen.n_certifying,
        "alpha": chosen.alpha,
        "group_error": chosen.group_error,
        "comparison": comparison.to_dict(),
    }
    return Finished(text, values)


def _audits(
    chosen: Selection, data: Dataset, model: Path, seed: int, command: str | None
) -> tuple[Audit, Audit]:
    """Audit the deterministic and the randomized model on the held-out rows."""
    from evenhand.audits import audit, with_sources
    from evenhand.tables import take_rows

    # alpha was chosen on these rows. The certificate accounts for that, because its band is
    # simultaneous over all alphas; bounds that the audit computes from draws do not
    held = chosen.certifying
    X = take_rows(data.X, held)
    y = take_rows(data.y, held)
    # same rows and same seed, so that differences are due to the models
    deterministic, randomized = (
        audit(subject, X, y, groups=data.groups, random_state=seed, name=name)
        for subject, name in (
            (chosen.model.estimator_, "deterministic"),
            (chosen.model, "randomized"),
        )
    )
    randomized = chosen.audited(randomized)
    table = f"{data.name}, bundled with scikit-learn"
    first, second = (
        with_sources(
            found, command=command, model=model, data_name=table, rows=held, n_rows=len(data.X)
        )
        for found in (deterministic, randomized)
    )
    return first, second


def _certified(
    X: pd.DataFrame, y: pd.Series, seed: int, inform: Callable[[str], None]
) -> Selection:
    """Train once, and choose the least randomization for the first target that can be met."""
    from evenhand._validate import InputError

    n_certifying = math.ceil(CERTIFY_SHARE * len(X))
    inform(
        f"diabetes: training on {len(X) - n_certifying} rows; {n_certifying} rows are held out for"
        " the certificate and the audit ..."
    )
    # the weakest target is fitted first; stricter targets reuse its model
    trained = _trained(X, y, seed)
    for target, following in pairwise(TARGETS):
        try:
            return _chosen(trained, X, y, target, seed)
        except InputError as refusal:
            inform(f"{refusal}. Trying a group error of {following:g} ...")
    return trained


def _trained(X: pd.DataFrame, y: pd.Series, seed: int) -> Selection:
    from evenhand.forecasters import MixtureMLPRegressor
    from evenhand.selection import randomize

    return randomize(
        MixtureMLPRegressor(random_state=seed, verbose=True),
        X,
        y,
        max_group_error=TARGETS[-1],
        group_mass=GROUP_MASS,
        alternative=False,
        certify_share=CERTIFY_SHARE,
        random_state=seed,
    )


def _chosen(
    trained: Selection, X: pd.DataFrame, y: pd.Series, target: float, seed: int
) -> Selection:
    """Choose the randomization for a stricter target, on the same rows, without training."""
    from sklearn.frozen import FrozenEstimator

    from evenhand._validate import InputError
    from evenhand.certificates import LinkCertificate
    from evenhand.selection import randomize
    from evenhand.tables import take_rows

    assert isinstance(trained.certificate, LinkCertificate)
    held = trained.certifying
    try:
        again = randomize(
            FrozenEstimator(trained.model.estimator_),
            take_rows(X, held),
            take_rows(y, held),
            max_group_error=target,
            group_mass=GROUP_MASS,
            random_state=seed,
        )
    except InputError:
        # the message of this certificate mentions the certifying share
        trained.certificate.least_randomized(target, GROUP_MASS, certify_share=CERTIFY_SHARE)
        raise
    model = trained.model.set_params(alpha=again.alpha)
    return replace(again, model=model, n_learning=trained.n_learning, certifying=held)


def _guarantee(chosen: Selection) -> str:
    """Return guarantee, alpha and price as sentences, without the table of forecasters."""
    return "\n".join(textwrap.fill(sentence, WIDTH) for sentence in chosen.sentences)
