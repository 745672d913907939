"""What the program and its commands are called."""

PROGRAM = "agent-workbench"
COMMANDS = {
    "run": "run",
    "eval": "run",
    "score": "score",
    "check": "check",
    "migrate": "migrate",
    "status": "status",
    "history": "history",
    "compare": "compare",
    "export": "export",
}
"""Word → command: that of `run` is `workbench.cli.run_command.run_command`."""
