"""The terminal and the app around the screens: display, themes, pace, clipboard. No screen is known here."""
