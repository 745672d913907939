"""The worker's command line, which only the workbench uses."""

from __future__ import annotations

import argparse
import os
import socket
from typing import List, Optional

from .collector import collect_rarely
from .frames import Channel


def main(arguments: Optional[List[str]] = None) -> int:
    """Run the zygote, a solo worker or the user's functions until the parent disconnects. Return the exit status."""
    parser = argparse.ArgumentParser(prog="worker", description=__doc__)
    parser.add_argument("mode", choices=("zygote", "solo", "functions"))
    parser.add_argument("--control", type=int, required=True, help="the worker's end of a socket pair")
    parser.add_argument("--lifeline", type=int, required=True, help="a pipe that ends when the workbench does")
    parser.add_argument(
        "--warm", choices=("adk",), help="import this framework before the agent; zygote: also run a turn"
    )
    parser.add_argument("--folder", help="functions: the agent's folder")
    parser.add_argument("--root", help="functions: the project's folder")
    options = parser.parse_args(arguments)
    collect_rarely()
    os.set_inheritable(options.control, False)
    os.set_inheritable(options.lifeline, False)
    if options.mode == "functions":
        from .functions import serve_functions

        serve_functions(options.control, options.lifeline, options.folder, options.root)
    channel = Channel(socket.socket(fileno=options.control))
    if options.mode == "zygote":
        from .zygote import Zygote

        Zygote(channel, options.lifeline).run(options.warm == "adk")
    else:
        from .agent_process import run_solo
        from .processes import shield_parent

        if hasattr(os, "fork"):
            shield_parent(options.control)
        run_solo(channel, options.lifeline, options.warm == "adk")
    return 0
