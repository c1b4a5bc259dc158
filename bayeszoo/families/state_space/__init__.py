"""State-space models: hidden levels that move in time, filtered and smoothed."""
