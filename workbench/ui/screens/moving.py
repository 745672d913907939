"""The actions that move, for screens whose letters go to the side that has the focus."""


class Moving:
    """Turns each action into a direction for the side that is to move."""

    def move_side(self, direction: str) -> None:
        """Moves the side that has the focus: "down", "up", "page_down", "page_up", "top" or "bottom"."""
        raise NotImplementedError

    def action_move_down(self) -> None:
        self.move_side("down")

    def action_move_up(self) -> None:
        self.move_side("up")

    def action_page_down(self) -> None:
        self.move_side("page_down")

    def action_page_up(self) -> None:
        self.move_side("page_up")

    def action_top(self) -> None:
        self.move_side("top")

    def action_bottom(self) -> None:
        self.move_side("bottom")
