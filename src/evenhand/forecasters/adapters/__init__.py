"""Models of other people as bases, and their forecasts in columns of a table."""
