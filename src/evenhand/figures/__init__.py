"""Figures of what an audit found, as matplotlib axes: numbers first, drawn second.

Errors are drawn as fractions, with axes that read in percentage points. matplotlib is imported when
a figure is drawn, and only its own objects are used: no state of pyplot is touched.
"""

from evenhand.figures.audit_figures import plot_calibration, plot_groups, plot_worst_group
from evenhand.figures.front import plot_front
from evenhand.figures.price import plot_price_of_proof

__all__ = [
    "plot_calibration",
    "plot_front",
    "plot_groups",
    "plot_price_of_proof",
    "plot_worst_group",
]
