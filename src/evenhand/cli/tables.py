"""Between options and tables.

Columns, people, keys and draws in, forecasts and certificates out.
"""

from __future__ import annotations

import codecs
import os
import re
import shlex
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand._validate import InputError, about, bad_input, check_column
from evenhand.cli.messages import say
from evenhand.cli.options import listed_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from evenhand.scale import Written
    from evenhand.selection import Selection

MAKE_KEY_FILE = (
    "python -c \"import os, secrets; os.umask(0o77); open('KEYFILE',"
    " 'x').write(secrets.token_hex(32))\""
)
"""Writes the same bytes from any shell (some write `>` as UTF-16), for the owner alone, and
never over another key."""

# UTF-32 first: its mark begins with that of UTF-16
MARKS = {
    codecs.BOM_UTF8: "UTF-8",
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}

OTHERS = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH


def people_of(
    data: pd.DataFrame, id_column: str | None, cluster: str | None, source: str
) -> list[str] | None:
    """Labels of the people of the rows: from --cluster, or else from --id, which must not repeat.

    None without.
    """
    from evenhand import tables
    from evenhand._ids import id_text

    column = id_column if cluster is None else cluster
    if column is None:
        return None
    labels = tables.id_column(data, column, source=source)
    if cluster is None:
        tables.refuse_repeated(labels, column, source=source)
    return [id_text(label) for label in labels]


def chosen_columns(
    option: str, listed: str | None, parts: dict[str, str], present: Sequence[str], source: str
) -> list[str]:
    """Columns that an option lists.

    All of them there, each once, and none that has another part in the audit.
    """
    names = [
        check_column(name, present, source) for name in dict.fromkeys(listed_names(option, listed))
    ]
    for name in names:
        if name in parts:
            is_target = parts[name] == "target"
            remedy = (
                "groups that outcomes define look wrong in any model"
                if is_target
                else "it only names people"
            )
            raise bad_input(option, f"leave out the --{parts[name]} column", repr(name), remedy)
    return names


def parse_levels(listed: str) -> list[float]:
    names = listed_names("--levels", listed)
    try:
        levels = [float(level) for level in names]
    except ValueError as error:
        raise bad_input("--levels", "be numbers with commas between", repr(listed)) from error
    if not all(0 < level < 1 for level in levels) or sorted(set(levels)) != levels:
        remedy = "fractions everywhere: 0.9, not 90"
        raise bad_input(
            "--levels", "increase and lie strictly between 0 and 1", repr(listed), remedy
        )
    return levels


def read_key(path: Path) -> bytes:
    """Return the key of a file that holds one line of printable ASCII.

    A final newline is not part of it.

    Anything else can turn into other bytes when it is saved again, and other bytes are another draw
    for everybody.
    """
    from evenhand.draws import MIN_KEY_BYTES, check_key

    try:
        content = path.read_bytes()
        mode = path.stat().st_mode
    except OSError as error:
        raise InputError(f"{path}: the key file cannot be read ({error.strerror})") from error
    key = re.sub(rb"\r?\n\Z", b"", content)
    remedy = f"make one with: {MAKE_KEY_FILE}"
    if found := _unclear(key):
        rule = (
            "the key file must hold one line of printable ASCII characters without blanks around it"
        )
        raise InputError(f"{path}: {rule}, got {found}; write the key again so, or {remedy}")
    if len(key) < MIN_KEY_BYTES:
        raise InputError(
            f"{path}: the key has {len(key)} bytes and must have at least {MIN_KEY_BYTES}; {remedy}"
        )
    with about(str(path)):
        check_key(key)
    if os.name == "posix" and stat.S_ISREG(mode) and mode & OTHERS:
        remedy = f"run: chmod 600 {shlex.quote(str(path))}"
        say(f"warning: {path}: others than the owner can read or change the key; {remedy}")
    return key


def _unclear(key: bytes) -> str | None:
    """Name what a key file holds besides the key; the key itself is not shown."""
    for mark, encoding in MARKS.items():
        if key.startswith(mark):
            return f"a byte order mark ({encoding})"
    if b"\0" in key:
        return "NUL bytes, as UTF-16 and binary keys have"
    if b"\n" in key or b"\r" in key:
        return "several lines"
    if key != key.strip(b" \t"):
        return "blanks at an end"
    wrong = [place for place, byte in enumerate(key, start=1) if not 0x20 <= byte <= 0x7E]
    return f"another character (byte {wrong[0]} of {len(key)})" if wrong else None


def name_like(X: pd.DataFrame) -> list[str]:
    """Name features that are most likely names of rows: text that differs in every row."""
    from evenhand._validate import MIN_DISTINCT
    from evenhand.tables import is_text

    return [
        f"column {name!r} has another text in every row and is used as a feature; "
        "if it names people, give it as --id, otherwise leave it out with --drop"
        for name, values in X.items()
        if len(X) >= MIN_DISTINCT and is_text(values) and values.nunique() == len(X)
    ]


def tell_written(done: Written, what: str, out: Path) -> None:
    """Say what was written, and warn of ids that come more than once: their rows share a draw."""
    if done.repeated is not None:
        value, count, n_repeated = done.repeated
        others = f"; repeated ids in all: {n_repeated:,}" if n_repeated > 1 else ""
        say(
            f"warning: {count:,} rows share the id {value!r} and so one draw, the first in"
            f" {done.repeated_in}{others}"
        )
    for line in done.unseen.lines():
        say(f"warning: {line}")
    for why in done.skipped.values():
        say(f"warning: part left out: {why}")
    written = (
        f"1 {what.removesuffix('s')} is" if done.n_rows == 1 else f"{done.n_rows:,} {what} are"
    )
    say(f"{written} in {out}; the fingerprint of the key is {done.key}")


def certificate_of(chosen: Selection, people: list[str] | None) -> dict[str, Any]:
    """Return what was certified, and on whom: a number and a salted hash, which name nobody."""
    from evenhand import __version__, store

    rows = chosen.certifying
    if people is None:
        on = store.people_record((rows + 1).tolist(), "rows")
    else:
        on = store.people_record([people[row] for row in rows], "ids")
    return {
        "statement": chosen.statement,
        "alpha": chosen.alpha,
        "link": chosen.model.link,
        "n_certifying": chosen.n_certifying,
        "n_learning": chosen.n_learning,
        "max_group_error": chosen.max_group_error,
        "group_mass": chosen.group_mass,
        "confidence": chosen.confidence,
        "price": chosen.price,
        "assumes": list(chosen.certificate.assumptions),
        "does_not_cover": list(chosen.certificate.not_covered),
        "certified_on": on,
        "written_by": f"evenhand {__version__}",
    }
