"""HTTP and HTTPS. The host resolves names, connects, speaks TLS, and adds credentials; each call is one attempt, and nothing is retried or
followed behind the plugin's back."""

from __future__ import annotations

import json as _json
import re
from typing import Any, Iterable, Mapping, Optional, Union

from wit_world.imports import http as wit
from wit_world.imports.records import Body

from .failure import Failure
from .faults import ConfigFault

#: Longest piece of an answer's body that a failure shows, characters.
_SHOWN = 300
_ABSENT = object()


def send(
    method: str,
    url: str,
    *,
    headers: Union[Mapping[str, str], Iterable[tuple[str, str]]] = (),
    body: Union[Body, bytes, str, None] = None,
    json: Any = _ABSENT,
    credential: Optional[str] = None,
    timeout_ms: Optional[int] = None,
    max_response_bytes: Optional[int] = None,
) -> Response:
    """Sends a request and waits for the answer, whatever its status is. Raises where there is none.

    The URL is absolute; its scheme, host and port must be in the plan and granted. `body` is what `batch.encode` gave, or bytes or text of
    the plugin's own; `json` is carried as JSON instead. `credential` names one that the operator has configured and granted.
    """
    pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
    if json is not _ABSENT:
        pairs.append(("content-type", "application/json"))
        body = _json.dumps(json)
    request = wit.Request(method, url, pairs, credential, timeout_ms, max_response_bytes)
    asked = f"{method} {_shown(url)}"
    if body is None or isinstance(body, Body):
        return Response(asked, wit.send(request, body))
    with Body.from_bytes(body.encode() if isinstance(body, str) else bytes(body)) as own:
        return Response(asked, wit.send(request, own))


class Response:
    """An answer."""

    def __init__(self, asked: str, answer: wit.Response):
        self._asked = asked
        #: The status.
        self.status = answer.status
        #: All headers, names in lower case.
        self.headers = answer.headers
        #: The body, as far as it was wanted.
        self.bytes = answer.body
        #: There was more of it.
        self.truncated = answer.truncated
        #: What `Retry-After` says, in milliseconds from now.
        self.retry_after_ms = answer.retry_after_ms

    @property
    def ok(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    def header(self, name: str) -> Optional[str]:
        """The first header of this name."""
        return next((value for one, value in self.headers if one == name.lower()), None)

    @property
    def text(self) -> str:
        """The body as text."""
        return self.bytes.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body parsed as JSON. What makes no sense may make some next time: that is a `transient` failure."""
        try:
            return _json.loads(self.text)
        except ValueError as error:
            cut = ", which was cut: ask for more with max_response_bytes" if self.truncated else ""
            text = f"{self._asked}: the answer's body{cut} is not the JSON that is expected: {error}"
            raise Failure("transient", text) from None

    def or_fail(self) -> Response:
        """The answer, where its status is a success; else it raises a `Failure` of the kind that `kind_of` gives."""
        kind = kind_of(self.status)
        if kind is not None:
            raise self.failure(kind)
        return self

    def failure(self, kind: str) -> Failure:
        """The answer as a failure of a kind, for a plugin that knows better."""
        text = self.text.strip()
        told = f": {text[:_SHOWN]}…" if len(text) > _SHOWN else f": {text}" if text else ""
        location = self.header("location") if 300 <= self.status < 400 else None
        to = f" (to {location})" if location else ""
        return Failure(kind, f"{self._asked} answered {self.status}{to}{told}", self.retry_after_ms)


_TRANSIENT = {408, 409, 421, 423, 425}
_AUTH = {401, 403, 407, 511}
_MISCONFIGURED = {402, 404, 405, 406, 410, 411, 412, 414, 415, 417, 426, 428, 431, 451, 501, 505}


def kind_of(status: int) -> Optional[str]:
    """The kind of failure that a status is, as destinations of logs mean it; none where it is a success. The table is in
    docs/plugins/errors.md."""
    if 200 <= status < 300:
        return None
    if status == 429:
        return "throttled"
    if status in _TRANSIENT:
        return "transient"
    if status in _AUTH:
        return "auth"
    if status in _MISCONFIGURED or 300 <= status < 400:
        return "misconfigured"
    return "rejected" if 400 <= status < 500 else "transient"


def destination(url: str, option: str = "url") -> str:
    """Scheme, host and port of a URL, as the plan's `http` wants them. Raises a `ConfigFault` for the option that it comes from, which says
    what is wrong with it."""
    form = "write an absolute URL, as in https://api.example.com/v1/logs"
    found = re.match(r"(https?)://([^/?#\\]*)", url, re.IGNORECASE)
    if found is None or not found[2] or re.search(r"\s", found[2]):
        raise ConfigFault(option, form)
    if "@" in found[2]:
        raise ConfigFault(option, "a URL has no user and password here: name a credential that Wharf's configuration has")
    return f"{found[1].lower()}://{found[2]}"


def _shown(url: str) -> str:
    """What of a URL may be shown: a path or a query may have secrets in it."""
    try:
        return destination(url)
    except ConfigFault:
        return "(no URL)"
