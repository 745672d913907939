"""Notices on the main screen: where they are, and what they leave visible."""

from textual.widgets._toast import Toast

from tests.ui.conftest import OpenScreen


async def test_notices_leave_the_cursor_and_the_evidence_visible(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open((60, 20)) as pilot:
        screen.app.notify("saved: the new case is in the tree", timeout=60)
        await pilot.pause()
        assert screen.text.splitlines()[-1].startswith(" saved: the new case is in the tree")
        assert not screen.app.screen.query(Toast)
        for key, top in (("g", False), ("G", True)):
            await pilot.press(key)
            screen.app.notify("prompt.txt cannot be read: permission denied", severity="warning", timeout=60)
            await screen.until(pilot, lambda: "permission denied" in screen.text)
            view, (*_, toast) = screen.main.tree_view, screen.app.screen.query(Toast)
            cursor = view.region.y + view.cursor - view.scroll_offset.y
            assert not toast.region.y <= cursor < toast.region.bottom
            assert (toast.region.y < 10) == top
            assert toast.region.x == 1
            assert toast.size.height == 1
            screen.app.clear_notifications()
            await screen.until(pilot, lambda: not screen.app.screen.query(Toast))
