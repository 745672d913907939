"""The project: what the screen, the command line and the pytest plugin need above the engine."""
