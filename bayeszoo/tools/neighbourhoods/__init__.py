"""Answers from distances between rows, and from links between nodes."""
