// Delivers records to an HTTP API as JSON arrays; with `remove_keys`, without those keys.
//
// What it shows: bodies that the host writes, records that JavaScript reads and writes anew, and records that are rejected one by one, by
// the plugin and by the API.

import { ConfigFault, defineOutput, Report } from "./wharf/index.js";
import * as http from "./wharf/http.js";
import * as metrics from "./wharf/metrics.js";

export const output = defineOutput({
  name: "js-http",
  version: "0.1.0",

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
    remove_keys: {
      type: "array",
      items: { type: "string" },
      default: [],
      description: "Keys that events are sent without, at their top level: `password`. Records are read one by one then.",
    },
  },

  configure(config) {
    if (config.remove_keys.includes("date")) {
      throw new ConfigFault("remove_keys", "`date` is the time of an event, which the API requires");
    }
    return {
      http: [http.destination(config.url)],
      credentials: config.credential ? [config.credential] : [],
      maxRecords: 2000,
      maxBytes: 1 << 20,
      maxAgeMs: 5000,
    };
  },

  deliver(batch, config) {
    const report = new Report();
    if (config.remove_keys.length === 0) {
      // Written by the host, and kept there: the events do not enter the plugin's memory at all.
      const body = batch.encode({ format: "json_array" });
      send(batch, config, body, (index) => index, report);
    } else {
      const { events, records } = withoutKeys(batch, config.remove_keys, report);
      if (events.length > 0) {
        send(batch, config, `[${events.join(",")}]`, (index) => records[index], report);
      }
    }
    metrics.count("events_total", batch.count - report.rejections);
    return report;
  },
});

/** Events as JSON, and the number of the record that each is made of. */
function withoutKeys(batch, keys, report) {
  const events = [];
  const records = [];
  for (const record of batch.records()) {
    try {
      const event = { date: record.date.toISOString(), ...record.value() };
      for (const key of keys) delete event[key];
      events.push(JSON.stringify(event));
      records.push(record.index);
    } catch {
      report.reject(record.index, "the record cannot be read as JSON");
    }
  }
  return { events, records };
}

function send(batch, config, body, recordOf, report) {
  const answer = http
    .send({
      url: config.url,
      // The key is the same in every attempt: the API can tell what it has already.
      headers: { "content-type": "application/json", "idempotency-key": batch.id },
      credential: config.credential,
      body,
    })
    .orFail()
    .json();
  for (const { index, reason } of answer.rejected ?? []) {
    report.reject(recordOf(index), reason);
  }
}
