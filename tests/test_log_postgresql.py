"""Decision logs in PostgreSQL: rights, durability, processes and servers that are killed."""

from contextlib import suppress

import pytest

from complaints import refused
from evenhand.service import open_log, verify
from full_disks import fill, small_disk
from log_writers import adding, check_log, confirmed_after_kills, filled, forecast
from postgresql_server import PASSWORD, QUOTED, started
from repeats import repeats, statistical

sa = pytest.importorskip("sqlalchemy", reason="needs evenhand[service]")


@pytest.fixture
def url(postgresql):
    return postgresql.new_database()


@pytest.fixture
def log(url):
    opened = open_log(url)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def mortal():
    """Start a server to be killed, with few files to recover."""
    with started() as server:
        yield server


def value_of(url, query):
    engine = sa.create_engine(
        url.replace("postgresql:", "postgresql+psycopg:"), poolclass=sa.NullPool
    )
    with engine.connect() as connection:
        return str(connection.exec_driver_sql(query).scalar())


def test_entries_are_flushed_where_the_server_need_not(log, url):
    """The server of these tests answers by default before an entry is on disk."""
    assert value_of(url, "SHOW synchronous_commit") == "off"
    shown = log.run(lambda t: t.connection.exec_driver_sql("SHOW synchronous_commit"))
    assert shown.scalar() == "on"


def test_the_database_refuses_changes(postgresql, log, url):
    filled(log, 5)
    for statement in (
        "UPDATE entries SET content = '{}' WHERE number = 3",
        "DELETE FROM entries WHERE number = 5",
        "TRUNCATE entries",
        "INSERT INTO entries SELECT * FROM entries WHERE number = 5 ON CONFLICT (number)"
        " DO UPDATE SET content = ''",
    ):
        with pytest.raises(sa.exc.DBAPIError, match="entries of a decision log never change"):
            postgresql.execute(statement, url=url)
    assert verify(log).n_entries == 5


def test_a_user_who_may_only_append_can_serve(postgresql, log, url):
    database = url.rpartition("/")[2]
    postgresql.execute(
        f"CREATE ROLE app_{database} LOGIN PASSWORD 'pw'",
        f"GRANT SELECT, INSERT ON entries, log_format TO app_{database}",
        f"CREATE ROLE reader_{database} LOGIN PASSWORD 'pw'",
        f"GRANT SELECT ON entries, log_format TO reader_{database}",
        url=url,
    )
    app = open_log(postgresql.url(database, f"app_{database}", "pw"))
    filled(app, 2)
    assert verify(log).n_entries == 2
    with pytest.raises(sa.exc.DBAPIError, match="permission denied"):
        postgresql.execute(
            "DELETE FROM entries", url=postgresql.url(database, f"app_{database}", "pw")
        )
    reader = open_log(postgresql.url(database, f"reader_{database}", "pw"), create=False)
    assert verify(reader).n_entries == 2
    message = "permission denied for table entries"
    refused(message, reader.run, lambda t: t.add(forecast("x")))
    app.close()
    reader.close()


def test_what_cannot_be_opened_is_refused_in_one_line_without_the_password(postgresql):
    other = postgresql.new_database()
    postgresql.execute("CREATE TABLE people (id int)", url=other)
    newer = postgresql.new_database()
    postgresql.execute(
        "CREATE TABLE log_format (version int)", "INSERT INTO log_format VALUES (2)", url=newer
    )
    empty = postgresql.new_database()
    wrong = postgresql.url(password=QUOTED + "x")
    for where, message in [
        (other, r"a database with other tables \(people\); name a decision log"),
        (newer, "has version 2 of decision logs"),
        (empty, "is empty; name a decision log"),
        (postgresql.url("nowhere"), 'database "nowhere" does not exist'),
        (wrong, "password authentication failed"),
        (f"postgresql://me:{QUOTED}@127.0.0.1:1/base", "[Cc]onnection refused.*; check the server"),
        (f"postgresql:///base?host=/none&password={QUOTED}", "cannot be used .*; check the server"),
        (f"postgresql://127.0.0.1:{postgresql.port}/b?nonsense={QUOTED}", "nonsense"),
    ]:
        told = refused(message, open_log, where, create=False)
        if "nonsense" not in where:
            assert PASSWORD not in told
            assert QUOTED not in told


def test_a_server_killed_during_a_request_loses_nothing_that_was_confirmed(mortal):
    log = open_log(mortal.new_database())
    filled(log, 3)
    head = log.head()

    def work(transaction):
        transaction.add(forecast("unconfirmed"))
        mortal.stop("immediate")

    try:
        refused("cannot be used", log.run, work)
        for use in (log.head, lambda: log.run(lambda t: t.add(forecast("lost")))):
            refused("check the server and the URL", use)
    finally:
        mortal.start()
    assert log.head() == head
    log.run(lambda t: t.add(forecast("later")))
    assert [entry.values["name"] for entry in log.entries()] == ["0", "1", "2", "later"]
    assert verify(log).n_entries == 4
    log.close()


@statistical
def test_servers_killed_under_writers_lose_nothing_that_was_confirmed(mortal, writers, tmp_path):
    """No entry may be lost in any round: there is no false alarm."""
    confirmed_after_kills(
        writers,
        mortal.new_database(),
        tmp_path,
        rounds=repeats(24, least=3),
        strike=lambda: mortal.stop("immediate"),
        recover=mortal.start,
    )


def test_a_full_disk_under_the_server_keeps_what_was_confirmed():
    with small_disk(150) as disk, started(disk) as server:
        log = open_log(server.new_database())
        log.run(adding("first"))
        ballast = disk / "ballast"
        with suppress(OSError), ballast.open("wb") as file:
            for _ in range(150):
                file.write(bytes(2**20))
        confirmed, error = fill(log)
        assert "free space" in str(error) or "check the server" in str(error)
        ballast.unlink()
        if not server.is_running():  # a server that cannot write its own log stops itself
            server.start()
        log.run(adding("later"))
        check_log(log, ["first", *confirmed, "later"], n_unconfirmed=1)
        log.close()
