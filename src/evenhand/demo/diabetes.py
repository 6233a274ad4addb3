"""Demonstration on a small real table: 442 patients with diabetes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.demo.diabetes_text import diabetes_text
from evenhand.demo.result import Estimate, Finished, SmallStory, Written, values_of

if TYPE_CHECKING:
    from evenhand.audits import Audit
    from evenhand.datasets import Dataset
    from evenhand.selection import Selection

TARGETS = (0.3, 0.35, 0.4, 0.45)
"""Group errors in the order of trial; the last is met on all splits that were tried."""

GROUP_SIZE = 0.2
CERTIFY_SHARE = 0.4


def run_diabetes(
    out: Path, seed: int, inform: Callable[[str], None], command: str | None, width: int
) -> Finished:
    """Run the demonstration on the small real table, and write its files.

    The parameters are those of `run_doses`.
    """
    from evenhand._validate import DiscreteOutcomeWarning
    from evenhand.datasets import load_diabetes

    data = load_diabetes()
    with warnings.catch_warnings():
        # outcomes of this table are integers; with so few rows a few of them are frequent
        warnings.simplefilter("ignore", DiscreteOutcomeWarning)
        inform(f"training and proving on {len(data.X)} patients ...")
        chosen = _chosen(data, seed, inform)
        inform("writing reports ...")
        audits = _audits(chosen, data, seed)
    written = _write(chosen, audits, data, out, command)
    story = _story(chosen, audits[0])
    return Finished(diabetes_text(story, written, width), values_of("diabetes", story, written))


def _chosen(data: Dataset, seed: int, inform: Callable[[str], None]) -> Selection:
    """Train, and choose the least randomization for the first target that can be certified."""
    from sklearn.linear_model import BayesianRidge

    from evenhand._validate import InputError
    from evenhand.selection import randomize

    *stricter, last = TARGETS
    for target in (*stricter, last):
        try:
            return randomize(
                BayesianRidge(),
                data.X,
                data.y,
                max_group_error=target,
                group_mass=GROUP_SIZE,
                certify_share=CERTIFY_SHARE,
                random_state=seed,
            )
        except InputError as refusal:
            if target == last:
                raise
            inform(f"{refusal}. Trying a larger group error ...")
    raise AssertionError("the last target returns or raises")


def _audits(chosen: Selection, data: Dataset, seed: int) -> tuple[Audit, Audit]:
    """Audit the model without and with the draw on the held-out rows."""
    from evenhand.audits import audit
    from evenhand.tables import take_rows

    X, y = (take_rows(values, chosen.certifying) for values in (data.X, data.y))
    # the same rows and the same seed, so that differences are due to the models
    deterministic, randomized = (
        audit(model, X, y, groups=data.groups, random_state=seed, name=name)
        for model, name in (
            (chosen.model.estimator_, "deterministic model"),
            (chosen.model, "randomized model"),
        )
    )
    return deterministic, chosen.audited(randomized)


def _write(
    chosen: Selection, audits: tuple[Audit, Audit], data: Dataset, out: Path, command: str | None
) -> Written:
    """Write the model, the audits, the reports and the comparison."""
    from evenhand.audits import compare, with_sources
    from evenhand.store import save

    out.mkdir(parents=True, exist_ok=True)
    save(chosen.model, out / "model")
    compare(*audits).to_html(out / "comparison.html")
    for found, ending in zip(audits, ("", "-randomized"), strict=True):
        sourced = with_sources(
            found,
            command=command,
            model=out / "model",
            data_name=f"{data.name}, bundled with scikit-learn",
            rows=chosen.certifying,
            n_rows=len(data.X),
        )
        sourced.to_json(out / f"audit{ending}.json")
        sourced.to_html(out / f"report{ending}.html")
    files = ("report.html", "report-randomized.html", "comparison.html")
    return Written(out, (*files, "audit.json", "audit-randomized.json", "model/"), "report.html")


def _story(chosen: Selection, deterministic: Audit) -> SmallStory:
    """Return the numbers that are printed."""
    scores = chosen.comparison.set_index("forecaster")["log_score"]
    floor, ceiling = chosen.certificate.coverage(0.8, GROUP_SIZE)
    everyone = deterministic.groups.iloc[0]
    return SmallStory(
        n_training=chosen.n_learning,
        n_certifying=chosen.n_certifying,
        coverage=Estimate.of_coverage(everyone),
        n_groups=len(deterministic.groups) - 1,
        n_off=int(deterministic.groups["off"][1:].sum()),
        group_size=GROUP_SIZE,
        group_error=chosen.group_error,
        floor=floor,
        ceiling=ceiling,
        alpha=chosen.alpha,
        price=chosen.price,
        wider=chosen.wider,
        log_score={str(name): float(value) for name, value in scores.items()},
    )
