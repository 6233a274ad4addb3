"""The recipe of a server: its answers, its refusals, what it keeps secret, and kills."""

import importlib.util
import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient

from evenhand import Service
from evenhand.draws import KeyedDraws
from evenhand.service import open_log, verify
from recipe_server import (
    CONTEXT,
    HEADERS,
    KEY,
    RECIPE,
    ROW,
    TOKEN,
    Load,
    Server,
    asked,
    check_logged,
    environment,
    make_setting,
    running,
)
from repeats import repeats, statistical

pytestmark = pytest.mark.skipif(not RECIPE.exists(), reason="the documentation is not here")

OK = 200
PERSON = "Erika-Mustermann-1957"
"""Id in each bad request, which no answer or file may contain."""


@dataclass
class Recipe:
    """The recipe in this process, without a server."""

    client: httpx.Client
    module: Any
    setting: Path

    @property
    def log(self):
        return self.setting / "log.sqlite"


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    return make_setting(tmp_path_factory.mktemp("recipe"))


@pytest.fixture(scope="module")
def recipe(setting):
    spec = importlib.util.spec_from_file_location("serve", RECIPE)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(setting, str(setting / "log.sqlite")).items():
            patch.setenv(name, value)
        spec.loader.exec_module(module)
    with TestClient(module.app, headers=HEADERS) as client:
        yield Recipe(client, module, setting)
    module.service.close()


def test_an_answer_is_that_of_the_service_and_is_logged(recipe, tmp_path):
    answer = recipe.client.post("/forecasts", json=asked("Ada"))
    assert answer.status_code == OK
    served = answer.json()
    again = recipe.client.post("/forecasts", json=asked("Ada")).json()
    assert again == served | {"is_repeated": True}
    log = open_log(tmp_path / "other.sqlite")
    with closing(Service(recipe.setting / "model", KeyedDraws(KEY.encode(), CONTEXT), log)) as own:
        expected = own.forecast("Ada", ROW).to_dict()
    assert served | {"time": "", "number": 0} == expected | {"time": "", "number": 0}
    with closing(open_log(recipe.log, create=False)) as opened:
        check_logged(opened, [("Ada", served)])


def test_missing_values_are_accepted_where_training_had_some(recipe):
    for income in (None, 1e4):
        assert recipe.client.post("/forecasts", json=asked("Bo", income=income)).status_code == OK


def test_outcomes_are_logged(recipe):
    served = recipe.client.post("/forecasts", json=asked("Dora")).json()
    assert recipe.client.post("/outcomes", json={"id": served["id"], "y": 4.25}).status_code == OK
    *_, last = recipe.module.service.log.entries(kind="outcome")
    assert (last.id, last.values["y"]) == (served["id"], 4.25)


def test_only_the_state_of_health_needs_no_token(recipe):
    with TestClient(recipe.module.app) as stranger:
        assert stranger.get("/health").status_code == OK
        for header in ({}, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": TOKEN}):
            for path in ("/forecasts", "/outcomes"):
                # refused before the body is looked at
                answer = stranger.post(path, content=b"{", headers=header)
                assert answer.status_code == httpx.codes.UNAUTHORIZED
                assert answer.headers["www-authenticate"] == "Bearer"


def with_field(name, text):
    """Return a body in which a field of the row is given as JSON text."""
    row = {one: json.dumps(value) for one, value in ROW.items()} | {name: text}
    listed = ", ".join(f'"{one}": {value}' for one, value in row.items())
    return f'{{"person": "{PERSON}", "row": {{{listed}}}}}'.encode()


def as_json(value):
    return json.dumps(value).encode()


GOOD = as_json(asked(PERSON))
BAD = {
    "text for a number": (with_field("age", '"41"'), 422, "age"),
    "true for a number": (with_field("age", "true"), 422, "age"),
    "not a number": (with_field("age", "NaN"), 422, "age"),
    "infinite": (with_field("age", "1e999"), 422, "age"),
    "null where training had no missing values": (with_field("age", "null"), 422, "age"),
    "a number for text": (with_field("region", "1"), 422, "region"),
    "a date that does not exist": (with_field("since", '"2020-02-30"'), 422, "since"),
    "an unknown column": (with_field("person", "1"), 422, "person"),
    "a column twice": (with_field("age", '41, "age": 41'), 422, "age"),
    "a row without a column": (as_json({"person": PERSON, "row": {"age": 41}}), 422, "income"),
    "an own draw": (as_json(asked(PERSON) | {"draw": 0.5}), 422, "draw"),
    "a hidden character in the id": (as_json(asked(f"{PERSON}\u202e")), 422, "person"),
    "an id that is too long": (as_json(asked(PERSON * 20)), 422, "person"),
    "no object": (b"[" + GOOD + b"]", 422, "body"),
    "no JSON": (GOOD[:-1], 422, "JSON"),
    "a byte over the limit": (GOOD.ljust(64 * 1024 + 1), 413, "body"),
    "a deep body": (b"[" * 30_000, 422, "JSON"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_request_has_one_line_that_names_the_field(recipe, case):
    content, status, field = BAD[case]
    kind = {"Content-Type": "application/json"}
    check_refused(recipe.client.post("/forecasts", content=content, headers=kind), status, field)


def check_refused(answer, status, field):
    assert answer.status_code == status, answer.text
    detail = answer.json()["detail"]
    assert field in detail
    assert len(detail.splitlines()) == 1
    assert len(detail) < 600
    for secret in (PERSON, KEY, KEY.encode().hex(), TOKEN, "Traceback", str(RECIPE.parent)):
        assert secret not in answer.text


def test_other_bad_requests_have_one_line_too(recipe):
    text = {"Content-Type": "text/plain"}
    wrong_type = recipe.client.post("/forecasts", content=GOOD, headers=text)
    check_refused(wrong_type, 415, "content-type")
    unknown = recipe.client.post("/outcomes", json={"id": "5f3c", "y": 4.25})
    # clients need not know where the log is
    check_refused(unknown, 422, "the log has no forecast '5f3c'; give the id")


def test_secrets_are_in_no_answer_and_no_file(recipe):
    served = recipe.client.post("/forecasts", json=asked(PERSON)).json()
    recipe.client.post("/outcomes", json={"id": served["id"], "y": 1.0})
    files = {path.name: path.read_bytes() for path in recipe.setting.glob("log.sqlite*")}
    assert files
    for text in (json.dumps(served).encode(), *files.values()):
        for secret in (PERSON.encode(), KEY.encode(), KEY.encode().hex().encode(), TOKEN.encode()):
            assert secret not in text


def test_requests_are_refused_while_the_log_cannot_be_used(recipe):
    away = recipe.log.with_name("away.sqlite")
    recipe.log.rename(away)
    try:
        refusal = recipe.client.post("/forecasts", json=asked("Fay"))
    finally:
        away.rename(recipe.log)
    check_refused(refusal, 503, "the decision log cannot be used; try again later")
    assert recipe.client.post("/forecasts", json=asked("Fay")).status_code == OK
    assert verify(recipe.module.service.log).n_entries > 0


@statistical
@pytest.mark.timeout(3000)
def test_no_answer_is_lost_when_the_server_is_killed(setting, tmp_path):
    rng = np.random.default_rng(0)
    server = Server(setting, str(tmp_path / "log.sqlite"), tmp_path / "out", ("--workers", "2"))
    answers = []
    # in a short run once: two workers take seconds to start
    for i in range(repeats(24, shorter=24)):
        with running(server), Load(server, f"kill {i}") as load:
            load.wait_for(int(rng.integers(1, 100)))
            server.kill()
        answers += load.answers
    with closing(open_log(server.log, create=False)) as opened:
        assert check_logged(opened, answers) >= len(answers)
    assert "Traceback" not in server.printed()
