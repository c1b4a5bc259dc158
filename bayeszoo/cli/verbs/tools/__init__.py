"""Verbs that need no fit."""
