"""The crime study: its parts, its claims and what it leaves behind."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand import InputError
from evenhand.calibration import calibration_error
from evenhand.datasets import load_crime
from reproduction import (
    MASSES,
    NETWORK,
    Split,
    crime,
    crime_claims_of,
    errors_as_published,
    interval,
    kinds_of,
    study,
)
from shared_work import made_once, made_small

try:
    load_crime()
except InputError:
    pytest.skip(
        "needs communities.data in the folder named by EVENHAND_DATA", allow_module_level=True
    )

QUICK: dict[str, Any] = {
    "splits": 1,
    "jobs": 1,
    "alphas": (0.1, 1.0),
    "link_alphas": (0.1,),
    "max_steps": 40,
}


@pytest.fixture(scope="module")
def finished(shared_folder: Path) -> tuple[Path, str]:
    run = made_small(
        lambda out: crime.run(out, 0, lambda message: None, **QUICK),
        crime_split__N_DRAWS=16,
        crime_split__NULL_SIMULATIONS=5,
    )
    return made_once(shared_folder / "crime", run)


def test_a_run_writes_results_tables_figures_and_a_page(finished: tuple[Path, str]) -> None:
    out, shown = finished
    assert str(out) in shown
    results = json.loads((out / "results.json").read_text())
    assert results["settings"]["seeds"] == [0]
    # two protocols of two alphas, each twice, and one link
    assert len(results["rows"]) == 9
    assert {row["protocol"] for row in results["rows"]} == {"published", "apart"}
    names = {path.name for path in out.iterdir()}
    for protocol in ("published", "apart"):
        for figure in (
            f"sharpness-{protocol}",
            f"sharpness-recalibrated-{protocol}",
            f"group-size-{protocol}",
        ):
            assert {f"{figure}.svg", f"{figure}.png"} <= names
        assert f"groups-{protocol}.csv" in names
    assert {"claims.csv", "proofs.csv", "scores.csv", "index.html"} <= names
    page = (out / "index.html").read_text()
    assert page.count("<svg") == 6
    assert "http" not in page.split("</style>")[1].replace("http://www.w3.org", "")


@pytest.mark.usefixtures("blank_figures")
def test_a_stopped_run_goes_on_where_it_was(
    finished: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = shutil.copytree(finished[0], tmp_path / "crime")
    monkeypatch.setattr(study, "_compute", None)  # nothing is computed again
    # where the data lie is no setting; what is computed is
    shown = crime.run(out, 0, lambda message: None, data=load_crime_path(), **QUICK)
    assert shown.replace(str(out), "") == finished[1].replace(str(finished[0]), "")
    with pytest.raises(TypeError):
        crime.run(out, 0, lambda message: None, **QUICK | {"max_steps": 41})
    parts = sorted((out / "parts").glob("*.json"))
    parts[0].write_text(parts[0].read_text()[:50])  # cut short: this one is computed again
    with pytest.raises(TypeError):
        crime.run(out, 0, lambda message: None, **QUICK)


def load_crime_path() -> Path | None:
    folder = os.environ.get("EVENHAND_DATA")
    return None if folder is None else Path(folder) / "communities.data"


def test_a_folder_of_another_study_is_refused(finished: tuple[Path, str], tmp_path: Path) -> None:
    study.check_folder(finished[0], "crime")
    study.check_folder(tmp_path / "new", "toy")
    with pytest.raises(InputError, match="study crime, not toy; name a new folder"):
        study.check_folder(finished[0], "toy")


def test_published_groups_are_scored_on_one_draw() -> None:
    random = np.random.default_rng(0)
    pit = random.uniform(size=(500, 64))
    errors = errors_as_published(pit, pit[:, 0])
    order = np.argsort(pit.mean(axis=1))
    low, high = order[:100], order[-100:]
    expected = max(calibration_error(pit[low, 0]), calibration_error(pit[high, 0]))
    assert errors[MASSES.index(0.2)] == pytest.approx(expected, abs=1e-12)
    assert errors[-1] == pytest.approx(calibration_error(pit[:, 0]), abs=1e-12)


@pytest.mark.parametrize("protocol", ["published", "apart"])
def test_rows_of_a_split(protocol: Any) -> None:
    split = Split(3, protocol, None)
    n = len(split.y)
    assert len(split.test) == 500
    assert not set(split.test) & set(split.learn)
    if protocol == "published":
        # the rows of the figures stop the training: what the paper's code does, and nobody should
        assert np.array_equal(split.stop, split.test)
        assert len(split.learn) == n - 500
    else:
        assert not set(split.stop) & (set(split.test) | set(split.learn))
        assert len(split.learn) + len(split.stop) + 500 == n


def planted(n_splits: int, better: float) -> pd.DataFrame:
    """Rows of a study in which alpha 0.1 has worst-group errors lower by `better` at every size."""
    random = np.random.default_rng(0)
    rows = []
    for seed in range(n_splits):
        for alpha in (0.1, 0.4, 1.0):
            for recalibrated in (False, True):
                shift = better * (1 - alpha) / 0.9 + 0.001 * random.normal()
                rows.append(
                    {
                        "seed": seed,
                        "forecaster": NETWORK,
                        "alpha": alpha,
                        "recalibrated": recalibrated,
                        "worst_error": 0.34 - shift,
                        "worst_errors": [0.4 - 0.3 * mass - shift for mass in MASSES],
                        "interpretable_error": 0.2 - shift,
                        "nll": -alpha + 0.001 * random.normal(),
                        "cell_log_score": -alpha + 0.001 * random.normal(),
                        "mean_std": 0.3 - 0.1 * alpha + 0.001 * random.normal(),
                        "average_error": 0.03 - 0.02 * recalibrated + 0.0001 * random.normal(),
                        "interpretable_features": ["racepctblack", "PctImmigRecent"],
                    }
                )
    return pd.DataFrame(rows)


def test_claims_that_are_true_hold_and_their_opposites_do_not() -> None:
    for better, verdict in ((0.1, "holds"), (-0.1, "does not hold")):
        features = ["medIncome"] * 9 + ["racepctblack"]
        found = crime_claims_of(planted(10, better), features).set_index("claim")["verdict"]
        about_groups = found[
            found.index.str.contains("adversarial groups better|interpretable|every group size")
        ]
        assert len(about_groups) == 6
        assert set(about_groups) == {verdict}
        rest = found.drop(about_groups.index).drop(
            [name for name in found.index if "almost always" in name]
        )
        assert set(rest) == {"holds"}


def test_the_gap_of_planted_errors_is_measured() -> None:
    found = crime_claims_of(planted(10, 0.1), ["a"]).set_index("measured")["value"]
    # shifts have a standard deviation of 0.001: means of 10 differences lie within 0.0045 x 5 /
    # sqrt(10)
    assert found["worst fifth: error at alpha 1 minus that at 0.1"].iloc[0] == pytest.approx(
        0.1, abs=0.003
    )


def test_one_split_decides_nothing() -> None:
    assert set(crime_claims_of(planted(1, 0.1), ["a"])["verdict"]) == {"undecided"}


def test_intervals_are_those_of_student() -> None:
    mean, low, high = interval(np.array([1.0, 2.0, 3.0]))
    # t(2) at 0.975 is 4.30265; standard error 1 / sqrt(3)
    assert (mean, low, high) == pytest.approx(
        (2.0, 2 - 4.30265 / 3**0.5, 2 + 4.30265 / 3**0.5), abs=1e-4
    )


def test_intervals_of_shares_are_exact() -> None:
    # ten of ten: the lower end is 0.025 ** (1 / 10)
    assert interval(np.ones(10, dtype=bool)) == pytest.approx((1.0, 0.025**0.1, 1.0))


def test_kinds_of_groups() -> None:
    assert kinds_of(("racepctblack", "PctImmigRecent")) == ["immigration", "race"]
    assert kinds_of(("medIncome",)) == []
