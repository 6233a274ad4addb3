"""The recipe of a server: its answers, its refusals, and what it keeps secret."""

from __future__ import annotations

import json
import socket
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import httpx
import pytest

from evenhand.service import open_log, verify
from hostile_requests import HOSTILE, LIMIT, PERSON, Hostile
from recipe_server import (
    HEADERS,
    KEY,
    RECIPE,
    ROW,
    TOKEN,
    Server,
    asked,
    make_setting,
    running,
)

pytestmark = pytest.mark.skipif(not RECIPE.exists(), reason="the documentation is not here")

OK, UNPROCESSABLE = 200, 422


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_setting(tmp_path_factory.mktemp("recipe"))


@pytest.fixture(scope="module")
def server(setting: Path) -> Iterator[Server]:
    with running(Server(setting, str(setting / "log.sqlite"), setting / "output")) as started:
        yield started


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx.Client]:
    with server.client() as opened:
        yield opened


def test_answer_has_the_forecast(client: httpx.Client, setting: Path) -> None:
    from evenhand import load
    from evenhand.draws import KeyedDraws

    answer = client.post("/forecasts", json=asked("Ada"))
    assert answer.status_code == OK
    served = answer.json()
    (r,) = KeyedDraws(KEY.encode(), served["context"])(["Ada"])
    assert served["r"] == pytest.approx(r, abs=1e-12)
    import pandas as pd

    table = pd.DataFrame([ROW]).assign(income=float("nan"), since=pd.Timestamp(ROW["since"]))
    forecast = load(setting / "model").forecast(table, r=r)
    for level, value in served["quantiles"].items():
        assert value == pytest.approx(forecast.ppf(float(level)).item(), rel=1e-9)


def test_missing_values_are_accepted_where_training_had_some(client: httpx.Client) -> None:
    answers = [client.post("/forecasts", json=asked("Bo", income=x)) for x in (None, 1e4)]
    assert [answer.status_code for answer in answers] == [OK, OK]
    first, second = (answer.json() for answer in answers)
    assert first["r"] == second["r"]
    assert first["id"] != second["id"]


def test_same_person_has_the_same_answer_from_all_processes(server: Server, setting: Path) -> None:
    together = Barrier(32)

    def ask(client: httpx.Client) -> dict[str, Any]:
        together.wait()
        return client.post("/forecasts", json=asked("Cleo")).raise_for_status().json()

    other = Server(setting, server.log, setting / "output of another")
    with running(other), server.client() as first, other.client() as second:
        with ThreadPoolExecutor(32) as pool:
            answers = list(pool.map(ask, [first, second] * 16))
        other.stop()
        other.start()
        answers.append(other.forecast("Cleo"))
    assert len({answer["id"] for answer in answers}) == 1
    assert [answer["is_repeated"] for answer in answers].count(False) == 1
    for answer in answers:
        assert answer | {"is_repeated": None} == answers[0] | {"is_repeated": None}
    log = open_log(server.log)
    logged = Counter(entry.id for entry in log.entries(kind="forecast"))
    assert logged[answers[0]["id"]] == 1
    verify(log)


def test_outcomes_are_logged(client: httpx.Client, server: Server) -> None:
    served = server.forecast("Dora")
    answer = client.post("/outcomes", json={"id": served["id"], "y": 4.25})
    assert answer.status_code == OK
    *_, last = open_log(server.log).entries(kind="outcome")
    assert (last.id, last.values["y"]) == (served["id"], 4.25)
    # clients need not know where the log is
    refused = client.post("/outcomes", json={"id": "5f3c", "y": 4.25})
    assert refused.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert refused.json()["detail"].startswith("the log has no forecast '5f3c'; give the id")


def test_only_the_state_of_health_needs_no_token(server: Server) -> None:
    with httpx.Client(base_url=server.url) as stranger:
        assert stranger.get("/health").status_code == OK
        for path in ("/forecasts", "/outcomes"):
            answer = stranger.post(path, json=asked("Ada"))
            assert answer.status_code == httpx.codes.UNAUTHORIZED
            assert answer.headers["www-authenticate"] == "Bearer"


def send(client: httpx.Client, case: Hostile) -> httpx.Response:
    """Send a request without the defaults of the client."""
    content: Any = case.content
    if case.is_chunked:
        content = (case.content[i : i + 8000] for i in range(0, len(case.content), 8000))
    request = httpx.Request(case.method, str(client.base_url).rstrip("/"), content=content)
    request.headers = httpx.Headers(case.head() | framing(request))
    # not normalized, and with any characters
    request.url = httpx.URL(request.url).copy_with(raw_path=case.path.encode())
    return client.send(request)


def framing(request: httpx.Request) -> dict[str, str]:
    """Return the headers that HTTP itself needs."""
    names = ("Host", "Content-Length", "Transfer-Encoding")
    return {name: request.headers[name] for name in names if name in request.headers}


def test_hostile_requests_are_many_and_different() -> None:
    assert len(HOSTILE) >= 200
    assert len({case.name for case in HOSTILE}) == len(HOSTILE)


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: ascii(case.name))
def test_hostile_request_has_one_clear_answer(client: httpx.Client, case: Hostile) -> None:
    answer = send(client, case)
    assert answer.status_code == case.status, answer.text
    # an error of HTTP itself, or one line that names the field
    detail = answer.json()["detail"]
    assert isinstance(detail, str)
    assert case.field in detail
    assert len(detail.splitlines()) == 1
    assert len(detail) < 600
    for secret in (PERSON, KEY, KEY.encode().hex(), TOKEN, "Traceback", str(RECIPE.parent)):
        assert secret not in answer.text


def raw(server: Server, sent: bytes, *, waits: bool = True) -> bytes:
    """Send bytes as they are; return the first part of the answer."""
    url = httpx.URL(server.url)
    with socket.create_connection((url.host, url.port or 80), timeout=20) as connection:
        connection.sendall(sent)
        return connection.recv(65_536) if waits else b""


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\0" * 100,
        b"POST /forecasts HTTP/1.1\r\n\r\n",
        b"POST /forecasts HTTP/9.9\r\nHost: x\r\n\r\n",
        b"POST /forecasts HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /forecasts HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /forecasts HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: x\r\n\r\n",
        b"POST /forecasts HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 100_000 + b"\r\n\r\n",
        b"POST /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /fore casts HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /forecasts HTTP/1.1\r\nHost: x\r\nA\0: x\r\n\r\n",
    ],
)
def test_other_bytes_than_http_are_refused(server: Server, sent: bytes) -> None:
    assert raw(server, sent).split(b" ", 2)[1].startswith((b"4", b"5"))


def test_length_that_is_not_sent_is_refused_once_the_limit_is_read(server: Server) -> None:
    lines = [b"POST /forecasts HTTP/1.1", b"Host: x", b"Content-Type: application/json"]
    lines += [f"Authorization: Bearer {TOKEN}".encode(), b"Content-Length: 99999999999", b"", b""]
    answer = raw(server, b"\r\n".join(lines) + b"[" * (LIMIT + 1))
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_clients_that_leave_cause_no_error(server: Server) -> None:
    head = f"POST /forecasts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 300\r\n\r\n"
    body = json.dumps(asked(PERSON)).encode()
    for sent in (head.encode(), head.encode() + body[:50], head.encode() + body):
        raw(server, sent, waits=False)
    assert server.client().get("/health").status_code == OK
    assert "Traceback" not in server.printed()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_hostile_requests_take_no_memory(server: Server) -> None:
    with server.client() as client:
        small = [case for case in HOSTILE if len(case.content) < 1_000_000]

        def memory_after(rounds: range) -> int:
            for i in rounds:
                for j, case in enumerate(small):
                    send(client, case)
                    if j % 10 == 0:  # accepted, though the model has not seen such values
                        strange = {"region": f"{i} {j} {'x' * 500}", "age": 10.0 ** (j % 30)}
                        client.post("/forecasts", json=asked(f"{PERSON}-{i}", **strange))
            return server.memory()

        # caches and the allocator are filled by then
        before = memory_after(range(2))
        after = memory_after(range(2, 12))
    n_sent = 10 * sum(len(case.content) for case in small)
    # 1.5 kB of each request; pages of the allocator vary by 2 MB
    assert after - before < n_sent / 3


def test_secrets_are_nowhere(server: Server, setting: Path) -> None:
    served = server.forecast(PERSON)
    with server.client() as client:
        client.post("/outcomes", json={"id": served["id"], "y": 1.0})
        for case in HOSTILE[::5]:
            send(client, case)
    printed = server.printed()
    assert "Traceback" not in printed
    files = {path.name: path.read_bytes() for path in setting.glob("log.sqlite*")}
    assert files
    for text in (json.dumps(served).encode(), printed.encode(), *files.values()):
        for secret in (PERSON.encode(), KEY.encode(), KEY.encode().hex().encode(), TOKEN.encode()):
            assert secret not in text


def test_server_still_answers(server: Server) -> None:
    assert server.forecast("Emil")["quantiles"]
    verify(open_log(server.log))
    assert HEADERS["Authorization"] not in server.printed()
