"""The terminal and functions of the app: display, themes, paint rate and clipboard. Depends on no screen."""
