"""Certificate of a model that was chosen by fixed-sequence testing (method: proof)."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand._validate import InputError, bad_input, check_fraction
from evenhand.certificates.assumptions import SAMPLE, UNIFORM_DRAWS
from evenhand.certificates.certificate import WORST, Certificate
from evenhand.certificates.promise import Promise
from evenhand.distributions import OutcomeKind
from evenhand.links import Link


@dataclass(frozen=True)
class FixedSequenceCertificate(Certificate):
    """The target group error that a model passed in fixed-sequence testing, and no tighter bound.

    Models are tested in a fixed order until one fails, so the probability that any model passes
    whose group error is above the target is at most `1 - confidence` (fixed-sequence testing). The
    bound from the test of a model may be below the target, but it does not hold with that
    confidence, because bounds of several models were computed.

    Parameters
    ----------
    target : float
        Group error that was tested.
    mass : float
        Smallest share of people in a group.
    confidence : float
        Probability that the target holds.
    n_people : int
        Number of people on whose rows the models were tested.
    one_row_each : bool
        Whether people have several rows and one row per person was used.
    kind : OutcomeKind, default "continuous"
        Kind of outcome that the forecasts describe.
    link : Link, optional
        Link of the model that passed; None if it is not a link around a deterministic one.
    """

    target: float
    mass: float
    confidence: float
    n_people: int
    one_row_each: bool = False
    kind: OutcomeKind = OutcomeKind.CONTINUOUS
    link: Link | None = None

    method = "betting"
    is_randomized = True
    assumptions = (
        SAMPLE,
        "the models and their order were fixed without using these rows",
        UNIFORM_DRAWS,
    )

    @property
    def n_samples(self) -> int:
        """Number of people."""
        return self.n_people

    def average_error(self) -> float:
        """Return the target: all people together are such a group."""
        return self.target

    def group_error(self, mass: float) -> float:
        """Return the target for groups of at least the tested size, 1/2 for smaller ones."""
        check_fraction("mass", mass, high_open=False)
        # a bound for every group of a size holds for larger groups, which are mixtures of them
        return self.target if mass >= self.mass else WORST

    def promise(self, mass: float) -> Promise:
        """Return the target as a promise about mean served PITs; needs the link of the model.

        Parameters
        ----------
        mass : float
            Smallest share of people in the group, at least the tested size.
        """
        check_fraction("mass", mass, high_open=False)
        if self.link is None:
            raise InputError(
                "nothing is promised that served forecasts can show: the model is not a link around"
                " a deterministic one, so its mean PIT over draws is not known after one draw;"
                " certify it on other rows with certify_pit(..., r=...), which bounds |PIT - r|"
            )
        if mass < self.mass:
            raise bad_input("mass", f"be at least {self.mass:g}, the tested group size", mass)
        return Promise("mean_pit", mass, self.target, self.confidence, self.link)

    def coverage(self, level: float, mass: float) -> tuple[float, float]:
        """Return 0 and 1: coverage was not tested."""
        check_fraction("level", level)
        check_fraction("mass", mass, high_open=False)
        return 0.0, 1.0

    def mpaic(self, error: float) -> float:
        """Raise InputError: mPAIC was not tested."""
        raise InputError(
            "mPAIC was not tested in the sequence of models, so it has no bound here; certify the"
            " chosen model on other rows with certify_pit"
        )

    def _forecasts(self) -> str:
        return "on whom the models were tested in a fixed order"
