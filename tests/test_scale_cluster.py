"""Tables in parts on a Dask cluster: the findings of one process, whoever dies."""

import os
import signal
import time

import pytest

from command_outcome import contents
from complaints import complaint, refused
from evenhand._validate import InputError
from evenhand.scale import audit_parts, dask_client, engine, forecast_parts
from evenhand.tables import open_parts
from parts_examples import (
    ASKED,
    GIVEN,
    QUICK,
    SERVED,
    Deadly,
    a_model,
    bad_folder,
    people,
    size_of,
    temporary,
    work_and_tell,
    write_parts,
)

psutil = pytest.importorskip("psutil")  # comes with distributed


def workers():
    """Return the processes that this one has started."""
    children = psutil.Process().children(recursive=True)
    return [child.pid for child in children if "resource_tracker" not in " ".join(child.cmdline())]


@pytest.fixture(scope="module")
def client(forked_workers):
    """Yield a client of two workers, and see that they are gone in the end."""
    pytest.importorskip("distributed")
    before = workers()
    with dask_client(workers=2) as client:
        assert len(client.run(os.getpid)) == 2
        yield client
    assert workers() == before


@pytest.fixture
def five(tmp_path):
    return write_parts(people(1200), tmp_path / "in", [200, 500, 501, 900])


OPTIONS = {"groups": ["sex", "age", "region"], "sample_size": 300, "random_state": 0, **QUICK}


def test_a_cluster_finds_the_same_to_the_last_digit(client, five):
    subject = a_model()
    found = audit_parts(subject, five, "y", client=client, **OPTIONS)
    assert found.to_json() == audit_parts(subject, five, "y", **OPTIONS).to_json()


def test_a_cluster_writes_the_same_forecasts(client, five, tmp_path):
    done = forecast_parts(SERVED, five, tmp_path / "ours", client=client, **ASKED)
    assert done == forecast_parts(SERVED, five, tmp_path / "theirs", **ASKED)
    assert contents(tmp_path / "ours") == contents(tmp_path / "theirs")
    for table, out, told in (
        (five, "out.csv", "a folder is needed here"),
        (five / "part-0.parquet", "out", "workers need a folder of parts"),
    ):
        refused(told, forecast_parts, SERVED, table, tmp_path / out, client=client, **ASKED)


def test_a_worker_that_dies_changes_nothing_in_an_audit(client, five, tmp_path):
    marker = tmp_path / "died"
    found = audit_parts(
        Deadly(part="part-1.parquet", marker=marker), five, "y", client=client, **OPTIONS
    )
    assert marker.exists()
    assert found.to_json() == audit_parts(GIVEN, five, "y", **OPTIONS).to_json()


def test_a_worker_that_dies_as_it_writes_leaves_nothing_behind(client, tmp_path):
    folder = write_parts(people(20_600)[["id", "mean", "std"]], tmp_path / "in", [200, 20_400])
    marker = tmp_path / "died"
    deadly = Deadly(part="part-1.parquet", marker=marker, at_row=20_000)
    done = forecast_parts(deadly, folder, tmp_path / "ours", client=client, **ASKED)
    assert marker.exists()
    assert done.n_rows == 20_600
    forecast_parts(GIVEN, folder, tmp_path / "theirs", **ASKED)
    assert contents(tmp_path / "ours") == contents(tmp_path / "theirs")
    assert temporary(tmp_path) == []


def test_results_that_die_with_their_worker_are_made_again(client, tmp_path):
    parts = open_parts(write_parts(people(80), tmp_path / "in", range(10, 80, 10)))
    log = tmp_path / "log"
    log.mkdir()
    results = engine.over_parts(work_and_tell, str(log), parts, description="", client=client)
    first, (_, holder) = next(results)
    for _ in range(100):
        if len(list(log.iterdir())) >= len(parts):
            break
        time.sleep(0.1)
    assert len(list(log.iterdir())) == len(parts)
    os.kill(holder, signal.SIGKILL)
    others = [i for i, _ in results]
    assert sorted([first, *others]) == list(range(len(parts)))


def test_a_part_that_always_kills_its_worker_is_named(client, five, monkeypatch):
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    # each death costs a new worker: the note alone, which is the message of the error
    found = audit_parts(
        Deadly(part="part-3.parquet"), five, "y", client=client, skip_bad=True, **OPTIONS
    )
    (note,) = [str(note) for note in found.notes if str(note).startswith("part left out: part-3")]
    assert "part-3.parquet: several workers died" in note
    assert "\n" not in note


def test_parts_that_workers_cannot_see_are_named(client, tmp_path):
    parts = open_parts(write_parts(people(30), tmp_path / "in", [10]))
    (tmp_path / "in" / "part-1.parquet").unlink()
    with pytest.raises(InputError, match=r"part-1\.parquet does not exist on a worker"):
        list(engine.over_parts(size_of, b"", parts, description="", client=client))


def test_paths_are_whole_on_workers(client, tmp_path, monkeypatch):
    write_parts(people(30), tmp_path / "in", [10])
    monkeypatch.chdir(tmp_path)
    found = dict(engine.over_parts(size_of, b"12", open_parts("in"), description="", client=client))
    assert found == {0: 2, 1: 2}


def test_a_bad_part_on_a_worker_is_named_or_left_out(client, tmp_path):
    folder, told = bad_folder(tmp_path / "in", "no spread")
    assert told in complaint(audit_parts, GIVEN, folder, "y", client=client, **OPTIONS)
    found = audit_parts(GIVEN, folder, "y", client=client, skip_bad=True, **OPTIONS)
    assert found.to_json() == audit_parts(GIVEN, folder, "y", skip_bad=True, **OPTIONS).to_json()
    assert found.n_samples == 300
    done = forecast_parts(SERVED, folder, tmp_path / "out", client=client, skip_bad=True, **ASKED)
    assert done.n_rows == 300
    assert list(done.skipped) == ["part-2.parquet"]
    assert temporary(tmp_path) == []


def test_a_cluster_that_is_not_there_is_refused_soon(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(engine, "CONNECT_SECONDS", 1)
    for workers, told in (
        ("tcp://127.0.0.1:9", "no Dask scheduler answers at"),
        ("nowhere://x", "no Dask scheduler answers at"),
        (0, "workers"),
    ):
        with pytest.raises(InputError, match=told), dask_client(workers):
            pass


def test_a_scheduler_that_is_there_is_used(client, five):
    with dask_client(client.scheduler_info()["address"]) as other:
        found = audit_parts(GIVEN, five, "y", client=other, **OPTIONS)
    assert found.n_samples == 1200
    assert client.scheduler_info()["workers"]  # they stay when a client leaves
