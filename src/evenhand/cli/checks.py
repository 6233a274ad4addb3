"""Checks of command-line options: no empty values, and no output that replaces an input."""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer

from evenhand._files import check_folder, link_target
from evenhand._format import and_more
from evenhand._validate import InputError, about, bad_input, named, short
from evenhand.cli.output import inform
from evenhand.cli.rooms import draws, service, store, tables


def refuse_blank(args: Sequence[str], with_value: Collection[str]) -> None:
    """Refuse an empty value of an option or argument, usually an unset shell variable.

    `with_value` are the options of the command that have a value.
    """
    # before typer parses the arguments, which accepts empty values
    for before, value in pairwise(["", *args]):
        name, equals, attached = value.partition("=")
        if not value.strip():
            name = before if before in with_value else "an argument"
        elif not (value.startswith("--") and equals and not attached.strip()):
            continue
        raise InputError(
            f"{name} is empty; check for an unset shell variable, give a value or leave it out"
        )


def given_options(options: typer.Context, parameters: Collection[str]) -> list[str]:
    """Return those options of some parameters that were given on the command line."""
    sources = {name: options.get_parameter_source(name) for name in parameters}
    return [named(name) for name, one in sources.items() if one and one.name == "COMMANDLINE"]


def refuse_without_effect(options: typer.Context, parameters: Collection[str], reason: str) -> None:
    """Refuse options that were given but have no effect."""
    for option in given_options(options, parameters):
        raise InputError(f"{option} has no effect {reason}; leave it out")


def listed_names(option: str, listed: str | None) -> list[str]:
    """Return the comma-separated names of an option; an empty list if it is not given."""
    if listed is None:
        return []
    names = [name.strip() for name in listed.split(",")]
    if not all(names):
        raise InputError(
            f"{option} {short(listed)} contains an empty name; separate names by single commas, and"
            " check for an unset shell variable"
        )
    return names


def described(pairs: Sequence[str]) -> dict[str, str]:
    """Return the texts of --about KEY=VALUE by key, in the order given."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, _, value = (part.strip() for part in pair.partition("="))
        if not key or not value:
            example = "write --about 'unit=mg per week'"
            raise bad_input("about", "have the form KEY=VALUE", short(pair), example)
        if key in found:
            raise InputError(f"--about repeats the key {key!r}; give each key once")
        found[key] = value
    return found


def check_apart(out: Path, inputs: Mapping[str, Path | None], option: str = "--out") -> None:
    """Refuse an output that is an input or another output, or in a folder of one or of a model.

    Links are followed, and files need not exist.
    """
    _check_not_read(out, inputs, option)
    written = link_target(out)
    for folder in (written, written.parent):
        if _is_model(folder):
            relation = "is" if folder == written else "lies in"
            raise InputError(f"{option} {out} {relation} a model folder; use another path")


def check_out(
    out: Path | None,
    inputs: Mapping[str, Path | None],
    endings: Sequence[str] = (),
    folder: Path | None = None,
) -> None:
    """Refuse a file or a folder of tables that cannot be written, or would replace an input."""
    if out is not None:
        check_apart(out, inputs)
        tables.check_writable(out, (".html", ".json", *endings))
    if folder is not None:
        check_apart(folder, inputs, option="--tables")
        check_folder(folder)


def _check_not_read(out: Path, inputs: Mapping[str, Path | None], option: str) -> None:
    """Refuse an output that is an input or lies in an input folder."""
    for what, path in inputs.items():
        if path is None:
            continue
        # writing follows a link and would replace its target
        written = link_target(out)
        is_inside = path.is_dir() and path.resolve() in (written, written.parent)
        files = [path, *(path.iterdir() if path.is_dir() else ())]
        # by inode: hard links and other spellings of a path lead to the same file
        is_same = out.exists() and any(one.exists() and out.samefile(one) for one in files)
        if is_inside or is_same or written == link_target(path):
            relation = "lies in" if path.is_dir() else "is the same file as"
            raise InputError(
                f"{option} {out} {relation} {what}, {path}, which it would overwrite; use another"
                " path"
            )


def _is_model(folder: Path) -> bool:
    """Whether this package wrote a model to a folder."""
    if not (folder / "model.json").exists():
        return False
    # imported here, as models need scikit-learn and audits of forecasts do not
    return store.is_model_folder(folder)


def own_folder(out: Path, table: Path, model: Path | None = None) -> Path:
    """Return the model folder to write: a new or empty one, or one that will be replaced.

    It must be none of the table and the model that are read.
    """
    _check_not_read(out, {"the table": table, "the model": model}, "--out")
    folder = check_folder(folder_to_write(out))
    # hidden files, such as those of file browsers, are ignored
    found = folder.iterdir() if folder.is_dir() and not _is_model(folder) else ()
    others = sorted(entry.name for entry in found if not entry.name.startswith("."))
    if others:
        listed = and_more(map(repr, others), 1)
        raise InputError(
            f"--out {out} contains {listed} and is not a model folder; use a new or empty folder"
        )
    return folder


def warn_of_replacement(folder: Path) -> None:
    """Warn of an output that will be replaced, before work that can still be interrupted."""
    if _is_model(folder):
        inform(
            f"warning: --out {folder} is a model folder, which is replaced when the new one is"
            " complete"
        )


def folder_to_write(out: Path) -> Path:
    """Return the folder to write: the target of a symbolic link, even of a dangling one."""
    # replacing the link would leave its target unchanged
    return link_target(out) if out.is_symlink() else out


MAKE_KEY_FILE = (
    "python -c \"import os, secrets; os.umask(0o77); open('KEYFILE',"
    " 'x').write(secrets.token_hex(32))\""
)
"""Command that creates a key file: the same bytes from any shell (some write `>` as UTF-16),
readable for the owner only, and never over another key."""

OTHERS = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH


def read_key(path: Path) -> bytes:
    """Return the key in a file of one line of printable ASCII, without the newline."""
    try:
        content = path.read_bytes()
        mode = path.stat().st_mode
    except OSError as error:
        raise InputError(f"{path}: the key file cannot be read ({error.strerror})") from error
    # editors add a newline, in different forms, which must not change the draws
    key = re.sub(rb"\r?\n\Z", b"", content)
    # other characters may be saved as other bytes later, which would change all draws; the key
    # itself is not shown, as messages may be logged
    if key and not re.fullmatch(rb"[!-~]([ -~]*[!-~])?", key):
        raise InputError(
            f"{path}: the key file must contain one line of printable ASCII characters, without"
            f" blanks at its ends and without a byte order mark; create one with: {MAKE_KEY_FILE}"
        )
    with about(str(path)):
        draws.check_key(key)
    # anyone who knows the key can compute the draws in advance, so only the owner should read it;
    # pipes have no permanent content
    if os.name == "posix" and stat.S_ISREG(mode) and mode & OTHERS:
        remedy = f"run: chmod 600 {shlex.quote(str(path))}"
        inform(f"warning: {path}: other users can read or change the key; {remedy}")
    return key


def draws_of(key_file: Path | None, context: str) -> draws.KeyedDraws | None:
    """Return the draws of a context; None without a key."""
    return None if key_file is None else draws.KeyedDraws(read_key(key_file), context)


def anchor_of(text: str | None) -> Any:
    """Return the last entry that an option NUMBER:SHA256 names; None without one."""
    if text is None:
        return None
    number, _, sha256 = text.partition(":")
    if not number.isdecimal() or len(sha256) != 64:
        rule = "be the number and hash of an entry, NUMBER:SHA256"
        raise bad_input("anchor", rule, short(text), "copy it from an earlier replay")
    return service.Head(int(number), sha256)
