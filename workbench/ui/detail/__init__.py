"""The widgets that show one case: frame and verdict, the strip of panes, and the pane itself."""
