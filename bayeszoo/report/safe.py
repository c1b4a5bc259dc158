"""Safe pages: scripts and styles allowed by their hashes alone, and JSON that cannot end its element."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from bayeszoo.results.stored import dumps


def allowed(text: str) -> str:
    """Return the source of a security policy that allows this style or script alone, by its hash."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def script_safe(value: object) -> Any:
    """Return JSON that may stand within a script element: nothing in it can end the element or open a comment."""
    from markupsafe import Markup

    text = dumps(value)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
