from __future__ import annotations

import gzip
import os
from pathlib import Path

import pandas as pd
import pytest

from evenhand import InputError
from reproduction.datasets import load_credit, load_crime

CREDIT_HEADER = ",SeriousDlqin2yrs,age,NumberOfDependents\n"


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder with data sets that are not part of the repository, or skip the test."""
    named = os.environ.get("EVENHAND_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(
            f"no folder {folder}: set EVENHAND_DATA to the folder with communities.data and the"
            " credit table"
        )
    return folder


@pytest.fixture(autouse=True)
def no_named_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVENHAND_DATA", raising=False)


def file_in(folder: Path, *names: str) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    pytest.skip(f"no {' or '.join(names)} in {folder}: set EVENHAND_DATA to a folder with it")


def test_crime_leaves_out_identifiers_and_features_with_missing_values(data_folder: Path) -> None:
    file = file_in(data_folder, "communities.data")
    data = load_crime(file)
    assert data.X.shape == (1994, 99)
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
    with pytest.raises(InputError, match=r"no network\b.*EVENHAND_DATA"):
        load_crime()
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
    assert data.X.shape == (150_000, 10)
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
