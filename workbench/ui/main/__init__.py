"""The main screen with its keys and palette, and the construction of all controllers."""
