"""Delivers records to an HTTP API as JSON arrays; with `remove_keys`, without those keys.

What it shows: bodies that the host writes, records that Python reads and writes anew, and records that are rejected one by one, by the
plugin and by the API.
"""

import json

import wharf
from wharf import http, metrics

OPTIONS = {
    "url": {
        "type": "string",
        "required": True,
        "description": "Where events are sent, such as https://api.example.com/v1/events.",
    },
    "credential": {
        "type": "string",
        "description": "The credential to send them with, by its name under `credentials`.",
    },
    "remove_keys": {
        "type": "array",
        "items": {"type": "string"},
        "default": [],
        "description": "Keys that events are sent without, at their top level: `password`. Records are read one by one then.",
    },
}


@wharf.output(name="python-http", version="0.1.0", options=OPTIONS)
class Output:
    def configure(self, config, context):
        if "date" in config["remove_keys"]:
            raise wharf.ConfigFault("remove_keys", "`date` is the time of an event, which the API requires")
        self.config = config
        credential = config.get("credential")
        return wharf.Plan(
            http=[http.destination(config["url"])],
            credentials=[credential] if credential else [],
            max_records=2000,
            max_bytes=1 << 20,
            max_age_ms=5000,
        )

    def deliver(self, batch):
        report = wharf.Report()
        keys = self.config["remove_keys"]
        if not keys:
            # Written by the host, and kept there: the events do not enter the plugin's memory at all.
            self.send(batch, batch.encode("json_array"), range(batch.count), report)
        else:
            events, records = without_keys(batch, keys, report)
            if events:
                self.send(batch, "[" + ",".join(events) + "]", records, report)
        metrics.count("events_total", batch.count - report.rejections)
        return report

    def send(self, batch, body, records, report):
        # The key is the same in every attempt: the API can tell what it has already.
        headers = {"content-type": "application/json", "idempotency-key": batch.id}
        credential = self.config.get("credential")
        answer = http.send("POST", self.config["url"], headers=headers, body=body, credential=credential).or_fail()
        for event in answer.json().get("rejected", []):
            report.reject(records[event["index"]], event["reason"])


def without_keys(batch, keys, report):
    """Events as JSON, and the number of the record that each is made of."""
    events = []
    records = []
    for record in batch:
        try:
            event = {"date": record.datetime.isoformat(), **record.value()}
        except ValueError:
            report.reject(record.index, "the record cannot be read as JSON")
            continue
        for key in keys:
            event.pop(key, None)
        events.append(json.dumps(event))
        records.append(record.index)
    return events, records
