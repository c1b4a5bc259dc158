"""Regression with eps-insensitive noise: its distribution, modes at its corners, and their certificate."""
