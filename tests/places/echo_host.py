"""The smallest host program: it sends back the bytes that it gets."""

from workbench.places.remote.program import HostProgram

ECHO = """
import os, sys
print("this host prints", file=sys.stderr, flush=True)
while data := os.read(0, 65536):
    if b'"die"' in data:
        sys.exit("the host died on request")
    while data:
        data = data[os.write(1, data):]
"""


def echo_program(extra: bytes = b"") -> HostProgram:
    """Return the program; `extra` makes its digest another one."""
    return HostProgram.of({"__main__.py": ECHO.encode(), "extra": extra})
