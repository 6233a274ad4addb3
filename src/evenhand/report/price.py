"""Section on the price of a guarantee: the loss in log score against the group error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand._format import (
    at_most,
    in_full,
    log_score,
    number,
    points,
    points_in_full,
    whole,
    with_error,
)
from evenhand._table import Cells, Column, Table, numeric
from evenhand.figures import PRICE_TITLE
from evenhand.report.charts import Axis, Chart, Layer, Point, Points, nice_ticks
from evenhand.report.document import Heading, Pair, Paragraph, Part, Section
from evenhand.report.findings import Findings
from evenhand.report.measures import log_score_name
from evenhand.report.records import Forecaster, PricePoint, known, or_zero, record, records


def price_section(findings: Findings) -> Section | None:
    """Show the price of a guarantee against the group error; nothing if it is not known."""
    price = findings.values.get("price") or {}
    rows = [row for row in records(PricePoint, price.get("curve")) if _is_known(row)]
    if not rows:
        return None
    point = record(PricePoint, price["chosen"]) if price.get("chosen") else None
    chosen = point if point is not None and _is_known(point) else None
    mass = in_full(price.get("mass"))
    explained = [
        Paragraph(
            "A guarantee costs sharpness. The smaller alpha is, the more a forecast depends on its"
            " draw: the largest possible group error falls, and the loss in log score, in nats,"
            " rises."
        ),
        Paragraph(_chosen_in_words(chosen, mass)),
        Paragraph(
            "The curve holds for forecasts that are calibrated before the draw. The bounds that"
            " these rows give for this model are listed under Guarantees."
        ),
    ]
    chart = _price_chart(rows, chosen, mass, str(price.get("link") or "unknown"))
    pair = Pair([chart], explained, is_remark=True)
    parts = [pair, *_comparison(price.get("comparison") or {})]
    return Section("Price of a guarantee", parts, "price", in_text=False)


def _comparison(comparison: Mapping[str, Any]) -> list[Part]:
    """Show the scores of all forecasters of a selection; nothing for other audits."""
    rows = records(Forecaster, comparison.get("forecasters"))
    if not rows:
        return []
    compared = whole(comparison.get("crps_people"))
    # audits of earlier versions have no step and plain log scores
    step = comparison.get("rounding_step")
    rounded = ""
    if step:
        rounded = " The log score uses the probability of each outcome's rounding cell."
    explained = Paragraph(
        f"Mean scores on these people, CRPS on {compared} of them; smaller is better. The forecast"
        ' "without features" is one distribution for everybody: if the randomized forecast has a'
        f" worse log score, its draw costs more than the features are worth.{rounded}"
    )
    cells: Cells[Forecaster] = {
        Column("forecaster"): lambda row: row.forecaster,
        numeric(log_score_name(step)): lambda row: log_score(row.log_score),
        numeric("CRPS"): lambda row: with_error(row.crps, row.crps_error),
        numeric("80% interval width"): lambda row: number(row.width),
        numeric("average error (points)"): lambda row: points(row.average_error),
    }
    title = "Worth of the forecasts"
    return [Heading(title), explained, Table.of(title, rows, cells)]


def _is_known(point: PricePoint) -> bool:
    return known(point.alpha, point.group_error, point.price)


def _chosen_in_words(chosen: PricePoint | None, mass: str) -> str:
    # a deterministic model has no link and no point on the curve
    if chosen is None:
        return (
            "This model has no link. The curve shows the price of each alpha for a calibrated"
            " model."
        )
    return (
        f"Chosen here: alpha {chosen.alpha:.3g}. If the model is calibrated before the draw, every"
        f" group of {mass} of people is off by at most {at_most(chosen.group_error)} points, at a"
        f" price of {number(chosen.price)} nats."
    )


def _price_chart(
    rows: Sequence[PricePoint], chosen: PricePoint | None, mass: str, link: str
) -> Chart:
    # the chosen alpha may lie between the points of the curve or beyond its ends
    shown = [*rows, chosen] if chosen else rows
    # room above the highest point; all prices may be 0
    high = max(or_zero(row.price) for row in shown) * 1.05 or 1.0
    reach = min(0.5, max(or_zero(row.group_error) for row in shown) * 1.06) or 0.5
    layers: list[Layer] = [
        Points(
            [_price_point(row, "Alpha", mass) for row in rows],
            f"{link} link, one point per alpha",
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
    title = f"Largest error of groups of {mass} of people (percentage points)"
    ticks = [v for v in nice_ticks(0, reach) if v <= 0.5]
    return Chart(
        "Price of a guarantee against the largest group error.",
        Axis(0, reach, title, ticks, points_in_full),
        layers,
        Axis(0, high, PRICE_TITLE, nice_ticks(0, high)),
        title="Price against group error",
        numbers=Table.of("Numbers of the price of a guarantee", rows, cells),
        height=330,
    )


def _price_point(row: PricePoint, opening: str, mass: str) -> Point:
    tip = (
        f"{opening} {row.alpha:.3g}: groups of {mass} off by up to {at_most(row.group_error)}"
        f" points, for {number(row.price)} nats."
    )
    return Point(or_zero(row.group_error), or_zero(row.price), tip)
