"""A private server of PostgreSQL in a temporary folder, from the package of the system.

Tests that need it are skipped, with the reason, where the package is missing. With
EVENHAND_NEEDS_POSTGRESQL=1 nothing is skipped.
"""

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

MUST_RUN = os.environ.get("EVENHAND_NEEDS_POSTGRESQL") == "1"
USER, PASSWORD = "evenhand", "a secret+password"
QUOTED = "a%20secret%2Bpassword"


def missing(what):
    if MUST_RUN:
        pytest.fail(f"EVENHAND_NEEDS_POSTGRESQL is 1, but there is no {what}")
    pytest.skip(f"there is no {what}: no log in PostgreSQL is tested")


def programs():
    # Debian has them outside of the search path
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: p.parts[4])
    there = shutil.which("initdb") or (str(found[-1]) if found else missing("PostgreSQL"))
    return Path(there).parent


class Server:
    """Server in a folder, with the durability of a server in use."""

    def __init__(self, folder):
        self._folder = folder
        self._programs = programs()
        # a server refuses to run as root
        self._as = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
        self._n_databases = 0
        if self._as:
            shutil.chown(folder, "postgres", "postgres")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        password = folder / "password"
        password.write_text(PASSWORD)
        self._run("initdb", "-U", USER, "-A", "scram-sha-256", f"--pwfile={password}", "-E", "UTF8")
        with (folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write(
                f"port = {self.port}\nlisten_addresses = '127.0.0.1'\n"
                "unix_socket_directories = ''\nfsync = on\nsynchronous_commit = off\n"
            )

    def start(self):
        self._run("pg_ctl", "start", "-w", "-t", "60", "-l", str(self._folder / "log"))

    def stop(self, mode="fast"):
        """Stop the server: "fast" as on a shutdown, "immediate" as when its process is killed."""
        self._run("pg_ctl", "stop", "-w", "-m", mode)

    def is_running(self):
        return self._call("pg_ctl", "status") == 0

    def url(self, database="postgres", user=USER, password=QUOTED):
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def new_database(self):
        self._n_databases += 1
        name = f"log_{self._n_databases}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def execute(self, *statements, url=None):
        import sqlalchemy as sa

        engine = sa.create_engine(
            (url or self.url()).replace("postgresql:", "postgresql+psycopg:"),
            isolation_level="AUTOCOMMIT",
            poolclass=sa.NullPool,
        )
        with engine.connect() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def _run(self, program, *options):
        code = self._call(program, *options)
        assert code == 0, (self._folder / "output").read_text(encoding="utf-8")

    def _call(self, program, *options):
        command = [self._programs / program, "-D", self._folder / "data", *options]
        # not through a pipe: the server inherits it, and keeps it open
        with (self._folder / "output").open("w") as output:
            return subprocess.run(
                command, check=False, stdout=output, stderr=output, cwd=self._folder, **self._as
            ).returncode


@contextmanager
def started(folder=None):
    """Start a server of its own, in a new folder or this one; skip the test if there is none."""
    for module in ("sqlalchemy", "psycopg"):
        try:
            __import__(module)
        except ImportError:
            missing(module)
    programs()
    # not in a folder of pytest, which other users may not enter
    place = folder or Path(tempfile.mkdtemp())
    try:
        server = Server(place)
        server.start()
        yield server
        if server.is_running():
            server.stop("immediate")
    finally:
        if folder is None:
            shutil.rmtree(place)
