"""Figures of what an audit found, as matplotlib axes: numbers first, drawn second.

Errors are drawn as fractions, with axes that read in percentage points. matplotlib is imported when
a figure is drawn, and only its own objects are used: no state of pyplot is touched.
"""

from evenhand.figures.audit_figures import plot_calibration, plot_groups, plot_worst_group
from evenhand.figures.front import plot_front
from evenhand.figures.price import plot_price_of_proof

# building blocks of figures and pages in other rooms; `__all__` is the documented reference
from evenhand.figures.style import BLUE as BLUE
from evenhand.figures.style import GREY as GREY
from evenhand.figures.style import ORANGE as ORANGE
from evenhand.figures.style import RED as RED
from evenhand.figures.style import as_points as as_points
from evenhand.figures.style import new_figure as new_figure
from evenhand.figures.style import printable as printable
from evenhand.figures.style import tidy as tidy
from evenhand.figures.svg import inline_svg as inline_svg
from evenhand.figures.svg import save_figure as save_figure

__all__ = [
    "plot_calibration",
    "plot_front",
    "plot_groups",
    "plot_price_of_proof",
    "plot_worst_group",
]
