"""Delivers batches of records to an HTTP API, each as one JSON array."""

import wharf
from wharf import http

# What may stand under `config`: JSON Schema. The descriptions are what operators read.
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
}


@wharf.output(name="{{name}}", version="0.1.0", options=OPTIONS)
class Output:
    def configure(self, config, context):
        self.url = config["url"]
        self.credential = config.get("credential")
        return wharf.Plan(
            http=[http.destination(self.url)],
            credentials=[self.credential] if self.credential else [],
            max_records=1000,
            max_bytes=1 << 20,
            max_age_ms=5000,
        )

    def deliver(self, batch):
        # Written by the host, and kept there: only the answer comes into the plugin's memory.
        body = batch.encode("json_array")
        # The key is the same in every attempt: the API can tell what it has already.
        headers = {"content-type": "application/json", "idempotency-key": batch.id}
        answer = http.send("POST", self.url, headers=headers, body=body, credential=self.credential).or_fail()
        report = wharf.Report()
        for event in answer.json().get("rejected", []):
            report.reject(event["index"], event["reason"])
        return report
