"""Help pages of the command: usage, examples and options in panels, in lines that fit."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from evenhand._table import folded_command
from evenhand.cli.arguments import LARGE, OUTPUT
from evenhand.cli.pages import PAGES, START, STEPS, STORY, Example
from evenhand.cli.streams import Safe
from evenhand.cli.terminal import (
    USUAL_WIDTH,
    folded,
    has_colour,
    styled,
    text_width,
)

TERM = 28
"""Characters before the description of an option, if the terminal is wide enough for both."""

NARROW = 80
"""Width below which descriptions are printed below their options."""

ARGUMENTS = "Arguments"
OTHERS = "Other options"
"""Panels of arguments, and of options without a panel."""

LAST = (OUTPUT, LARGE, OTHERS)
"""Panels after all others."""


@dataclass(frozen=True)
class Layout:
    """Width and colours of a help page.

    Parameters
    ----------
    width : int
        Most characters of a line.
    has_colour : bool
        Whether headings and names are styled.
    """

    width: int = USUAL_WIDTH
    has_colour: bool = False

    @classmethod
    def of_output(cls) -> Layout:
        """Return the layout for standard output."""
        return cls(text_width(), has_colour(sys.stdout))

    def paragraphs(self, text: str) -> str:
        """Return paragraphs that fit the width."""
        blocks = inspect.cleandoc(text).split("\n\n")
        return "\n\n".join(folded(" ".join(block.split()), self.width) for block in blocks)

    def panel(self, title: str, rows: Iterable[str]) -> str:
        """Return rows with a heading."""
        heading = styled(title, "heading", has_colour=self.has_colour)
        return "\n".join([heading, *rows])

    def row(self, name: str, text: str, term: int = TERM) -> str:
        """Return a name with its description, beside it or, on narrow terminals, below."""
        shown = styled(name, "name", has_colour=self.has_colour)
        if self.width < NARROW:
            return f"  {shown}\n{folded(text, self.width, 6)}"
        described = folded(text, self.width, term)
        if len(name) + 4 > term:
            return f"  {shown}\n{described}"
        return f"  {shown}{' ' * (term - 2 - len(name))}{described.lstrip()}"

    def examples(self, title: str, examples: Iterable[Example]) -> str:
        """Return the panel of examples."""
        rows = [
            f"{folded(f'{one.purpose}:', self.width, 2)}\n{folded_command(one.line, self.width, 4)}"
            for one in examples
        ]
        return self.panel(title, rows)


def write(page: str) -> None:
    """Write a page to standard output; its colour codes are not escaped as those of data are."""
    if isinstance(sys.stdout, Safe):
        sys.stdout.write_styled(page)
    else:
        sys.stdout.write(page)


def command_page(command: Any, context: Any, layout: Layout) -> str:
    """Return the help of a subcommand.

    Parameters
    ----------
    command : typer command
        The subcommand.
    context : typer context
        Its context.
    layout : Layout
        Width and colours.
    """
    page = PAGES[command.name]
    parts = [
        folded(f"Usage: {usage(command, context)}", layout.width, 7, first=0),
        layout.paragraphs(command.help or ""),
        layout.examples("Examples", page.examples),
        *_panels(command.get_params(context), layout),
        folded(f"Guide: {page.guide}. All commands: docs/reference/commands.rst.", layout.width),
    ]
    return "\n\n".join(parts)


def top_page(group: Any, context: Any, layout: Layout) -> str:
    """Return the help of `evenhand` itself, with its commands by step."""
    parts = [
        folded("Usage: evenhand COMMAND [ARGUMENTS] [OPTIONS]", layout.width, 7, first=0),
        layout.paragraphs(STORY),
        layout.examples("Start with", START),
        *_steps(layout),
        *_panels(group.get_params(context), layout),
        layout.paragraphs(group.epilog),
        folded(
            "Help of a command, with examples: evenhand COMMAND --help. Guide: docs/index.rst.",
            layout.width,
        ),
    ]
    return "\n\n".join(parts)


def short_page(layout: Layout) -> str:
    """Return what `evenhand` prints without a command."""
    parts = [
        layout.paragraphs(STORY),
        layout.examples("Start with", START),
        folded(f"Commands: {', '.join(PAGES)}.", layout.width),
        folded("All commands and options: evenhand --help", layout.width),
    ]
    return "\n\n".join(parts)


def usage(command: Any, context: Any) -> str:
    """Return the usage of a subcommand: arguments, required options and a place for the others."""
    shown = [one for one in command.get_params(context) if not one.hidden]
    arguments = [name_of(one) for one in shown if one.param_type_name == "argument"]
    required = [name_of(one) for one in shown if one.param_type_name == "option" and one.required]
    return " ".join(["evenhand", command.name, *arguments, *required, "[OPTIONS]"])


def name_of(parameter: Any) -> str:
    """Return an argument by its metavar, an option with its names and its metavar."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    names = ", ".join(sorted(parameter.opts, key=len))
    return names if parameter.is_flag else f"{names} {parameter.metavar or 'VALUE'}"


def description_of(parameter: Any) -> str:
    """Return the help of a parameter, with its default or that it is required."""
    text = (parameter.help or "").rstrip(".")
    # the text of click's own option begins with a capital letter
    text = text[:1].lower() + text[1:] if parameter.name == "help" else text
    if parameter.required and parameter.param_type_name == "option":
        return f"{text} (required)"
    default = parameter.default
    is_shown = not (default is None or default is False or default in ((), [], "", inspect._empty))
    return f"{text} (default: {default})" if is_shown else text


def panels_of(parameters: Iterable[Any]) -> dict[str, list[Any]]:
    """Return shown parameters by panel; those of output are last."""
    panels: dict[str, list[Any]] = {}
    for one in parameters:
        if not getattr(one, "hidden", False):
            is_argument = one.param_type_name == "argument"
            usual = ARGUMENTS if is_argument else OTHERS
            panels.setdefault(getattr(one, "rich_help_panel", None) or usual, []).append(one)
    last = {title: panels.pop(title) for title in LAST if title in panels}
    return panels | last


def _panels(parameters: Iterable[Any], layout: Layout) -> Iterator[str]:
    for title, members in panels_of(parameters).items():
        yield layout.panel(
            title, [layout.row(name_of(one), description_of(one)) for one in members]
        )


def _steps(layout: Layout) -> Iterator[str]:
    for step in STEPS:
        members = {name: page for name, page in PAGES.items() if page.step == step}
        rows = [layout.row(name, page.summary, 15) for name, page in members.items()]
        yield layout.panel(step, rows)
