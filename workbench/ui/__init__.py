"""The screen: Textual app, screens, widgets, stylesheet."""
