"""Standard input and output as one socket, which the event loop can wait for, whatever they are."""

import contextlib
import os
import socket
import sys
import threading

_COPIED = 64 * 1024


def stdio_socket() -> tuple[socket.socket, threading.Thread]:
    """Return a socket that carries what comes on standard input, and whose data goes to standard output.

    What this process prints goes to standard error from now on. At the end of the input, the socket ends. The thread
    ends when all data has been written after the socket was closed.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.flush()
    os.dup2(2, 1)
    ours, theirs = socket.socketpair()
    for descriptor in (incoming, outgoing):
        os.set_blocking(descriptor, True)
    threading.Thread(target=_copy_in, args=(incoming, theirs), daemon=True).start()
    writer = threading.Thread(target=_copy_out, args=(theirs, outgoing), daemon=True)
    writer.start()
    return ours, writer


def _copy_in(descriptor: int, to: socket.socket) -> None:
    with contextlib.suppress(OSError):  # One side is gone, which ends the socket as well.
        while data := os.read(descriptor, _COPIED):
            to.sendall(data)
    _shut(to, socket.SHUT_WR)


def _copy_out(source: socket.socket, descriptor: int) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_COPIED):
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
    _shut(source, socket.SHUT_RDWR)


def _shut(what: socket.socket, how: int) -> None:
    with contextlib.suppress(OSError):
        what.shutdown(how)
