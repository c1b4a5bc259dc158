"""The HTML page about a fit: one self-contained file, made of escaped blocks."""
