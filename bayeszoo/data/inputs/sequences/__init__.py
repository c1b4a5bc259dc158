"""Inputs of sequences: symbols, measurements and counts in order of time."""
