"""Names of the program and its commands."""

PROGRAM = "agent-workbench"
COMMANDS = {
    "run": "run",
    "eval": "run",
    "try": "try",
    "score": "score",
    "merge": "merge",
    "check": "check",
    "migrate": "migrate",
    "freeze": "freeze",
    "status": "status",
    "history": "history",
    "compare": "compare",
    "export": "export",
}
"""Word → command. The command `run` is `workbench.cli.run_command.run_command`."""
