"""Tests of randomized models in a fixed order (method: proof)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from evenhand._format import in_full
from evenhand._validate import Floats, InputError, Mask
from evenhand.audits import (
    BLOCK_ROWS,
    PIT_DRAWS,
    RoundingCells,
    event_probability,
    is_off_atom,
)
from evenhand.calibration import Cells, Grid, pathwise_errors
from evenhand.certificates import (
    FixedSequenceCertificate,
    HurdleCertificate,
    PITCertificate,
    RowEvidence,
    certify_hurdle,
    certify_pit,
)
from evenhand.distributions import OutcomeKind
from evenhand.draws import fresh, jittered
from evenhand.forecast import Forecast
from evenhand.forecasters import PAICRegressor, thawed
from evenhand.selection.comparison import COMPARED_DRAWS, HeldOutScores
from evenhand.selection.hurdles import atom_of
from evenhand.selection.result import Selection
from evenhand.selection.rows import SplitRows, least_price, naming_the_split
from evenhand.selection.target import MaxGroupError, Target
from evenhand.tables import row_blocks, take_rows

ALPHAS = (0.05, 0.08, 0.12, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0)
"""Values of alpha for a path of trained networks, in the order of the tests."""


def fixed_sequence_test(
    estimator: Any, rows: SplitRows, target: Target, random: np.random.Generator
) -> Selection:
    """Test randomized models in a fixed order until one is not certified.

    The probability that a model with a group error above the target passes is at most one minus the
    confidence, however many models are tested (fixed-sequence testing; method: proof).
    """
    assert isinstance(target.goal, MaxGroupError)
    most = target.goal.most
    if isinstance(estimator, PAICRegressor):
        params = estimator.get_params(deep=False)
        del params["alpha"]
        with naming_the_split(rows):
            models: Sequence[Any] = type(estimator).path(
                *rows.learning(), ALPHAS, sample_weight=rows.learning_weight, **params
            )
    else:
        # the caller fixed the order before seeing these rows
        models = [thawed(model) for model in estimator]
    X, y = rows.certifying()
    passed: tuple[Any, PITCertificate] | None = None
    for model in models:
        proof = _certify_model(model, X, y, target, random)
        if proof is None or proof.group_error(target.group_mass) > most:
            break
        # the part of a hurdle that is tested is continuous
        tested = proof.positive if isinstance(proof, HurdleCertificate) else proof
        # the sequence of tests proves the target for each model that passes, not its own bound
        bounds = FixedSequenceCertificate(
            most,
            target.group_mass,
            target.confidence,
            tested.n_samples,
            rows.one_row_each,
            kind=tested.kind,
        )
        passed = model, proof.accounting_for(bounds)
    if passed is None:
        raise InputError(
            f"no model has a certified group error of at most {most:g} for groups"
            f" of {in_full(target.group_mass)} of people with {y.size:,} rows, not even the first;"
            " use more rows, allow a larger error, or put a more randomized model first"
        )
    return _selection_of_randomized(*passed, rows, target, random)


def _selection_of_randomized(
    model: Any, proof: PITCertificate, rows: SplitRows, target: Target, random: np.random.Generator
) -> Selection:
    X, y = rows.certifying()
    assert isinstance(proof.evidence, RowEvidence)
    pits = proof.evidence.pits
    # PITs of forecasts with atoms have cells, and their log score is one of probabilities
    grid = Grid.of(rows.y) if pits.are_points else None
    held = HeldOutScores(y, grid, None, random)
    forecast = model.forecast(X, jittered(y.size, COMPARED_DRAWS, random))
    randomized = held.line("randomized", forecast, (pits.low, pits.high)) | {
        "certified_group_error": proof.group_error(target.group_mass)
    }
    lines = [*held.without_features(rows.y[rows.learn], forecast), randomized]
    return Selection(
        model=model,
        certificate=proof,
        target=target,
        price=np.nan,
        # the least price is a theorem on continuous forecasts
        limit=np.nan if forecast.has_atoms else least_price(float(pathwise_errors(pits).mean())),
        wider=np.nan,
        alternative=None,
        comparison=pd.DataFrame(lines),
        n_learning=int(rows.learn.size),
        n_certifying=proof.n_samples,
        certifying=rows.certify,
        plain=None,
        searches=None,
        rounding_step=None if grid is None else grid.step,
        kind=forecast.outcome_kind,
        atom=atom_of(forecast),
    )


def _certify_model(
    model: Any, X: Any, y: Floats, target: Target, random: np.random.Generator
) -> PITCertificate | None:
    """Certify a model at the target's group size; return None if it is not randomized."""
    # each model has own draws
    draws = jittered(y.size, PIT_DRAWS, random)
    share = fresh(y.size, random)
    rounding = RoundingCells.of(y)
    ends = np.empty((2, *draws.shape))
    parts = list[_Part]()
    has_atoms = False
    for block in row_blocks(y.size, BLOCK_ROWS):
        # in blocks: a forecast over many draws needs memory for each draw
        forecast = model.forecast(take_rows(X, block), draws[block])
        if not forecast.is_randomized:
            return None
        has_atoms = forecast.has_atoms
        if has_atoms:
            ends[:, block] = forecast.pit_interval(y[block])
            if forecast.outcome_kind is OutcomeKind.HURDLE:
                parts.append(_Part.of(forecast, y[block]))
        else:
            low, high = rounding.ends(y[block])
            ends[0, block] = forecast.cdf(low)
            ends[1, block] = forecast.cdf(high) if rounding.is_used else ends[0, block]
    cells = Cells.between(ends[0], ends[1], share, draws=draws)
    tested: dict[str, Any] = {
        "confidence": target.confidence,
        "method": "betting",
        "mass": target.group_mass,
        "random_state": random,
    }
    atom = atom_of(forecast)
    if atom is not None:
        # groups are shares of the people off the atom, and only their part is randomized
        off_atom = np.concatenate([part.off_atom for part in parts])
        positive = Cells(np.concatenate([part.pit for part in parts]), draws=draws[off_atom])
        chance = np.concatenate([part.probability for part in parts])
        return certify_hurdle(cells, positive, off_atom, chance, at=atom, **tested)
    # rounded outcomes of a continuous forecast have one position in their rounding cells
    return certify_pit(cells if has_atoms else cells.at_points(), **tested)


class _Part(NamedTuple):
    """Continuous part of forecasts with an atom, for the outcomes of a block of rows."""

    off_atom: Mask
    pit: Floats
    probability: Floats

    @classmethod
    def of(cls, forecast: Forecast, y: Floats) -> Self:
        off_atom = is_off_atom(forecast, y)
        pit = np.empty((0, PIT_DRAWS))
        if off_atom.any():
            pit = forecast[off_atom].positive_part().cdf(y[off_atom])
        return cls(off_atom, pit, event_probability(forecast))
