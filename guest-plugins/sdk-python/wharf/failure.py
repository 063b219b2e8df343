"""Why a batch was not delivered, and what the host's own errors become."""

from __future__ import annotations

from typing import Optional

from componentize_py_types import Err
from wit_world.imports import types as wit

_KINDS = {
    "throttled": wit.FailureKind.THROTTLED,
    "transient": wit.FailureKind.TRANSIENT,
    "auth": wit.FailureKind.AUTH,
    "misconfigured": wit.FailureKind.MISCONFIGURED,
    "rejected": wit.FailureKind.REJECTED,
}


class Failure(Exception):
    """Why a batch was not delivered. The plugin says which kind it was, the host decides when to try again.

    throttled      the service asked for less
    transient      it may work next time
    auth           the service refused who we are; never final
    misconfigured  the destination or the configuration is wrong; retried slowly, shown loudly
    rejected       the destination will never take this batch: all of it becomes dead letters
    """

    def __init__(self, kind: str, message: str, retry_after_ms: Optional[int] = None):
        if kind not in _KINDS:
            raise ValueError(f"{kind!r} is no kind of failure; kinds are {', '.join(_KINDS)}")
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retry_after_ms = retry_after_ms


def to_failure(error: Exception) -> Optional[wit.Failure]:
    """What was raised in `deliver`, as what the component may raise; none where it is no failure."""
    failure = error if isinstance(error, Failure) else _of_payload(error.value) if isinstance(error, Err) else None
    if failure is None:
        return None
    return wit.Failure(_KINDS[failure.kind], failure.message, failure.retry_after_ms)


def _of_payload(payload: object) -> Optional[Failure]:
    """Nothing that the host says of itself makes a batch undeliverable: what is denied or invalid waits for a person."""
    # Bindings name the cases of WIT's variants `HostError_Denied`, `CallError_Service`, `Error_Connection`.
    case = type(payload).__name__.rpartition("_")[2]
    value = getattr(payload, "value", None)
    match case:
        case "Denied":
            return Failure("misconfigured", f"not granted: {value}")
        case "Invalid":
            return Failure("misconfigured", f"the host refused the call: {value}")
        case "Limit":
            return Failure("transient", f"limit: {value}")
        case "Unavailable":
            return Failure("transient", f"the host cannot do this now: {value}")
        case "Connection":
            return Failure("transient", f"no answer from {value}")
        case "Credentials":
            return Failure("auth", str(value))
        case "Host":
            return _of_payload(value)
        case "Service":
            text = f"the service answered {value.status} {value.code} ({value.message})"
            return Failure(_kind_of_service(value.status), text, value.retry_after_ms)
    return None


def _kind_of_service(status: int) -> str:
    """As the AWS services mean them, where the code does not tell."""
    if status in (429, 503):
        return "throttled"
    if status in (401, 403):
        return "auth"
    if status in (301, 302, 307, 308, 400, 404, 405, 501):
        return "misconfigured"
    return "rejected" if status == 413 else "transient"
