"""Safe display of text from any source: no control characters, and none that change the direction of text."""

from __future__ import annotations


def escaped(text: object, kept: str = "") -> str:
    """Write control characters, and characters that change the direction of text, visibly, except those in ``kept``."""
    text = str(text)
    return text if text.isprintable() else "".join(c if c.isprintable() or c in kept else repr(c)[1:-1] for c in text)


def escaped_lines(text: object) -> str:
    """Apply `escaped` to text in lines, keeping newlines and tabs."""
    return escaped(text, "\n\t")
