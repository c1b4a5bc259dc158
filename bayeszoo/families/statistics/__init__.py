"""Sufficient statistics that several families share."""
