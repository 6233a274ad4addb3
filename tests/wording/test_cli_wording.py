"""Exact wording of the messages of the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_outcome import Command


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("audit", "missing argument '[MODEL] TABLE'; see evenhand audit --help"),
        ("fit t.csv", "missing option '--target'; see evenhand fit --help"),
        (
            "fit t.csv --rows 3",
            "no such option: --rows; similar options: --drop; see evenhand fit --help",
        ),
        ("nope", "no such command 'nope'; see evenhand --help"),
        ("fitt", "no such command 'fitt'; did you mean 'fit'? See evenhand --help"),
        ("fit t.csv --target", "option '--target' requires an argument"),
        (
            "fit t.csv --target= --out m",
            "--target is empty; check for an unset shell variable, give a value or leave it out",
        ),
        (
            "fit t.csv --target y --out m --alpha 0.1 --max-group-error 0.3",
            "give --alpha or --max-group-error, not both",
        ),
        (
            "fit t.csv --target y --out m --confidence 0.9",
            "--confidence 0.9 has no effect without --max-group-error; add it, or leave"
            " --confidence out",
        ),
        (
            "audit t.csv --target y",
            "t.csv: no forecasts to audit; give a model folder before the table, or columns of the"
            " table: --mean and --std, --quantiles or --samples",
        ),
        (
            "audit m t.csv --target y --mean mu --std sd",
            "give a model folder or --mean, not both",
        ),
        (
            "audit t.csv --target y --samples s --sort-quantiles",
            "--sort-quantiles has no effect without --quantiles; leave it out, or name the columns",
        ),
        (
            "audit t.csv --target y --samples s --sample-size 9",
            "--sample-size applies only to a folder of parts, but t.csv is a file; leave it out",
        ),
        (
            "randomize t.csv --mean mu --std sd --id i --key-file k --out t.csv",
            "--out t.csv is the same file as the table, t.csv, which it would overwrite; use"
            " another path",
        ),
        (
            "randomize t.csv --mean mu --std sd --id i --key-file k --out o.csv --levels 0.9,0.1",
            "--levels must be increasing and strictly between 0 and 1, got '0.9,0.1'; give"
            " a fraction: 0.9, not 90",
        ),
        (
            "randomize t.csv --mean mu --std sd --id i --key-file short --out o.csv",
            "short: the key has 3 bytes, but needs at least 16; create one with: python -c"
            " \"import os, secrets; os.umask(0o77); open('KEYFILE',"
            " 'x').write(secrets.token_hex(32))\"",
        ),
        (
            "reproduce toy --out o --splits 3",
            "--splits applies only to crime and credit, as toy simulates its data in one run; leave"
            " it out",
        ),
        (
            "reproduce crime --out o --data nowhere",
            "--data nowhere is not a file; pass the data file of the crime study",
        ),
    ],
)
def test_messages_are_sentences(
    args: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evenhand: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("i,mu,sd,y\n1,0,1,0.5\n")
    Path("k").write_text("sixteen bytes or more")
    Path("k").chmod(0o600)
    Path("short").write_text("key")
    assert evenhand(*args.split()).complaint() == f"error: {message}\n"
