"""A visitor's measurement, from the press of Measure to the last state that the page shows.

What arrives here may come from anyone who can reach the server, not only from our page: everything is checked, and
nothing is raised; an error is a state with one line in the page's language. A closed tab ends the generator, which ends
the run.
"""

import asyncio
import importlib
import re
import time
from collections.abc import AsyncGenerator, Iterator
from typing import Any

from explorer.errors import ExplorerError, Stopped
from explorer.labs.base import LABS, Lab, Progress
from explorer.measuring import gpu
from explorer.params import build
from explorer.text import Lang
from pages._lab_result import ending, result, words

State = dict[str, Any]

DEADLINE_S = 120.0
BEAT_S = 0.5  # a state is sent at least this often: only so does Gradio notice that the visitor has left
LOOK_S = 0.05
MOST_VALUES = 50
_RUN_ID = re.compile(r"[0-9a-f]{16,64}")

# Runs that are going on, by their id, and whose they are. An id is known only to the page that made it.
_RUNS: dict[str, Any] = {}
_SESSIONS: dict[str, str] = {}


class Telling:
    """Turns a run's events into the states that the page draws; each state is complete in itself."""

    def __init__(self, lab: Lab, lang: Lang, run_id: str):
        self._lab, self._lang = lab, lang
        self._start = time.monotonic()
        self._beats = 0
        self._state: State = {"run": run_id, "phase": "starting", "text": words(lang)["phase.starting"], "rows": []}

    def state(self) -> State:
        """The state now; `beat` makes every one differ from the last."""
        self._beats += 1
        return {**self._state, "beat": self._beats}

    def take(self, event: Any, record: Any) -> None:
        """Take in one event of the run that fills `record`."""
        text = words(self._lang)
        kind = type(event).__name__
        if kind == "Queued":
            self._set("queued", text["phase.queued"].format(n=event.position))
        elif kind == "Started":
            self._start = time.monotonic()
            self._set("running", text["phase.running"])
        elif isinstance(event, Progress):
            self._set("running", self._progress(event), done=event.done, total=event.total)
        elif kind == "RowAdded":
            self._state |= result(self._lab, record, self._lang)
        elif kind == "Finished":
            self._state |= result(self._lab, record, self._lang) | ending(self._lab, record, self._lang)
            self._set("done", text["phase.done"].format(seconds=duration(time.monotonic() - self._start, self._lang)))

    def fail(self, error: ExplorerError, record: Any) -> None:
        """The run ended before its time; what it measured until then is kept."""
        text = words(self._lang)
        if record is not None and record.rows:
            self._state |= result(self._lab, record, self._lang) | ending(self._lab, record, self._lang)
        if isinstance(error, Stopped):
            self._set("stopped", text["phase.stopped-rows" if self._state["rows"] else "phase.stopped"])
        else:
            self._set("failed", text["phase.failed"], error=one_line(error.text.get(self._lang)))

    def _set(self, phase: str, text: str, **more: Any) -> None:
        self._state |= {"phase": phase, "text": text, "done": 0, "total": 0} | more

    def _progress(self, event: Progress) -> str:
        said = event.text.get(self._lang)
        if not event.total:
            return said
        return words(self._lang)["phase.progress"].format(text=said, done=event.done, total=event.total)


def refusal(line: str, run_id: str = "") -> State:
    """The state of a request that is turned away before anything runs."""
    return {"run": run_id, "phase": "refused", "text": "", "error": one_line(line), "rows": [], "beat": 0}


def one_line(text: str, longest: int = 300) -> str:
    """A bounded line of printable characters, whatever a visitor put into it."""
    line = "".join(mark if mark.isprintable() else " " for mark in text).strip()
    return line if len(line) <= longest else line[: longest - 1] + "…"


def lab_from(name: str, sent: Any, lang: Lang) -> tuple[Lab, str]:
    """The lab and the run's id from what a page sent: `{"run": id, "values": {name: value}}`.

    Raises:
        ExplorerError: it is something else, or a value is not allowed; the message has no more than one line.
    """
    wrong = ExplorerError(words("en")["error.request"], words("zh")["error.request"])
    if not isinstance(sent, dict) or not isinstance(sent.get("run"), str) or not _RUN_ID.fullmatch(sent["run"]):
        raise wrong
    values = sent.get("values")
    if not isinstance(values, dict) or len(values) > MOST_VALUES:
        raise wrong
    if not all(isinstance(value, str | int | float | bool) for value in values.values()):
        raise wrong
    return build(LABS[name], values), sent["run"]


async def measure(name: str, sent: Any, session: str, lang: Lang, deadline_s: float) -> AsyncGenerator[State, None]:
    """Run a lab for one visitor. Uses no thread while it waits.

    Args:
        name: the lab's name (ours, not the visitor's).
        sent: what the page sent, unchecked.
        session: whose run it is; one at a time each.
        lang: the page's language.
        deadline_s: seconds that the run may take.

    Yields:
        States, each complete.
    """
    try:
        lab, run_id = lab_from(name, sent, lang)
    except ExplorerError as error:
        yield refusal(error.text.get(lang))
        return
    if session in _SESSIONS or run_id in _RUNS:
        yield refusal(words(lang)["error.busy"])
        return
    _SESSIONS[session] = run_id
    try:
        # Importing torch takes seconds when nothing else has done so yet; other visitors must not wait for it.
        runner = await asyncio.to_thread(importlib.import_module, "explorer.labs.runner")
        telling = Telling(lab, lang, run_id)
        try:
            run = runner.Run(lab, deadline_s=deadline_s)
        except ExplorerError as error:
            yield refusal(error.text.get(lang), run_id)
            return
        _RUNS[run_id] = run
        try:
            async for state in _watch(run, telling):
                yield state
        finally:
            run.stop()
            _RUNS.pop(run_id, None)
    finally:
        _SESSIONS.pop(session, None)


async def _watch(run: Any, telling: Telling) -> AsyncGenerator[State, None]:
    told_at = 0.0
    while True:
        try:
            events = run.poll()
        except ExplorerError as error:
            telling.fail(error, run.record)
            yield telling.state()
            return
        for event in events:
            telling.take(event, run.record)
        if events or time.monotonic() - told_at > BEAT_S:
            told_at = time.monotonic()
            yield telling.state()
        if run.done:
            return
        await asyncio.sleep(LOOK_S)


def stop(run_id: Any) -> bool:
    """Stop a run by its id; whether there was one."""
    run = _RUNS.get(run_id) if isinstance(run_id, str) else None
    if run is not None:
        run.stop()
    return run is not None


def plan(name: str, values: Any, lang: Lang, deadline_s: float) -> State:
    """How long a run at these settings takes here, or why it cannot be run.

    Returns:
        `text`: one line; `wrong`: whether it says what is wrong.
    """
    text = words(lang)
    try:
        lab, _ = lab_from(name, {"run": "0" * 16, "values": values}, lang)
        device = importlib.import_module("explorer.measuring.device")
        kind = "cuda" if gpu.ZERO_GPU else device.pick_device().type
        seconds = lab.expected_seconds(kind)
    except ExplorerError as error:
        return {"text": one_line(error.text.get(lang)), "wrong": True}
    if seconds is None:
        return {"text": text["expected-unknown"], "wrong": False}
    if seconds > deadline_s:
        line = text["expected-long"].format(seconds=duration(seconds, lang), limit=duration(deadline_s, lang))
        return {"text": line, "wrong": False}
    key = "expected" if lab.needs_model else "expected-no-model"
    return {"text": text[key].format(seconds=duration(seconds, lang), device=text[f"device.{kind}"]), "wrong": False}


def duration(seconds: float, lang: Lang) -> str:
    """Seconds in words: "0.4 s", "12 s", "3 min"."""
    text = words(lang)
    if seconds < 120:
        return text["seconds"].format(n=f"{seconds:.1f}" if seconds < 9.95 else f"{seconds:.0f}")
    return text["minutes"].format(n=f"{seconds / 60:.0f}")


def measure_on_zero_gpu(name: str, sent: Any, lang: Lang, deadline_s: float) -> Iterator[State]:
    """The same on a ZeroGPU Space: there the platform queues, and the run itself must be a plain generator."""
    try:
        lab_from(name, sent, lang)
    except ExplorerError as error:
        yield refusal(error.text.get(lang))
        return
    yield from _on_gpu(name, sent, lang, deadline_s)


def _wanted_s(name: str, sent: Any, lang: Lang, deadline_s: float) -> int:
    lab, _ = lab_from(name, sent, lang)
    return int(min(deadline_s, 15 + 2 * (lab.expected_seconds("cuda") or 30)))


@gpu.gpu(duration=_wanted_s)
def _on_gpu(name: str, sent: Any, lang: Lang, deadline_s: float) -> Iterator[State]:
    from explorer.labs.runner import Run, watch
    from explorer.measuring.lock import DeviceLock

    lab, run_id = lab_from(name, sent, lang)
    telling = Telling(lab, lang, run_id)
    run = Run(lab, deadline_s=deadline_s, lock=DeviceLock())
    try:
        for event in watch(run):
            telling.take(event, run.record)
            yield telling.state()
    except ExplorerError as error:
        telling.fail(error, run.record)
        yield telling.state()
