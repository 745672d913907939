"""The fixtures of the engine's tests, for places that run whole cases."""

from tests.engine.conftest import children, project

__all__ = ["children", "project"]
