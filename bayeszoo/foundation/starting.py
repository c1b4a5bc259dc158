"""Imports before the rest of the library: the command may be stopped while that is imported."""

import os
import sys

from bayeszoo.foundation import signals

_SCRIPT = os.path.basename(getattr(sys.modules.get("__main__"), "__file__", None) or "")

if _SCRIPT == "bayeszoo":  # not a program that uses the library, nor a process that the command has started
    signals.end_at_once()
