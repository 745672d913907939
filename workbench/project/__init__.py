"""The project: all actions of a user as a Python API. The screen, the command line and the pytest plugin use it."""
