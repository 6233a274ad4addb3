"""Section on the price of proof: the log score given up against the error that a group can have."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand._format import at_most, in_full, number, points_in_full
from evenhand._table import Cells, Column, Table, numeric
from evenhand.report.charts import Axis, Chart, Layer, Point, Points, known, nice_ticks
from evenhand.report.document import Pair, Paragraph, Section
from evenhand.report.findings import Findings
from evenhand.report.records import PricePoint, or_zero, record, records


def price_section(findings: Findings) -> Section | None:
    """Show the price of proof against the group error; nothing if it is not known."""
    price = findings.values.get("price") or {}
    rows = [row for row in records(PricePoint, price.get("curve")) if _is_known(row)]
    if not rows:
        return None
    point = record(PricePoint, price["chosen"]) if price["chosen"] else None
    chosen = point if point is not None and _is_known(point) else None
    mass = in_full(price["mass"])
    explained = [
        Paragraph(
            "Proof costs sharpness. The smaller alpha, the more a forecast hangs on its draw: the"
            " less far off any group can be, and the more log score is given up, in nats."
        ),
        Paragraph(_chosen_in_words(chosen, mass)),
        Paragraph(
            "The curve is what a link promises around forecasts that are calibrated before the"
            " draw; what these rows prove of this model stands under What is proven."
        ),
    ]
    chart = _price_chart(rows, chosen, mass, str(price["link"]))
    pair = Pair([chart], explained, is_remark=True)
    return Section("What proof costs", [pair], "price", in_text=False)


def _is_known(point: PricePoint) -> bool:
    return known(point.group_error, point.price)


def _chosen_in_words(chosen: PricePoint | None, mass: str) -> str:
    # a model without a link, such as a deterministic one, has no point on the curve
    if chosen is None:
        return (
            "This model has no link of its own to choose by. The curve shows what a link of each"
            " alpha would cost around a calibrated model."
        )
    return (
        f"Chosen here: alpha {chosen.alpha:.3g}. Around a calibrated model no group of {mass} of"
        f" people would be off by more than {at_most(chosen.group_error)} points, for"
        f" {number(chosen.price)} nats."
    )


def _price_chart(
    rows: Sequence[PricePoint], chosen: PricePoint | None, mass: str, link: str
) -> Chart:
    # the chosen alpha need not be one of the curve, and may lie beyond its ends
    shown = [*rows, chosen] if chosen else rows
    # a little room above the highest point; all prices may be 0
    high = max(or_zero(row.price) for row in shown) * 1.05 or 1.0
    reach = min(0.5, max(or_zero(row.group_error) for row in shown) * 1.06) or 0.5
    layers: list[Layer] = [
        Points(
            [_price_point(row, "Alpha", mass) for row in rows],
            f"{link} link, a point for each alpha",
            joined_by="line",
        )
    ]
    if chosen:
        mark = _price_point(chosen, "Chosen: alpha", mass)
        layers.append(Points([mark], "chosen", "red", "diamond"))
    cells: Cells[PricePoint] = {
        Column("alpha"): lambda row: f"{row.alpha:.3g}",
        numeric("group error (points)"): lambda row: at_most(row.group_error),
        numeric("price (nats)"): lambda row: number(row.price),
    }
    title = f"Groups of {mass} of people off by up to (percentage points)"
    ticks = [v for v in nice_ticks(0, reach) if v <= 0.5]
    return Chart(
        "Price of proof against the error that a group can have.",
        Axis(0, reach, title, ticks, points_in_full),
        layers,
        Axis(0, high, "Price: log score given up (nats)", nice_ticks(0, high)),
        title="Price of proof against group error",
        numbers=Table.of("Numbers of the price of proof", rows, cells),
        height=330,
    )


def _price_point(row: PricePoint, opening: str, mass: str) -> Point:
    tip = (
        f"{opening} {row.alpha:.3g}: groups of {mass} off by up to {at_most(row.group_error)}"
        f" points, for {number(row.price)} nats."
    )
    return Point(or_zero(row.group_error), or_zero(row.price), tip)
