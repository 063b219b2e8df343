"""Lines for the host's log. Rate limited. `print` works too (standard output is written as info, standard error as warn)."""

from wit_world.imports import log as wit

_ORDER = [wit.Level.ERROR, wit.Level.WARN, wit.Level.INFO, wit.Level.DEBUG, wit.Level.TRACE]


def enabled(level: str) -> bool:
    """Whether lines of this level ("error", "warn", "info", "debug", "trace") are written at all."""
    return _ORDER.index(wit.Level[level.upper()]) <= _ORDER.index(wit.max_level())


def error(message: object, **fields: object) -> None:
    _line(wit.Level.ERROR, message, fields)


def warn(message: object, **fields: object) -> None:
    _line(wit.Level.WARN, message, fields)


def info(message: object, **fields: object) -> None:
    _line(wit.Level.INFO, message, fields)


def debug(message: object, **fields: object) -> None:
    _line(wit.Level.DEBUG, message, fields)


def trace(message: object, **fields: object) -> None:
    _line(wit.Level.TRACE, message, fields)


def _line(level: wit.Level, message: object, fields: dict[str, object]) -> None:
    wit.write(level, str(message), [(name, str(value)) for name, value in fields.items()])
