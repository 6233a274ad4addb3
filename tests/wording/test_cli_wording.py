"""Exact wording of the messages of the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_outcome import Command
from evenhand import store


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("audit", "missing argument '[MODEL] TABLE'; see evenhand audit --help"),
        ("fit t.csv", "missing option '--target'; see evenhand fit --help"),
        ("fit t.csv --rows 3", "no such option: --rows; see evenhand fit --help"),
        (
            "fit t.csv --targt y",
            "no such option: --targt; did you mean '--target'? See evenhand fit --help",
        ),
        (
            "plan --max-grp-error 0.3",
            "no such option: --max-grp-error; did you mean '--max-group-error'? See evenhand plan"
            " --help",
        ),
        ("--versoin", "no such option: --versoin; did you mean '--version'? See evenhand --help"),
        (
            "plan --link gausian",
            "--link must be one of 'laplace', 'entropic', 'gaussian', got 'gausian'; did you mean"
            " 'gaussian'?",
        ),
        (
            "fit t.csv --target y --out o --outcome coun",
            "--outcome must be one of 'continuous', 'count', 'hurdle', 'binary', got 'coun'; did"
            " you mean 'count'?",
        ),
        (
            "fit t.csv --target y --out o --device cud",
            "--device must be one of 'auto', 'cpu', 'cuda', got 'cud'; did you mean 'cuda' or"
            " 'cpu'?",
        ),
        (
            "audit t.csv --target y --mean mu --std sd --fail-if average_eror>0.3",
            "--fail-if must name one of groups_beyond_tolerance, certified_group_error, coverage,"
            " certified_event_rate, certified_bias, got 'average_eror'; write for example"
            ' "problem" or "certified_group_error(0.2) > 0.3"',
        ),
        (
            "audit t.csv --target y --pmf zzz",
            "t.csv has no column 'zzz' and no columns with this prefix, such as zzz1, only i, mu,"
            " sd, y; name some of these, or their prefix",
        ),
        (
            "--show-completion tcsh",
            "--show-completion must be one of 'bash', 'zsh', 'fish', 'powershell', 'pwsh', got"
            " 'tcsh'",
        ),
        ("nope", "no such command 'nope'; see evenhand --help"),
        ("audt", "no such command 'audt'; did you mean 'audit'? See evenhand --help"),
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
            "--confidence 0.9 has no effect without --max-group-error, --max-wider or --max-price;"
            " add one of them, or leave --confidence out",
        ),
        (
            "fit t.csv --target y --out m --max-wider 0.1 --max-price 1 --max-group-error 0.3",
            "give only one of --max-group-error, --max-wider and --max-price",
        ),
        (
            "audit t.csv --target y",
            "t.csv: no forecasts to audit; give a model folder before the table, or columns of the"
            " table: --mean and --std, --quantiles, --samples, --survival, --probability or --pmf",
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
            "randomize t.csv --target y --out o",
            "t.csv: no forecasts to randomize; name columns of the table: --mean and --std,"
            " --quantiles, --samples, --survival or --pmf",
        ),
        (
            "randomize t.csv --mean mu --std sd --id i --out o",
            "give --target to certify the forecasts of t.csv, or --id and --key-file to randomize"
            " them",
        ),
        (
            "randomize t.csv --mean mu --std sd --target y --alpha 0.1 --out o",
            "--alpha has no effect with --target, which writes no forecasts; leave it out",
        ),
        (
            "randomize t.csv --mean mu --std sd --id i --key-file k --seed 1 --out o.csv",
            "--seed has no effect without --target; leave it out",
        ),
        (
            "randomize t.csv --mean mu --std sd --target y --out m",
            "--out m is a model folder, whose certificate would be replaced; use a new or empty"
            " folder",
        ),
        (
            "randomize t.csv --mean mu --std sd --target y --out .",
            "--out . contains 'cert' and 5 more and is not a certificate folder; use a new or empty"
            " folder",
        ),
        (
            "randomize t.csv --mean mu --std sd --id i --key-file k --certificate m --out o.csv",
            "m has no certificate.json; write one with evenhand randomize --target",
        ),
        (
            "fit t.csv --target y --max-price 1 --confidence 95 --out o",
            "--confidence must satisfy 0 < confidence < 1, got 95.0; give a fraction: 0.95, not 95",
        ),
        (
            "randomize t.csv --mean mu --std sd --id i --key-file k --certificate t.csv --out o",
            "t.csv is a file; give the folder that evenhand randomize --target wrote",
        ),
        (
            "randomize t.csv --mean mu --std sd --id i --key-file k --certificate fit --out o.csv",
            "fit/certificate.json certifies the model in this folder, not forecasts of another"
            " model; use evenhand predict fit, or certify the forecasts with evenhand randomize"
            " --target",
        ),
        (
            "randomize t.csv --mean mu --std sd --id i --key-file k --certificate cert --out o.csv",
            "--certificate cert is for --quantiles q0.1,q0.9, not for --mean mu --std sd; name the"
            " certified columns, or certify these with --target",
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
    certified = {"kind": "quantiles", "columns": ["q0.1", "q0.9"]}
    store.write_forecast_certificate(
        {"link": "entropic", "alpha": 0.1, "forecasts": certified}, Path("cert")
    )
    for folder, name, content in (
        ("m", "model.json", "{}"),
        ("fit", "certificate.json", '{"model_sha256": "1f"}'),
    ):
        Path(folder).mkdir()
        Path(folder, name).write_text(content)
    assert evenhand(*args.split()).complaint() == f"error: {message}\n"
