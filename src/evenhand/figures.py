"""Figures of what an audit found, as matplotlib axes: numbers first, drawn second.

Errors are drawn as fractions, with axes that read in percentage points. matplotlib is imported when a figure is drawn,
and only its own objects are used: no state of pyplot is touched.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from evenhand._checks import Floats, bad_input, check_weights
from evenhand.calibration.errors import check_pit
from evenhand.links import Laplace, price_of_proof

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    Records = Sequence[Mapping[str, Any]] | pd.DataFrame

__all__ = ["plot_calibration", "plot_groups", "plot_price_of_proof", "plot_worst_group"]

BLUE, ORANGE, RED, GREY = "#0072b2", "#e69f00", "#d55e00", "#757575"
"""Told apart by people with any kind of colour vision (Okabe and Ito), and by their markers and dashes."""

CONFIDENCE = 0.95
TINY = 1e-12
LABEL_LENGTH = 40
MARKED_ALPHAS = {0.05: "0.05", 0.1: "0.1", 0.2: "0.2", 1 / 3: "1/3", 0.5: "0.5", 1.0: "1"}

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that neither XML nor HTML may hold."""


def plot_worst_group(records: Records, ax: Axes | None = None, *, learned: Records | None = None) -> Axes:
    """Draw the error of the worst group against its share of the people (method: worst groups).

    Parameters
    ----------
    records : DataFrame, or list of dict
        `worst_groups` of an audit: `mass`, `error` and, where known, `null_mean`, `null_low`, `null_high` and
        `certified`, fractions.
    ax : matplotlib Axes, optional
        Where to draw; a figure of its own if None.
    learned : DataFrame or list of dict, optional
        `learned` of an audit: `mass`, `error`, `low`.

    Returns
    -------
    matplotlib Axes
        A certified bound holds for every group of at least its mass, so it is drawn as steps to the next.

    Raises
    ------
    InputError
        If there is no record.

    Examples
    --------
    >>> ax = plot_worst_group([{"mass": 0.2, "error": 0.4}, {"mass": 1.0, "error": 0.0}])
    >>> [float(error) for error in ax.lines[0].get_ydata()]
    [0.4, 0.0]
    """
    rows = _rows("records", records)
    axes = _axes(ax, (7.0, 4.2))
    mass, error = _column(rows, "mass"), _column(rows, "error")
    low, high, bound = (_column(rows, key) for key in ("null_low", "null_high", "certified"))
    axes.plot(mass, error, "o-", color=BLUE, label="Oracle: picked with outcomes seen", zorder=3)
    if np.isfinite([low, high]).any():
        label = "Same search, calibrated forecasts (5% to 95%, mean)"
        axes.fill_between(mass, low, high, color=GREY, alpha=0.25, linewidth=0, label=label)
    if np.isfinite(_column(rows, "null_mean")).any():
        axes.plot(mass, _column(rows, "null_mean"), "--", color=GREY, linewidth=1.2)
    if np.isfinite(bound).any():
        label = "Certified for every group of at least this share"
        axes.step(mass, bound, where="post", color=RED, linewidth=2, label=label)
    if learned is not None and len(learned):
        _draw_learned(axes, _rows("learned", learned))
    _finish(axes, x="Share of people in the group", y="Off by (percentage points)")
    return axes


def plot_groups(records: Records, ax: Axes | None = None) -> Axes:
    """Draw the error of each named group with its 95% band.

    Parameters
    ----------
    records : DataFrame, or list of dict
        `groups` of an audit: `group`, `n`, `error`, `error_low`, `error_high`, `too_small`. The first is drawn on top.
    ax : matplotlib Axes, optional
        Where to draw; a figure of its own, as high as the groups need, if None.

    Returns
    -------
    matplotlib Axes
        Groups that are too small to tell are grey and say so.

    Raises
    ------
    InputError
        If there is no record.

    Examples
    --------
    >>> ax = plot_groups([{"group": "women", "n": 400, "error": 0.1, "error_low": 0.06, "error_high": 0.14}])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['women (400 rows)']
    """
    rows = _rows("records", records)
    axes = _axes(ax, (7.0, 1.1 + 0.32 * len(rows)))
    error, places = _column(rows, "error"), np.arange(len(rows), dtype=np.float64)
    # an unknown end of a band is drawn as no whisker
    reach = np.nan_to_num([error - _column(rows, "error_low"), _column(rows, "error_high") - error]).clip(0)
    small = np.array([bool(row.get("too_small")) for row in rows])
    for part, color, marker in ((~small, BLUE, "o"), (small, GREY, "s")):
        if part.any():
            whiskers = reach[:, part]
            axes.errorbar(error[part], places[part], xerr=whiskers, fmt=marker, color=color, elinewidth=2, markersize=6)
    axes.set_yticks(places, [_group_label(row) for row in rows])
    for label, is_small in zip(axes.get_yticklabels(), small, strict=True):
        label.set_color(GREY if is_small else "black")
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(_as_points)
    axes.set_xlabel("Off by (percentage points), with 95% band")
    _tidy(axes, "x")
    return axes


def plot_price_of_proof(ax: Axes | None = None, *, points: Records | None = None) -> Axes:
    """Draw what proof of calibration must cost, and forecasters beside it (method: links).

    Parameters
    ----------
    ax : matplotlib Axes, optional
        Where to draw; a figure of its own if None.
    points : DataFrame or list of dict, optional
        Forecasters: `error`, the mean pathwise error, a fraction; `price`, the NLL above the conditional entropy, in
        nats; where known `name`, and `price_low` and `price_high`, the ends of an interval. An excess over a fitted
        base is no such price, and a finite test set can dip below the limit.

    Returns
    -------
    matplotlib Axes
        The limit for all forecasters, with the alphas of `Laplace` that attain it; the limit for those that are
        calibrated on average; and in a small panel the difference of the two, which is too small to be seen.

    Raises
    ------
    InputError
        If `points` holds no record.

    Examples
    --------
    >>> ax = plot_price_of_proof(points=[{"name": "mine", "error": 0.2, "price": 0.3}])
    >>> [text.get_text() for text in ax.texts][-1]
    'mine'
    """
    rows = [] if points is None else _rows("points", points)
    axes = _axes(ax, (7.0, 4.6))
    error, price = _column(rows, "error"), _column(rows, "price")
    curve = np.geomspace(0.002, 1 / 3, 400)
    every, exact = price_of_proof(curve, exact=False), price_of_proof(curve)
    axes.fill_between(np.append(0.0, curve), np.append(every[0], every), color=GREY, alpha=0.15, linewidth=0)
    axes.plot(curve, every, color=BLUE, linewidth=2, label="Limit of all forecasters, attained by laplace")
    axes.plot(curve, exact, "--", color=ORANGE, label="Limit of those calibrated on average, attained by entropic")
    _mark_alphas(axes)
    _draw_gap(axes, curve, exact - every)
    if rows:
        _draw_forecasters(axes, rows, error, price)
    # errors end at 1/2; the limit leaves at the top, where its price is that of an error of 0.02
    axes.set_xlim(0, max(0.36, 1.04 * float(np.nanmax(error, initial=0.0))))
    low, high = np.nanmin(price, initial=0.0), np.nanmax(price, initial=float(price_of_proof(0.02)))
    axes.set_ylim(low - 0.05 * (high - low), 1.05 * high)
    axes.set(xlabel="Mean pathwise error (percentage points)", ylabel="Price: log score given up (nats)")
    axes.xaxis.set_major_formatter(_as_points)
    axes.legend(loc="upper right", edgecolor="none", framealpha=1, fontsize="small")
    _tidy(axes, "y")
    return axes


def plot_calibration(pit: ArrayLike, ax: Axes | None = None, sample_weight: ArrayLike | None = None) -> Axes:
    """Draw the histogram of PITs with the band in which calibrated forecasts keep it.

    Parameters
    ----------
    pit : array-like of shape (n,) or (n, m)
        PITs between 0 and 1: rows are people, columns draws.
    ax : matplotlib Axes, optional
        Where to draw; a figure of its own if None.
    sample_weight : array-like of shape (n,), optional
        Weights of the people.

    Returns
    -------
    matplotlib Axes
        Heights are densities, 1 where calibrated. The band holds all bars at once with probability at least 0.95
        (Bonferroni): exactly for one draw per person, approximately for several draws or for weights. Bars outside
        are red and hatched.

    Raises
    ------
    InputError
        If a PIT lies outside 0 and 1, or weights do not fit.

    Examples
    --------
    >>> ax = plot_calibration((np.arange(200) + 0.5) / 200)
    >>> [float(round(bar.get_height(), 9)) for bar in ax.patches[:10]] == [1.0] * 10
    True
    """
    matrix = check_pit(pit)
    weights = check_weights(sample_weight, matrix.shape[0])
    share, low, high = _histogram(matrix, weights / weights.sum(), 10 if matrix.shape[0] < 500 else 20)
    n_bins = share.size
    axes = _axes(ax, (7.0, 3.6))
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    bars = axes.bar(edges[:-1], share * n_bins, width=1 / n_bins, align="edge", color=BLUE, alpha=0.75, edgecolor="w")
    for bar, is_outside in zip(bars, (share < low) | (share > high), strict=True):
        if is_outside:
            bar.set(facecolor=RED, hatch="//")
    label = f"{CONFIDENCE:.0%} band under calibration, all bars at once"
    style: Any = {"fill": True, "color": GREY, "alpha": 0.35, "linewidth": 0}
    axes.stairs(high * n_bins, edges, baseline=low * n_bins, label=label, **style)
    axes.axhline(1, color=GREY, linestyle="--", linewidth=1.2)
    axes.set(xlim=(0, 1), xlabel="PIT: stated chance of an outcome this low", ylabel="Density")
    axes.set_ylim(0, 1.3 * float(max(share.max(), high.max())) * n_bins)
    axes.legend(loc="upper center", frameon=False)
    _tidy(axes, "y")
    return axes


def plain_label(text: Any, length: int = LABEL_LENGTH) -> str:
    r"""Make a label of a name from data: one line, not longer than `length`, and never read as mathematics.

    Examples
    --------
    >>> print(plain_label("$a_b$"))
    \$a_b\$
    """
    line = " ".join(printable(text).split())
    if len(line) > length:
        line = line[: length - 1].rstrip() + "…"
    return line.replace("$", r"\$")


def printable(text: Any) -> str:
    """Return a text from data with the characters replaced that neither XML nor HTML may hold."""
    return _UNPRINTABLE.sub("\ufffd", str(text))


def inline_svg(draw: Callable[[], Axes], alt: str, prefix: str) -> str:
    """Draw a figure in matplotlib's default style, whatever the user's is, and return it as SVG for inside a page.

    Parameters
    ----------
    draw : callable
        Makes the figure and returns its axes.
    alt : str
        What people hear who do not see it.
    prefix : str
        Of its ids, which have to occur once in a page.

    Examples
    --------
    >>> svg = inline_svg(lambda: plot_worst_group([{"mass": 1.0, "error": 0.0}]), "a curve", "first")
    >>> svg.startswith("<svg"), 'aria-label="a curve"' in svg
    (True, True)
    """
    from matplotlib import style

    settings: Any = ["default", {"svg.fonttype": "none", "svg.hashsalt": "evenhand", "font.size": 10.0}]
    out = io.BytesIO()
    with warnings.catch_warnings(), style.context(settings, after_reset=True):
        # the reader's browser has the glyphs that matplotlib's own font lacks
        warnings.filterwarnings("ignore", message="Glyph")
        figure = draw().get_figure(root=True)
        assert figure is not None
        figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    root = ElementTree.fromstring(out.getvalue())
    _make_inline(root, prefix)
    root.attrib |= {"role": "img", "aria-label": printable(alt), "stroke-linejoin": "round", "stroke-linecap": "butt"}
    return ElementTree.tostring(root, encoding="unicode")


def _make_inline(root: ElementTree.Element, prefix: str) -> None:
    """Make an SVG part of a page: no namespaces, no style sheet of its own, no fixed size, ids that occur once."""
    for element in list(root.iter()):
        for child in list(element):
            if child.tag.endswith(("}metadata", "}style")):
                element.remove(child)
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for key in list(element.attrib):
            value, name = element.attrib.pop(key), key.rpartition("}")[2]
            if name == "id":
                value = f"{prefix}-{value}"
            elif name == "href":
                value = f"#{prefix}-{value[1:]}"
            element.set(name, value.replace("url(#", f"url(#{prefix}-"))


def _histogram(matrix: Floats, share: Floats, n_bins: int) -> tuple[Floats, Floats, Floats]:
    """Share of PITs in each bin, people weighing `share`, and the band that holds them all under calibration."""
    cell = np.minimum((matrix * n_bins).astype(np.int8), n_bins - 1)
    even, height, variance = 1 / n_bins, np.empty(n_bins), np.empty(n_bins)
    for b in range(n_bins):
        part = (cell == b).mean(axis=-1)
        height[b], variance[b] = share @ part, share**2 @ (part - even) ** 2
    # the mean over bins does not hang on how the bins are filled: of one draw per person it is the true variance, so
    # the band is exact; of several draws the outer bins vary more, and count with their own
    variance = np.maximum(variance, variance.mean()) if matrix.shape[1] > 1 else np.full(n_bins, variance.mean())
    # a share varies as that of so many single trials would
    n = np.maximum(np.round(even * (1 - even) / np.maximum(variance, TINY)), 1)
    outside = (1 - CONFIDENCE) / (2 * n_bins)
    return height, binom.ppf(outside, n, even) / n, binom.isf(outside, n, even) / n


def _draw_learned(axes: Axes, rows: list[Mapping[str, Any]]) -> None:
    mass, error, low = (_column(rows, key) for key in ("mass", "error", "low"))
    # an estimate without bias may fall below its bound
    reach = np.stack([np.nan_to_num(error - low).clip(0), np.zeros_like(error)])
    label = "Learned from features, bar down to its lower bound"
    axes.errorbar(mass, error, yerr=reach, fmt="D", color=ORANGE, markeredgecolor="black", capsize=4, label=label)


def _mark_alphas(axes: Axes) -> None:
    for alpha, name in MARKED_ALPHAS.items():
        link = Laplace(alpha)
        place = (link.mean_error, link.price)
        axes.plot(*place, "o", color=BLUE, markersize=5, zorder=3)
        # below the limit, where no forecaster's name can be in the way
        axes.annotate(
            f"α = {name}", place, (-4, -4), textcoords="offset points", ha="right", va="top", fontsize="small"
        )
    axes.text(0.055, 0.35, "no forecaster", color="#505050", style="italic", ha="center")


def _draw_gap(axes: Axes, error: Floats, gap: Floats) -> None:
    """Draw the difference of the two limits in a panel of its own, in thousandths of a nat."""
    panel = axes.inset_axes((0.58, 0.42, 0.38, 0.26), zorder=1)  # behind the forecasters, should one be there
    panel.plot(error, 1000 * gap, "--", color=ORANGE)
    panel.set(xlim=(0, 0.36), ylim=(0, 7))
    panel.set_title("Dashed − solid (0.001 nats)", fontsize="small")
    panel.tick_params(labelsize="small")
    panel.xaxis.set_major_formatter(_as_points)
    _tidy(panel, "y")


def _draw_forecasters(axes: Axes, rows: list[Mapping[str, Any]], error: Floats, price: Floats) -> None:
    # an unknown end of an interval is drawn as no whisker
    reach = np.nan_to_num([price - _column(rows, "price_low"), _column(rows, "price_high") - price]).clip(0)
    style: Any = {"fmt": "D", "color": RED, "markeredgecolor": "black", "capsize": 4, "zorder": 4}
    axes.errorbar(error, price, yerr=reach, label="Forecasters", **style)
    for row, e, p in zip(rows, error, price, strict=True):
        if row.get("name") is not None and np.isfinite([e, p]).all():
            axes.annotate(plain_label(row["name"]), (e, p), (7, 5), textcoords="offset points", fontsize="small")


def _finish(axes: Axes, *, x: str, y: str) -> None:
    from matplotlib.ticker import PercentFormatter

    axes.set(xlabel=x, ylabel=y, xlim=(0, 1.02))
    # room for the legend above the highest error there is
    axes.set_ylim(min(axes.get_ylim()[0], 0.0), 0.66)
    axes.set_yticks(np.arange(0.0, 0.51, 0.1))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.yaxis.set_major_formatter(_as_points)
    axes.legend(loc="upper right", edgecolor="none", framealpha=1, fontsize="small")
    _tidy(axes, "y")


def _tidy(axes: Axes, grid: str) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x" if grid == "x" else "y", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)


def _as_points(value: float, _: float) -> str:
    return f"{100 * value:.4g}"


def _group_label(row: Mapping[str, Any]) -> str:
    n = row.get("n")
    count = "unknown" if n is None else f"{n:,}"
    rows = f"too few rows: {count}" if row.get("too_small") else f"{count} row{'' if n == 1 else 's'}"
    return f"{plain_label(row.get('group'))} ({rows})"


def _rows(name: str, records: Records) -> list[Mapping[str, Any]]:
    rows: list[Any] = list(records) if isinstance(records, Sequence) else records.to_dict("records")
    if not rows:
        raise bad_input(name, "hold at least one row", "none")
    return rows


def _column(rows: list[Mapping[str, Any]], key: str) -> Floats:
    return np.array([np.nan if row.get(key) is None else float(row[key]) for row in rows])


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    if ax is not None:
        return ax
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()
