"""Pictures of every screen and dialog, to look at one by one: `python -m tests.screens FOLDER`.

Each scene is taken at four sizes in a dark and a light theme, on the project of `tests.planted` after a run, or on
those of `tests.frozen` after a frozen run or a thaw. The files are called `SIZE-THEME/NUMBER-SCENE.svg`.
"""

import argparse
import asyncio
import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

from docs.pictures.player import Player, playing
from docs.pictures.svg import still
from tests import frozen
from tests.planted import write
from workbench.state_folder import trust

SIZES = ("60x20", "80x24", "120x40", "200x50")
THEMES = ("night", "paper")
_SECONDS = 8.0
"""How long a scene may take until its screen is still."""


class Scene(NamedTuple):
    """A screen or dialog, and how to get there from the cases.

    `keys` are Textual's names. A key with a dot is an action of the action table. `project` is where it is taken.
    """

    name: str
    keys: str
    project: Literal["planted", "frozen", "thawed"] = "planted"


SCENES = (
    Scene("overview", "g"),
    Scene("overview-cursor", "g tab"),
    Scene("overview-agent", "g j j"),
    Scene("overview-filter", "/ : f a i l enter g"),
    Scene("overview-marks", "/ : f a i l enter g a"),
    Scene("evidence-error", "g n 1"),
    Scene("evidence-calls", "/ 返 金 の enter g n 1"),
    Scene("evidence-answer", "/ p r o m i s e d enter g n 1"),
    Scene("evidence-judged", "/ d i n n e r _ f enter g n 1"),
    Scene("evidence-names", "/ m o v e d enter g n"),
    Scene("judges", "/ d i n n e r _ f enter g n 2"),
    Scene("trace", "/ m o v e d enter g n enter 3"),
    Scene("case-history", "/ m o v e d enter g n 4"),
    Scene("maximised", "/ m o v e d enter g n 1 z"),
    Scene("no-tree", "/ m o v e d enter g n b"),
    Scene("evalset", "g j j"),
    Scene("filter-typing", "/ c a u s e : r"),
    Scene("filter-nothing", "/ x q z"),
    Scene("filter-fault", "/ : f o o"),
    Scene("jump", "g n '"),
    Scene("palette", ": r e"),
    Scene("help", "g question_mark"),
    Scene("help-case", "g n question_mark"),
    Scene("theme", "general.theme"),
    Scene("review", "g V n n n n n"),
    Scene("review-judged", "/ d i n n e r _ enter g V"),
    Scene("review-cause", "g V asterisk a"),
    Scene("table", "g M"),
    Scene("table-right", "g M l l l"),
    Scene("table-runs", "g M M"),
    Scene("triage", "/ d i n n e r _ f enter g n t"),
    Scene("triage-unjudged", "/ m o v e d enter g n t"),
    Scene("editor", "/ m o v e d enter g n e"),
    Scene("editor-field", "/ m o v e d enter g n e j j enter"),
    Scene("criteria", "g j j c"),
    Scene("next-run", "g j j o"),
    Scene("accept", "/ m o v e d enter g n A"),
    Scene("accept-several", "g A"),
    Scene("repeat", "g n X"),
    Scene("fork", "/ m o v e d enter g n f"),
    Scene("fork-text", "/ m o v e d enter g n f e"),
    Scene("fork-tries", "/ m o v e d enter g n f e x ctrl+o r"),
    Scene("history", "H"),
    Scene("history-run", "H enter"),
    Scene("history-run-case", "H enter enter"),
    Scene("compare", "C"),
    Scene("talk", "g j j T"),
    Scene("new-case", "g j j j +"),
    Scene("new-evalset", "g j j j new_files.new_evalset"),
    Scene("rename", "g n cases.rename"),
    Scene("move", "g n m"),
    Scene("agreement", "g triage.agreement"),
    Scene("problems", "checks.found"),
    Scene("ignored", "folder.ignored"),
    Scene("notices", "general.notices"),
    Scene("watched", "watch.watched"),
    Scene("quit-while-running", "g r q"),
    Scene("frozen-overview", "g", "frozen"),
    Scene("frozen-miss", "/ 返 金 enter g n 1", "frozen"),
    Scene("frozen-ways-out", "/ 返 金 enter g n K", "frozen"),
    Scene("frozen-file", "/ l o n g enter g n 1", "frozen"),
    Scene("frozen-scores", "/ w r o n g enter g n 2", "frozen"),
    Scene("frozen-review", "g V n", "frozen"),
    Scene("frozen-table", "g M", "frozen"),
    Scene("frozen-runs", "g M M", "frozen"),
    Scene("frozen-history", "H", "frozen"),
    Scene("frozen-compare", "C", "frozen"),
    Scene("frozen-next-run", "g j j o f", "frozen"),
    Scene("faults-before", "g faults.try_faults", "frozen"),
    Scene("faults", "g faults.try_faults enter", "frozen"),
    Scene("faults-by-case", "g faults.try_faults enter M", "frozen"),
    Scene("fault", "g faults.try_faults enter n enter enter", "frozen"),
    Scene("freeze", "g K", "thawed"),
    Scene("thawed", "/ 返 金 enter g n 1", "thawed"),
    Scene("thawed-accept", "/ 返 金 enter g n A enter", "thawed"),
)


async def take(folder: Path, project: str, out: Path, size: str, theme: str, names: frozenset[str]) -> list[str]:
    """Take all scenes of a project in one size and theme. Return those that could not be reached, with the reason."""
    place = out / f"{size}-{theme}"
    columns, lines = map(int, size.split("x"))
    place.mkdir(parents=True, exist_ok=True)
    missed = []
    async with playing(folder, (columns, lines), theme) as player:
        await player.until(_has_verdicts)
        for number, scene in enumerate(SCENES):
            if scene.project != project or (names and scene.name not in names):
                continue
            try:
                await _go(player, scene)
            except (TimeoutError, LookupError) as error:
                missed.append(f"{place.name} {scene.name}: {str(error).splitlines()[0]}")
            (place / f"{number:02}-{scene.name}.svg").write_text(still(player.frame, scene.name), encoding="utf-8")
            try:
                await player.leave()
                await player.press("escape", "escape", "escape")
            except LookupError as error:
                return [*missed, f"{place.name} {scene.name}: {str(error).splitlines()[0]}; the rest is missing"]
    return missed


async def _go(player: Player, scene: Scene) -> None:
    for key in scene.keys.split():
        if "." in key and len(key) > 1:
            await player.act(key.rpartition(".")[2])
        else:
            await player.press("slash" if key == "/" else "colon" if key == ":" else key)
    await player.settle(_SECONDS)


def _has_verdicts(text: str) -> bool:
    return "48✗" in text or "2✗" in text or "3✗" in text or "1✗ " in text


async def _run_once(folder: Path) -> None:
    async with playing(folder, (120, 40)) as player:
        await player.press("g", "r")
        await player.until(lambda text: "cases?" in text or "cancel" in text)
        if "cases?" in player.text:  # Many cases are confirmed.
            await player.press("enter")
        await player.until(_has_verdicts, 300.0)
        await player.settle(300.0)


def main() -> None:
    """Take the pictures of all scenes, or of those named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("scenes", nargs="*", help="names of scenes (default: all)")
    parser.add_argument("--size", action="append", choices=SIZES, help="default: all")
    parser.add_argument("--theme", action="append", help=f"default: {' and '.join(THEMES)}")
    options = parser.parse_intermixed_args()
    with TemporaryDirectory() as home:
        os.environ |= dict.fromkeys(("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"), home)
        wanted = {scene.project for scene in SCENES if not options.scenes or scene.name in options.scenes}
        for project in sorted(wanted):
            folder = _prepared(Path(home) / project / "shop", project)
            for size in options.size or SIZES:
                for theme in options.theme or THEMES:
                    copy = Path(home) / project / f"{size}-{theme}" / "shop"
                    shutil.copytree(folder, copy)
                    if (copy / ".workbench").exists():
                        trust(copy)
                    scenes = frozenset(options.scenes)
                    for line in asyncio.run(take(copy, project, options.folder, size, theme, scenes)):
                        sys.stdout.write(f"{line}\n")


def _prepared(folder: Path, project: str) -> Path:
    """Write a project and run it. Return its folder."""
    if project == "planted":
        folder = write(folder)
        asyncio.run(_run_once(folder))
    else:
        frozen.write(folder)
        frozen.run_with_recordings(folder, thaw=project == "thawed")
    return folder


if __name__ == "__main__":
    main()
