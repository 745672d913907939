"""The smallest host program: it sends back the bytes that it gets."""

from workbench.places.remote.program import HostProgram

_MAIN = b"""
import os, socket, sys
if sys.argv[1] == "--stdio":
    source, target = 0, 1
else:
    source = target = int(sys.argv[sys.argv.index("--control") + 1])
    os.set_blocking(source, True)
print("this host prints", file=sys.stderr, flush=True)
while data := os.read(source, 65536):
    if b'"die"' in data:
        sys.exit("the host died on request")
    while data:
        data = data[os.write(target, data):]
"""


def echo_program(extra: bytes = b"") -> HostProgram:
    """Return the program; `extra` makes its digest another one."""
    return HostProgram.of({"__main__.py": _MAIN, "extra": extra})
