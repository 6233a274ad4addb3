"""Checks of options before any work: no empty values, and no output that replaces an input."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from evenhand._files import link_target
from evenhand._validate import bad_input


def refuse_blank(args: Sequence[str], flags: set[str]) -> None:
    """Refuse an empty value of an option or argument: most often a shell variable that is not set.

    Parameters
    ----------
    args : sequence of str
        Arguments of the command.
    flags : set of str
        Options that take no value.
    """
    # before typer parses: it would take an empty value for one that was given
    for before, value in pairwise(["", *args]):
        name, equals, attached = value.partition("=")
        if value.startswith("--") and equals and not attached.strip():
            option = name
        elif not value.strip():
            option = (
                before
                if before.startswith("--") and "=" not in before and before not in flags
                else "an argument"
            )
        else:
            continue
        remedy = "a variable of the shell may not be set; give a value, or leave the option out"
        raise bad_input(option, "have a value", "an empty one", remedy)


def listed_names(option: str, listed: str | None) -> list[str]:
    """Return the names that an option lists with commas between; none if it is not given."""
    if listed is None:
        return []
    names = [name.strip() for name in listed.split(",")]
    if not all(names):
        remedy = "a variable of the shell may not be set; write one comma between two names"
        raise bad_input(option, "list names with commas between", repr(listed), remedy)
    return names


def check_apart(out: Path, inputs: Mapping[str, Path | None]) -> None:
    """Refuse an output that is one of the inputs or lies in an input folder, through links as well.

    Parameters
    ----------
    out : Path
        File or folder to write.
    inputs : dict of str to Path or None
        What the command reads, by what it is; paths that are not there are left to those who read
        them.
    """
    for what, path in inputs.items():
        if path is None or not path.exists():
            continue
        # a link is written through, so its target is what would be replaced
        written = link_target(out)
        is_inside = path.is_dir() and path.resolve() in (written, written.parent)
        if is_inside or any(_is_same(out, file) for file in _files(path)):
            rule = (
                f"lie outside of {what}, {path}"
                if path.is_dir()
                else f"be another file than {what}, {path}"
            )
            raise bad_input("--out", rule, out, "it would replace what is read; name another")


def check_model_folder(out: Path) -> None:
    """Refuse a folder that holds files and no model.

    A model among other files is neither found nor replaced.
    """
    if not out.is_dir() or (out / "model.json").exists():
        return
    # hidden files, such as those of file browsers, do not matter
    held = sorted(entry.name for entry in out.iterdir() if not entry.name.startswith("."))
    if held:
        got = f"{out}, which holds {held[0]!r}" + (
            f" and {len(held) - 1:,} more" if len(held) > 1 else ""
        )
        raise bad_input(
            "--out", "be a new folder, an empty one or a model folder", got, "name another"
        )


def folder_to_write(out: Path) -> Path:
    """Return the folder that is written: the target of a symbolic link, even of a dangling one."""
    # replacing the link itself would leave its target as it was
    return link_target(out) if out.is_symlink() else out


def check_not_among(what: str, path: Path | None, out: Path) -> None:
    """Refuse an input file that lies in the output folder, where it may be replaced."""
    if path is not None and out.is_dir() and any(_is_same(path, file) for file in _files(out)):
        raise bad_input(
            what, f"lie outside of the folder of --out, {out}", path, "name another folder"
        )


def _files(path: Path) -> Iterator[Path]:
    """Give the files at a path: itself or, of a folder, those in it."""
    if path.is_dir():
        yield from (entry for entry in path.iterdir() if entry.is_file())
    else:
        yield path


def _is_same(out: Path, read: Path) -> bool:
    # by inode, as hard links and other spellings of a path lead to one file
    return out.exists() and read.exists() and os.path.samefile(out, read)
