"""Parses the command line, runs a command, and turns whatever goes wrong into one line and an exit code.

0: done. 1: it ran and failed, or this machine cannot do it. 2: bad input. 130: stopped by Ctrl-C.
"""

import argparse
import contextlib
import io
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from explorer.cli import bench, doctor, estimate, fetch, labs, run
from explorer.cli.output import near, one_line
from explorer.errors import ExplorerError, InputError
from explorer.text import Text

COMMANDS = {
    "doctor": doctor,
    "fetch": fetch,
    "estimate": estimate,
    "labs": labs,
    "run": run,
    "bench": bench,
}
FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose complaints are one line each."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would have printed with its usage."""
        raise InputError(Text(f"{message}; see {self.prog} --help", f"{message}；见 {self.prog} --help"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: the words after `python -m explorer`; None for this process's own.

    Returns:
        The exit code.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        chosen = _parse(words)
        return int(chosen.command.run(chosen))
    except InputError as error:
        return _complain(error.text.en, BAD_INPUT)
    except ExplorerError as error:
        return _complain(error.text.en, FAILED)
    except KeyboardInterrupt:
        return _complain("stopped", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except SystemExit as leaving:  # --help and --version
        return int(leaving.code or 0)
    except Exception as error:  # a fault of ours: one line for the user, all of it for whoever asks
        logging.getLogger(__name__).error("unexpected", exc_info=error)
        return _complain(f"unexpected {type(error).__name__}: {error}; --verbose shows where", FAILED)


def set_up(words: Sequence[str]) -> None:
    """Prepare this process: logs stay off the terminal without `--verbose`, and any terminal encoding will do."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    logging.basicConfig(level=logging.INFO if "--verbose" in words else logging.CRITICAL + 1)


def parser() -> Parser:
    """The whole grammar."""
    top = Parser(prog="python -m explorer", description="The KV cache explorer's command line.", allow_abbrev=False)
    top.set_defaults(command=None)
    commands = top.add_subparsers(metavar="COMMAND", parser_class=Parser)
    for name, module in COMMANDS.items():
        line = (module.__doc__ or "").partition("\n")[0]
        sub: Any = commands.add_parser(name, help=line, description=line, allow_abbrev=False)
        sub.set_defaults(command=module)
        sub.add_argument("--verbose", action="store_true", help="show warnings, and where an error came from")
        module.add(sub)
    return top


def _parse(words: list[str]) -> argparse.Namespace:
    first = next((word for word in words if not word.startswith("-")), None)
    if first is not None and first not in COMMANDS:
        raise InputError(
            Text(
                f"no command {one_line(first, 40)!r}{near(first, list(COMMANDS))}; there are: {', '.join(COMMANDS)}",
                f"没有命令 {one_line(first, 40)!r}；可用：{'、'.join(COMMANDS)}",
            )
        )
    chosen = parser().parse_args(words)
    if chosen.command is None:
        raise InputError(Text(f"give a command: {', '.join(COMMANDS)}", f"请给出命令：{'、'.join(COMMANDS)}"))
    return chosen


def _complain(line: str, code: int) -> int:
    with contextlib.suppress(OSError, ValueError):  # where stderr is closed, the exit code must do
        sys.stderr.write(f"explorer: {one_line(line)}\n")
    return code
