"""Freshness: whether inputs of a verdict have changed since it was made. Only this package reads current inputs."""
