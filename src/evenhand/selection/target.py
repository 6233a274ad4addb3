"""Target of a selection: the group error to be certified, and the price that it must cost."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand._validate import bad_input, check_fraction
from evenhand.links import Link, make_link, price_of_proof


@dataclass(frozen=True)
class Target:
    """Largest group error to be certified, and the family of links to choose from."""

    max_group_error: float
    group_mass: float
    confidence: float
    family: Link

    @classmethod
    def checked(
        cls, max_group_error: float, group_mass: float, confidence: float, link: str
    ) -> Target:
        """Make a target from what a caller asks for, and refuse what no model can meet."""
        check_fraction("max_group_error", max_group_error)
        if max_group_error >= 0.5:
            raise bad_input("max_group_error", "be below 0.5, the worst there is", max_group_error)
        check_fraction("group_mass", group_mass, high_open=False)
        check_fraction("confidence", confidence)
        family = make_link(link, 1.0)
        return cls(float(max_group_error), float(group_mass), float(confidence), family)


def least_price(error: float) -> float:
    """Least price in nats of any forecaster with this mean pathwise error."""
    # without any draw the mean error of the truth is 1/3: a larger one costs nothing
    return float(price_of_proof(min(error, 1 / 3)))
