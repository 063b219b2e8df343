"""The host's clocks, in nanoseconds. Python's `time` works as well."""

from wit_world.imports import clock as wit


def now() -> int:
    """Since 1970 UTC. May step."""
    return wit.now()


def monotonic() -> int:
    """Since some moment of the host's process. Never steps back."""
    return wit.monotonic()
