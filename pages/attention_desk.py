"""The reading desk: sentences are read one at a time, each once, and the last ones are kept.

A request never waits for long: whoever comes while others are read gets a line that says so and asks again.

Reading takes a fraction of a second, a measurement may take minutes. So the desk waits for a busy device, but only
`GIVE_WAY_S`: then it reads beside the measurement, which loses at most a tenth of its time to it and shows that in its
spread.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.errors import ExplorerError, ResourceError
from explorer.text import Text
from pages.attention_reading import Reading, check_text, read

if TYPE_CHECKING:
    from explorer.engine.runtime import Status

KEPT_TOKENS = 1024  # about 180 KB each, so 190 MB at most
MOST_WAITING = 64
PATIENCE_S = 1.5
GIVE_WAY_S = 3.0
POLL_S = 0.05

BUSY = Text(
    "Your sentence is waiting: a measurement or another sentence has the device.",
    "句子正在排队：设备正忙于一次测量或另一个句子。",
)
FULL = Text("Too many sentences are waiting; try again in a minute.", "排队的句子太多了；请一分钟后再试。")


@dataclass(frozen=True)
class Waiting:
    """No answer yet.

    Attributes:
        text: why.
    """

    text: Text


class Desk:
    """Reads sentences.

    Args:
        reader: reads one sentence.
    """

    def __init__(self, reader: Callable[[str], Reading] = read):
        self._read = reader
        self._kept: OrderedDict[str, Reading] = OrderedDict()
        self._pending: dict[str, Future[Reading]] = {}
        self._mutex = threading.Lock()
        self._worker = ThreadPoolExecutor(1, "attention-desk")

    def ask(self, text: object, *, again: bool = False, patience_s: float = PATIENCE_S) -> Reading | Waiting:
        """The sentence's reading if it can be had within `patience_s`.

        Args:
            text: the sentence, as the browser sent it.
            again: the reader asked for it; then a failed download is tried once more.
            patience_s: how long to wait.

        Raises:
            ExplorerError: the sentence, or the model, cannot be read.
        """
        checked = check_text(text)
        with self._mutex:
            if checked in self._kept:
                self._kept.move_to_end(checked)
                return self._kept[checked]
        waiting = _model_missing(again)
        if waiting is not None:
            return waiting
        try:
            return self._job(checked).result(patience_s)
        except NotYet:
            return Waiting(BUSY)

    def _job(self, text: str) -> "Future[Reading]":
        with self._mutex:
            if text not in self._pending:
                if len(self._pending) >= MOST_WAITING:
                    raise ResourceError(FULL)
                self._pending[text] = self._worker.submit(self._work, text)
            return self._pending[text]

    def _work(self, text: str) -> Reading:
        try:
            with _Device():
                reading = self._read(text)
            with self._mutex:
                self._kept[text] = reading
                self._drop_the_oldest()
            return reading
        finally:
            with self._mutex:
                self._pending.pop(text, None)

    def _drop_the_oldest(self) -> None:
        tokens = sum(len(reading.prompt) for reading in self._kept.values())
        while tokens > KEPT_TOKENS:
            tokens -= len(self._kept.popitem(last=False)[1].prompt)


class _Device:
    """Holds the device while a sentence is read, if it became free in time."""

    def __enter__(self) -> None:
        from explorer.measuring.lock import device_lock

        self.ticket = device_lock().take()
        ends_at = time.monotonic() + GIVE_WAY_S
        while not self.ticket.try_acquire() and time.monotonic() < ends_at:
            time.sleep(POLL_S)
        if not self.ticket.held:
            self.ticket.leave()

    def __exit__(self, *error: object) -> None:
        self.ticket.leave()


def _model_missing(again: bool) -> Waiting | None:
    """None if the model is there; else a line that says how far it is. Starts loading it if nobody has.

    Raises:
        ExplorerError: it could not be loaded.
    """
    from explorer.engine import runtime

    now: Status = runtime.status()
    if now.state == "ready":
        return None
    if now.state == "failed" and not again:
        raise ExplorerError(now.text)
    if now.state in ("idle", "failed"):
        runtime.preload()
    return Waiting(_progress(now))


def _progress(now: "Status") -> Text:
    if now.state != "loading" or not now.total_bytes:
        return Text("The model is being loaded; this fills in by itself.", "模型正在加载；就绪后这里会自动填上。")
    share = f"{100 * now.done_bytes // now.total_bytes} %"
    return Text(f"{now.text.en} ({share})", f"{now.text.zh}（{share}）")
