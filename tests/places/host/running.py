"""The host program as a child of a test, as another machine would run it: unpacked, without installed packages."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from workbench.agents.channel import Channel, Frame
from workbench.places.shipping import host_sources

WAIT = 10.0


def unpack(folder: Path) -> Path:
    for path, content in host_sources().items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder


class RunningHost:
    """A host over a socket pair, or over its standard input and output."""

    def __init__(self, folder: Path, *, stdio: bool = False) -> None:
        own, its = socket.socketpair()
        way = ["--stdio"] if stdio else ["--control", str(its.fileno())]
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(folder), *way],
            stdin=its.fileno() if stdio else subprocess.DEVNULL,
            stdout=its.fileno() if stdio else subprocess.DEVNULL,
            pass_fds=() if stdio else (its.fileno(),),
            cwd="/",
        )
        its.close()
        self.came: list[Frame] = []
        self._news = asyncio.Event()
        self.closed = asyncio.Event()
        self.channel = Channel(own, self._take, lambda reason: self.closed.set())

    def send(self, *frames: Frame) -> None:
        self.channel.send(*frames)

    async def until(self, **values: Any) -> Frame:
        """Return the first message with these values; those before it are dropped."""
        async with asyncio.timeout(WAIT):
            while True:
                while self.came:
                    frame = self.came.pop(0)
                    if all(frame.get(name) == value for name, value in values.items()):
                        return frame
                self._news.clear()
                await self._news.wait()

    async def until_from(self, **values: Any) -> Frame:
        """Return the first message of an agent or case with these values."""
        while True:
            frame: Frame = (await self.until(op="from"))["frame"]
            if all(frame.get(name) == value for name, value in values.items()):
                return frame

    async def ended(self) -> int:
        return await asyncio.wait_for(asyncio.to_thread(self.process.wait), WAIT)

    def _take(self, frame: Frame) -> None:
        self.came.append(frame)
        self._news.set()
