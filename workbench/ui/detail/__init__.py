"""Widgets for one case: the frame with name and verdict, the pane names, and the open pane."""
