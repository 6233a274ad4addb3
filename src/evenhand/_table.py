"""Tables of results, and their rendering as text of a fixed width."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from evenhand._escape import visible
from evenhand._format import UNKNOWN

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as Grid

WIDTH = 118
"""Characters of a line of text, unless `lines_within` sets another width."""

SCREEN = 80
"""Characters of a line of a short text."""

LEAST_WIDTH = 40
"""Fewest characters of a line: narrower tables are unreadable."""

PADDINGS = (1, 0)
"""Blanks before each column, from wide to narrow tables."""

LONGEST_WORD = 30
"""Most characters of a word that is not broken in a cell."""

_width: ContextVar[int] = ContextVar("evenhand_width_of_text", default=WIDTH)

PRINTED = 41
"""Most rows of a table in text: all people and 40 groups."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    title : str
        Its heading.
    is_number : bool, default False
        Whether its values are numbers, which are aligned to the right.
    """

    title: str
    is_number: bool = False


def numeric(title: str) -> Column:
    """Return a column of numbers."""
    return Column(title, is_number=True)


@dataclass(frozen=True)
class Value:
    """A cell of a table.

    Parameters
    ----------
    text : str
        The value.
    below : str, default "-"
        Its interval or a remark, in parentheses; "-" without one.
    order : float, optional
        What a page sorts the column by; None if it is unknown.
    tone : {"", "bad", "good", "soft"}
        How a page shows the value, whose words mean the same.
    """

    text: str
    below: str = UNKNOWN
    order: float | None = None
    tone: Literal["", "bad", "good", "soft"] = ""

    def __str__(self) -> str:
        if self.below == UNKNOWN:
            return self.text
        return f"{self.text} ({self.below})"


Cell = str | Value

Item = TypeVar("Item")

Cells = dict[str | Column, Callable[[Item], Cell]]
"""Columns of a table from left to right, each with the function that writes the cell of an item.

Of titles the first is that of the names of the rows, and the others are those of numbers."""


@dataclass(frozen=True)
class Table:
    r"""A table of results, which pages and text show alike.

    Parameters
    ----------
    label : str
        What the table shows: its name for screen readers.
    columns : sequence of Column
        Columns from left to right.
    rows : sequence of sequence of str or Value
        One cell per column. Control characters are escaped where a table is rendered.
    search : str
        Label of the field that searches the table on a page; "" for a table without one.
    printed : int
        Most rows that text shows; pages show all rows.
    note : str
        What the values mean, above the table.

    Examples
    --------
    >>> columns = [Column("group"), Column("rows", is_number=True)]
    >>> print(Table("Groups", columns, [["[b]", "1,200"], ["job = \x1b", "30"]]).text())
    group           rows
    ────────────────────
    [b]            1,200
    job = \u001b      30
    """

    label: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    search: str = ""
    printed: int = PRINTED
    note: str = ""

    @classmethod
    def of(cls, label: str, items: Iterable[Item], cells: Cells[Item], **options: Any) -> Table:
        """Return a table with one row per item, whose cells the functions of `cells` write.

        Examples
        --------
        >>> Table.of("Squares", range(3), {"x": str, "its square": lambda x: str(x * x)}).rows
        [['0', '0'], ['1', '1'], ['2', '4']]
        """
        rows = [[write(item) for write in cells.values()] for item in items]
        columns = [
            one if isinstance(one, Column) else Column(one, is_number=place > 0)
            for place, one in enumerate(cells)
        ]
        return cls(label, columns, rows, **options)

    def text(self, width: int | None = None, *, most: int | None = None) -> str:
        """Return the table as text, with longer cells wrapped at `width`; at most `most` rows."""
        most_wide = width or line_width()
        cells = [[visible(column.title) for column in self.columns]]
        cells += [[visible(str(cell)) for cell in row] for row in self.rows[:most]]
        for padding in PADDINGS:
            # a blank of rich's own between columns, and one after each
            widths = _column_widths(cells, most_wide - (len(self.columns) - 1) * (padding + 2))
            if widths is not None:
                return _printed(self._grid(cells, widths, padding), most_wide)
        return self._stacked(cells, most_wide)

    def _grid(self, cells: list[list[str]], widths: list[int], padding: int) -> Grid:
        """Return rows side by side; the first are the titles."""
        # imported here: `import evenhand` does not wait for rich
        from rich import box
        from rich.table import Table as Grid
        from rich.text import Text

        blanks = (0, 1, 0, padding)
        grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=blanks)
        titles, *rows = cells
        for column, title, width in zip(self.columns, titles, widths, strict=True):
            justify: Literal["left", "right"] = "right" if column.is_number else "left"
            grid.add_column(Text(title), justify=justify, overflow="fold", width=width)
        for row in rows:
            # names come from data: as Text, so that brackets are not read as markup
            grid.add_row(*map(Text, row))
        return grid

    def _stacked(self, cells: list[list[str]], width: int) -> str:
        """Return each row as a block of lines, for widths that would break words in columns."""
        titles, *rows = cells
        blocks = []
        for row in rows:
            first, *others = [f"{title}: {cell}" for title, cell in zip(titles, row, strict=True)]
            lines = [wrapped(first, width)]
            lines += [wrapped(one, width - 2).replace("\n", "\n  ") for one in others]
            blocks.append("\n  ".join(lines))
        return "\n".join(blocks)


def line_width(most: int = WIDTH) -> int:
    """Return the characters of a line of text, at most so many."""
    return min(_width.get(), most)


@contextmanager
def lines_within(width: int | None) -> Iterator[None]:
    """Write text in the block in lines of at most so many characters, such as a terminal's.

    Less than 40 counts as 40, and more than 118 as 118, which is also the width for None.
    """
    token = _width.set(WIDTH if width is None else min(max(width, LEAST_WIDTH), WIDTH))
    try:
        yield
    finally:
        _width.reset(token)


def wrapped(paragraph: str, width: int | None = None) -> str:
    """Return text as lines of at most `width` characters; control characters are escaped."""
    from rich.text import Text

    lines = Text(visible(paragraph)).wrap(_console(), width or line_width())
    return "\n".join(line.plain.rstrip() for line in lines).rstrip()


def labelled(rows: Sequence[tuple[str, str]], width: int, most: int) -> str:
    """Return texts beside their labels, in lines of at most `width` characters.

    The column of labels has at most `most` characters unless a word is longer; longer labels take
    several lines.

    Examples
    --------
    >>> print(labelled([("women", "late"), ("men over 60", "much too early")], 18, 8))
    women   late
    men     much too
    over    early
    60
    """
    labels = [label for label, _ in rows]
    word = max((len(one) for label in labels for one in label.split()), default=0)
    margin = min(max(map(len, labels)) + 2, max(most, word + 2), width // 2)
    lines = []
    for label, text in rows:
        sides = wrapped(label, margin - 2), wrapped(text, width - margin)
        both = zip_longest(*(side.split("\n") for side in sides), fillvalue="")
        lines += [f"{shown:{margin}}{line}".rstrip() for shown, line in both]
    return "\n".join(lines)


WORD = r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|[^\s'"])+"""
OPTION = re.compile(rf"{WORD}(?: (?!--){WORD})*")
"""A word as shells read it, and an option with its values, or what comes before the options."""


def folded_command(line: str, width: int) -> str:
    r"""Break a command between its options into lines that a shell reads as one.

    Values of options that are longer than `width` are not broken.

    Examples
    --------
    >>> print(folded_command("evenhand fit past.csv --target y --out model", 36))
    evenhand fit past.csv --target y \
        --out model
    """
    # blanks within an option are no places to break; two characters for a blank and a backslash
    parts = " ".join(part.replace(" ", "\0") for part in OPTION.findall(line))
    options: Any = {"break_long_words": False, "break_on_hyphens": False}
    lines = wrap(parts, width - 2, subsequent_indent="    ", **options)
    return " \\\n".join(lines).replace("\0", " ")


def _column_widths(cells: list[list[str]], total: int) -> list[int] | None:
    """Return widths of columns of at most a total; None if words would have to be broken.

    The widest columns are narrowed first, none below its longest word.
    """
    from rich.cells import cell_len

    columns = list(zip(*cells, strict=True))
    longest = [
        max(cell_len(word) for cell in one for word in [*cell.split(), ""]) for one in columns
    ]
    least = [min(length, LONGEST_WORD) for length in longest]
    widths = [max(map(cell_len, one)) for one in columns]
    while sum(widths) > total:
        wide = [i for i in range(len(widths)) if widths[i] > least[i]]
        if not wide:
            return None
        widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


@cache
def _console() -> Console:
    from rich.console import Console

    # no colours and no terminal, so that the text is the same everywhere
    return Console(file=io.StringIO(), width=WIDTH, color_system=None, force_terminal=False)


def _printed(shown: Grid, width: int) -> str:
    with _console().capture() as captured:
        _console().print(shown, width=width)
    return "\n".join(line.rstrip() for line in captured.get().rstrip().splitlines())
