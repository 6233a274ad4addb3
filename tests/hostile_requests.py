"""Requests that the recipe of a server refuses, each with one clear answer."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from recipe_server import ROW, TOKEN, asked

PERSON = "Erika-Mustermann-1957"
"""Id in each hostile body, which no answer, line of a log or file may contain."""

LIMIT = 64 * 1024
"""Largest accepted body in bytes."""


@dataclass(frozen=True)
class Hostile:
    """A request, and what its refusal must be like.

    Parameters
    ----------
    name : str
        What is wrong with it.
    content : bytes
        Body.
    status : int
        Status of the refusal.
    field : str
        What the message must name.
    method, path : str
        First line of the request.
    headers : dict
        Headers in place of or beside those of a correct request; None removes one.
    is_chunked : bool
        Whether the body is sent in chunks, without a Content-Length.
    """

    name: str
    content: bytes
    status: int = 422
    field: str = ""
    method: str = "POST"
    path: str = "/forecasts"
    headers: tuple[tuple[str, str | None], ...] = ()
    is_chunked: bool = False

    def head(self) -> dict[str, str]:
        """Return all headers."""
        plain: dict[str, str | None] = {
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": "application/json",
        }
        return {name: value for name, value in (plain | dict(self.headers)).items() if value}


NOT_NUMBERS = ('"41"', '""', '"NaN"', "true", "[41]", '{"$gt": 0}', "NaN", "Infinity", "-Infinity")
HUGE = ("1e999", "-1e999", "9" * 400, "1" + "0" * 5000, "1e" + "9" * 300)
NOT_TEXT = ("1", "1.5", "true", "[]", '["north"]', "{}", '{"north": 1}', "NaN", "null")
NOT_BOOLEAN = ("0", "1", '"true"', '"yes"', '""', "[true]", "{}", "NaN", "null", "1.0")
NOT_DATES = ("20200103", "true", '["2020-01-03"]', "{}", "null", "NaN", "1577836800.0")
WRONG_DATES = (
    *("yesterday", "2020-13-01", "2020-02-30", "03/01/2020", "2020", "20200103", "2020-1-3"),
    *("-2020-01-03", "99999-01-01", "2020-01-03T25:00", "2020-01-03\u0000", "\u202e2020-01-03"),
    *("２０２０-01-03", "2020-01-03' OR 1=1 --", "0" * 5000),
)
HIDDEN = {
    **{"NUL": "\u0000", "newline": "\n", "tab": "\t", "escape": "\u001b[31m", "DEL": "\u007f"},
    **{"right-to-left override": "\u202e", "isolate": "\u2066", "left-to-right mark": "\u200e"},
    **{"zero-width space": "\u200b", "joiner": "\u200d", "byte order mark": "\ufeff"},
    **{"soft hyphen": "\u00ad", "no-break space": "\u00a0", "line separator": "\u2028"},
    **{"Hangul filler": "\u3164", "variation selector": "\ufe0f", "tag": "\U000e0041"},
    **{"noncharacter": "\uffff", "private use": "\ue000", "unassigned": "\U000e0fff"},
}


def forecast_body(**fields: str) -> bytes:
    """Return a body whose fields of the row are given as JSON text, so that any is possible."""
    row = {name: json.dumps(value) for name, value in ROW.items()} | fields
    listed = ", ".join(f"{json.dumps(name)}: {value}" for name, value in row.items())
    return f'{{"person": "{PERSON}", "row": {{{listed}}}}}'.encode()


def values() -> Iterator[Hostile]:
    """Yield a value of a wrong type or size for each column."""
    of_column = {
        "age": (*NOT_NUMBERS, *HUGE, "null"),
        "income": (*NOT_NUMBERS, *HUGE),
        "region": NOT_TEXT,
        "is new": NOT_BOOLEAN,
        "since": (*NOT_DATES, *map(json.dumps, WRONG_DATES)),
    }
    for name, wrong in of_column.items():
        for value in wrong:
            # numbers of thousands of digits are refused before fields are looked at
            field = name if len(value) < 2000 or value.startswith('"') else "number out of range"
            yield Hostile(f"{name} {value[:24]}", forecast_body(**{name: value}), field=field)


def fields() -> Iterator[Hostile]:
    """Yield rows with missing, unknown and repeated fields."""
    for name in ROW:
        row = {other: value for other, value in ROW.items() if other != name}
        yield Hostile(f"without {name}", as_json({"person": PERSON, "row": row}), field=name)
        value = json.dumps(ROW[name])
        twice = forecast_body(**{name: f"{value}, {json.dumps(name)}: {value}"})
        yield Hostile(f"{name} twice", twice, field=name)
    for name in ("age ", "AGE", "", "__proto__", "__class__", "person", "\u202eage", "a\u0000ge"):
        yield Hostile(f"unknown column {name!a}", as_json(asked(PERSON, **{name: 1})), field=name)
    yield Hostile("long name of a column", as_json(asked(PERSON, **{"x" * 9000: 1})), field="xxx")
    many = {f"x{i}": i for i in range(4000)}
    yield Hostile("thousands of columns", as_json(asked(PERSON, **many)), field="x")
    for name in ("person", "row"):
        body = asked(PERSON)
        twice = as_json(body)[:-1] + f', "{name}": '.encode() + as_json(body[name]) + b"}"
        yield Hostile(f"{name} twice", twice, field=name)
        del body[name]
        yield Hostile(f"without {name}", as_json(body), field=name)
    yield Hostile("unknown field", as_json(asked(PERSON) | {"r": 0.5}), field="r:")
    yield Hostile("own draw", as_json(asked(PERSON) | {"draw": 0.5}), field="draw")
    half = forecast_body()[:-2] + b', "\\ud800": 1}}'
    yield Hostile("half a surrogate as a name", half, field="JSON")
    many_times = b'{"person": "a", ' + b'"person": "a", ' * 4000 + forecast_body()[1:]
    yield Hostile("person thousands of times", many_times, field="person")
    for value in ("null", "[]", '"north"', "1", f"[{json.dumps(ROW)}]"):
        whole = f'{{"person": "{PERSON}", "row": {value}}}'.encode()
        yield Hostile(f"row {value[:20]}", whole, field="row")


def people() -> Iterator[Hostile]:
    """Yield ids of people that are refused."""
    for value in (1, 1.5, True, None, ["a"], {"a": 1}, [], {}):
        yield Hostile(f"person {value}", as_json(asked(PERSON) | {"person": value}), field="person")
    for name, hidden in HIDDEN.items():
        body = asked(f"{PERSON[:7]}{hidden}{PERSON[7:]}")
        yield Hostile(f"{name} in the id", as_json(body), field="person")
    for value in ("", " ", f" {PERSON}", f"{PERSON} ", "17.0", "1e+16", "\u0000", "x" * 201):
        yield Hostile(f"id {value[:24]!a}", as_json(asked(value)), field="person")
    yield Hostile("long id", as_json(asked(PERSON * 2500)), field="person")
    for half in ("\\ud800", "\\udc00", "\\udc00\\ud800", "\\ud800x"):
        body = as_json(asked("@")).replace(b"@", half.encode())
        yield Hostile(f"half a surrogate {half}", body, field="JSON")
    raw = as_json(asked("@")).replace(b"@", b"\xed\xa0\x80")
    yield Hostile("half a surrogate in bytes", raw, field="JSON")


def bodies() -> Iterator[Hostile]:
    """Yield bodies that are not one JSON object in UTF-8."""
    good = as_json(asked(PERSON))
    for wrong in (b"[]", b"null", b"true", b"1", b'"row"', b"[" + good + b"]"):
        yield Hostile(f"body {wrong[:8]!r}", wrong, field="body")
    invalid = {
        **{"empty": b"", "blank": b" \r\n", "cut off": good[:-1], "two": good + good},
        **{"comma": good[:-1] + b",}", "comment": b"// x\n" + good, "name": b"{person: 1}"},
        **{"quotes": good.replace(b'"', b"'"), "NUL": good + b"\0", "hex": b'{"person": 0x41}'},
        **{"NUL before": b"\0" + good, "binary": bytes(range(256)), "NaN": b"nan"},
        **{"leading zero": forecast_body(age="041"), "plus": forecast_body(age="+41")},
        **{"raw newline": good.replace(PERSON.encode(), b"a\nb"), "escape": b'{"\\x41": 1}'},
        **{"form": b"person=a&age=41", "XML": b'<!DOCTYPE a [<!ENTITY x "x">]><a>&x;</a>'},
        "pickle": b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94.",
        **{code: asked_in(code) for code in ("utf-16", "utf-16-le", "utf-32", "utf-8-sig")},
        "latin-1": as_json(asked("J\u00f6rg"), ensure_ascii=False).decode().encode("latin-1"),
        "overlong UTF-8": good.replace(PERSON.encode(), b"\xc0\xaf"),
        "gzip": gzip.compress(good),
    }
    for name, content in invalid.items():
        yield Hostile(f"{name} body", content, field="JSON")
    for depth in (300, 3000, 30_000):
        for left, right in (("[", "]"), ('{"a":', "}")):
            nested = (left * depth + "1" + right * depth)[: LIMIT - 500]
            field = "JSON"
            yield Hostile(f"depth {depth} {left}", nested.encode(), field=field)
            inside = forecast_body(region=nested)
            yield Hostile(f"region of depth {depth} {left}", inside, field=field)


def sizes() -> Iterator[Hostile]:
    """Yield bodies over the limit, with and without a Content-Length."""
    long = {
        "a byte over the limit": as_json(asked(PERSON)).ljust(LIMIT + 1),
        "a million bytes": as_json(asked(PERSON)).ljust(1_000_000),
        "ten million bytes": b"[" * 10_000_000,
        "depth 100,000": b"[" * 100_000 + b"]" * 100_000,
        "long column": as_json(asked(PERSON, region="x" * LIMIT)),
        "long number": forecast_body(age="9" * LIMIT),
    }
    for name, content in long.items():
        for is_chunked in (False, True):
            how = "in chunks" if is_chunked else "at once"
            yield Hostile(f"{name} {how}", content, 413, "body", is_chunked=is_chunked)


def addresses() -> Iterator[Hostile]:
    """Yield wrong methods, paths and content types."""
    good = as_json(asked(PERSON))
    for path in ("/forecasts", "/outcomes"):
        for method in ("GET", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"):
            yield Hostile(f"{method} {path}", good, 405, method=method, path=path)
    yield Hostile("POST /health", good, 405, path="/health")
    wrong_paths = (
        *("/", "/forecast", "/forecasts/", "//forecasts", "/forecasts//", "/FORECASTS"),
        *("/forecasts/../key", "/..%2f..%2fetc/passwd", "/%2e%2e/key", "/forecasts%00", "/key"),
        *("/forecasts;x=1", "/forecasts/1", "/%66orecasts/", "/forecasts%0d%0ax:%20y", "/\\key"),
        *("/docs", "/redoc", "/openapi.json", "/metrics", "/.env", "/" + "x" * 9000, "/%ff%fe"),
    )
    for path in wrong_paths:
        yield Hostile(f"path {path[:24]}", good, 404, path=path)
    for kind in (
        None,
        "text/plain",
        "text/json",
        "application/xml",
        "multipart/form-data; boundary=x",
    ):
        yield Hostile(
            f"content type {kind}", good, 415, "content-type", headers=(("Content-Type", kind),)
        )
    form = (("Content-Type", "application/x-www-form-urlencoded"),)
    yield Hostile("form", b"person=a", 415, "content-type", headers=form)


def credentials() -> Iterator[Hostile]:
    """Yield requests without the token, in place of which others are sent."""
    good = as_json(asked(PERSON))
    wrong = {
        **{"no token": None, "empty": "Bearer", "basic": f"Basic {TOKEN}"},
        **{"token alone": TOKEN, "another": "Bearer " + "x" * len(TOKEN), "null": "Bearer null"},
        **{
            "first half": f"Bearer {TOKEN[:-1]}",
            "more": f"Bearer {TOKEN}x",
            "case": f"Bearer {TOKEN.upper()}",
        },
        **{"twice": f"Bearer {TOKEN}, Bearer {TOKEN}", "long": "Bearer " + "x" * 8000},
        **{"quoted": f'Bearer "{TOKEN}"', "tab": f"Bearer\t{TOKEN}", "NaN": "Bearer NaN"},
    }
    for name, value in wrong.items():
        for path in ("/forecasts", "/outcomes"):
            header = (("Authorization", value),)
            yield Hostile(f"{name} on {path}", good, 401, "token", path=path, headers=header)
    none = ("Authorization", None)
    for name, header in (("cookie", ("Cookie", f"token={TOKEN}")), ("other", ("X-Token", TOKEN))):
        yield Hostile(f"token in a {name}", good, 401, "token", headers=(none, header))
    query = f"/forecasts?token={TOKEN}"
    yield Hostile("token in the address", good, 401, "token", path=query, headers=(none,))
    # refused before the body is looked at
    for name, content in (("no JSON", b"{"), ("large", b"x" * 1_000_000)):
        yield Hostile(f"{name}, no token", content, 401, "token", headers=(none,))


def outcomes() -> Iterator[Hostile]:
    """Yield outcomes that are refused."""
    for value in (*NOT_NUMBERS, *HUGE[:3], "null"):
        body = f'{{"id": "x", "y": {value}}}'.encode()
        yield Hostile(f"outcome {value[:24]}", body, field="y", path="/outcomes")
    for value in (1, True, None, ["x"], {"x": 1}, "x" * 201, "x" * 20_000):
        content = as_json({"id": value, "y": 1.5})
        yield Hostile(
            f"outcome of {as_json(value)[:24]!r}{len(content)}",
            content,
            field="id",
            path="/outcomes",
        )
    unknown = (
        "",
        "x",
        "' OR '1'='1",
        "'; DROP TABLE entries; --",
        "%",
        "\u0000",
        "\u202ex",
        "../key",
    )
    for value in unknown:
        content = as_json({"id": value, "y": 1.5})
        yield Hostile(f"outcome of unknown {value!a}", content, field="id", path="/outcomes")
    for body in ({"id": "x"}, {"y": 1.5}, {"id": "x", "y": 1.5, "time": "now"}):
        missing = ({"id", "y", "time"} & ({"id", "y"} ^ body.keys())).pop()
        yield Hostile(f"outcome with {[*body]}", as_json(body), field=missing, path="/outcomes")
    twice = b'{"id": "x", "y": 1.5, "y": 2.5}'
    yield Hostile("two outcomes", twice, field="y", path="/outcomes")


def as_json(value: Any, *, ensure_ascii: bool = True) -> bytes:
    return json.dumps(value, ensure_ascii=ensure_ascii).encode()


def asked_in(encoding: str) -> bytes:
    return json.dumps(asked(PERSON)).encode(encoding)


HOSTILE = [
    case
    for cases in (values, fields, people, bodies, sizes, addresses, credentials, outcomes)
    for case in cases()
]
