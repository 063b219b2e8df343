"""Numbers for the host's /metrics, as wharf_plugin_<name>. At most 100 series an output."""

from wit_world.imports import metrics as wit


def count(name: str, value: int = 1, **labels: object) -> None:
    """Adds to a counter."""
    wit.counter_add(name, value, _pairs(labels))


def gauge(name: str, value: float, **labels: object) -> None:
    """Sets a gauge."""
    wit.gauge_set(name, value, _pairs(labels))


def observe(name: str, value: float, **labels: object) -> None:
    """Observes a value in a histogram: seconds, bytes, or whatever the name says."""
    wit.histogram_observe(name, value, _pairs(labels))


def _pairs(labels: dict[str, object]) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in labels.items()]
