"""Write an output plugin for Wharf in Python.

    import wharf
    from wharf import http

    OPTIONS = {"url": {"type": "string", "description": "Where records are posted.", "required": True}}

    @wharf.output(name="my-output", version="0.1.0", options=OPTIONS)
    class Output:
        def configure(self, config, context):
            self.url = config["url"]
            return wharf.Plan(http=[http.destination(self.url)])

        def deliver(self, batch):
            http.send("POST", self.url, body=batch.encode("json_array")).or_fail()

One module an interface of the host: http, storage, sequence, log, metrics, clock. A plugin asks its operator for what it imports, and for
nothing else. What has no module here (S3, CloudWatch Logs) is imported as it is: `from wit_world.imports import s3`.

The class has to be called `Output`: componentize-py looks for this name.
"""

from __future__ import annotations

import copy
import json
import traceback
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from componentize_py_types import Err
from wit_world.exports import output as wit

from . import log
from .batch import Batch, Record
from .failure import Failure, to_failure
from .faults import ConfigFault, ConfigFaults

__all__ = ["Batch", "ConfigFault", "ConfigFaults", "Context", "Failure", "Plan", "Record", "Report", "output"]


@dataclass
class Context:
    """What surrounds this output."""

    output: str
    hostname: str
    #: This worker's number, from 0.
    worker: int


@dataclass
class Plan:
    """What the host has to know before it makes batches."""

    #: Records that differ in one of these never share a batch: "tag", or the path of a field, ["kubernetes", "pod_name"].
    partition_by: list[Union[str, list[str]]] = field(default_factory=list)
    #: Batches of one partition one after the other.
    in_order: bool = False
    #: Bytes that encoding adds to each record.
    record_overhead: int = 0
    #: The plugin's own defaults, where the operator says nothing under `batch`.
    max_bytes: Optional[int] = None
    max_records: Optional[int] = None
    max_age_ms: Optional[int] = None
    #: Where it will send requests: `http.destination(url)`.
    http: list[str] = field(default_factory=list)
    #: Credentials that its requests will name.
    credentials: list[str] = field(default_factory=list)
    #: Buckets, and how keys begin.
    s3: list[tuple[str, str]] = field(default_factory=list)
    #: Log groups of CloudWatch Logs.
    log_groups: list[str] = field(default_factory=list)

    def to_wit(self) -> wit.Plan:
        def key(by):
            return wit.PartitionKey_Tag() if by == "tag" else wit.PartitionKey_Field(list(by))

        return wit.Plan(
            partition_by=[key(by) for by in self.partition_by],
            in_order=self.in_order,
            record_overhead=self.record_overhead,
            max_bytes=self.max_bytes,
            max_records=self.max_records,
            max_age_ms=self.max_age_ms,
            s3=[wit.S3Scope(bucket, prefix) for bucket, prefix in self.s3],
            log_groups=self.log_groups,
            http=self.http,
            credentials=self.credentials,
        )


class Report:
    """A settled batch: every record is delivered but those that the report rejects; these become dead letters."""

    def __init__(self) -> None:
        self._reasons: dict[str, list[int]] = {}

    def reject(self, record: int, reason: object) -> None:
        """The destination will never take this record, by its number in the batch, from 0. Equal reasons are kept once: leave out what
        differs from record to record."""
        self._reasons.setdefault(str(reason), []).append(record)

    @property
    def rejections(self) -> int:
        """How many records are rejected."""
        return sum(len(records) for records in self._reasons.values())

    def to_wit(self) -> wit.Report:
        return wit.Report([wit.Rejection(sorted(records), reason) for reason, records in self._reasons.items()])


def output(*, name: str, version: str, options: dict[str, dict[str, Any]]):
    """Makes a class the component's output. It has `deliver(batch)`, which gives a `Report` or nothing, or raises `Failure`; and, where
    they are wanted, `configure(config, context)`, which gives a `Plan` or nothing, or raises `ConfigFault`, and makes no calls but log and
    clock, since `wharf validate` asks it too; `abandon(batch)`; `close()`. One object of it lives in each worker.

    `options` is the JSON Schema of each option, with its `description`; here `"required": True` marks one that has to be there, and a
    `default` is filled in.

    What is raised and is no failure (an `AttributeError`, say) is a fault of the plugin: it goes to the log with its traceback, and ends the
    worker. The host makes a new one, and gives a batch up that ends two of them.
    """

    def of(author: type) -> type:
        schema = json.dumps(_schema_of(options))

        # componentize-py makes a new object of the exported class for each call: what lasts is kept beside it.
        class Output:
            worker: Any = None

            def describe(self) -> wit.Descriptor:
                return wit.Descriptor(name, version, schema)

            def configure(self, config: str, surroundings: wit.Context) -> wit.Plan:
                with _dying("configure"):
                    worker = author()
                    Output.worker = worker
                    context = Context(surroundings.output, surroundings.hostname, surroundings.worker)
                    parsed = _with_defaults(json.loads(config), options)
                    try:
                        plan = worker.configure(parsed, context) if hasattr(worker, "configure") else None
                    except ConfigFault as fault:
                        raise Err([wit.ConfigFault(fault.path, fault.message)]) from None
                    except ConfigFaults as many:
                        raise Err([wit.ConfigFault(fault.path, fault.message) for fault in many.faults]) from None
                    return (plan or Plan()).to_wit()

            def deliver(self, batch) -> wit.Report:
                with _dying("deliver"), Batch(batch) as borrowed:
                    try:
                        report = Output.worker.deliver(borrowed)
                    except Exception as error:
                        failure = to_failure(error)
                        if failure is None:
                            raise
                        raise Err(failure) from None
                    return (report or Report()).to_wit()

            def abandon(self, batch) -> None:
                if hasattr(Output.worker, "abandon"):
                    with _dying("abandon"), Batch(batch) as borrowed:
                        Output.worker.abandon(borrowed)

            def close(self) -> None:
                if hasattr(Output.worker, "close"):
                    with _dying("close"):
                        Output.worker.close()

        return Output

    return of


class _dying:
    """An exception that is no answer ends the worker: its traceback would be lost with it."""

    def __init__(self, where: str):
        self.where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, error, trace) -> None:
        if error is not None and not isinstance(error, Err):
            log.error(f"uncaught in {self.where}: " + "".join(traceback.format_exception(kind, error, trace)).rstrip())


def _schema_of(options: dict[str, dict[str, Any]]) -> dict[str, Any]:
    def schema(option):
        return {key: value for key, value in option.items() if key != "required"}

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "properties": {name: schema(option) for name, option in options.items()},
        "required": [name for name, option in options.items() if option.get("required")],
    }


def _with_defaults(config: dict[str, Any], options: dict[str, dict[str, Any]]) -> dict[str, Any]:
    for name, option in options.items():
        if name not in config and "default" in option:
            config[name] = copy.deepcopy(option["default"])
    return config
