"""A model folder stays whole: several processes, a full disk, killed saves, other files."""

import errno
import itertools
import json
import os
import shutil
import signal
import stat
import time
import warnings
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from complaints import refused
from evenhand import RandomizedRegressor, load, save, store
from evenhand._files import replace_file, write_text
from evenhand._locks import OLD_SECONDS, one_writer
from log_writers import in_fork

ROUNDS = int(os.environ.get("EVENHAND_SAVE_ROUNDS", "20"))
"""Rounds of concurrent saves and loads; set the variable to 200 for the long run."""

N_SAVERS, N_LOADERS = 3, 2
FORKS = get_context("fork")
RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(60, 2))
Y = X[:, 0] + RANDOM.normal(size=60)
CERTIFIED = {"statement": "as good as it gets"}


def ridge(penalty):
    """Return a model with files of both kinds beside its manifest, known by its penalty."""
    pipeline = make_pipeline(StandardScaler(), Ridge(penalty))
    model = RandomizedRegressor(pipeline, link="laplace", cv=2, random_state=0)
    return model.fit(X, Y)


def penalty_of(model):
    return float(model.estimator_[-1].alpha)


@pytest.fixture(scope="module")
def packed():
    return [store.pack(ridge(10.0**i)) for i in range(N_SAVERS)]


def put(model, number, folder):
    store.write_model(model, folder, CERTIFIED | {"number": number}, f"<p>report {number}".encode())


def whole(folder, packed):
    """Return which of the models is there, with its own certificate and report."""
    with warnings.catch_warnings(action="error"):
        number = round(np.log10(penalty_of(load(folder))))
    certificate = store.read_certificate(folder)
    assert certificate["number"] == number
    assert certificate["model_sha256"] == packed[number].sha256
    assert json.loads((folder / "certificate.json").read_text()) == certificate
    assert (folder / "report.html").read_text() == f"<p>report {number}"
    names = {"model.json", "certificate.json", "report.html", *packed[number].contents}
    assert {path.name for path in folder.iterdir()} == names
    return number


def save_often(model, number, folder, rounds, gate, failures):
    for _ in range(rounds):
        gate.wait()
        try:
            put(model, number, folder)
        except BaseException as error:
            failures.put(f"save: {error!r}")
        gate.wait()


def load_often(folder, rounds, gate, failures, loads):
    warnings.simplefilter("error")
    for _ in range(rounds):
        gate.wait()
        for _ in range(6):
            try:
                assert penalty_of(load(folder)) in (1.0, 10.0, 100.0)
                store.read_certificate(folder)
                with loads.get_lock():
                    loads.value += 1
            except BaseException as error:
                failures.put(f"load: {error!r}")
        gate.wait()


def test_savers_and_loaders_of_one_folder_never_fail_and_leave_one_model(packed, tmp_path):
    folder = tmp_path / "model"
    put(packed[0], 0, folder)
    gate, failures = FORKS.Barrier(N_SAVERS + N_LOADERS + 1), FORKS.Queue()
    loads = FORKS.Value("i", 0)
    common = (folder, ROUNDS, gate, failures)
    works = [(save_often, (packed[i], i, *common)) for i in range(N_SAVERS)]
    works += [(load_often, (*common, loads))] * N_LOADERS
    workers = [FORKS.Process(target=work, args=args, daemon=True) for work, args in works]
    for worker in workers:
        worker.start()
    survivors = set()
    for _ in range(ROUNDS):
        gate.wait(60)
        gate.wait(60)
        survivors.add(whole(folder, packed))
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert failures.empty(), failures.get()
    assert loads.value == 6 * N_LOADERS * ROUNDS
    # by chance alone one saver is the last of all rounds with a probability of 3**(1 - ROUNDS)
    assert len(survivors) > 1 or ROUNDS < 20


def test_a_save_waits_for_one_that_runs_and_says_so(packed, tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand._locks.PATIENCE_SECONDS", 0.05)
    has_lock = FORKS.Event()

    def hold():
        with one_writer(tmp_path):
            has_lock.set()
            time.sleep(0.5)

    other = FORKS.Process(target=hold)
    other.start()
    assert has_lock.wait(60)
    with pytest.warns(UserWarning, match="waiting for another process"):
        put(packed[1], 1, tmp_path)
    other.join(60)
    assert whole(tmp_path, packed) == 1


def test_a_killed_save_blocks_nobody_and_what_it_left_is_swept(packed, tmp_path):
    put(packed[0], 0, tmp_path)

    def killed():
        os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
        with one_writer(tmp_path):
            replace_file(tmp_path / "model-0123456789abcdef.skops", b"")

    assert in_fork(killed) == -signal.SIGKILL
    assert len(list(tmp_path.glob(".*"))) == 1
    assert store.read_certificate(tmp_path)["number"] == 0
    put(packed[1], 1, tmp_path)
    assert whole(tmp_path, packed) == 1


def test_without_locks_only_old_files_are_swept(packed, tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand._locks.fcntl", None)
    young, old = tmp_path / "model-0123456789abcdef.skops", tmp_path / ".model.json.01234567.part"
    for path in (young, old):
        path.write_text("")
    os.utime(old, (time.time() - 2 * OLD_SECONDS,) * 2)
    put(packed[0], 0, tmp_path)
    assert young.exists()
    assert not old.exists()
    young.unlink()
    assert whole(tmp_path, packed) == 0


def test_a_folder_that_cannot_be_written_to_loads(packed, tmp_path):
    put(packed[2], 2, tmp_path)
    for path in tmp_path.iterdir():
        path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        assert whole(tmp_path, packed) == 2
    finally:
        tmp_path.chmod(0o755)


def test_a_loader_starts_again_when_the_model_is_replaced_under_it(packed, tmp_path, monkeypatch):
    put(packed[0], 0, tmp_path)
    read, count = Path.read_bytes, itertools.count()

    def raced(path):
        content = read(path)
        if path.name == "model.json" and next(count) < 3:
            with monkeypatch.context() as patch:
                patch.setattr(Path, "read_bytes", read)
                number = 1 + next(count) % 2
                put(packed[number], number, tmp_path)
        return content

    monkeypatch.setattr(Path, "read_bytes", raced)
    assert penalty_of(load(tmp_path)) in (10.0, 100.0)


class Interrupted(BaseException):
    """Like a Ctrl-C: no ordinary error, so that nobody catches it by mistake."""


class Steps:
    """Fails at the steps that change files: at one of them, or at that one and all later ones."""

    def __init__(self, patch, last, error, *, once, names, removal):
        self.count, self.last, self.error, self.once = 0, last, error, once
        patch.setattr(os, "open", self._open(os.open))
        patch.setattr(os, "fdopen", self._fdopen(os.fdopen))
        steps = [(os, "fsync")]
        steps += [(os, "replace")] if names else []
        steps += [(Path, "unlink")] if removal else []
        for owner, name in steps:
            patch.setattr(owner, name, self._step(getattr(owner, name)))

    def check(self):
        self.count += 1
        if self.count == self.last or (self.count > self.last and not self.once):
            raise self.error

    def _step(self, step):
        def checked(*args, **kwargs):
            self.check()
            return step(*args, **kwargs)

        return checked

    def _open(self, step):
        def opened(path, flags, *args, **kwargs):
            if flags & os.O_EXCL:
                self.check()
            return step(path, flags, *args, **kwargs)

        return opened

    def _fdopen(self, step):
        def opened(*args, **kwargs):
            file = step(*args, **kwargs)
            write = file.write

            class Checked:
                def __enter__(inner):
                    return inner

                def __exit__(inner, *raised):
                    file.close()

                def write(inner, content):
                    # half of it fits
                    write(content[: len(content) // 2])
                    self.check()
                    return write(content[len(content) // 2 :])

            return Checked()

        return opened


def failing(kind, last, patch):
    full = OSError(errno.ENOSPC, "No space left on device")
    if kind == "interrupt":
        return Steps(patch, last, Interrupted(), once=True, names=True, removal=True)
    # removing a file needs no space, and renaming none as a rule
    return Steps(
        patch, last, full, once=kind == "once full", names=kind == "once full", removal=False
    )


@pytest.mark.parametrize("kind", ["full", "once full", "interrupt"])
def test_a_save_that_fails_at_any_step_leaves_old_or_new_with_certificate_and_report(
    kind, packed, tmp_path
):
    survivors = []
    for last in itertools.count(1):
        place = tmp_path / str(last)
        put(packed[0], 0, place)
        with pytest.MonkeyPatch.context() as patch:
            steps = failing(kind, last, patch)
            with suppress(OSError, Interrupted):
                put(packed[1], 1, place)
        if steps.count < last:
            break
        if kind != "full":  # the next save finishes what the last steps left over
            survivors.append(round(np.log10(penalty_of(load(place)))))
            assert store.read_certificate(place)["number"] == survivors[-1]
            put(packed[survivors[-1]], survivors[-1], place)
        else:
            survivors.append(whole(place, packed))
        assert whole(place, packed) == survivors[-1]
        shutil.rmtree(place)
    # the model, the report, the certificate and the manifest: opened, written, synced and more
    assert len(survivors) >= 15
    assert survivors == sorted(survivors)
    assert {0, 1} >= set(survivors) >= {0}


@pytest.mark.parametrize("renamed", [0, 1])
def test_what_a_save_killed_at_its_end_left_is_read_and_finished(renamed, packed, tmp_path):
    put(packed[0], 0, tmp_path / "old")
    put(packed[1], 1, tmp_path / "new")
    place = shutil.copytree(tmp_path / "old", tmp_path / "killed")
    for name in ("model.json", *packed[1].contents):
        shutil.copy(tmp_path / "new" / name, place / name)
    for name in ("report.html", "certificate.json")[renamed:]:
        shutil.copy(tmp_path / "new" / name, place / f".evenhand-{packed[1].sha256[:16]}-{name}")
    if renamed:
        shutil.copy(tmp_path / "new" / "report.html", place)
    assert store.read_certificate(place)["number"] == 1
    with pytest.MonkeyPatch.context() as patch:
        # a save that gets nowhere finishes the one before all the same
        failing("full", 1, patch)
        with pytest.raises(OSError, match="No space"):
            put(packed[2], 2, place)
    assert whole(place, packed) == 1


def test_a_save_without_certificate_removes_that_of_the_old_model(packed, tmp_path):
    put(packed[0], 0, tmp_path)
    save(ridge(7.0), tmp_path)
    assert not (tmp_path / "certificate.json").exists()
    assert not (tmp_path / "report.html").exists()
    assert penalty_of(load(tmp_path)) == 7.0
    refused(r"no readable certificate\.json", store.read_certificate, tmp_path)


def test_pages_and_files_that_no_certificate_names_stay(packed, tmp_path):
    (tmp_path / "report.html").write_text("mine")
    (tmp_path / "certificate.json").write_text('{"of": "something else"}')
    (tmp_path / ".draft-thesis.tex").write_text("mine")
    save(ridge(7.0), tmp_path)
    assert (tmp_path / "report.html").read_text() == "mine"
    assert (tmp_path / "certificate.json").read_text() == '{"of": "something else"}'
    put(packed[0], 0, tmp_path)
    (tmp_path / "report.html").write_text("mine again")
    save(ridge(7.0), tmp_path)
    assert (tmp_path / "report.html").read_text() == "mine again"
    assert (tmp_path / ".draft-thesis.tex").read_text() == "mine"
    assert not (tmp_path / "certificate.json").exists()


def test_the_certificate_of_another_model_is_refused(packed, tmp_path):
    put(packed[0], 0, tmp_path / "first")
    save(ridge(7.0), tmp_path / "second")
    shutil.copy(tmp_path / "first" / "certificate.json", tmp_path / "second")
    told = refused("no guarantee for", store.read_certificate, tmp_path / "second")
    assert str(tmp_path / "second" / "certificate.json") in told
    assert penalty_of(load(tmp_path / "second")) == 7.0


def test_people_are_checked_by_a_salted_hash_of_their_sorted_ids():
    record = store.people_record(["bob", "zoé", 3], "ids")
    assert (record["n"], record["named_by"]) == (3, "ids")
    assert store.ids_digest([3, "zoe\u0301", "bob"], record["salt"]) == record["sha256"]
    assert store.ids_digest(["bob", "zoé"], record["salt"]) != record["sha256"]
    # by hand: printf '%s' '["salt","1","b"]' | sha256sum
    expected = "e5bae66ac3cad383788fa7f82de039fc1fe545c0c451101f03e676618d007a77"
    assert store.ids_digest(["b", 1], "salt") == expected
    assert store.people_record([1], "rows")["sha256"] != store.people_record([1], "rows")["sha256"]


@pytest.fixture(params=[0o027, 0o002])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_new_files_and_folders_obey_the_umask(umask, packed, tmp_path):
    place = tmp_path / "models" / "first"
    put(packed[0], 0, place)
    write_text(tmp_path / "audit.json", "{}")
    for path in (place, tmp_path / "models"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o777 & ~umask
    for path in (*place.iterdir(), tmp_path / "audit.json"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_the_folder_is_synced_after_a_replacement(tmp_path, monkeypatch):
    order = []
    sync, replace = os.fsync, os.replace

    def synced(handle):
        order.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", lambda *names: order.append("replace") or replace(*names))
    write_text(tmp_path / "file", "text")
    assert order == ["file", "replace", "folder"]
