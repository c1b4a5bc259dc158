"""State-space models: hidden numbers that move in time, filtered and smoothed."""
