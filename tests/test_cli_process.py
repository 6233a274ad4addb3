"""The command as a process: its streams, signals, exit codes, and the files that it replaces."""

import fcntl
import gc
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from command_outcome import contents, key_file
from evenhand import ForecastColumns, RandomizedRegressor, save
from evenhand._files import Partial
from evenhand._progress import progress
from evenhand.cli.output import STOPPING, Terminated, safe_streams, stopped_by_signals
from evenhand.tables import TableWriter
from forked_command import NO_READER

ROWS = 120
NORMAL = ("--forecast", "mean=mu,std=sigma")
FULL = "/dev/full"

needs_full = pytest.mark.skipif(not os.path.exists(FULL), reason=f"this system has no {FULL}")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with a table, the same in two parts, a randomized model, and a key."""
    folder = tmp_path_factory.mktemp("process")
    random = np.random.default_rng(3)
    mu = random.normal(50, 10, ROWS).round(3)
    table = pd.DataFrame(
        {"id": [f"p{i}" for i in range(ROWS)], "job": random.choice(["cook", "clerk"], ROWS)}
    )
    table = table.assign(mu=mu, sigma=3.0, loss=(mu + random.normal(0, 3, ROWS)).round(4))
    table.to_csv(folder / "people.csv", index=False)
    table[:40].to_csv(folder / "few.csv", index=False)
    (folder / "parts").mkdir()
    for number, rows in enumerate((table[:50], table[50:])):
        rows.to_parquet(folder / "parts" / f"{number}.parquet", index=False)
    key_file(folder / "key")
    model = RandomizedRegressor(ForecastColumns("mu", "sigma"), random_state=0)
    save(model.fit(table, table["loss"]), folder / "proven")
    return folder


def audit_args(place, *more):
    given = ("--target", "loss", *NORMAL, "--features", "job")
    return ["audit", str(place / "few.csv"), *given, *map(str, more)]


def predict_args(table, key, out, *more):
    model = ("--forecast", key.parent / "proven", "--id", "id", "--key-file", key)
    return ["predict", str(table), *map(str, (*model, "--out", out, *more))]


CLOSED = {"stdin": None, "stdout": None, "stderr": None}


@pytest.mark.parametrize(
    "streams", [{"stderr": None}, pytest.param({"stderr": FULL}, marks=needs_full), CLOSED], ids=str
)
def test_a_gate_decides_whatever_becomes_of_the_streams(streams, place, forks):
    args = audit_args(place, "--fail-if", "groups_beyond_tolerance >= 0")
    found, _, err = forks.run(args, **streams)
    assert found == 1
    assert "Traceback" not in err


def test_messages_never_land_in_the_json_when_standard_error_is_closed(place, tmp_path, forks):
    report = tmp_path / "report.json"
    code, out, _ = forks.run(audit_args(place, "--json", "--out", report), stderr=None)
    assert code == 0
    assert json.loads(out) == json.loads(report.read_text())


def test_a_reader_that_has_seen_enough_does_not_change_the_verdict(place, forks):
    for condition, code in (("groups_beyond_tolerance > 99", 0), ("not-proven", 1)):
        args = audit_args(place, "--fail-if", condition)
        found, _, errors = forks.run(args, stdout=NO_READER)
        assert found == code
        assert errors.count("\n") == code  # the line of the gate


@needs_full
def test_results_that_cannot_be_written_have_a_code_and_a_message(place, forks):
    lost = "error: results could not be written to standard output (No space left on device)\n"
    assert forks.run(audit_args(place, "--json"), stdout=FULL) == (74, "", lost)
    gate = audit_args(place, "--json", "--fail-if", "groups_beyond_tolerance > 99")
    assert forks.run(gate, stdout=FULL) == (0, "", lost)
    assert forks.run(["--help"], stdout=FULL)[0] == 74


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_command_shows_a_bar_and_not_its_control_sequences(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with safe_streams(), progress("training", 3) as advance:
        advance(2, "passes")
    shown = terminal.getvalue()
    assert "2/3 passes" in shown
    assert "\x1b[2K" in shown
    assert "u001b[2K" not in shown


def test_a_terminal_without_the_lines_of_tables_is_served(monkeypatch):
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    with safe_streams():
        print("group ── error")
    terminal.seek(0)
    assert terminal.read() == "group ?? error\n"


HOSTILE = "cook\x1b[2J\u202eevil\u2066\u200b\nline\x07"


def test_what_data_holds_reaches_no_terminal_raw(place, tmp_path, evenhand):
    table = pd.read_csv(place / "people.csv")
    table.loc[::2, "job"] = HOSTILE
    path = tmp_path / "t\u202egnp.parquet"
    table.rename(columns={"job": f"job{HOSTILE}"}).to_parquet(path, index=False)
    args = ("audit", path, "--target", "loss", *NORMAL, "--groups", f"job{HOSTILE}")
    page = tmp_path / "report.html"
    text = evenhand(*args, "--full", "--out", page).done()
    expected = "".join(text.out.split("\n")).replace(" ", "")
    assert r"\u001b[2J\u202eevil\u2066\u200b\nline\u0007" in expected
    found = evenhand(*args, "--json")
    # JSON is exact
    assert any(HOSTILE in row["group"] for row in json.loads(found.out)["groups"])
    wrong = evenhand("audit", path, "--target", "los\u202e", *NORMAL)
    usage = evenhand("audit", path, f"more{HOSTILE}", "even more", f"and\u202e{HOSTILE}")
    for shown in (text, found, wrong, usage):
        for line in (shown.out + shown.err).split("\n"):
            assert line.isprintable(), ascii(line)
    assert not {"\x1b", "\u202e", "\u2066", "\u200b", "\x07"} & set(page.read_text())


def test_an_empty_value_is_refused(place, tmp_path, evenhand):
    """An unset variable for the context would give everybody another draw."""
    audit = ("audit", place / "people.csv", "--target", "loss", *NORMAL)
    for option in ("--groups", "--out", "--fail-if"):
        for given in ((option, " "), (f"{option}=",)):
            assert f"{option} is empty" in evenhand(*audit, *given).complaint()
    for listed in (",", "job,"):
        refused = evenhand(*audit, "--groups", listed).complaint()
        assert f"--groups {listed!r} contains an empty name" in refused
    predict = predict_args(place / "people.csv", place / "key", tmp_path / "out.csv")
    assert "--context is empty" in evenhand(*predict, "--context", "").complaint()


def symbolic(path, to):
    path.symlink_to(to)
    return path


def hard(path, to):
    os.link(to, path)
    return path


OVERWRITING = {
    "the table": lambda d: predict_args(d / "people.csv", d / "key.csv", d / "people.csv"),
    "the key": lambda d: predict_args(d / "people.csv", d / "key.csv", d / "key.csv"),
    "a symbolic link": lambda d: predict_args(
        d / "people.csv", d / "key.csv", symbolic(d / "a.csv", d / "people.csv")
    ),
    "a hard link": lambda d: predict_args(
        d / "people.csv", d / "key.csv", hard(d / "a.csv", d / "key.csv")
    ),
    "a table read through a link": lambda d: predict_args(
        symbolic(d / "a.csv", d / "people.csv"), d / "key.csv", d / "people.csv"
    ),
    "a part": lambda d: predict_args(d / "parts", d / "key.csv", d / "parts" / "0.parquet"),
    "a new part": lambda d: predict_args(d / "parts", d / "key.csv", d / "parts" / "new.parquet"),
    "a hard link to a part": lambda d: predict_args(
        d / "parts", d / "key.csv", hard(d / "a.parquet", d / "parts" / "0.parquet")
    ),
    "the folder of parts": lambda d: [
        *("fit", str(d / "parts"), "--target", "loss", "--out", str(d / "parts"))
    ],
    "a file of the model": lambda d: [
        *("audit", str(d / "people.csv"), "--target", "loss", "--forecast", str(d / "proven")),
        *("--out", str(d / "proven" / "model.json")),
    ],
}


@pytest.mark.parametrize("name", OVERWRITING)
def test_an_output_that_is_an_input_is_refused(name, place, tmp_path, evenhand):
    for file, content in contents(place).items():
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o600)
    (tmp_path / "key").rename(tmp_path / "key.csv")
    args = OVERWRITING[name](tmp_path)
    before = contents(tmp_path)
    line = evenhand(*args).complaint()
    assert "overwrit" in line
    assert "use another" in line
    assert contents(tmp_path) == before


@pytest.mark.parametrize("is_there", [True, False])
def test_outputs_through_a_symbolic_link_write_its_target(is_there, place, tmp_path, evenhand):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("table.csv", "audit.json", "report.html"):
        if is_there:
            (elsewhere / name).write_text("old")
        (tmp_path / name).symlink_to(elsewhere / name)
    for args in (
        predict_args(place / "people.csv", place / "key", tmp_path / "table.csv"),
        audit_args(place, "--out", tmp_path / "audit.json"),
        audit_args(place, "--out", tmp_path / "report.html"),
    ):
        assert evenhand(*args).code == 0
    assert sorted(os.listdir(elsewhere)) == ["audit.json", "report.html", "table.csv"]
    for name in os.listdir(elsewhere):
        assert (tmp_path / name).is_symlink()
        assert (elsewhere / name).stat().st_size > 1000


def test_a_link_to_itself_or_to_a_device_is_refused(place, tmp_path, evenhand):
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    (tmp_path / "null.csv").symlink_to("/dev/null")
    for name in ("loop.csv", "null.csv"):
        evenhand(*predict_args(place / "people.csv", place / "key", tmp_path / name)).complaint()
        assert (tmp_path / name).is_symlink()
    assert Path("/dev/null").is_char_device()


def test_outputs_obey_the_umask(place, tmp_path, evenhand):
    before = os.umask(0o027)
    try:
        for table, out in (("people.csv", "out.csv"), ("parts", "out")):
            args = predict_args(place / table, place / "key", tmp_path / out)
            assert evenhand(*args).code == 0
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert modes == {"out.csv": 0o640, "out": 0o750, "0.parquet": 0o640, "1.parquet": 0o640}


def waiting(forks, args, out, err):
    out.touch()
    err.touch()
    process = forks.start(args, (os.devnull, str(out), str(err)), writes_slowly=True)
    deadline = time.monotonic() + 30
    while out.read_text() != "writing\n" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert out.read_text() == "writing\n"
    return process


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGTERM, 143, "terminated"), (signal.SIGINT, 130, "interrupted")],
)
def test_a_signal_removes_what_is_half_written(number, code, word, place, tmp_path, forks):
    folder, said = tmp_path / "results", tmp_path / "err"
    folder.mkdir()
    for table, out in (("people.csv", "out.csv"), ("parts", "out")):
        args = predict_args(place / table, place / "key", folder / out)
        run = waiting(forks, args, tmp_path / f"{out}-shown", said)
        assert len(list(folder.glob(".out*.part"))) == 1
        os.kill(run, number)
        if number == signal.SIGTERM:
            os.kill(run, number)  # one more does not stop the cleaning up
        assert (forks.wait(run), said.read_text()) == (code, f"error: {word}\n")
        assert list(folder.iterdir()) == []
        said.unlink()


def test_a_signal_that_a_callback_lost_is_not_the_last_that_counts(monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    lost = []

    def callback(phase, info):
        gc.callbacks.remove(callback)
        os.kill(os.getpid(), signal.SIGTERM)
        lost.append(False)  # not reached: the signal is raised here, where Python only reports it

    def interrupted():
        gc.callbacks.append(callback)
        gc.collect()
        lost.append(True)
        os.kill(os.getpid(), signal.SIGTERM)
        lost.append(False)  # fails before: all later signals were ignored

    before = {number: signal.getsignal(number) for number in STOPPING}
    try:
        with pytest.raises(Terminated), stopped_by_signals():
            interrupted()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert lost == [True]


def test_the_next_run_sweeps_what_a_killed_one_left_and_nothing_of_a_live_one(
    place, tmp_path, evenhand, forks
):
    folder = tmp_path / "results"
    folder.mkdir()
    for table, out in (("people.csv", "out.csv"), ("parts", "out")):
        args = predict_args(place / table, place / "key", folder / out)
        live, killed = (
            waiting(forks, args, tmp_path / f"{out}-{who}", tmp_path / "err")
            for who in ("live", "killed")
        )
        assert len(list(folder.glob(f".{out}.*.part"))) == 2
        try:
            os.kill(killed, signal.SIGKILL)
            forks.wait(killed)
            assert evenhand(*args).code == 0
            assert len(list(folder.glob(f".{out}.*.part"))) == 1
        finally:
            os.kill(live, signal.SIGTERM)
            forks.wait(live)
        assert [path.name for path in folder.iterdir()] == [out]
        for path in folder.iterdir():
            subprocess.run(["rm", "-r", path], check=True)


def test_files_of_others_are_not_swept(tmp_path):
    names = [
        ".out.csv.part",
        ".out.csv.0123abcd.part.txt",
        ".other.csv.0123abcd.part",
        ".out.csv.0123abcZ.part",
    ]
    for name in names:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".out.csv.0123abcd.part").write_text("of a killed run")
    with TableWriter(tmp_path / "out.csv") as writer:
        writer.write(pd.DataFrame({"id": ["a"]}))
    assert sorted(os.listdir(tmp_path)) == sorted([*names, "out.csv"])


def test_a_partial_that_was_swept_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    lock, taken = fcntl.flock, []

    def late(handle, operation):
        if not taken:
            taken.extend(tmp_path.glob(".*.part"))
            taken[0].unlink()
        lock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    partial = Partial(tmp_path / "out.csv")
    os.write(partial.handle, b"id\n")
    partial.commit()
    assert len(taken) == 1
    assert (tmp_path / "out.csv").read_text() == "id\n"


def test_sigterm_ends_workers_and_removes_their_parts(place, tmp_path):
    """Forty blocks of 20,000 rows take seconds, so the signal comes while workers are at them."""
    pytest.importorskip("distributed")
    rows = pd.DataFrame({"id": np.arange(20_000), "mu": np.linspace(0, 1, 20_000), "sigma": 1.0})
    rows.to_parquet(tmp_path / "rows.parquet")
    many, out = tmp_path / "many", tmp_path / "made"
    many.mkdir()
    out.mkdir()
    for i in range(40):
        (many / f"part-{i:02d}.parquet").hardlink_to(tmp_path / "rows.parquet")
    args = predict_args(many, place / "key", out / "out", "--workers", 1)
    run = subprocess.Popen(
        [sys.executable, "-m", "evenhand", *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while not list(out.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.02)
    run.terminate()
    _, said = run.communicate(timeout=60)
    assert run.returncode == 143
    assert said.decode().splitlines()[-1] == "error: terminated"
    assert list(out.iterdir()) == []


def test_python_without_docstrings_is_one_line():
    run = subprocess.run(
        [sys.executable, "-OO", "-m", "evenhand", "audit"], check=False, capture_output=True
    )
    assert run.returncode == 1
    found = run.stderr.decode()
    assert found == ("error: options are read from docstrings; run Python without -OO\n")
