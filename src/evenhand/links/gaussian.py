"""Gaussian copula link: closed form, exactly calibrated (method: links)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from scipy import special

from evenhand._validate import Floats, Mask, check_fraction
from evenhand.links.base import TINY, Link
from evenhand.links.quadrature import laplace_mean_error


class Gaussian(Link):
    """Link with the density of a Gaussian copula with correlation `rho`.

    `H = Phi(sqrt(1 - rho^2) Phi^-1(u) + rho Phi^-1(r))`.

    With a normal base the randomized forecasts are normal. The price is `-log(1 - rho^2) / 2`. The
    limit `rho -> 1` is the paper's trivial forecaster (with the sign corrected: `+ Phi^-1(r)`).

    Parameters
    ----------
    alpha : float, default 0.1
        Weight of sharpness, 0 < alpha <= 1; `rho` is such that the mean error equals that of
        `Laplace(alpha)`.

    Examples
    --------
    >>> from evenhand.links import Gaussian
    >>> round(Gaussian.from_rho(0.6).price, 6)
    0.223144
    """

    name: ClassVar[str] = "gaussian"

    @classmethod
    def from_rho(cls, rho: float) -> Self:
        """Make the link from its correlation, 0 <= rho < 1 (0 is the identity)."""
        check_fraction("rho", rho, low_open=False)
        # mean error = 1/2 - arcsin((1 + rho) / 2) / pi, an orthant probability; in this form it is
        # exactly 1/3 at rho = 0
        return cls._with_parameter(
            "_error", 1 / 3 - float(np.arcsin((1 + rho) / 2) - np.arcsin(0.5)) / np.pi
        )

    def _solve(self) -> None:
        self._error = laplace_mean_error((1 - self.alpha) / self.alpha)
        self._prepare()

    def _prepare(self) -> None:
        # rho = 2 cos(pi e) - 1, in a form in which 1 - rho^2 keeps its digits as rho -> 1
        cosine = float(np.cos(np.pi * self._error))
        self._rest = float(np.sin(np.pi * self._error / 2) * np.sqrt(8 * cosine))
        self.rho = 0.0 if self._error >= 1 / 3 else max(2 * cosine - 1, 0.0)
        if self.rho == 0:
            self._rest = 1.0

    @property
    def mean_error(self) -> float:
        """Mean pathwise error over a calibrated base."""
        return self._error

    @property
    def price(self) -> float:
        """Price in nats, `-log(1 - rho^2) / 2`."""
        return -float(np.log(self._rest)) + 0.0

    def log_cdf_lower(self, log_c: Floats, r: Floats) -> Floats:
        return np.asarray(
            special.log_ndtr((_score(log_c) - self.rho * _draw_score(r)) / self._rest)
        )

    def log_ppf_lower(self, log_u: Floats, r: Floats) -> Floats:
        return np.asarray(special.log_ndtr(self._rest * _score(log_u) + self.rho * _draw_score(r)))

    def ppf_lower(self, log_u: Floats, r: Floats, far: Mask) -> Floats:
        score = np.asarray(self._rest * _score(log_u) + self.rho * _draw_score(r))
        return np.asarray(special.ndtr(np.negative(score, out=score, where=far)))

    def log_pdf_lower(self, log_c: Floats, r: Floats) -> Floats:
        z = _score(log_c)
        t = _draw_score(r)
        # -log(rest) + z^2/2 - ((z - rho t) / rest)^2 / 2, expanded so that large scores do not
        # cancel
        return np.asarray(
            self.price + (2 * self.rho * z * t - self.rho**2 * (z**2 + t**2)) / (2 * self._rest**2)
        )

    @property
    def _mean_slope(self) -> float:
        # rest z + rho T is normal for normal T, hence mu(Phi(z)) = Phi(rest z / sqrt(1 + rho^2))
        return self._rest / float(np.sqrt(1 + self.rho**2))

    def _mean_pit_lower(self, u: Floats) -> Floats:
        return np.asarray(special.ndtr(self._mean_slope * special.ndtri(u)))

    def _mean_pit_integral_lower(self, u: Floats) -> Floats:
        # the derivative of Owen's function T(z, s) is -phi(z) (Phi(s z) - 1/2)
        return np.asarray(u / 2 - special.owens_t(special.ndtri(u), self._mean_slope))

    def averaged_score(self, score: Floats) -> Floats:
        return np.asarray(score / self._mean_slope)


def _score(log_p: Floats) -> Floats:
    return np.asarray(special.ndtri_exp(log_p))


def _draw_score(r: Floats) -> Floats:
    # 1 - r can round to 1 for a draw below 1e-16
    return np.asarray(special.ndtri(np.clip(r, TINY, 1 - 2.0**-53)))
