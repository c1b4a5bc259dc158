"""Posteriors whose answer is known, samplers of them, and models as programs of other tools."""
