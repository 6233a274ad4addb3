"""Documents of sections with paragraphs, lists, tables and charts, for pages and text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from evenhand._table import Table
from evenhand.report.charts import Chart
from evenhand.report.page_data import PageData

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Sentence:
    """Sentence in three parts; pages show the name of a group in bold."""

    before: str
    name: str = ""
    rest: str = ""
    is_warning: bool = False

    def __str__(self) -> str:
        return self.before + self.name + self.rest


@dataclass(frozen=True)
class Paragraph:
    """Paragraph; `kind` is its style on a page, which may hide it behind a summary.

    Text omits hints on the use of a page.
    """

    text: str
    kind: Literal["", "code", "facts", "hint", "lead", "warn"] = ""
    summary: str = ""


@dataclass(frozen=True)
class Heading:
    """Heading inside a section."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """List of sentences."""

    items: Sequence[Sentence]

    @classmethod
    def of(cls, texts: Iterable[object]) -> Bullets:
        """Return a list of texts."""
        return cls([Sentence(str(text)) for text in texts])


@dataclass(frozen=True)
class StatusBox:
    """Status of an audit: a title such as "Problem found" that they continue, and its kind."""

    title: str
    kind: str
    sentences: Sequence[str]


@dataclass(frozen=True)
class Facts:
    """Names and values; values of None are left out."""

    values: Mapping[str, str | None]


@dataclass(frozen=True)
class Pair:
    """Parts side by side; those on the right may be remarks on those on the left."""

    left: Sequence[Part]
    right: Sequence[Part]
    is_remark: bool = False


@dataclass(frozen=True)
class Download:
    """Button that saves the data of the page as JSON."""

    text: str


Part = Paragraph | Heading | Bullets | StatusBox | Facts | Pair | Download | Table | Chart


@dataclass(frozen=True)
class Section:
    """Section of a document.

    Parameters
    ----------
    title : str
        Heading.
    parts : sequence of parts
        From top to bottom.
    key : str
        Target of links.
    in_text : bool, default True
        Whether text includes it; pages include all sections.
    """

    title: str
    parts: Sequence[Part]
    key: str = ""
    in_text: bool = True


@dataclass(frozen=True)
class Document:
    """Content of a page or text.

    Parameters
    ----------
    title : str
        Heading.
    sections : sequence of Section
        From top to bottom.
    footer : str
        Closing sentence of a page.
    facts : sequence of str
        Line below the heading.
    about : Facts
        Description below the line of facts; text omits it.
    opening : Section, optional
        Main findings, which a page shows with links to all sections.
    picture : Section, optional
        Picture beside the opening of a page; text omits it.
    cards : sequence of Section
        Sections below the picture; text omits them.
    data : PageData, optional
        Data that a page embeds.
    """

    title: str
    sections: Sequence[Section]
    footer: str
    facts: Sequence[str] = ()
    about: Facts = field(default_factory=lambda: Facts({}))
    opening: Section | None = None
    picture: Section | None = None
    cards: Sequence[Section] = ()
    data: PageData | None = None
