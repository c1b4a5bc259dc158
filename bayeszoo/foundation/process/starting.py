"""Imported before the rest of the library, so that the command can be stopped during the import."""

import os
import sys

from bayeszoo.foundation.process import signals

_SCRIPT = os.path.basename(getattr(sys.modules.get("__main__"), "__file__", None) or "")

if _SCRIPT == "bayeszoo":  # not a program that uses the library, nor a child process of the command
    signals.end_at_once()
