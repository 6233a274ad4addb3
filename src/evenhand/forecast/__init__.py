"""Forecasts: batches of distributions with their draws."""

from evenhand.forecast.forecast import Forecast as Forecast
from evenhand.forecast.values import cell_ends as cell_ends

__all__ = ["Forecast"]
