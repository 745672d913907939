"""The state behind all screens, the view of the main screen that controllers work with, and the open folder."""
