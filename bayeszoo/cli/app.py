"""The command line. Results go to stdout, progress and notes to stderr; nothing heavy is imported before it is needed.

Exit codes: 0 ok, or to be read with caution; 2 input or usage; 3 the result may not be trusted, with --strict also what
is to be read with caution; 4 numerical failure; 130 and 143 interrupted; 1 a bug.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import os
import pkgutil
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Literal

from cyclopts import App, CycloptsError, RepeatArgumentError, UnknownOptionError
from cyclopts.exceptions import UnknownCommandError

from bayeszoo.cli import terminal, verbs
from bayeszoo.cli.help_about import help_about
from bayeszoo.cli.user import AtTerminal, cautions
from bayeszoo.errors import InputError, Interrupted, NumericalError, Untrustworthy
from bayeszoo.foundation.process import signals
from bayeszoo.model import find as zoo

PANIC = "PanicException"
"""The exception of nutpie's Rust, which `except Exception` does not catch."""
OUT_OF_MEMORY = ("failed to map segment", "annot allocate memory", "os error 11", "os error 12", "start new thread")
"""Parts of the messages of libraries that could not get memory for code, data or threads."""
ELSEWHERE = {
    **dict.fromkeys(("--outcome", "--response", "--dependent", "--y"), "--target COLUMN"),
    **dict.fromkeys(("--predictors", "--covariates", "--x"), "--features COLUMN,COLUMN"),
    **dict.fromkeys(("--steps", "--horizon", "--ahead"), "bayeszoo predict FIT --rows N"),
    "--offset": "--exposure COLUMN",
    "--groups": "--group COLUMN",
    "--rope": "bayeszoo contrasts FIT --rope SIZE",
    "forecast": "bayeszoo predict FIT --rows N",
    **dict.fromkeys(("sample", "train", "estimate"), "bayeszoo fit MODEL DATA"),
    **dict.fromkeys(("plot", "summary", "diagnose"), "bayeszoo report FIT -o PAGE.html"),
    **dict.fromkeys(("loo", "waic", "evidence"), "bayeszoo select FIT FIT"),
}
"""Options and commands of other tools, with their names in bayeszoo."""
EPILOGUE = (
    "Exit codes: 0 ok, or shown with a warning; 2 input; 3 not trustworthy, with --strict also what has a "
    "caveat; 4 numerical failure; 130/143 interrupted; 1 a bug. To read a fit of your own model: "
    "--model-file FILE.py:CLASS."
)
app = App(
    name="bayeszoo",
    help="Textbook Bayesian models in PyMC, checked against closed forms.",
    help_epilogue=EPILOGUE,
    suppress_keyboard_interrupt=False,  # it would end in 130 whatever the signal, and without a word
)
for module in pkgutil.walk_packages(verbs.__path__, f"{verbs.__name__}."):
    for function, command in vars(importlib.import_module(module.name)).items():
        if function.endswith("_command"):
            app.command(command, name=function.removesuffix("_command").replace("_", "-"))


@app.command(name="completion")
def completion_command(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a shell script that completes commands, models, methods, options and files.

    bash: bayeszoo completion bash > ~/.local/share/bash-completion/completions/bayeszoo;
    zsh: bayeszoo completion zsh > FOLDER/_bayeszoo, in a folder of $fpath;
    fish: bayeszoo completion fish > ~/.config/fish/completions/bayeszoo.fish.

    Parameters
    ----------
    shell
        The shell that the script is for.
    """
    sys.stdout.write(app.generate_completion(shell=shell) + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    words = terminal.WORDS[:] = sys.argv[1:] if arguments is None else list(arguments)
    debug, strict = "--debug" in words, "--strict" in words
    zoo.with_user(AtTerminal())
    about = help_about(words) if {"--help", "-h"} & {*words} else None
    app.help_formatter, app.help_epilogue = about or (None, EPILOGUE)
    signals.listen()
    _collect_seldom()
    _mend_streams()
    with cautions() as said:
        code = _run([argument for argument in words if argument not in ("--debug", "--strict")], debug)
    stopped = signals.exit_code() if signals.received else 0
    signals.leave(stopped or code or (Untrustworthy.exit_code if strict and said else 0))


def _collect_seldom() -> None:
    """Collect garbage seldom, and not at exit, where it takes a third of a command's time and frees only libraries."""
    gc.set_threshold(100_000, 20, 20)
    atexit.register(gc.freeze)


def _mend_streams() -> None:
    """Replace closed streams, and escape characters that the encoding lacks: neither is the user's mistake."""
    sys.stdout, sys.stderr = (stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _reader_left() -> int:
    """End quietly when a pipe was closed, as by ``| head``: the code is that of SIGPIPE."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE


def _run(arguments: list[str], debug: bool) -> int:
    try:
        arguments = _without_model_file(arguments)
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value") or 0
        sys.stdout.flush()
        return code
    except KeyboardInterrupt as error:
        return _fail(error, "interrupted", signals.exit_code(), debug)
    except CycloptsError as error:
        return _fail(error, f"error: {_wrong_use(error)} See `bayeszoo --help`.", InputError.exit_code, debug)
    except (InputError, NumericalError, Untrustworthy) as error:
        return _fail(error, f"error: {error}", error.exit_code, debug)
    except Interrupted as error:
        return _fail(error, f"error: {error}", signals.exit_code(), debug)
    except BrokenPipeError:
        return _reader_left()
    except OSError as error:
        return _fail(error, f"error: {error}", NumericalError.exit_code, debug)
    except Exception as error:  # the last resort, so that a bug ends in one line and code 1
        if signals.received:  # compiled code may turn an interrupt into an error of its own
            return _fail(error, "interrupted", signals.exit_code(), debug)
        if isinstance(error, MemoryError) or any(words in str(error) for words in OUT_OF_MEMORY):
            first = str(error).partition("\n")[0]
            return _fail(error, f"error: out of memory{': ' * bool(first)}{first}", NumericalError.exit_code, debug)
        if "compiledir" in str(error):  # PyTensor makes its folder when it is imported
            remedy = "name a folder that you can write to: PYTENSOR_FLAGS=base_compiledir=FOLDER"
            return _fail(error, f"error: {error} {remedy}", InputError.exit_code, debug)
        return _fail(error, f"bug: {type(error).__name__}: {error}; run again with --debug", 1, debug)
    except BaseException as error:  # its class cannot be imported; all others are raised again
        if type(error).__name__ != PANIC:
            raise
        return _fail(error, f"error: compiled code stopped: {error}", NumericalError.exit_code, debug)


def _wrong_use(error: CycloptsError) -> str:
    """Return the error of a command line; for an option or command of another tool also its name in bayeszoo."""
    said, word = str(error).strip(), ""
    if isinstance(error, RepeatArgumentError):
        return f"{said} Give it once; a list has commas: a,b."
    if isinstance(error, UnknownOptionError):
        word = error.token.keyword or error.token.value
    elif isinstance(error, UnknownCommandError) and error.unused_tokens:
        word = error.unused_tokens[0]
    return (
        f"{said.partition('. ')[0].removesuffix('.')}; here it is `{ELSEWHERE[word]}`." if word in ELSEWHERE else said
    )


def _without_model_file(arguments: list[str]) -> list[str]:
    """Take ``--model-file FILE.py:CLASS`` out of a command; fits of a user's own model are read with this class."""
    words = list[str]()
    rest = iter(arguments)
    for word in rest:
        name, equals, place = word.partition("=")
        if name == "--model-file":
            zoo.lend(zoo.find(place if equals else next(rest, "")))
        else:
            words.append(word)
    return words


def _fail(error: BaseException, line: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    terminal.note("; ".join([line, *getattr(error, "__notes__", [])]))
    return code
