"""Verbs that ask a saved fit."""
