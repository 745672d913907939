"""The output of a child, read as it arrives and passed on in pieces."""

import asyncio
import codecs
import os
from collections.abc import Callable

_READ = 64 * 1024
_PIPE_READS = 17
"""Reads that empty the largest possible pipe (1 MiB), even while something keeps writing."""
_WAIT = 0.1
"""Seconds that output may wait for more, so that not every print becomes an event."""
_LONGEST = 64 * 1024
_CUT_AFTER = ' \t",;'
"""Characters after which an overlong line may be cut.

Elsewhere, a cut could split a secret in two halves that escape redaction. Secrets hardly ever contain these.
"""


class Lines:
    """Printed text on its way to `on_text`, in whole lines if possible."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._text = ""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        """Add the next printed text."""
        self._text += text
        if len(self._text) >= _LONGEST:
            self._flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_WAIT, self._flush)

    def flush_all(self) -> None:
        """Pass on all text."""
        self._stop_timer()
        self._hand_on(len(self._text))

    def _flush(self) -> None:
        """Pass on the finished lines, or a part of a line that has become too long."""
        self._stop_timer()
        end = self._text.rfind("\n") + 1
        if not end and len(self._text) >= _LONGEST:
            end = max(self._text.rfind(mark) for mark in _CUT_AFTER) + 1 or len(self._text)
        self._hand_on(end)

    def _hand_on(self, end: int) -> None:
        text, self._text = self._text[:end], self._text[end:]
        if text:
            self._on_text(text)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class OutputPipe:
    """A pipe that is read until it is closed.

    `on_text(text)` gets whole lines if possible. `on_bytes(count)` is called for every read. After `mute`, the text is
    dropped but the pipe is still read, because a full pipe blocks the child.
    """

    def __init__(self, descriptor: int, on_text: Callable[[str], None], on_bytes: Callable[[int], None]) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._lines = Lines(on_text)
        self._on_bytes = on_bytes
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._muted = False
        self._open = True
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self._read_once)

    def mute(self) -> None:
        """Read and drop all further output."""
        self._muted = True

    def pause(self) -> None:
        """Stop reading until `resume`. The child has to wait once the pipe is full. Flushing still reads."""
        if self._open:
            self._loop.remove_reader(self._descriptor)

    def resume(self) -> None:
        """Read again."""
        if self._open:
            self._loop.add_reader(self._descriptor, self._read_once)

    def flush_all(self) -> None:
        """Read what is in the pipe now, and pass everything on."""
        for _ in range(_PIPE_READS):
            if not self._read_once():
                break
        self._lines.flush_all()

    def finish(self) -> None:
        """Flush and close. A process that outlives the child may keep the other end open for ever."""
        self.flush_all()
        self._close()

    def _read_once(self) -> bool:
        if not self._open:
            return False
        try:
            data = os.read(self._descriptor, _READ)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            data = b""
        if not data:
            self._close()
            return False
        if not self._muted:
            self._lines.add(self._decode(data))
        self._on_bytes(len(data))
        return True

    def _close(self) -> None:
        if not self._open:
            return
        self._open = False
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._lines.add(self._decode(b"", True))
        self._lines.flush_all()
