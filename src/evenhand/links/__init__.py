"""Links, which randomize any base forecast by a draw `r`, and their price.

A new link needs a class and a line in `LINKS`, both in `families.py`.
"""

from evenhand.links.base import Link
from evenhand.links.families import (
    FREE,
    LINKS,
    Entropic,
    Gaussian,
    Laplace,
    check_link,
    make_link,
    price_of_proof,
)

__all__ = ["LINKS", "Entropic", "Gaussian", "Laplace", "Link", "make_link", "price_of_proof"]
