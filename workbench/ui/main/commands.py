"""Shell commands that repeat what the screen did."""

from pathlib import Path

from workbench.text import one_line
from workbench.ui.dialogs.items import Item
from workbench.ui.session.view import Controller, View
from workbench.ui.terminal.clipboard import copy
from workbench.ui.terminal.host import Host


class Commands(Controller):
    """The list of equivalent commands: of the last action, and of what a shell does with its run."""

    def __init__(self, view: View, host: Host) -> None:
        super().__init__(view)
        self._host = host

    def copy_command(self) -> None:
        """Choose a command and copy it."""
        if self.workspace() is not None:
            self.view.work(self._copy_command(), "ask", exclusive=False)

    async def _copy_command(self) -> None:
        line = await self.view.pick("copy which command?", self._items())
        if line is not None:
            copied = copy("command", line, self._host.copy)
            self.view.say(copied.message)

    def _items(self) -> list[Item]:
        from workbench.project.equivalent_command import Shell, export_command, status_command

        session = self.session
        assert session.workspace is not None
        workspace, state = session.workspace, session.state_dir
        shell = Shell(Path.cwd(), session.given_state_dir, bool(session.extra_evalsets))
        found = {}
        if session.last_command is not None:
            found["last"] = session.last_command(shell)
        found["status"] = status_command(workspace, state, shell)
        if run_id := session.store.run.run_id:
            found["export"] = export_command(run_id, workspace.root, state, shell)
        return [
            Item(
                one_line(command.line, limit=500),
                command.line,
                kind=f"{name:<6}",
                help=one_line(f"{command.caveat}\n{command.line}".strip(), limit=2000),
            )
            for name, command in found.items()
        ]
