"""Comparisons of two audits: paired intervals, row records, refusals, files and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from complaints import refused
from evenhand import Forecast, InputError, audit, compare
from evenhand.audits import Audit, Comparison, comparison, row_record
from evenhand.calibration import Cells
from repeats import most_failures, repeats, statistical

N = 600
EDGES = np.arange(1, 40) / 40
QUICK: dict[str, Any] = {"n_simulations": 2, "learned_masses": (), "masses": (1.0,)}


@cache
def people() -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(3)
    X = pd.DataFrame({"age": random.uniform(20, 80, N), "sex": random.choice(["f", "m"], N)})
    shift = np.where(X["sex"] == "f", 1.2, 0.0)
    return X, shift + random.normal(size=N)


@cache
def audited(kind: str) -> Audit:
    """Audit forecasts that are wrong for women, right, or randomized."""
    X, y = people()
    mean = np.where(X["sex"] == "f", 1.2, 0.0) if kind == "repaired" else np.zeros(N)
    forecast = Forecast.from_normal(mean, np.ones(N))
    if kind == "randomized":
        forecast = forecast.randomized(0.2, r=np.random.default_rng(0).random((N, 16)))
    return audit(forecast, X, y, groups=["sex"], random_state=0, name=kind, **QUICK)


def by_group(found: Comparison) -> pd.DataFrame:
    return found.groups.set_index("group")


def test_a_repair_makes_a_group_better_and_nothing_else() -> None:
    found = compare(audited("wrong"), audited("repaired"))
    groups = by_group(found)
    assert groups.loc["sex = f", "outcome"] == "better"
    assert groups.loc["sex = f", "important"]
    assert groups.loc["sex = f", "error_change_high"] < 0
    # forecasts of men are the same in both
    assert groups.loc["sex = m", "outcome"] == "not significant"
    assert groups.loc["sex = m", "error_change"] == 0
    assert not found.is_worse
    back = compare(audited("repaired"), audited("wrong"))
    assert by_group(back).loc["sex = f", "outcome"] == "worse"
    assert back.is_worse
    assert by_group(back).loc["sex = f", "error_change_low"] == pytest.approx(
        -groups.loc["sex = f", "error_change_high"]
    )


def test_changes_are_those_of_the_tables_of_both_audits() -> None:
    found = compare(audited("wrong"), audited("randomized"))
    rows = by_group(found)
    for when, kind in (("before", "wrong"), ("after", "randomized")):
        table = audited(kind).groups.set_index("group")
        for measure in ("error", "coverage_80", "coverage_90", "bias"):
            for group in ("everyone", "sex = f", "sex = m"):
                assert rows.loc[group, f"{measure}_{when}"] == table.loc[group, measure]
    for row in found.scores.itertuples():
        assert row.before == pytest.approx(audited("wrong").score(row.measure), rel=1e-6)
        assert row.after == pytest.approx(audited("randomized").score(row.measure), rel=1e-6)
        assert row.low < row.change < row.high


def test_scores_have_the_interval_of_a_paired_mean() -> None:
    first, second = np.random.default_rng(0).normal(size=(2, 50))
    found = comparison.paired_mean(first, second, np.ones(50), 0.95)
    change = second - first
    half = stats.norm.ppf(0.975) * change.std() / np.sqrt(50)
    assert (found.low, found.high) == pytest.approx((change.mean() - half, change.mean() + half))


def test_the_interval_of_a_bias_is_that_of_a_paired_t_test() -> None:
    first, second = np.random.default_rng(0).normal(size=(2, 80, 1))
    ones = np.ones(80)
    sides = comparison.Profile(first, None, ones), comparison.Profile(second, None, ones)
    mask = np.arange(80) < 60
    (found,) = comparison.paired_changes(*sides, [mask], 4, 0.95)
    change = (second - first)[mask, 0]
    # Bonferroni over 4; the variance divides by n, as in all tables of an audit
    half = stats.t.ppf(1 - 0.05 / 8, 59) * change.std() / np.sqrt(60)
    assert (found.low, found.high) == pytest.approx((change.mean() - half, change.mean() + half))


@pytest.mark.parametrize("n", [49, 50])
def test_changes_have_intervals_from_50_rows_on(n: int) -> None:
    # 1 / sum (1 / n)^2 may be a rounding error below n
    first, second = np.random.default_rng(1).normal(size=(2, n, 1))
    sides = [comparison.Profile(values, None, np.ones(n)) for values in (first, second)]
    (found,) = comparison.paired_changes(*sides, [np.ones(n, dtype=bool)], 1, 0.95)
    assert np.isfinite([found.low, found.high]).all() == (n >= 50)


# --- coverage of the intervals

SCENARIOS = {
    "calibrated before and after": ((0.0, 1.0), (0.0, 1.0)),
    "repaired mean": ((0.4, 1.0), (0.0, 1.0)),
    "spread made wrong": ((0.0, 1.0), (0.0, 1.4)),
    "both wrong alike": ((0.2, 1.0), (0.2, 1.0)),
}
SETS = 400
GROUPS, ROWS = 12, 150


def cdf(kind: tuple[float, float], level: np.ndarray) -> np.ndarray:
    """Distribution function of PITs whose normal score is `shift + scale * z`."""
    return np.asarray(stats.norm.cdf((stats.norm.ppf(level) - kind[0]) / kind[1]))


@statistical
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_paired_intervals_contain_all_true_changes_jointly(
    scenario: str, correlation: float
) -> None:
    """In 5% of tables at most any interval of a measure misses; false alarm 1e-6 by `repeats`."""
    first, second = SCENARIOS[scenario]
    random = np.random.default_rng(list(SCENARIOS).index(scenario))
    masks = [np.arange(GROUPS * ROWS) % GROUPS == g for g in range(GROUPS)]
    error = [np.abs(cdf(kind, EDGES) - EDGES).mean() for kind in (first, second)]
    covered = [np.diff(cdf(kind, np.array([0.1, 0.9])))[0] for kind in (first, second)]
    truth = error[1] - error[0], covered[1] - covered[0]
    n_sets = repeats(SETS)
    missed = np.zeros(2, dtype=int)
    for _ in range(n_sets):
        z, other = random.normal(size=(2, GROUPS * ROWS))
        other = correlation * z + np.sqrt(1 - correlation**2) * other
        pits = [
            stats.norm.cdf(kind[0] + kind[1] * score)
            for kind, score in ((first, z), (second, other))
        ]
        ones = np.ones(GROUPS * ROWS)
        errors = [
            comparison.Profile((pit[:, None] <= EDGES).astype(float), EDGES, ones) for pit in pits
        ]
        shares = [
            comparison.Profile(
                (np.abs(pit - 0.5) <= 0.4).astype(float)[:, None], None, ones, is_share=True
            )
            for pit in pits
        ]
        for i, sides in enumerate((errors, shares)):
            found = comparison.paired_changes(sides[0], sides[1], masks, GROUPS, 0.95)
            missed[i] += any(not one.low <= truth[i] <= one.high for one in found)
    assert missed.max() <= most_failures(n_sets)


def test_intervals_are_longer_on_the_side_where_a_distance_near_0_is_overestimated() -> None:
    """The mean absolute distance of a mean that is 0 is above 0, so the change may be larger."""
    random = np.random.default_rng(0)
    far, near = (
        comparison.Profile(mean + random.normal(size=(400, 1)), np.zeros(1), np.ones(400))
        for mean in (0.5, 0.0)
    )
    for first, second, sign in ((far, near, 1), (near, far, -1)):
        (found,) = comparison.paired_changes(first, second, [np.ones(400) == 1], 1, 0.95)
        below, above = found.value - found.low, found.high - found.value
        # the mean of |Z| / sqrt(400)
        assert below - above == pytest.approx(sign * np.sqrt(2 / np.pi) / 20, rel=0.1)


# --- records of rows


def record(n: int = 90, draws: int = 5, *, ties: bool = False) -> row_record.RowRecord:
    random = np.random.default_rng(1)
    y = random.integers(0, 9, n).astype(float) if ties else random.normal(size=n)
    found = row_record.RowRecord.of(
        Cells(random.random((n, draws)), weights=random.integers(1, 4, n)),
        y,
        random.normal(size=n),
        {},
        {"a": random.random(n) < 0.3, "b": random.random(n) < 0.5},
    )
    assert found is not None
    return found


def same(one: row_record.RowRecord, other: row_record.RowRecord) -> bool:
    return json.dumps(one.to_state()) == json.dumps(other.to_state())


def test_groups_of_a_record_are_those_that_were_given() -> None:
    random = np.random.default_rng(2)
    first = random.random(50) < 0.3
    masks = {"a": first, "not a": ~first, "everyone else": random.random(50) < 0.9}
    found = row_record.RowRecord.of(
        Cells(random.random((50, 1))), np.arange(50.0), np.zeros(50), {}, masks
    )
    assert found is not None
    for name, mask in masks.items():
        np.testing.assert_array_equal(found.masks[name], mask)


def test_cells_count_pits_at_or_below_each_edge() -> None:
    pit = np.random.default_rng(0).random((50, 7))
    found = row_record.RowRecord.of(Cells(pit), np.arange(50.0), np.zeros(50), {}, {})
    assert found is not None
    expected = (pit[:, :, None] <= EDGES).mean(axis=1)
    np.testing.assert_allclose(found.below, expected, atol=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_rows_in_another_order_are_matched(ties: bool) -> None:
    known = record(ties=ties)
    order = np.random.default_rng(2).permutation(known.n_samples)
    matched = known.take(order).aligned(known)
    np.testing.assert_array_equal(matched.fingerprint, known.fingerprint)
    for name in known.masks:
        np.testing.assert_array_equal(matched.masks[name], known.masks[name])
    if not ties:
        assert same(matched, known)


def test_outcomes_cannot_be_found_by_trying_values() -> None:
    # with a plain hash, each of nine possible outcomes would be found by hashing it
    known, other = record(ties=True), record(n=80, ties=True)
    assert not set(known.fingerprint) & set(other.fingerprint)
    assert known.key != other.key
    assert len(set(known.fingerprint.tolist())) == 9


def test_records_are_small_and_bounded() -> None:
    state = json.dumps(audited("wrong").to_dict()["rows"])
    assert len(state) / N < 45
    n = row_record.MOST_ROWS + 1
    pits = Cells(np.full((n, 1), 0.5))
    assert row_record.RowRecord.of(pits, np.arange(float(n)), np.zeros(n), {}, {}) is None


# --- what cannot be compared


def files(folder: Path, first: Audit, second: Audit, **options: Any) -> tuple[Path, Path]:
    paths = folder / "old.json", folder / "new.json"
    for path, found in zip(paths, (first, second), strict=True):
        found.to_json(path, **options)
    return paths


def test_files_are_compared_as_audits_are(tmp_path: Path) -> None:
    first, second = audited("wrong"), audited("repaired")
    found = compare(*files(tmp_path, first, second))
    assert found.to_dict() == compare(first, second).to_dict()


def test_audits_of_one_name_are_named_by_their_files(tmp_path: Path) -> None:
    again = replace(audited("repaired"), name="wrong")
    paths = files(tmp_path, audited("wrong"), again)
    assert compare(*paths).names == ("old", "new")
    # an audit of this process has no file
    found = compare(paths[0], again)
    assert found.names == ("wrong (first)", "wrong (second)")
    assert {"wrong (first)", "wrong (second)"} < set(found.table.columns)
    assert "Comparison of wrong (first) and wrong (second)" in found.summary()


def test_without_rows_estimates_alone_are_compared(tmp_path: Path) -> None:
    paths = files(tmp_path, audited("wrong"), audited("repaired"), rows=False)
    found = compare(*paths)
    assert not found.is_paired
    assert set(found.groups["outcome"]) == {"unknown"}
    assert found.groups["error_change_low"].isna().all()
    assert found.scores.empty
    assert found.notes[0].startswith("old.json: no values of single rows are recorded")
    assert "only estimates are compared" in found.summary()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "must be the JSON of an audit"),
        ('{"schema": "evenhand.plan/1"}', "evenhand.plan/1"),
        ('{"schema": "evenhand.audit/9"}', "evenhand.audit/9"),
        ("[" * 100_000, "must be the JSON of an audit"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    refused(message, compare, audited("wrong"), path)


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    old, new = files(tmp_path, audited("wrong"), audited("repaired"))
    values = json.loads(new.read_text())
    for damage in (
        {"pit": "no base64"},
        {"n": 5},
        {"membership": ""},
        {"scores": 3},
        {"weight": "eJwDAAAAAAE="},
    ):
        new.write_text(json.dumps(values | {"rows": values["rows"] | damage}))
        refused("record of an audit is damaged", compare, old, new)


# --- output


def test_tables_are_written_with_all_digits_and_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    found = audited("wrong")
    for _ in range(2):
        paths = found.to_csv(folder)
    assert {path.name for path in paths} | {"tables.json"} == {p.name for p in folder.iterdir()}
    groups = pd.read_csv(folder / "groups.csv", float_precision="round_trip")
    numbers = ["error", "bias", "coverage_80_low"]
    np.testing.assert_array_equal(groups[numbers], found.groups[numbers])
    scan = pd.read_csv(folder / "scan.csv")
    assert [tuple(json.loads(text)) for text in scan["features"]] == list(found.scan["features"])
    compared = compare(audited("wrong"), audited("repaired")).to_csv(tmp_path / "changes")
    assert [path.name for path in compared] == ["groups.csv", "scores.csv", "measures.csv"]


def test_files_of_others_are_not_replaced(tmp_path: Path) -> None:
    mark = tmp_path / "tables.json"
    for text in ("{}", "mine", '{"schema": "evenhand.tables/1", "files": null}'):
        mark.write_text(text)
        refused(r"'tables\.json', which evenhand did not write", audited("wrong").to_csv, tmp_path)
        assert mark.read_text() == text
    mark.unlink()
    (tmp_path / "groups.csv").write_text("mine")
    refused(r"'groups\.csv', which evenhand did not write", audited("wrong").to_csv, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"groups.csv"}
    refused("is a file, not a folder", audited("wrong").to_csv, tmp_path / "groups.csv")


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("n_samples",), None, "n_samples that is not a number: None"),
        (("scores", 0, "value"), "high", "scores, row 0: 'value' that is not a number: 'high'"),
        (("scan",), [[]], r"scan, row 0 that is not an object: \[\]"),
        (("outcome_kind",), "scores", "outcome_kind that is none of"),
        (("provenance",), "none", "provenance that is not an object: 'none'"),
    ],
)
def test_an_edited_audit_is_refused_with_its_place(
    tmp_path: Path, place: tuple[Any, ...], value: Any, message: str
) -> None:
    old, new = (tmp_path / name for name in ("old.json", "new.json"))
    for path in (old, new):
        audited("wrong").to_json(path)
    values = json.loads(new.read_text())
    inner = values
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    new.write_text(json.dumps(values))
    refused(message, compare, old, new)


def test_tables_of_an_audit_are_not_replaced_by_those_of_a_comparison(tmp_path: Path) -> None:
    audited("wrong").to_csv(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match="contains other tables"):
        compare(audited("wrong"), audited("repaired")).to_csv(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_texts_are_no_formulas_of_a_spreadsheet(tmp_path: Path) -> None:
    names = ["=1+1", "@x", "-5", "+cmd", "\tx", "a=b"]
    table = audited("wrong").groups.iloc[[1] * len(names)].assign(group=names)
    replace(audited("wrong"), groups=table).to_csv(tmp_path)
    written = pd.read_csv(tmp_path / "groups.csv")["group"].tolist()
    assert written == ["'=1+1", "'@x", "-5", "'+cmd", "'\tx", "a=b"]
