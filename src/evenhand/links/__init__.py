"""Links, which randomize any base forecast by a draw `r`, and their price.

A new link needs one file and one line in `LINKS` of `entropic.py`.
"""

from __future__ import annotations

from evenhand.links.base import Link
from evenhand.links.closed_form import Gaussian, Laplace
from evenhand.links.entropic import FREE, LINKS, Entropic, check_link, make_link, price_of_proof

__all__ = [
    "LINKS",
    "Entropic",
    "Gaussian",
    "Laplace",
    "Link",
    "make_link",
    "price_of_proof",
]
