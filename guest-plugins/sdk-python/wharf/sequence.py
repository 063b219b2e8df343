"""Counters that never repeat and never go back, whatever stops the host ($INDEX)."""

from wit_world.imports import sequence as wit

from .batch import Batch


def assign(name: str, batch: Batch, start: int = 0) -> int:
    """The batch's number in this counter: the same for ever, in every attempt."""
    return wit.assign(name, batch.raw, start)


def reassign(name: str, batch: Batch, taken: int) -> int:
    """Another number, where `taken` proved to be used by somebody outside."""
    return wit.reassign(name, batch.raw, taken)
