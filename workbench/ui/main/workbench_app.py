"""The Textual app: themes, settings, signals, and the main screen."""

import gc
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App
from textual.binding import BindingType
from textual.events import Event, Key, Paste, Resize
from textual.filter import LineFilter
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.theme import Theme

from workbench.files import settings as config
from workbench.text.safe_text import one_line
from workbench.ui.actions import keymap
from workbench.ui.main.screen import MainScreen
from workbench.ui.screen.key_order import KeyOrder
from workbench.ui.session.session import Session
from workbench.ui.terminal.host import Host
from workbench.ui.terminal.terminal import Display, Watchdog, stop_until_continued
from workbench.ui.terminal.themes import ThemeError, Themes, filters_for, variable_defaults
from workbench.ui.widgets.basics import start_work
from workbench.ui.widgets.footer import KeyLine, textual_keymap
from workbench.ui.widgets.textual_private import SparseApp

if TYPE_CHECKING:
    from workbench.ui.running.engine_run import Engine

_SWITCH_SECONDS = 0.005
"""Python's default switch interval. `open_screen` uses a shorter one until the first frame."""


class WorkbenchApp(SparseApp, inherit_bindings=False):
    """The Textual app of the workbench.

    `theme` is the initial theme. `faults` are sentences to show once at the start. Tests pass their own `engine`.
    `watch` turns the watch on once the folder is read. `watchdog` ends the app on a signal. `shown` describes the
    terminal.
    """

    CSS_PATH = "workbench.tcss"
    TITLE = "agent-workbench"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = []
    VERTICAL_BREAKPOINTS = [(0, "-low"), (18, "-high")]  # noqa: RUF012 - Textual's declaration
    """Classes by height in lines. In a low terminal, dialogs leave out margins and explanations."""

    def __init__(
        self,
        session: Session,
        settings: config.Settings,
        themes: Themes,
        theme: Theme,
        *,
        faults: Sequence[str] = (),
        engine: "Engine | None" = None,
        watch: bool = False,
        watchdog: Watchdog | None = None,
        shown: Display = Display(),  # noqa: B008 - it is frozen
    ) -> None:
        super().__init__()
        self.session = session
        self.animation_level = "none"
        self._settings, self._themes = settings, themes
        self._given_engine = engine
        self._keys = keymap(settings.keys)
        self._faults = [*settings.faults, *self._keys.faults, *faults]
        """The faults of the settings that the last reading reported."""
        self._key_order = KeyOrder(self, super().on_event)
        self._kept = theme.name
        self._watch = watch
        self._shown = shown
        self._line_filters = filters_for(shown)
        self._watchdog = watchdog
        self._stopping = False
        """Whether the app is suspended by ctrl+z. The shell then has the terminal."""
        self.begin_with(theme)
        self._read = {theme.name}
        host = Host(
            () if shown.colors == "none" else themes.names,
            self.preview_theme,
            self.keep_theme,
            self.copy_to_clipboard,
            self.reload_settings,
            lambda: self._keys.faults,
            self._stop_as_job,
            lambda: [self._settings.file, *self._themes.files.values()],
        )
        self.main = MainScreen(session, self._keys.keys, self._engine, host)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return default values for stylesheet variables that the theme does not set."""
        return variable_defaults(self.current_theme)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return Textual's line filters, then those that the terminal needs."""
        return [*super().get_line_filters(), *self._line_filters]

    def get_default_screen(self) -> MainScreen:
        """Return the main screen."""
        self._set_size_classes(self.main)
        return self.main

    def push_screen(self, screen: Any, *arguments: Any, **more: Any) -> Any:
        """Open a screen."""
        self._set_size_classes(screen)
        return super().push_screen(screen, *arguments, **more)

    def _set_size_classes(self, screen: Screen[Any]) -> None:
        """Set the classes of a new screen. Textual sets them after the first layout, and styles all widgets again."""
        width, height = self.size
        for cells, limits in ((width, screen.HORIZONTAL_BREAKPOINTS or []), (height, self.VERTICAL_BREAKPOINTS)):
            reached = [limit for limit in limits if limit[0] <= cells]
            screen.add_class(*[name for _, name in reached[-1:]], update=False)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a short untitled note in the footer, and any other message as a notice away from the cursor.

        The text is never parsed as markup, whatever `markup` is.
        """
        footer = getattr(self.screen, "key_line", None)
        if severity == "information" and not title and isinstance(footer, KeyLine) and footer.has_room_for(message):
            footer.say(message, seconds=timeout or self.NOTIFICATION_TIMEOUT)
            return
        self.main.keep_cursor_visible()
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=False)

    def _lend_terminal(self, _app: App[Any]) -> None:
        if self._watchdog is not None and not self._stopping:
            self._watchdog.lend()

    def _take_terminal_back(self, _app: App[Any]) -> None:
        if self._watchdog is not None:
            self._watchdog.take_back()
        self.draw_in_full()

    def _stop_as_job(self) -> None:
        """Suspend the app until the shell continues it.

        Agent processes are not stopped. Their messages wait until then, and the time does not count towards timeouts.
        """
        if self._watchdog is None or self.is_headless:
            self.main.say("the program cannot be suspended here", warning=True)
            return
        self._stopping = True
        try:
            with self.suspend():
                was_stopped = stop_until_continued(lambda: self._watchdog is not None and self._watchdog.ends)
                while self._watchdog.ends:
                    time.sleep(1.0)  # The watchdog ends the process, without the terminal.
        finally:
            self._stopping = False
        if not was_stopped:
            self.main.say("no shell could continue the program, so it was not suspended", warning=True)

    def on_resize(self, event: Resize) -> None:
        """Draw the whole screen if the size did not change.

        A reattached terminal may report its old size. Textual ignores such an event, but the terminal's content is
        then unknown.
        """
        if event.size == self.size:
            self.draw_in_full()

    async def on_event(self, event: Event) -> None:
        """Queue keys and pastes in their order. Suspend at once, and report an alt key that has no action."""
        if (
            isinstance(event, Key)
            and event.key in self._keys.keys["suspend"]
            and not hasattr(self.focused, "action_undo")
        ):
            # As in other programs, this key does not wait. In a text area, ctrl+z undoes.
            self._stop_as_job()
        elif isinstance(event, Key | Paste) and not event.is_forwarded:
            if isinstance(event, Key) and event.key.startswith("alt+") and event.key not in self.screen.active_bindings:
                key = event.key.removeprefix("alt+")
                self.notify(one_line(f"{event.key} has no action. For esc and {key}, wait a moment between them."))
            await self._key_order.take(event)
        else:
            await super().on_event(event)

    async def push_screen_wait(self, screen: Any, *, mode: str | None = None) -> Any:
        """Open a dialog and return its result. Keys reach the dialog although the calling worker is not done."""
        with self._key_order.asking(screen):
            return await super().push_screen_wait(screen, mode=mode)

    @property
    def keys_delivered(self) -> int:
        """Number of keys and pastes delivered since the start."""
        return self._key_order.delivered

    def on_mount(self) -> None:
        """Set the user's keymap, watch for signals, and open the folder after the first frame."""
        self.app_suspend_signal.subscribe(self, self._lend_terminal, immediate=True)
        self.app_resume_signal.subscribe(self, self._take_terminal_back, immediate=True)
        self.theme_changed_signal.subscribe(self, self._repaint)
        self.set_keymap(textual_keymap(self._keys))
        if self._watchdog is not None:
            self._watchdog.attach(self._end_on_signal)
        self.call_after_refresh(self._open)

    def on_unmount(self) -> None:
        """Save the cursor and split for the next session, and stop watching for signals."""
        self._key_order.close()
        self.main.controllers.restoring.save()
        if self._watchdog is not None:
            self._watchdog.detach()

    def _open(self) -> None:
        sys.setswitchinterval(_SWITCH_SECONDS)
        controllers = self.main.controllers
        # `open_screen` turned the collector off until here. Imported objects stay, so it need not scan them again.
        gc.freeze()
        gc.enable()
        for fault in self._faults:
            self.notify(fault, title="settings", severity="warning", timeout=8)
        self.call_after_refresh(self._read_other_styles)
        start_work(self, partial(controllers.open, watch=self._watch), "read")

    def _repaint(self, _theme: Theme) -> None:
        """Repaint all widgets. Textual does not know which of them use variables of the theme through `NamedStyles`."""
        for screen in self.screen_stack:
            screen.query().refresh()

    def _read_other_styles(self) -> None:
        # With a CSS_PATH per screen, opening a screen would parse all stylesheets again.
        self.stylesheet.read_all(sorted(Path(__file__).parents[1].glob("*/*.tcss")))
        self.stylesheet.parse()
        for screen in self.screen_stack[1:]:  # opened by a key that was pressed already
            self.stylesheet.update(screen)

    def _end_on_signal(self, number: int) -> None:
        self.close_runs(1.0)
        self.exit(128 + number)

    def _engine(self) -> "Engine":
        """Return the engine, imported here because the first frame does not need it."""
        from workbench.ui.running.engine_run import Engine

        return self._given_engine or Engine(self.session, self._settings)

    def close_runs(self, timeout: float) -> None:
        """End all runs and their processes, and wait for them for at most `timeout` seconds."""
        if "controllers" in vars(self.main):  # Without a first key or frame there are none.
            self.main.controllers.thread.close(timeout=timeout)

    def preview_theme(self, name: str | None) -> None:
        """Show a theme temporarily. None returns to the chosen theme."""
        wanted = name or self._kept
        if self.theme == wanted:
            return
        if wanted not in self._read:
            try:
                self.register_theme(self._themes.read(wanted))
            except ThemeError as error:
                self.main.say(str(error), warning=True)
                return
            self._read.add(wanted)
        self.theme = wanted

    def keep_theme(self, name: str) -> None:
        """Use a theme, and save the choice."""
        self.preview_theme(name)
        if self.theme != name:
            return
        self._kept = name
        self._settings = replace(self._settings, theme=name)
        try:
            config.remember_theme(name, self._settings.file)
        except (OSError, ValueError) as error:
            text = one_line(f"{name} is used until you quit, but could not be saved: {error}")
            self.notify(text, severity="warning", timeout=8)

    def reload_settings(self) -> None:
        """Read the settings and themes again, use the theme and the keys, and report faults that are new.

        Other settings apply from the next start. A file that cannot be read changes nothing.
        """
        before, now = self._settings, config.read_settings(self._settings.file)
        faults = [*now.faults]
        if not faults or now != config.Settings(now.file, faults=now.faults):  # Equal if the file is unreadable.
            self._settings = now
        if self._settings.keys != before.keys:
            self._keys = keymap(self._settings.keys)
            faults += self._keys.faults
            self.set_keymap(textual_keymap(self._keys))
            self.main.keys = self._keys.keys
            self.main.show_keys_here()
        named = None if self._shown.needs_plain_theme else self._settings.theme
        wanted = named if named is not None and named != before.theme else self._kept
        self._themes.find()
        try:
            theme = self._themes.read(wanted)
        except ThemeError as error:
            faults.append(str(error))
        else:
            self._kept, self._read = wanted, {wanted}
            if wanted != self.theme or theme != self.current_theme:
                self.register_theme(theme)
                # Setting the same name would change nothing.
                self.set_reactive(App.theme, "")
                self.theme = wanted
        for fault in faults:
            if fault not in self._faults:
                self.notify(fault, title="settings", severity="warning", timeout=8)
        self._faults = faults
