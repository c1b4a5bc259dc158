"""Sufficient statistics that add up: of one law, or of many side by side along leading axes."""
