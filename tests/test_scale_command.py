"""The command with tables in parts: findings, forecasts, gates and refusals."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest

from command_outcome import key_file, predict_args
from evenhand import load, save
from evenhand.audits import Search
from evenhand.draws import KeyedDraws
from evenhand.scale import ModelSubject, audit_parts
from parts_examples import KEY, SERVED, a_model, bad_folder, people, temporary, write_parts

ROWS, SAMPLE = 2400, 600
NORMAL = ("--forecast", "mean=mean,std=std")
FINGERPRINT = hashlib.blake2b(key=KEY, digest_size=8, person=b"evenhand key").digest().hex("-", 2)


@pytest.fixture
def evenhand(evenhand, monkeypatch):
    """Call the command in this process, with a small sample and quick searches."""
    monkeypatch.setitem(audit_parts.__kwdefaults__, "sample_size", SAMPLE)
    others = Search.__init__.__defaults__[2:]
    monkeypatch.setattr(Search.__init__, "__defaults__", ((0.2, 1.0), (), *others))
    return evenhand


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("command")
    table = people(ROWS)
    write_parts(table, folder / "parts", [500, 501, 1700])
    table.to_parquet(folder / "whole.parquet", index=False)
    key_file(folder / "key", KEY + b"\n")
    save(a_model(), folder / "fitted")
    save(SERVED, folder / "model")
    return folder


def test_an_audit_of_a_folder_is_that_of_the_library(place, evenhand, tmp_path):
    page = tmp_path / "report.html"
    options = ("--target", "y", "--groups", "sex,age", "--seed", 5, "--json", "--out", page)
    found = evenhand("audit", place / "parts", "--forecast", place / "fitted", *options)
    assert (found.code, found.err) == (0, f"audit written to {page}\n")
    told = json.loads(found.out)
    expected = audit_parts(
        ModelSubject(load(place / "fitted")),
        place / "parts",
        "y",
        groups=["sex", "age"],
        sample_size=SAMPLE,
        random_state=5,
        search=Search(),
        name="fitted",
    )
    ours = json.loads(expected.to_json())
    assert told["n_samples"] == told["provenance"]["data"]["n_rows"] == ROWS
    assert told | {"provenance": None} == ours | {"provenance": None}
    assert any("600 rows sampled at random" in note["text"] for note in told["notes"])
    assert "<!doctype html>" in page.read_text()[:200].lower()
    assert not list(tmp_path.glob(".*"))


def test_gates_judge_all_rows_of_a_folder(place, evenhand):
    args = ("audit", place / "parts", "--forecast", place / "fitted", "--target", "y")
    options = {
        "search": Search(masses=(0.2,), learned_masses=()),
        "sample_size": SAMPLE,
        "random_state": 0,
        "levels": [0.7],
    }
    found = audit_parts(load(place / "fitted"), place / "parts", "y", **options)
    certified = found.certificate.group_error(0.2)
    # a level that no audit counts unless it is asked about
    low = found.certificate.coverage(0.7, 0.5)[0]

    def gates(off):
        coverage = ("--fail-if", f"coverage(0.7, 0.5) < {low + off}")
        return (*coverage, "--fail-if", f"certified_group_error(0.2) > {certified - off}")

    failed = evenhand(*args, *gates(0.001))
    assert (failed.code, failed.err.count("failed: ")) == (1, 2)
    assert f"(it is {certified:.10g})" in failed.err
    assert evenhand(*args, *gates(-0.001)).code == 0


def test_bad_parts_are_named_and_left_out_only_if_asked(place, evenhand, tmp_path):
    folder, bad = bad_folder(tmp_path / "in", "missing")
    args = ("audit", folder, "--target", "y", *NORMAL, "--json")
    assert bad in evenhand(*args).complaint()
    found = evenhand(*args, "--skip-bad-parts").done()
    assert found.err.startswith(f"warning: part left out: {bad}")
    assert found.err.count("\n") == 1
    told = json.loads(found.out)
    assert told["n_samples"] == 300
    assert any(note["text"].startswith(f"part left out: {bad}") for note in told["notes"])
    refused = evenhand(
        "audit", place / "whole.parquet", "--target", "y", *NORMAL, "--skip-bad-parts"
    )
    assert "--skip-bad-parts has no effect on one file" in refused.complaint()


@pytest.mark.parametrize("model", ["fitted", "model"])
def test_a_folder_in_gives_a_folder_or_a_file_with_the_same_draws(place, evenhand, tmp_path, model):
    for table, out in (
        ("parts", "folder"),
        ("parts", "parts.parquet"),
        ("whole.parquet", "whole.parquet"),
    ):
        more = ("--context", "2026-11")
        made = evenhand(*predict_args(place, place / table, tmp_path / out, *more, model=model))
        assert (made.code, made.out) == (0, "")
        assert (
            made.err == f"{ROWS:,} forecasts written to {tmp_path / out}; fingerprint of the key:"
            f" {FINGERPRINT}\n"
        )
    expected = [f"part-{i}.parquet" for i in range(4)]
    assert sorted(path.name for path in (tmp_path / "folder").iterdir()) == expected
    whole = pd.read_parquet(tmp_path / "whole.parquet")
    joined = pd.concat(
        [pd.read_parquet(path) for path in sorted((tmp_path / "folder").iterdir())],
        ignore_index=True,
    )
    for other in (joined, pd.read_parquet(tmp_path / "parts.parquet")):
        # one block or several: products of matrices round differently
        pd.testing.assert_frame_equal(whole, other, rtol=1e-12, atol=1e-12)
        assert whole["r"].equals(other["r"])
    table = people(ROWS)
    assert whole["id"].tolist() == table["id"].tolist()
    assert np.array_equal(whole["r"], KeyedDraws(KEY, "2026-11")(table["id"].tolist()))
    assert temporary(tmp_path) == []


def test_an_output_that_is_there_is_refused_and_left_as_it_was(place, evenhand, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.csv").write_text("kept\n")
    told = evenhand(*predict_args(place, place / "parts", out)).complaint()
    assert "name a new folder" in told
    assert [(path.name, path.read_text()) for path in out.iterdir()] == [("mine.csv", "kept\n")]
    (tmp_path / "file").write_text("kept\n")
    told = evenhand(*predict_args(place, place / "parts", tmp_path / "file")).complaint()
    assert "name a new folder" in told
    assert (tmp_path / "file").read_text() == "kept\n"
    told = evenhand(*predict_args(place, place / "parts", tmp_path / "file" / "out")).complaint()
    assert "file is a file; name another folder" in told
