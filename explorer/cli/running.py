"""A lab run from the command line: its settings, and its progress told on stderr."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from explorer.cli.output import cell, near, one_line, progress
from explorer.errors import InputError
from explorer.labs.base import LABS, Lab, Progress
from explorer.measuring.record import Record
from explorer.params import build
from explorer.text import Text


def lab_of(name: str, settings: Mapping[str, Any]) -> Lab:
    """A lab by name with its settings.

    Raises:
        InputError: there is no such lab (the nearest is named), or a setting is wrong.
    """
    names = LABS.names()
    if name not in names:
        shown, known = one_line(name, 40), ", ".join(names)
        raise InputError(
            Text(
                f"no lab {shown!r}{near(name, names)}; there are: {known}", f"没有名为 {shown!r} 的实验；可用：{known}"
            )
        )
    return build(LABS[name], settings)


def settings_of(words: Sequence[str]) -> dict[str, str]:
    """`["a=1", "b=2"]` as a table.

    Raises:
        InputError: a word is not `name=value`, or names a setting again.
    """
    settings: dict[str, str] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            shown = one_line(word, 40)
            raise InputError(Text(f"--set {shown}: expected name=value", f"--set {shown}：应为 name=value"))
        if name in settings:
            shown = one_line(name, 40)
            raise InputError(Text(f"--set {shown} is given twice", f"--set {shown} 重复"))
        settings[name] = value
    return settings


def have_weights(model: str | None) -> None:
    """Find or fetch a model before anything is measured, so that a wrong name is found out first.

    Raises:
        ExplorerError: it is no model, or cannot be had.
    """
    if model is not None:
        from explorer.cli.fetch import Teller
        from explorer.weights import resolve

        resolve(model, progress=Teller())


def follow(lab: Lab, keep: Callable[[Record], None] | None = None, **how: Any) -> Record:
    """Run a lab to its end, telling what happens on stderr.

    Args:
        lab: what to run.
        keep: receives what is known if the run is interrupted or fails after its first row.
        how: as for `explorer.labs.runner.Run`.

    Raises:
        ExplorerError: it failed.
        KeyboardInterrupt: Ctrl-C; the run has been told to stop.
    """
    from explorer.labs.runner import Run, watch

    run = Run(lab, **how)
    try:
        for event in watch(run):
            _tell(event, lab)
    except BaseException:
        run.join(5)
        if keep is not None and run.record.rows:
            keep(run.record)
        raise
    return run.record


def _tell(event: Any, lab: Lab) -> None:
    from explorer.labs.runner import Queued, RowAdded, Started

    if isinstance(event, Queued):
        progress(f"{lab.name}: waiting for the device, {event.position} ahead")
    elif isinstance(event, Started):
        progress(f"{lab.name}: running")
    elif isinstance(event, Progress):
        share = f"[{event.done}/{event.total}] " if event.total else ""
        progress(f"{lab.name}: {share}{event.text.en}")
    elif isinstance(event, RowAdded):
        progress(f"{lab.name}: " + ", ".join(f"{name}={cell(value)}" for name, value in event.row.items()))
