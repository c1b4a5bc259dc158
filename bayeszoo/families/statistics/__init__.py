"""Sufficient statistics shared by several families."""
