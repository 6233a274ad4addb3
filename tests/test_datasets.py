from __future__ import annotations

import dataclasses
import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from complaints import refused
from evenhand._validate import InputError
from evenhand.datasets import Dataset, load_credit, load_crime, load_diabetes, make_doses

CREDIT_HEADER = ",SeriousDlqin2yrs,age,NumberOfDependents\n"


@pytest.fixture(autouse=True)
def no_named_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVENHAND_DATA", raising=False)


def file_in(folder: Path, *names: str) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    pytest.skip(f"no {' or '.join(names)} in {folder}: set EVENHAND_DATA to a folder with it")


def check_parts(data: Dataset, n_samples: int, n_features: int) -> None:
    assert data.X.shape == (n_samples, n_features)
    assert data.y.shape == (n_samples,)
    assert data.y.dtype == np.float64
    assert data.X.index.equals(data.y.index)
    assert set(data.groups) <= set(data.X.columns)
    assert data.y.name not in data.X.columns
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"  # type: ignore[misc]


def test_diabetes_is_in_its_own_units_and_names_age_and_sex() -> None:
    data = load_diabetes()
    check_parts(data, 442, 10)
    assert data.groups == ("sex", "age")
    assert set(data.X["sex"]) == {1.0, 2.0}
    assert data.X["age"].between(19, 79).all()


def test_crime_leaves_out_identifiers_and_features_with_missing_values(data_folder: Path) -> None:
    file = file_in(data_folder, "communities.data")
    data = load_crime(file)
    check_parts(data, 1994, 99)
    assert not data.X.isna().any(axis=None)
    assert data.y.name == "ViolentCrimesPerPop"
    # The first row of the file, read by hand: population 0.19, household size 0.33, outcome 0.2.
    assert data.X.iloc[0, :2].to_dict() == {"population": 0.19, "householdsize": 0.33}
    assert data.y[0] == 0.2
    assert not {"state", "fold", "OtherPerCap", "PolicBudgPerPop"} & set(data.X.columns)
    pd.testing.assert_frame_equal(load_crime(data_folder).X, data.X)


def test_a_crime_file_with_other_content_is_refused(tmp_path: Path) -> None:
    (tmp_path / "communities.data").write_text("1,2\n")
    with pytest.raises(
        InputError,
        match=r"communities\.data must have the SHA-256 09e0b5c0.*, got [0-9a-f]{64}; remove",
    ):
        load_crime(tmp_path)


def test_crime_is_fetched_with_its_hash_where_no_folder_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, object] = {}

    def retrieve(**options: object) -> str:
        asked.update(options)
        raise ConnectionError("no network\nmore lines")

    monkeypatch.setenv("EVENHAND_DATA", str(tmp_path))
    monkeypatch.setattr("pooch.retrieve", retrieve)
    assert "EVENHAND_DATA" in refused("no network", load_crime)
    assert str(asked["url"]).endswith("/communities/communities.data")
    assert (
        asked["known_hash"]
        == "sha256:09e0b5c07eae24c1efab19b2edee05e160e7f5743b6f31e31eec3d73624da2ea"
    )


def test_credit_has_labels_and_no_row_id(data_folder: Path) -> None:
    file = file_in(
        data_folder, "give-me-some-credit.csv.gz", "give-me-some-credit.csv", "cs-training.csv"
    )
    data = load_credit(file)
    check_parts(data, 150_000, 10)
    assert set(data.y) == {0.0, 1.0}
    assert data.y.sum() == 10_026  # the published number of delinquent borrowers, 6.684%
    assert data.X.columns[data.X.isna().any()].tolist() == ["MonthlyIncome", "NumberOfDependents"]


@pytest.mark.parametrize("name", ["give-me-some-credit.csv.gz", "cs-training.csv"])
def test_credit_is_found_under_each_of_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    content = (CREDIT_HEADER + "1,1,45,2\n2,0,40,\n").encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    monkeypatch.setenv("EVENHAND_DATA", str(tmp_path))
    for data in (load_credit(), load_credit(tmp_path), load_credit(tmp_path / name)):
        check_parts(data, 2, 2)
        assert data.y.tolist() == [1.0, 0.0]
        assert data.X["age"].tolist() == [45, 40]


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        (CREDIT_HEADER + "1,,45,2\n", "'SeriousDlqin2yrs', row 1 .*cs-training.csv"),
        (CREDIT_HEADER + "1,1,45,2\n2,3,45,2\n", "'SeriousDlqin2yrs', row 2 .*cs-training.csv"),
        (",age\n1,45\n", "no column 'SeriousDlqin2yrs'.*age.*cs-training.csv"),
        ("", r"cs-test\.csv .*csv .*cs-training.csv"),
    ],
)
def test_other_tables_than_the_credit_table_are_refused(
    tmp_path: Path, content: str, facts: str
) -> None:
    file = tmp_path / "cs-test.csv"
    file.write_text(content)
    with pytest.raises(InputError, match=facts):
        load_credit(file)


def test_generated_doses_follow_their_truth() -> None:
    data = make_doses(20_000, random_state=3)
    z = (data.y - data.truth["mean"]) / data.truth["std"]
    # five standard errors, about six in ten million; rounding to 0.1 mg moves variances by 1e-4
    assert abs(z.mean()) < 5 / np.sqrt(20_000)
    assert abs(z.var() - 1) < 5 * np.sqrt(2 / 20_000)
    assert abs(data.truth["variant"].mean() - 0.2) < 5 * 0.4 / np.sqrt(20_000)
    assert list(data.X.columns) == ["age", "sex", "weight", "kidney", "drugs", "smoker", "clinic"]
    assert not set(data.truth.columns) & set(data.X.columns)


def test_the_trial_enrolls_no_women_over_60_and_the_clinics_do() -> None:
    for cohort, most in (("trial", 0.0), ("clinics", 0.3)):
        for n in (1, 3000):
            data = make_doses(n, cohort=cohort, random_state=0)
            older = (data.X["sex"] == "woman") & (data.X["age"] > 60)
            assert len(data.X) == len(data.y) == len(data.truth) == n
            assert older.mean() <= most
            assert list(data.X.index) == list(range(n))
    assert older.mean() > 0.15


def test_no_column_shows_the_variant() -> None:
    data = make_doses(20_000, random_state=5)
    numbers = data.X.select_dtypes("number").assign(woman=data.X["sex"] == "woman")
    for name, column in numbers.items():
        correlation = np.corrcoef(column, data.truth["variant"])[0, 1]
        assert abs(correlation) < 5 / np.sqrt(20_000), name
