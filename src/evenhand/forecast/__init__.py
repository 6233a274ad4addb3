"""Forecasts: batches of distributions with their draws."""

from evenhand.forecast.forecast import Forecast as Forecast
from evenhand.forecast.own_values import OWN_VALUES as OWN_VALUES
from evenhand.forecast.own_values import forecast_values as forecast_values
from evenhand.forecast.times import check_atom_at_horizon as check_atom_at_horizon
from evenhand.forecast.times import check_forecast_of_times as check_forecast_of_times
from evenhand.forecast.values import cell_ends as cell_ends

__all__ = ["Forecast"]
