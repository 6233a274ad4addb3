"""Certificates of models that were tested in a fixed order (method: proof)."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand._validate import InputError, check_fraction
from evenhand.certificates.assumptions import ASSUMPTIONS
from evenhand.certificates.certificate import WORST, Certificate


@dataclass(frozen=True)
class FixedSequenceCertificate(Certificate):
    """The target that the last of several models passed, and nothing tighter.

    The first test that fails ends the sequence, so the probability that a model passes whose group
    error is above the target is at most `1 - confidence` (fixed-sequence testing). The bound with
    which a model passed was computed along with those of the models before it, and is not proven at
    that confidence.

    Parameters
    ----------
    target : float
        Group error that was tested.
    mass : float
        Least share of people in a group.
    confidence : float
        Probability that the target holds.
    n_people : int
        People on whose rows the models were tested.
    one_row_each : bool
        Whether one row of each person was taken, of several.
    """

    target: float
    mass: float
    confidence: float
    n_people: int
    one_row_each: bool = False

    method = "betting"
    assumptions = (
        ASSUMPTIONS[0],
        "the models and their order were fixed before these rows were seen",
        ASSUMPTIONS[2],
    )

    @property
    def n_samples(self) -> int:
        """People."""
        return self.n_people

    def average_error(self) -> float:
        """Return the target: everybody is such a group."""
        return self.target

    def group_error(self, mass: float) -> float:
        """Return the target for groups of the tested size and larger ones, 1/2 for others."""
        check_fraction("mass", mass, high_open=False)
        # what holds for every group of a size holds for larger ones, which are mixtures of such
        return self.target if mass >= self.mass else WORST

    def coverage(self, level: float, mass: float) -> tuple[float, float]:
        """Return 0 and 1: coverage was not tested."""
        check_fraction("level", level)
        check_fraction("mass", mass, high_open=False)
        return 0.0, 1.0

    def mpaic(self, error: float) -> float:
        """Raise InputError: mPAIC was not tested."""
        raise InputError(
            "mPAIC was not tested along the sequence of models; certify the model that was chosen"
            " on other rows, with certify_pit"
        )

    def _forecasts(self) -> str:
        return "on which models were tested in a fixed order"
