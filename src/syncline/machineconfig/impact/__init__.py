"""Forecasts what a change of machine configs does to nodes."""
