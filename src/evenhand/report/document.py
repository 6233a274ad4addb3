"""Documents: sections of paragraphs, lists, tables and charts, whatever shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand._table import Table
from evenhand.report.charts import Chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Sentence:
    """A sentence in three parts: the name of a group in it stands out on a page."""

    before: str
    name: str = ""
    rest: str = ""
    is_warning: bool = False

    def __str__(self) -> str:
        return self.before + self.name + self.rest


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; `kind` is its style on a page: "facts" (small), "lead" or "warn"."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: Sequence[Sentence]

    @classmethod
    def of(cls, texts: Iterable[object]) -> Bullets:
        """Make a list of texts."""
        return cls([Sentence(str(text)) for text in texts])


@dataclass(frozen=True)
class Facts:
    """Names and values; values of None are left out."""

    values: Mapping[str, str | None]


@dataclass(frozen=True)
class Code:
    """A command."""

    text: str


@dataclass(frozen=True)
class Details:
    """A paragraph that a page folds under a summary."""

    summary: str
    text: str


@dataclass(frozen=True)
class Figure:
    """A figure of matplotlib, drawn when a page shows it; `name` is unique in a document."""

    draw: Callable[[], Axes]
    alt: str
    name: str


@dataclass(frozen=True)
class Pair:
    """Parts beside each other; those on the right may be remarks on those on the left."""

    left: Sequence[Part]
    right: Sequence[Part]
    is_remark: bool = False


Part = Paragraph | Heading | Bullets | Facts | Code | Details | Figure | Pair | Table | Chart


@dataclass(frozen=True)
class Section:
    """Parts under a title.

    Parameters
    ----------
    title : str
        Its heading.
    parts : sequence of parts
        From top to bottom.
    key : str
        Target of links to it.
    in_text : bool, default True
        Whether text shows it; pages show all sections.
    """

    title: str
    parts: Sequence[Part]
    key: str = ""
    in_text: bool = True


@dataclass(frozen=True)
class Document:
    """A page or a text.

    Parameters
    ----------
    title : str
        Its heading.
    sections : sequence of Section
        From top to bottom.
    footer : str
        Closing sentence of a page.
    facts : sequence of str
        Line below the heading.
    opening : Section, optional
        What matters most, which a page shows with links to all sections.
    introduction : sequence of parts
        Parts before the sections of a document without an opening.
    cards : sequence of Section
        Sections beside the opening of a page; text leaves them out.
    """

    title: str
    sections: Sequence[Section]
    footer: str
    facts: Sequence[str] = ()
    opening: Section | None = None
    introduction: Sequence[Part] = ()
    cards: Sequence[Section] = ()
