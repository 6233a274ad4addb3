"""Between options and tables: columns, people, keys and draws in, forecasts and certificates out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand._checks import InputError, bad_input, check_column
from evenhand.cli._talk import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from evenhand.scale import Written
    from evenhand.selection import Selection

CERTIFICATE, REPORT = "certificate.json", "report.html"


def people_of(data: pd.DataFrame, id_column: str | None, cluster: str | None, source: str) -> Any:
    """Labels of people who have several rows, or None; an id that comes twice is refused."""
    from evenhand import tables

    if id_column is not None and cluster is None:
        ids = [str(value) for value in tables.id_column(data, id_column, source=source)]
        first: dict[str, int] = {}
        for row, value in enumerate(ids, start=1):
            if value in first:
                place = f"{source}: column {id_column!r}, row {row}"
                remedy = f"rows of one person are not independent; to take one row of each: --cluster {id_column}"
                raise InputError(f"{place}: {value} is the id of row {first[value]} too; {remedy}")
            first[value] = row
    return None if cluster is None else [str(value) for value in tables.id_column(data, cluster, source=source)]


def listed_names(listed: str | None) -> list[str]:
    return [name.strip() for name in (listed or "").split(",") if name.strip()]


def chosen_columns(
    option: str, listed: str | None, parts: dict[str, str], present: Sequence[str], source: str
) -> list[str]:
    """Columns that an option lists: all of them there, each once, and none that has another part in the audit."""
    names = [check_column(name, present, source) for name in dict.fromkeys(listed_names(listed))]
    for name in names:
        if name in parts:
            is_target = parts[name] == "target"
            remedy = "groups that outcomes define look wrong in any model" if is_target else "it only names people"
            raise bad_input(option, f"leave out the --{parts[name]} column", repr(name), remedy)
    return names


def parse_levels(listed: str) -> list[float]:
    try:
        levels = [float(level) for level in listed_names(listed)]
    except ValueError as error:
        raise bad_input("--levels", "be numbers with commas between", repr(listed)) from error
    if not levels or not all(0 < level < 1 for level in levels) or sorted(set(levels)) != levels:
        remedy = "fractions everywhere: 0.9, not 90"
        raise bad_input("--levels", "increase and lie strictly between 0 and 1", repr(listed), remedy)
    return levels


def read_key(path: Path) -> bytes:
    from evenhand.draws import MIN_KEY_BYTES

    try:
        key = path.read_bytes().strip(b"\r\n")
    except OSError as error:
        raise InputError(f"{path}: the key file cannot be read ({error.strerror})") from error
    if len(key) < MIN_KEY_BYTES:
        remedy = "make one with: python -c 'import secrets; print(secrets.token_hex(32))' > KEYFILE"
        raise InputError(f"{path}: the key has {len(key)} bytes and must have at least {MIN_KEY_BYTES}; {remedy}")
    return key


def tell_written(done: Written, what: str, out: Path) -> None:
    """Say what was written, and warn of ids that come more than once: their rows share a draw."""
    if done.repeated is not None:
        value, count, n_repeated = done.repeated
        others = f"; repeated ids in all: {n_repeated:,}" if n_repeated > 1 else ""
        say(f"warning: {count:,} rows share the id {value!r} and so one draw{others}")
    for why in done.skipped.values():
        say(f"warning: part left out: {why}")
    say(f"{done.n_rows:,} {what} are in {out}")


def write_certificate(chosen: Selection, people: list[str] | None, out: Path) -> None:
    """Write what was certified, on whom, and of which model: its hash is the one that `model.json` holds."""
    import json

    from evenhand import __version__
    from evenhand._files import replace_file

    rows = chosen.certifying
    on = {"rows": (rows + 1).tolist()} if people is None else {"ids": [people[row] for row in rows]}
    content = {
        "statement": chosen.summary().partition("\n")[0],
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
        "model_sha256": json.loads((out / "model.json").read_text())["sha256"],
        "written_by": f"evenhand {__version__}",
    }
    replace_file(out / CERTIFICATE, (json.dumps(content, indent=2) + "\n").encode())


def save_uncertified(model: Any, out: Path) -> None:
    from evenhand import store

    for name in (CERTIFICATE, REPORT):
        (out / name).unlink(missing_ok=True)  # that of an older model proves nothing about this one
    store.save(model, out)
