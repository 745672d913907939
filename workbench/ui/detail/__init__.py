"""The widgets for one case: the frame with name and verdict, the names of the panes, and the open pane."""
