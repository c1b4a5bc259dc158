"""Draws of any sampler: judged, relabelled, and the evidence from them."""
