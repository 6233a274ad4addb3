"""Links in closed form: Laplace and Gaussian (method: links)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy import special

from evenhand._logarithms import log1mexp, log_expm1_scaled, log_softplus, softplus
from evenhand._validate import Floats, Mask
from evenhand.links.base import (
    TINY,
    Link,
    gauss_legendre,
    half_unit_rule,
    laplace_mean_error,
)


class Laplace(Link):
    """Link with density `exp(-kappa |c - r|) / Z_r`, `kappa = (1 - alpha) / alpha`.

    Over the true distribution it minimizes the paper's objective at `alpha`, which is the optimum
    of a network with unlimited capacity. No forecaster has a lower price at the same mean error.
    Over a calibrated base its PITs are within 0.014 (W1) of uniform, but not exactly uniform.

    Parameters
    ----------
    alpha : float, default 0.1
        Weight of sharpness, 0 < alpha <= 1.

    Examples
    --------
    >>> from evenhand.links import Laplace
    >>> link = Laplace(alpha=0.2)
    >>> round(link.price, 3), round(link.mean_error, 3)
    (0.28, 0.176)
    """

    name: ClassVar[str] = "laplace"

    def _solve(self) -> None:
        self.kappa = (1 - self.alpha) / self.alpha

    @property
    def mean_error(self) -> float:
        """Mean pathwise error over a calibrated base, `L'(kappa)`."""
        return laplace_mean_error(self.kappa)

    @property
    def price(self) -> float:
        """Price in nats: `L(kappa) - kappa * mean_error`, `L = -integral log Z_t dt`."""
        if self.kappa == 0:
            return 0.0
        t, w = half_unit_rule(self.kappa)
        log_z = np.log(_normalizer(self.kappa, t) / self.kappa)
        return float(max(-2 * (w * log_z).sum() - self.kappa * self.mean_error, 0.0))

    @property
    def calibration_error(self) -> float:
        """W1 distance from uniform of the randomized PITs over a calibrated base, 0 to 0.014."""
        kappa = self.kappa
        if kappa == 0:
            return 0.0
        # P(C <= c) - c has one sign on each side of 1/2: by symmetry the distance is twice
        # 1/8 - E(1/2 - C)^+, the mean over draws r and 1 - r with r <= 1/2
        layer = np.linspace(0.0, min(0.25, 40 / kappa), 21)
        r, weights = gauss_legendre(np.union1d(layer, 0.5 - layer))
        below = -np.expm1(-kappa * r) / 2
        rest = _second(kappa * (0.5 - r)) - _second(kappa * r)
        # the upper half of the draws, by reflection
        beyond = np.exp(-kappa * (0.5 - r)) * special.gammainc(2, kappa / 2)
        mean = (weights * (below + (rest + beyond) / kappa) / _normalizer(kappa, r)).sum()
        return float(2 * abs(0.125 - mean))

    def log_cdf_lower(self, log_c: Floats, r: Floats) -> Floats:
        kappa = self.kappa
        if kappa == 0:
            return log_c + np.zeros(np.shape(r))
        c = np.exp(log_c)
        log_d = np.log(_normalizer(kappa, r))
        below = np.minimum(c, r)
        # c <= r: K = exp(-kappa r) (exp(kappa c) - 1) / D
        low = log_expm1_scaled(kappa * below, np.log(kappa) + log_c) - kappa * r - log_d
        above = np.maximum(c, r) - r
        high = np.log(-np.expm1(-kappa * r) - np.expm1(-kappa * above)) - log_d
        return np.where(c <= r, low, high)

    def log_ppf_lower(self, log_u: Floats, r: Floats) -> Floats:
        kappa = self.kappa
        if kappa == 0:
            return log_u + np.zeros(np.shape(r))
        log_d = np.log(_normalizer(kappa, r))
        # near r = 1 the two logarithms are nearly equal, and rounding could make log u* positive
        log_turn = np.minimum(np.log(-np.expm1(-kappa * r)) - log_d, 0.0)
        # u <= u*: exp(kappa H) - 1 = D u exp(kappa r)
        x = log_d + np.minimum(log_u, log_turn) + kappa * r
        low = log_softplus(x) - np.log(kappa)
        log_v = log1mexp(np.maximum(log_u, log_turn))
        high = r - np.logaddexp(-kappa * (1 - r), log_d + log_v) / kappa
        return np.where(log_u <= log_turn, np.minimum(low, np.log(r)), np.log(np.maximum(high, r)))

    def ppf_lower(self, log_u: Floats, r: Floats, far: Mask) -> Floats:
        kappa = self.kappa
        if kappa == 0:
            return super().ppf_lower(log_u, r, far)
        scaled = kappa * r
        below = -np.expm1(-scaled)
        above = -np.expm1(scaled - kappa)
        d = below + above
        # d (u* - u), which is above -1/2 for u <= 1/2
        rest = below - d * np.exp(log_u)
        low = softplus(np.log(d) + log_u + scaled) / kappa
        high = r - np.log1p(np.minimum(rest, 0.0)) / kappa
        h = np.where(rest >= 0, np.minimum(low, r), np.maximum(high, r))
        return np.asarray(np.subtract(1.0, h, out=h, where=far))

    def log_pdf_lower(self, log_c: Floats, r: Floats) -> Floats:
        if self.kappa == 0:
            return np.zeros(np.broadcast_shapes(log_c.shape, r.shape))
        log_z = np.log(_normalizer(self.kappa, r)) - np.log(self.kappa)
        return np.asarray(-self.kappa * np.abs(np.exp(log_c) - r) - log_z)


def _normalizer(kappa: float, r: Floats) -> Floats:
    """`D = kappa Z_r = 2 - exp(-kappa r) - exp(-kappa (1 - r))`."""
    return np.asarray(-np.expm1(-kappa * r) - np.expm1(-kappa * (1 - r)))


def _second(x: Floats) -> Floats:
    """Return `x - 1 + exp(-x)`, without cancellation at small x >= 0."""
    return np.asarray(x * special.gammainc(1, x) - special.gammainc(2, x))


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
    >>> link = Gaussian(alpha=0.2)
    >>> bool(np.isclose(link.price, -np.log(1 - link.rho**2) / 2))
    True
    """

    name: ClassVar[str] = "gaussian"

    def _solve(self) -> None:
        self._error = laplace_mean_error((1 - self.alpha) / self.alpha)
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
