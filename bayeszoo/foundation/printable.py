"""Text that may come from anybody, as it is shown: nothing in it drives a terminal, or turns the line around."""

from __future__ import annotations


def escaped(text: object, kept: str = "") -> str:
    """Write control characters, and characters that change the direction of text, visibly; not the ``kept`` ones."""
    text = str(text)
    return text if text.isprintable() else "".join(c if c.isprintable() or c in kept else repr(c)[1:-1] for c in text)


def escaped_lines(text: object) -> str:
    """Do the same for text in lines, whose ends and tabs stay."""
    return escaped(text, "\n\t")
