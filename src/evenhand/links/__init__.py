"""Links, which randomize any base forecast by a draw `r`, and their price.

A new link needs one file and one line in `LINKS`.
"""

from __future__ import annotations

from evenhand._validate import bad_input, check_choice
from evenhand.links.base import Link
from evenhand.links.closed_form import Gaussian, Laplace
from evenhand.links.entropic import FREE as FREE
from evenhand.links.entropic import Entropic, price_of_proof

LINKS: dict[str, type[Link]] = {link.name: link for link in (Laplace, Entropic, Gaussian)}

__all__ = [
    "LINKS",
    "Entropic",
    "Gaussian",
    "Laplace",
    "Link",
    "make_link",
    "price_of_proof",
]


def make_link(link: str | Link, alpha: float) -> Link:
    """Return the named link at `alpha`; a `Link` is returned unchanged.

    Examples
    --------
    >>> make_link("gaussian", alpha=0.2)
    Gaussian(alpha=0.2)
    """
    if isinstance(link, Link):
        return link
    return LINKS[check_choice("link", link, tuple(LINKS))](alpha)


def check_link(link: Link) -> Link:
    """Return the link; refuse names and classes of links, which have no `alpha`."""
    if not isinstance(link, Link):
        raise bad_input("link", "be a Link such as Entropic(0.1)", repr(link))
    return link
