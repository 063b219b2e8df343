// Delivers batches of records to an HTTP API, each as one JSON array.

import { defineOutput, Report } from "./wharf/index.js";
import * as http from "./wharf/http.js";

export const output = defineOutput({
  name: "{{name}}",
  version: "0.1.0",

  // What may stand under `config`: JSON Schema. The descriptions are what operators read.
  options: {
    url: {
      type: "string",
      required: true,
      description: "Where events are sent, such as https://api.example.com/v1/events.",
    },
    credential: {
      type: "string",
      description: "The credential to send them with, by its name under `credentials`.",
    },
  },

  configure(config) {
    return {
      http: [http.destination(config.url)],
      credentials: config.credential ? [config.credential] : [],
      maxRecords: 1000,
      maxBytes: 1 << 20,
      maxAgeMs: 5000,
    };
  },

  deliver(batch, config) {
    // Written by the host, and kept there: only the answer comes into the plugin's memory.
    const body = batch.encode({ format: "json_array" });
    const answer = http
      .send({
        method: "POST",
        url: config.url,
        // The key is the same in every attempt: the API can tell what it has already.
        headers: { "content-type": "application/json", "idempotency-key": batch.id },
        credential: config.credential,
        body,
      })
      .orFail()
      .json();
    const report = new Report();
    for (const { index, reason } of answer.rejected ?? []) {
      report.reject(index, reason);
    }
    return report;
  },
});
