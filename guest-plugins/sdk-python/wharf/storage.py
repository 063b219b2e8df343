"""Small durable state of this output, seen by all of its workers and by nobody else. Every change is on disk when the call returns. Keys are
at most 512 bytes, values at most 1,024 bytes. Values are bytes; text is written as UTF-8."""

from __future__ import annotations

from typing import Iterator, Mapping, Optional, Union

from wit_world.imports import storage as wit

from .batch import Batch

Value = Union[bytes, str]


def get(key: str) -> Optional[bytes]:
    """The value, or none."""
    return wit.get(key)


def set(key: str, value: Value) -> None:
    wit.set(key, _bytes(value))


def delete(key: str) -> None:
    """Deleting what is not there is no error."""
    wit.delete(key)


def compare_and_set(key: str, expected: Optional[Value], value: Optional[Value]) -> bool:
    """Sets `key` to `value` if its value now is `expected` (none: absent). Gives whether it did."""
    return wit.compare_and_set(
        key, None if expected is None else _bytes(expected), None if value is None else _bytes(value)
    )


def items(prefix: str = "") -> Iterator[tuple[str, bytes]]:
    """All keys with the prefix, and their values, ascending."""
    after = None
    while True:
        page = wit.list(prefix, after, 1000)
        yield from page
        if len(page) < 1000:
            return
        after = page[-1][0]


def transact(changes: Mapping[str, Optional[Value]]) -> None:
    """All changes or none, at most 256; none as a value deletes the key."""
    wit.transact(
        [
            wit.Change_Delete(key) if value is None else wit.Change_Set((key, _bytes(value)))
            for key, value in changes.items()
        ]
    )


class Progress:
    """Durable progress of one batch: rows that go away in the very step that settles the batch."""

    def __init__(self, batch: Batch):
        self._batch = batch.raw

    def get(self, key: str) -> Optional[bytes]:
        return wit.progress_get(self._batch, key)

    def set(self, key: str, value: Value) -> None:
        wit.progress_set(self._batch, key, _bytes(value))

    def delete(self, key: str) -> None:
        wit.progress_delete(self._batch, key)

    def items(self, prefix: str = "") -> list[tuple[str, bytes]]:
        return wit.progress_list(self._batch, prefix)


def _bytes(value: Value) -> bytes:
    return value.encode() if isinstance(value, str) else value
