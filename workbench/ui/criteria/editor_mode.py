"""The two uses of the criteria editor: editing a config file, or the criteria of the next run only."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from workbench.authoring.config_file import ConfigDraft
from workbench.authoring.what_if import WhatIf
from workbench.ui.criteria.changes import FormChanges
from workbench.ui.criteria.preview import Preview
from workbench.ui.next_run.place_options import PlaceOptions
from workbench.ui.next_run.recording_options import RecordingOptions

Ending: TypeAlias = Literal["applied", "run"]
"""The way in which the editor was closed, unless the changes were discarded."""


@dataclass
class ConfigEdit:
    """A config in the editor. `name` is safe text. `obstacle` says in safe text why the config cannot be saved."""

    changes: FormChanges
    what_if: WhatIf
    name: str = ""
    obstacle: str = ""
    preview: Preview = field(default_factory=Preview)


@dataclass
class RecordingsEdit:
    """The use of recordings by the next runs, as edited."""

    options: RecordingOptions


@dataclass
class PlaceEdit:
    """The place of the next runs, as edited."""

    options: PlaceOptions


@dataclass(frozen=True)
class EditorMode:
    """A use of the editor.

    `why` returns safe text about a config's file and the evalsets it governs. `saved` is called after each save.
    `apply` keeps the changes for the next run. Without it, the editor changes only the file. `recordings` and `place`
    are the options beside the criteria, or None.
    """

    title: str
    why: Callable[[ConfigDraft], str]
    saved: Callable[[], Awaitable[object]]
    apply: Callable[[Sequence[ConfigEdit]], None] | None = None
    recordings: RecordingsEdit | None = None
    place: PlaceEdit | None = None

    @property
    def is_for_next_run(self) -> bool:
        """Whether changes apply to the next run only."""
        return self.apply is not None
