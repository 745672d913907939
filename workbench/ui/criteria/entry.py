"""The two ways into the editor of criteria: a config's file, or the next run only."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from workbench.authoring.config_file import ConfigDraft
from workbench.authoring.what_if import WhatIf
from workbench.ui.criteria.changes import FormChanges
from workbench.ui.criteria.look_ahead import Seen

Ending: TypeAlias = Literal["applied", "run"]
"""How the editor was left, unless everything was discarded."""


@dataclass
class ConfigEdit:
    """A config in the editor, under a safe `name`. `obstacle` says in safe words why it cannot be saved."""

    changes: FormChanges
    what_if: WhatIf
    name: str = ""
    obstacle: str = ""
    seen: Seen = field(default_factory=Seen)


@dataclass(frozen=True)
class Entry:
    """What an entry decides. `why` says in safe words which file a config is and for whom it holds. `saved` is called
    after each save. `apply` keeps what stands in the editor for the next run; None: `a` writes the file.
    """

    title: str
    why: Callable[[ConfigDraft], str]
    saved: Callable[[], Awaitable[object]]
    apply: Callable[[Sequence[ConfigEdit]], None] | None = None

    @property
    def is_for_next_run(self) -> bool:
        """Whether the files stay as they are."""
        return self.apply is not None
