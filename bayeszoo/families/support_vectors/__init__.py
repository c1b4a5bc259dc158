"""Regression by an eps-insensitive loss as noise: its distribution, the modes at its corners, and their certificate."""
