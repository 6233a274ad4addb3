"""The crime study: its parts, its claims and what it leaves behind."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from evenhand.calibration import calibration_error
from reproduction import crime
from reproduction.crime import MASSES, Split, crime_claims, errors_as_published, kinds_of
from reproduction.study import NETWORK, interval, learn_map

QUICK: dict[str, Any] = {
    "splits": 1,
    "jobs": 1,
    "alphas": (0.1, 1.0),
    "link_alphas": (0.1,),
    "max_steps": 40,
}


def run_small(out: Path) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crime, "N_DRAWS", 16)
        patch.setattr(crime, "NULL_SIMULATIONS", 5)
        draw = Figure.savefig

        def save(figure: Figure, file: Path) -> None:
            """Draw each kind of figure once, as figures take half of the time."""
            if file.stem in ("sharpness-apart", "group-size-apart"):
                draw(figure, file)
            else:
                file.touch()

        patch.setattr(Figure, "savefig", save)
        return crime.run(out, **QUICK)


@pytest.mark.usefixtures("crime_data")
def test_a_run_leaves_its_files_and_a_stopped_one_goes_on_where_it_was(
    finished: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    out, results = finished("crime", run_small)
    # two protocols of two alphas, each twice, and one link
    assert len(results["rows"]) == 9
    assert {row["protocol"] for row in results["rows"]} == {"published", "apart"}
    assert len(list(out.glob("*.svg"))) == 6
    assert {"claims.csv", "proofs.csv", "scores.csv", "groups-apart.csv"} <= {
        path.name for path in out.iterdir()
    }
    assert (out / "index.html").read_text().count("<img") == 6
    again = shutil.copytree(out, tmp_path / "crime")
    monkeypatch.setattr(crime, "NULL_SIMULATIONS", 5)
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *args: None)
    monkeypatch.setattr("reproduction.study._store_rows", None)  # nothing is computed again
    text = crime.run(again, **QUICK)
    assert text.splitlines()[1].startswith("- As published: of 20 claims")
    with pytest.raises(TypeError):
        crime.run(again, **QUICK | {"max_steps": 41})


def test_published_groups_are_scored_on_one_draw() -> None:
    random = np.random.default_rng(0)
    pit = random.uniform(size=(500, 64))
    errors = errors_as_published(pit, pit[:, 0])
    order = np.argsort(pit.mean(axis=1))
    low, high = order[:100], order[-100:]
    expected = max(calibration_error(pit[low, 0]), calibration_error(pit[high, 0]))
    assert errors[MASSES.index(0.2)] == pytest.approx(expected, abs=1e-12)
    assert errors[-1] == pytest.approx(calibration_error(pit[:, 0]), abs=1e-12)


@pytest.mark.usefixtures("crime_data")
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
        found = crime_claims(planted(10, better), features).set_index("claim")["verdict"]
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
    found = crime_claims(planted(10, 0.1), ["a"]).set_index("measured")["value"]
    # shifts have a standard deviation of 0.001: means of 10 differences lie within 0.0045 x 5 /
    # sqrt(10)
    assert found["worst fifth: error at alpha 1 minus that at 0.1"].iloc[0] == pytest.approx(
        0.1, abs=0.003
    )


def test_one_split_decides_nothing() -> None:
    assert set(crime_claims(planted(1, 0.1), ["a"])["verdict"]) == {"undecided"}


def test_intervals_are_those_of_student() -> None:
    mean, low, high = interval(np.array([1.0, 2.0, 3.0]))
    # t(2) at 0.975 is 4.30265; standard error 1 / sqrt(3)
    assert (mean, low, high) == pytest.approx(
        (2.0, 2 - 4.30265 / 3**0.5, 2 + 4.30265 / 3**0.5), abs=1e-4
    )


def test_intervals_of_shares_are_exact() -> None:
    # ten of ten: the lower end is 0.025 ** (1 / 10)
    assert interval(np.ones(10, dtype=bool)) == pytest.approx((1.0, 0.025**0.1, 1.0))


def test_a_map_of_pits_at_both_ends_begins_at_0_and_ends_at_1() -> None:
    levels, values = learn_map(np.repeat([0.0, 0.3, 1.0], 100))
    assert (levels[0], levels[-1], values[0], values[-1]) == (0, 1, 0, 1)
    assert (np.diff(levels) > 0).all()


def test_kinds_of_groups() -> None:
    assert kinds_of(("racepctblack", "PctImmigRecent")) == ["immigration", "race"]
    assert kinds_of(("medIncome",)) == []
