"""A batch and its records."""

from __future__ import annotations

import datetime
import json
from typing import Any, Iterator, Optional

from wit_world.imports import records as wit

#: Bytes of bodies that come out of the host at once: small windows cost crossings, large ones memory.
_WINDOW_BYTES = 128 * 1024
#: Records whose sizes are asked for at once.
_LISTED = 8192
#: The largest piece that the host encodes.
_MAX_PIECE = 64 << 20


class Batch:
    """Records that belong together, fixed for ever. Good for the call that it was given to, and no longer."""

    def __init__(self, raw: wit.Batch):
        #: WIT's batch, for interfaces that are imported as they are.
        self.raw = raw
        self._own: list[wit.Body] = []

    @property
    def id(self) -> str:
        """32 lower-case hexadecimal digits."""
        return self.raw.id()

    @property
    def attempt(self) -> int:
        """1 the first time."""
        return self.raw.attempt()

    @property
    def tag(self) -> str:
        """The tag, where every record has the same one; else the first record's."""
        return self.raw.tag()

    @property
    def partition(self) -> list[Optional[str]]:
        """What all records have in common, for each of the plan's `partition_by`."""
        return self.raw.partition()

    @property
    def count(self) -> int:
        """How many records."""
        return self.raw.count()

    @property
    def size(self) -> int:
        """Bytes of all bodies, without separators."""
        return self.raw.size()

    @property
    def first_time(self) -> int:
        """Earliest record time, nanoseconds since 1970 UTC."""
        return self.raw.first_time()

    @property
    def last_time(self) -> int:
        """Latest record time, nanoseconds since 1970 UTC."""
        return self.raw.last_time()

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Record]:
        return self.records()

    def records(self, first: int = 0, count: Optional[int] = None) -> Iterator[Record]:
        """The records one by one. Bodies come out of the host in windows, so that a large batch never lies in memory whole."""
        there = self.count
        end = there if count is None else min(first + count, there)
        sizes: list[int] = []
        place = 0
        number = first
        while number < end:
            if place >= len(sizes):
                sizes = self.raw.sizes(number, min(_LISTED, end - number))
                place = 0
            upto = place
            total = 0
            while upto < len(sizes) and (upto == place or total + sizes[upto] <= _WINDOW_BYTES):
                total += sizes[upto]
                upto += 1
            window = _Window(self.raw, number, upto - place)
            start = 0
            for size in sizes[place:upto]:
                yield Record(window, number, start, start + size)
                start += size
                number += 1
            place = upto

    def encode(self, format: str, **options: Any) -> wit.Body:
        """Records as one body that stays in the host, for `http.send` and other calls. At most 64 MiB; see `pieces`.

        `format` is "json_lines", "json_array" or "text". Options: `date_key` ("date"; None leaves the time out), `date_format` ("iso8601",
        "iso8601_nanos", "double", "epoch", "epoch_ms", "java_sql_timestamp"), `log_key`, `compression` ("none", "gzip", "zstd"), `level`,
        and which records: `first` and `count`, or `only`, a list of numbers.
        """
        with self._encoder(format, **options) as encoder:
            body = encoder.next(_MAX_PIECE)
            if body is None:
                body = wit.Body.from_bytes(b"")
            self._own.append(body)
            if not encoder.finished():
                raise ValueError(
                    "the records take more than 64 MiB in one body: encode them in pieces, or let the plan have smaller batches"
                )
            return body

    def pieces(self, format: str, max_bytes: int, **options: Any) -> Iterator[wit.Body]:
        """Records as bodies of at most so many bytes (64 KiB to 64 MiB). Each is gone when the next is asked for."""
        with self._encoder(format, **options) as encoder:
            while (body := encoder.next(max_bytes)) is not None:
                with body:
                    yield body

    def _encoder(
        self,
        format: str,
        *,
        date_key: Optional[str] = "date",
        date_format: str = "iso8601",
        log_key: Optional[str] = None,
        compression: str = "none",
        level: Optional[int] = None,
        first: Optional[int] = None,
        count: Optional[int] = None,
        only: Optional[list[int]] = None,
    ) -> wit.Encoder:
        select: wit.Selection = wit.Selection_All()
        if only is not None:
            select = wit.Selection_Indexes(only)
        elif first is not None or count is not None:
            start = first or 0
            select = wit.Selection_Range((start, self.count - start if count is None else count))
        return self.raw.encode(select, wit.Encoding(format, date_key, date_format, log_key, compression, level))

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *_: object) -> None:
        """The call is over: bodies are given back to the host at once."""
        for body in self._own:
            body.__exit__(None, None, None)
        self._own.clear()


class _Window:
    """Some neighbouring records. Bodies are there; what else describes them is asked for when somebody wants it."""

    __slots__ = ("_raw", "_first", "_count", "_times", "_kinds", "_tags", "_text", "bytes")

    def __init__(self, raw: wit.Batch, first: int, count: int):
        self._raw = raw
        self._first = first
        self._count = count
        self._times: Optional[list[int]] = None
        self._kinds: Optional[bytes] = None
        self._tags: Optional[list[tuple[str, int]]] = None
        self.bytes = raw.read(first, count)
        # Where all is ASCII, one decoding serves all records.
        self._text = self.bytes.decode("ascii") if self.bytes.isascii() else None

    def time(self, index: int) -> int:
        if self._times is None:
            self._times = self._raw.times(self._first, self._count)
        return self._times[index - self._first]

    def kind(self, index: int) -> int:
        if self._kinds is None:
            self._kinds = self._raw.kinds(self._first, self._count)
        return self._kinds[index - self._first]

    def tag(self, index: int) -> str:
        if self._tags is None:
            self._tags = self._raw.tags(self._first, self._count)
        place = index - self._first
        for tag, records in self._tags:
            if place < records:
                return tag
            place -= records
        return ""

    def text(self, start: int, end: int) -> str:
        if self._text is not None:
            return self._text[start:end]
        return self.bytes[start:end].decode("utf-8", "replace")


class Record:
    """One record."""

    __slots__ = ("_window", "_start", "_end", "index")

    def __init__(self, window: _Window, index: int, start: int, end: int):
        self._window = window
        self._start = start
        self._end = end
        #: Its number in the batch, from 0: what `report.reject` takes.
        self.index = index

    @property
    def time(self) -> int:
        """Nanoseconds since 1970 UTC."""
        return self._window.time(self.index)

    @property
    def datetime(self) -> datetime.datetime:
        """The time as Python has it, to the microsecond, in UTC."""
        return _EPOCH + datetime.timedelta(microseconds=self.time // 1000)

    @property
    def tag(self) -> str:
        """The tag that its source gave it."""
        return self._window.tag(self.index)

    @property
    def kind(self) -> str:
        """"text": any bytes; or "json": one JSON object."""
        return "json" if self._window.kind(self.index) == 1 else "text"

    @property
    def bytes(self) -> bytes:
        """The body as it is."""
        return self._window.bytes[self._start : self._end]

    @property
    def text(self) -> str:
        """The body as text; what is no UTF-8 in it is U+FFFD."""
        return self._window.text(self._start, self._end)

    def json(self) -> Any:
        """The body parsed as JSON, whatever its kind. Raises `ValueError` where it is none: reject the record then."""
        return json.loads(self.text)

    def value(self) -> dict[str, Any]:
        """The record as a dictionary: of text, {"log": text}."""
        return self.json() if self.kind == "json" else {"log": self.text}


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
