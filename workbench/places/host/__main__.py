"""Entry point: `python -m workbench.places.host --control FD | --stdio`."""

import argparse
import asyncio
import contextlib
import os
import signal
import socket
import threading

from workbench.places.host.guard import Guard
from workbench.places.host.serving import Host
from workbench.places.host.stdio import stdio_socket

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_WRITTEN_WITHIN = 1.0


def main() -> None:
    """Serve one client over a socket or standard input and output, until it goes."""
    parser = argparse.ArgumentParser(prog="agent-workbench host")
    ways = parser.add_mutually_exclusive_group(required=True)
    ways.add_argument("--control", type=int, metavar="FD", help="the descriptor of a socket")
    ways.add_argument("--stdio", action="store_true", help="standard input and output")
    chosen = parser.parse_args()
    guard = Guard()
    writer: threading.Thread | None = None
    if chosen.stdio:
        sock, writer = stdio_socket()
    else:
        sock = socket.socket(fileno=chosen.control)
        sock.set_inheritable(False)
    asyncio.run(_serve(sock, guard))
    if writer is not None:
        writer.join(_WRITTEN_WITHIN)
    guard.close()


async def _serve(sock: socket.socket, guard: Guard) -> None:
    lifeline, end = os.pipe()
    host = Host(sock, lifeline, guard.promise)
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, host.leave, f"it was told to end by {signal.Signals(number).name}")
    try:
        await host.serve()
    finally:
        os.close(end)
        os.close(lifeline)


if __name__ == "__main__":
    main()
