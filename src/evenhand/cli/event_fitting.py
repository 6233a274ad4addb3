"""Training of forecasters of 0/1 outcomes by `fit`, and their certificates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand._format import at_most, confidence_in_full, count, in_full
from evenhand._validate import Ints, about
from evenhand.cli.certifying import (
    Training,
    audit_of_held,
    certified_people,
    event_bounds,
    fitted_record,
    report_page,
    training_text,
)
from evenhand.cli.messages import inform, show_result

if TYPE_CHECKING:
    from evenhand.audits import Audit
    from evenhand.certificates import EventCertificate

GROUP_MASS = 0.2
CONFIDENCE = 0.95
"""Defaults, as in `evenhand.randomize`."""


def fit_events(
    training: Training,
    people: list[str] | None,
    asked: dict[str, Any],
    out: Path,
    as_json: bool,
) -> None:
    """Fit a model of the probability of an event, certify it on held-out people and save it.

    Parameters
    ----------
    training : Training
        The rows and the unfitted model.
    people : list of str or None
        Labels of people.
    asked : dict
        Options `group_mass`, `confidence` and `cluster`; None stands for a default.
    out : Path
        Model folder.
    as_json : bool
        Whether to print JSON.
    """
    from evenhand.tables import take_rows

    learn, held = _split(training, asked["cluster"])
    with about(training.table.name):
        model = training.base.fit(take_rows(training.X, learn), training.y[learn])
    proof, record, last = _certify(model, training, people, held, asked, out)
    result = fitted_record(out, len(learn), training, None, None)
    show_result(result | {"certificate": record}, proof.summary(), as_json)
    certified = f"certified on {count(len(held), 'other person', 'other people')}"
    trained = f"trained on {len(learn):,} rows and {training_text(training)}"
    inform(f"{trained}, {certified}; model and certificate.json written to {out}")
    inform(last)


def _split(training: Training, cluster: list[str] | None) -> tuple[Ints, Ints]:
    """Return training rows and certifying rows, one per person, as `evenhand.randomize` does."""
    from evenhand._validate import MIN_DISTINCT
    from evenhand.draws import generator
    from evenhand.selection import CERTIFY_SHARE, split_rows

    random = generator(training.seed)
    with about(training.table.name):
        rows = split_rows(
            training.X, training.y, None, cluster, CERTIFY_SHARE, MIN_DISTINCT, random
        )
    return rows.learn, rows.certify


def _certify(
    model: Any,
    training: Training,
    people: list[str] | None,
    held: Ints,
    asked: dict[str, Any],
    out: Path,
) -> tuple[EventCertificate, dict[str, Any], str]:
    """Certify a model on held-out people, and save it with its certificate and report.

    Returns the certificate, its content as JSON values, and a message about the report.
    """
    from evenhand import store
    from evenhand.certificates import certify_events
    from evenhand.tables import take_rows

    mass = GROUP_MASS if asked["group_mass"] is None else asked["group_mass"]
    confidence = CONFIDENCE if asked["confidence"] is None else asked["confidence"]
    probability = model.forecast(take_rows(training.X, held)).event_probability()
    proof = certify_events(probability, training.y[held], confidence=confidence)
    record = {
        **_record(proof, mass),
        "n_learning": len(training.y) - len(held),
        "certified_on": certified_people(held, people),
    }
    packed = store.pack(model)

    def audited() -> Audit:
        return audit_of_held(model, training, held, confidence, out.name, packed.sha256)

    page = None
    try:
        page, last = report_page(audited, out)
    finally:
        # training takes long: an error in the audit must not lose the model
        store.write_model(packed, out, record, page)
    return proof, record, last


def _record(proof: EventCertificate, mass: float) -> dict[str, Any]:
    """Return a certificate of event rates as JSON values."""
    from evenhand._version import __version__

    low, high = proof.bias(mass)
    return {
        "statement": (
            f"In every group of at least {in_full(mass)} of people, the share with the event is at"
            f" most {at_most(high)} points above and at most {at_most(-low)} points below the mean"
            f" forecast, with {confidence_in_full(proof.confidence)} confidence."
        ),
        "outcome": "binary",
        "n_certifying": proof.n_samples,
        "group_mass": mass,
        "confidence": proof.confidence,
        **event_bounds(proof, mass),
        "promise": proof.promise(mass).to_dict(),
        "assumes": list(proof.assumptions),
        "does_not_cover": list(proof.not_covered),
        "written_by": f"evenhand {__version__}",
    }
