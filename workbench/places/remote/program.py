"""The host program as one file that travels to other machines, and how a process there becomes the host."""

import asyncio
import hashlib
import io
import json
import secrets
import socket
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from workbench.places import landing

BOOT: Final = 'import os; end = bytes([10]); exec(eval(b"".join(iter(lambda: os.read(0, 1) or end, end)) or b"str()"))'
"""Python code for the other machine, which runs the source that `land` sends: one line, a literal."""
_ANSWER_WITHIN: Final = 60.0
_NOISE: Final = 64 * 1024
"""Bytes that shells and login messages may print before our marker."""
_LINE: Final = 4096
_SOME_DATE: Final = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class HostProgram:
    """The host program as a zip file, and the digest under which other machines keep it."""

    digest: str
    archive: bytes

    @classmethod
    def of(cls, sources: Mapping[str, bytes]) -> "HostProgram":
        """Pack files, given by their relative paths. Equal files give an equal digest."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, content in sorted(sources.items()):
                archive.writestr(zipfile.ZipInfo(path, _SOME_DATE), content, zipfile.ZIP_DEFLATED)
        return cls(hashlib.sha256(packed.getvalue()).hexdigest()[:32], packed.getvalue())


async def land(sock: socket.socket, program: HostProgram) -> str | None:
    """Make the process at the other end, which runs `BOOT`, the host. It gets the program first if it lacks it.

    Return what the other end did wrong, "" if it is gone, or None if it is the host.
    """
    try:
        async with asyncio.timeout(_ANSWER_WITHIN):
            return await _shake_hands(sock, program)
    except TimeoutError:
        return f"no answer in {_ANSWER_WITHIN:g} s"
    except OSError:
        return ""


async def _shake_hands(sock: socket.socket, program: HostProgram) -> str | None:
    loop = asyncio.get_running_loop()
    token = f"agent-workbench-{secrets.token_hex(8)}"
    source = Path(landing.__file__).read_text(encoding="utf-8")
    source = f"{source}\nbecome_host({program.digest!r}, {token!r})\n"
    await loop.sock_sendall(sock, f"{source!a}\n".encode())
    marker = f"\n{token} ".encode()
    heard = b""
    while marker not in heard or b"\n" not in heard.partition(marker)[2]:
        data = await loop.sock_recv(sock, _LINE)
        if not data:
            return ""
        heard += data
        if len(heard) > _NOISE:
            return "its login shell prints without end; it must be silent for commands"
    try:
        known = json.loads(heard.partition(marker)[2])
        here = known["here"] is True
    except (ValueError, KeyError, TypeError):
        return "it sent something that is not an answer"
    archive = b"" if here else program.archive
    await loop.sock_sendall(sock, b"%016x" % len(archive) + archive)
    return None
