"""What an answer that was judged by itself withholds, in lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def about_judged(frame: pd.DataFrame) -> list[str]:
    """Say what is withheld of an answer, and how far off the rest is where it was judged."""
    lines = [f"Withheld: {line}." for line in frame.attrs.get("withheld", [])]
    judged = str(frame.attrs.get("judged", ""))
    return [*lines, *[f"{judged[:1].upper()}{judged[1:]}."] * bool(judged)]
