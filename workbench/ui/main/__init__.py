"""The main screen: layout, movement keys, palette, and the construction of all controllers."""
