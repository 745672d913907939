"""The recording in the README: run, open a failure, see the argument that differs, save a fix, see it pass."""

import time
from pathlib import Path

from docs.pictures.player import Player, opened
from docs.pictures.svg import Shot, animation, still

FOLDER = Path(__file__).parent
_SIZE = (100, 25)
_FILES = ("order_desk/__init__.py", "order_desk/agent.py", "order_desk/shop.py", "order_desk/test_config.json")
_EVALSETS = ("order_desk/refunds.evalset.json", "order_desk/parcels.evalset.json", "order_desk/greetings.test.json")
_BUG, _FIX = 'amount=f"{price:.2f}"', "amount=price"
_LONGEST = 0.7
"""Seconds that an unchanged screen is shown while something happens: a busy machine is not worth watching."""
_TICK = 0.06
"""Seconds between two looks at the screen while something happens."""


async def make() -> list[Path]:
    """Record it, and write the animation and its still frame."""
    film = _Film()
    async with opened(_SIZE, only=(*_FILES, *_EVALSETS)) as player:
        await film.hold(player, 2.0, "", "a folder with an agent and its evalsets")
        await player.press("r")
        await film.follow(player, "r", "run all cases, each in its own process")
        await film.hold(player, 1.8, "r", "run all cases, each in its own process")
        await _to(player, "late_parcel ─")
        await player.settle()
        await film.hold(player, 1.2, "n", "next failure: late_parcel")
        resting = len(film.shots)
        await film.hold(player, 4.0, "", 'the refund got the text "12.50" instead of the number 12.5')
        await player.press("w")
        await player.settle()
        await film.hold(player, 1.8, "w", "watch: rerun what a saved file affects")
        caption = f"saved in your editor: {_BUG} → {_FIX}"
        player.replace("order_desk/agent.py", _BUG, _FIX)
        await film.follow(player, "", caption, until="✓ PASS", least=2.5)
        await film.hold(player, 3.5, "", "late_parcel passes")
    files = {"recording.svg": animation(film.shots, "agent-workbench", resting)}
    files["recording-still.svg"] = still(film.shots[resting].frame, "agent-workbench")
    for name, text in files.items():
        (FOLDER / name).write_text(text, "utf-8")
    return [FOLDER / name for name in files]


async def _to(player: Player, heading: str) -> None:
    """Press `n` until the pane has that heading."""
    for _ in range(10):
        if heading in player.text:
            return
        await player.press("n")
        await player.settle()
    raise LookupError(f"no {heading} to go to:\n{player.text}")


class _Film:
    """The shots so far."""

    def __init__(self) -> None:
        self.shots: list[Shot] = []

    async def hold(self, player: Player, seconds: float, key: str, caption: str) -> None:
        """Add the screen as it is, for so many seconds."""
        self.shots.append(Shot(player.frame, seconds, key, caption))

    async def follow(self, player: Player, key: str, caption: str, *, until: str = "", least: float = 0.0) -> None:
        """Add each change of the screen, at the speed at which it happens but for long waits, until all cases are done.

        `until` must be on the screen at the end. `least` is how many seconds it takes at least in the recording.
        """
        began = last = time.monotonic()
        frame = player.frame
        while time.monotonic() - began < 60:
            await player.pause(_TICK)
            seen, now = player.frame, time.monotonic()
            if seen != frame:
                self.shots.append(Shot(frame, min(now - last, _LONGEST), key, caption))
                frame, last = seen, now
            if now - last > 0.8 and player.at_rest and until in frame.text:
                break
        else:
            raise TimeoutError(f"it did not end:\n{player.text}")
        rest = max(0.0, least - (last - began))
        if rest:
            self.shots.append(Shot(frame, rest, key, caption))
