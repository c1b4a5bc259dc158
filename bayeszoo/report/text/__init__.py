"""Rows and lines of plain text, the same for the terminal and the page."""
