"""What several test files need."""

import fcntl
import gc
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import warnings
from multiprocessing import forkserver

import numpy as np
import pytest
from hypothesis import settings

from command_outcome import Outcome
from evenhand.audits.rows import STANDARD, Search
from evenhand.cli import main
from forked_command import Forks
from in_browser import started
from log_writers import Writers
from postgresql_server import started as started_server

settings.register_profile("tests", max_examples=50, deadline=None, derandomize=True)
settings.load_profile("tests")

# What searches find in calibrated forecasts is simulated twice here, as no test of an audit
# by default depends on it, and tests of `null_curve` give the number themselves.
Search.__init__.__defaults__ = (*Search.__init__.__defaults__[:-1], 2)
vars(STANDARD)["n_simulations"] = 2


def pytest_configure():
    # the processes of pytest-xdist have it, and it sets the width of printed text
    os.environ.pop("COLUMNS", None)
    gc.disable()  # nearly all that is made until the first test lasts


def pytest_collection_finish():
    gc.freeze()  # and need not be looked at again
    gc.enable()


def pytest_report_header():
    is_other = hasattr(sys.modules.get("sitecustomize"), "OtherUfunc")
    return ["mathematics library: another one, off by a unit in the last place"] if is_other else []


# Slowest files first: what starts last must not end last. Tests of a file share fixtures.
SLOWEST = (
    *("test_cli.py", "test_cli_process.py", "test_scale_cluster.py", "test_log_postgresql.py"),
    *("test_log_sqlite.py", "test_docs.py", "test_report_browser.py", "test_audits.py"),
    *("test_demo.py", "test_service.py", "test_recipe.py", "test_recipe_cox.py"),
    *("test_explore.py", "test_watch_command.py", "test_readme.py"),
    *("test_cli_outcomes.py", "test_verdict_agreement.py", "test_boosted.py", "test_scale.py"),
    *("test_any_link.py", "test_check_estimator.py", "test_scale_command.py"),
    *("test_randomize_command.py", "test_certificates.py"),
)


def pytest_addoption(parser):
    text = "the first case of each test, without slow files, simulated data sets and doctests"
    parser.addoption("--quick", action="store_true", help=text)


def pytest_collection_modifyitems(config, items):
    if config.getoption("--quick"):
        # in the order of the files, so that all workers keep the same cases
        first = {item.nodeid.partition("[")[0]: item for item in reversed(items)}
        items[:] = [
            item
            for item in first.values()
            if isinstance(item, pytest.Function)
            and item.path.name not in SLOWEST
            and item.get_closest_marker("statistics") is None
        ]
    places = {name: place for place, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


# of a module, not of a session: an event loop runs until the browser is closed
@pytest.fixture(scope="module")
def chromium():
    with started() as browser:
        yield browser


@pytest.fixture(scope="session")
def postgresql():
    with started_server() as server:
        yield server


@pytest.fixture(scope="session")
def writers():
    program = Writers()
    yield program
    program.close()


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory):
    """Return a folder that all workers of this run see."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def made_once(place, make):
    """Return a folder and the text that `make` returned when it filled it, in whichever worker."""
    text = place.with_suffix(".txt")
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not text.exists():  # otherwise the folder is complete
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            text.write_text(make(place), encoding="utf-8")
    return place, text.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def demo_run(shared_folder):
    """Run the demo as a newcomer does, in an empty folder and without options."""
    script = shutil.which("evenhand", path=sysconfig.get_path("scripts"))
    assert script is not None

    def run(place):
        done = subprocess.run(
            [script, "demo"], check=False, capture_output=True, text=True, cwd=place
        )
        return json.dumps([done.returncode, done.stdout, done.stderr])

    place, text = made_once(shared_folder / "demo", run)
    return place, subprocess.CompletedProcess([script, "demo"], *json.loads(text))


@pytest.fixture(scope="session")
def forks():
    program = Forks()
    yield program
    program.close()


@pytest.fixture(scope="session")
def server_of_forks():
    """Run the process that forks all workers of Dask, and see that it ends, so its time counts."""
    yield
    vars(forkserver)["_forkserver"]._stop()


@pytest.fixture(scope="module")
def forked_workers(server_of_forks):
    """Let Dask fork workers from one process that imports once; test_cli_process.py does not."""
    dask = pytest.importorskip("dask", reason="needs evenhand[scale]")
    utils = pytest.importorskip("distributed.utils", reason="needs evenhand[scale]")
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        # Dask makes a list of its own at the first call, which is replaced here
        utils.get_mp_context().set_forkserver_preload(["distributed", "evenhand.scale"])
        forkserver.ensure_running()
        yield


@pytest.fixture
def quick_training(monkeypatch):
    """Train default networks for a few steps, where a test needs a model and not a good one."""
    from evenhand import MixtureMLPRegressor

    monkeypatch.setitem(MixtureMLPRegressor.__init__.__kwdefaults__, "max_steps", 20)
    # no warning that so few steps are too few
    monkeypatch.setattr("evenhand.forecasters.training.UNFINISHED", np.inf)


@pytest.fixture
def two_folds(monkeypatch):
    """Check repairs in two folds and not in five, where a test is of maps more than of checks."""
    monkeypatch.setattr("evenhand.forecasters.recalibrated.N_FOLDS", 2)


@pytest.fixture
def evenhand(capfd, monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)

    def call(*args):
        monkeypatch.setattr(sys, "argv", ["evenhand", *map(str, args)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as caught:
            main()
        code = caught.value.code
        return Outcome(0 if code is None else int(code), *capfd.readouterr())

    with warnings.catch_warnings():
        yield call
