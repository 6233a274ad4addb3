"""Section on the provenance of an audit: model, data, draws, versions and command."""

from __future__ import annotations

from typing import Any

from evenhand._format import whole
from evenhand.report.document import Facts, Heading, PageData, Paragraph, Part, Section
from evenhand.report.findings import Findings
from evenhand.report.records import Values

NOT_RECORDED = "not recorded"


def provenance_section(findings: Findings, embedded: PageData | None = None) -> Section | None:
    """Show what is needed to repeat an audit; nothing if it was not recorded."""
    known = findings.values.get("provenance")
    if not known:
        return None
    model = known.get("model") or {}
    data = known.get("data") or {}
    listed = {
        "Model": _or_unknown(model.get("name")),
        "Model class": model.get("kind"),
        # the hash stored in a model folder, which matches a report with its model
        "Hash of the model": _hash(model.get("sha256"), "sha256 over its files, as in model.json"),
        "Data": _or_unknown(data.get("name")),
        "Rows": _rows(data),
        "Hash of the data": f"sha256 of the file: {data['sha256']}" if data.get("sha256") else None,
        "Hash of the values": _values_hash(known),
        "Draws": _or_unknown(known.get("draws")),
        "Seed": _seed(known.get("random_state")),
        "Versions": _versions(known),
        "Schema": findings.values.get("schema"),
        "Hash of the page": _page_hash(embedded),
    }
    text = "The model, data and settings with which this audit can be repeated."
    parts = [Paragraph(text), Facts(listed), *_command(known)]
    return Section("Provenance", parts, "provenance", in_text=False)


def _or_unknown(value: Any) -> str:
    return NOT_RECORDED if value is None or value == "" else str(value)


def _hash(value: Any, what: str) -> str:
    return f"{what}: {value}" if value else NOT_RECORDED


def _rows(data: Values) -> str | None:
    """Return the number of rows and, for a table in parts, of those searched."""
    if data.get("n_rows") is None:
        return None
    if data.get("n_parts") is None:
        return whole(data["n_rows"])
    searched = f"{whole(data['n_searched'])} rows sampled at random for searches and scores"
    return f"{whole(data['n_rows'])} in {whole(data['n_parts'])} parts; {searched}"


def _values_hash(known: Values) -> str | None:
    """Return the hash of the outcomes, which identifies data without a file."""
    # audits of earlier versions have no such hash
    value = known.get("values_sha256")
    return f"sha256 of the outcomes, or PITs, as 64-bit floats: {value}" if value else None


def _page_hash(embedded: PageData | None) -> str | None:
    """Return the hash of the data that the page embeds."""
    return None if embedded is None else f"sha256 of the embedded data: {embedded.sha256}"


def _seed(value: Any) -> str:
    if value is None:
        return (
            "not set: random steps of the audit (bootstrap, simulations, learners) vary"
            " slightly between runs"
        )
    return f"{value}: random steps of the audit (bootstrap, simulations, learners) are repeatable"


def _versions(known: Values) -> str:
    packages = known.get("packages") or {}
    first = {"evenhand": known.get("evenhand"), "Python": known.get("python")}
    return (
        ", ".join(f"{name} {version}" for name, version in {**first, **packages}.items() if version)
        or NOT_RECORDED
    )


def _command(known: Values) -> list[Part]:
    command = known.get("command")
    if not command:
        return [Paragraph("Made from Python; no command was recorded.", "facts")]
    return [Heading("Command"), Paragraph(str(command), "code")]
