"""The project: all that a user can do, as a Python API. Screen, command line and pytest plugin use it."""
