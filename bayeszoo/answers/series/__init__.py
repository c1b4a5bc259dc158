"""Rows in time: hidden states, levels and forecasts."""
