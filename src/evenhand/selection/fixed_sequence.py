"""Tests of randomized models in a fixed order (method: proof)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand._format import in_full
from evenhand._validate import Floats, InputError
from evenhand.audits import BLOCK_ROWS, PIT_DRAWS, event_probability
from evenhand.calibration import Cells, Outcomes, Rounding, pathwise_errors
from evenhand.certificates import Certificate, Choice, EventPart, OffAtom, certify_rows
from evenhand.distributions import OutcomeKind, as_hurdle
from evenhand.draws import fresh, jittered
from evenhand.forecast import Forecast
from evenhand.forecasters import PAICRegressor, thawed
from evenhand.selection.comparison import COMPARED_DRAWS, HeldOutScores
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
            X, learned = rows.learning()
            models: Sequence[Any] = type(estimator).path(
                X, learned.value, ALPHAS, sample_weight=learned.weight, **params
            )
    else:
        # the caller fixed the order before seeing these rows
        models = [thawed(model) for model in estimator]
    X, outcomes = rows.certifying()
    passed: tuple[Any, Certificate, Cells] | None = None
    for model in models:
        found = _certify_model(model, X, outcomes, target, random)
        if found is None or found[0].group_error(target.group_mass) > most:
            break
        # the sequence of tests proves the target for each model that passes, not its own bound
        choice = Choice("tested", most, target.group_mass)
        proof = replace(found[0], choice=choice, one_row_each=rows.one_row_each)
        passed = model, proof, found[1]
    if passed is None:
        raise InputError(
            f"no model has a certified group error of at most {most:g} for groups"
            f" of {in_full(target.group_mass)} of people with {outcomes.n_samples:,} rows, not even"
            " the first; use more rows, allow a larger error, or put a more randomized model first"
        )
    return _selection_of_randomized(*passed, rows, target, random)


def _selection_of_randomized(
    model: Any,
    proof: Certificate,
    cells: Cells,
    rows: SplitRows,
    target: Target,
    random: np.random.Generator,
) -> Selection:
    X, outcomes = rows.certifying()
    forecast_of_one = model.forecast(take_rows(X, slice(1)), [0.5])
    # the log score of forecasts with atoms is one of probabilities
    cells = cells if forecast_of_one.has_atoms else cells.at_points()
    grid = None if forecast_of_one.has_atoms else Rounding.grid(rows.y)
    held = HeldOutScores(outcomes, grid, None, random)
    forecast = model.forecast(X, jittered(outcomes.n_samples, COMPARED_DRAWS, random))
    randomized = held.line("randomized", forecast, cells) | {
        "certified_group_error": proof.group_error(target.group_mass)
    }
    lines = [*held.without_features(rows.y[rows.learn], forecast), randomized]
    return Selection(
        model=model,
        certificate=proof,
        target=target,
        price=np.nan,
        # the least price is a theorem on continuous forecasts
        limit=np.nan if forecast.has_atoms else least_price(float(pathwise_errors(cells).mean())),
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
    model: Any, X: Any, outcomes: Outcomes, target: Target, random: np.random.Generator
) -> tuple[Certificate, Cells] | None:
    """Certify a model at the target's group size; return None if it is not randomized."""
    # each model has own draws
    n = outcomes.n_samples
    draws, ties = jittered(n, PIT_DRAWS, random), fresh(n, random)
    rounding = Rounding.of(outcomes.value)
    cells: list[Cells] = []
    off: list[Cells] = []
    chance: list[Floats] = []
    for block in row_blocks(n, BLOCK_ROWS):
        # in blocks: a forecast over many draws needs memory for each draw
        forecast = model.forecast(take_rows(X, block), draws[block])
        if not forecast.is_randomized:
            return None
        some = outcomes.take(block)
        spread = Rounding() if forecast.has_atoms else rounding
        cells.append(forecast.cells(some, rounding=spread, ties=ties[block]))
        if forecast.outcome_kind is OutcomeKind.HURDLE:
            is_off = forecast.is_off_atom(some.value)
            chance.append(event_probability(forecast))
            if is_off.any():
                part = forecast[is_off].positive_part()
                off.append(part.cells(some.take(is_off), ties=ties[block][is_off]))
    served, off_atom, event = Cells.joined(cells), None, None
    at = atom_of(forecast)
    if at is not None:
        # groups are shares of the people off the atom, and only their part is randomized
        is_off = outcomes.value != at
        event = EventPart.of(np.concatenate(chance), is_off)
        if is_off.any():
            off_atom = OffAtom(np.flatnonzero(is_off), Cells.joined(off), None, at)
    made = certify_rows(
        # rounded outcomes of a continuous forecast have one position in their rounding cells
        served if forecast.has_atoms else served.at_points(),
        kind=forecast.outcome_kind,
        off_atom=off_atom,
        event=event,
        confidence=target.confidence,
        method="betting",
        mass=target.group_mass,
        random_state=random,
    )
    return made, served


def atom_of(base: Forecast) -> float | None:
    """Return the value of the atom of forecasts with a continuous part; None for other kinds."""
    is_hurdle = base.outcome_kind is OutcomeKind.HURDLE
    return as_hurdle(base.distribution).at if is_hurdle else None
