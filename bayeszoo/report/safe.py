"""Safe pages: escaped text, scripts and styles allowed by their hashes alone, and JSON that cannot end its element."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayeszoo.errors import InputError
from bayeszoo.foundation.process.printable import escaped_lines
from bayeszoo.foundation.process.writing import require_writable
from bayeszoo.results.stored import dumps

if TYPE_CHECKING:
    import jinja2


def probe(path: Path, overwrite: bool = False) -> Path:
    """Check that a page can be written, before any work is done."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"a page is HTML: {path.name!r} must end in .html", "wrong_suffix")
    require_writable(path, overwrite)
    return path


@cache
def template(name: str) -> jinja2.Template:
    """Return a template of the pages, which escapes text and shows none of its invisible characters."""
    import jinja2

    options: dict[str, Any] = {"undefined": jinja2.StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    loader = jinja2.PackageLoader("bayeszoo.report", "templates")
    return jinja2.Environment(loader=loader, autoescape=True, finalize=_visible, **options).get_template(name)


def _visible(value: object) -> Any:
    """Return text without invisible characters; markup and numbers are not changed."""
    return escaped_lines(value) if type(value) is str else value


@cache
def assets(style_file: str, *script_files: str) -> dict[str, Any]:
    """Return the style and the script of a page, and the security policy that allows them and its pictures alone."""
    from markupsafe import Markup

    folder = resources.files("bayeszoo.report") / "templates"
    style, *scripts = ((folder / name).read_text(encoding="utf-8") for name in (style_file, *script_files))
    script = "\n".join(scripts)
    policy = f"default-src 'none'; style-src {_allowed(style)}; script-src {_allowed(script)}; img-src data:"
    policy += "; base-uri 'none'; form-action 'none'"
    return {"style": Markup(style), "script": Markup(script), "policy": policy}


def _allowed(text: str) -> str:
    """Return the source of a security policy that allows this style or script alone, by its hash."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def script_safe(value: object) -> Any:
    """Return JSON that may stand within a script element: nothing in it can end the element or open a comment."""
    from markupsafe import Markup

    text = dumps(value)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
