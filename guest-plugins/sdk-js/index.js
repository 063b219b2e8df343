// Write an output plugin for Wharf in JavaScript.
//
//     import { defineOutput, Report } from "./wharf/index.js";
//     import * as http from "./wharf/http.js";
//
//     export const output = defineOutput({
//       name: "my-output",
//       version: "0.1.0",
//       options: { url: { type: "string", description: "Where records are posted.", required: true } },
//       configure: (config) => ({ http: [http.destination(config.url)] }),
//       deliver(batch, config) {
//         const body = batch.encode({ format: "json_array" });
//         http.send({ method: "POST", url: config.url, body }).orFail();
//       },
//     });
//
// One file an interface of the host: http.js, storage.js, sequence.js, log.js, metrics.js, clock.js. A plugin asks its operator for
// what it imports, and for nothing else. What has no file here (S3, CloudWatch Logs) is imported as it is: from "wharf:output/s3@0.1.0".

import { Batch } from "./batch.js";
import { toFailure } from "./failure.js";
import { ConfigFault, ConfigFaults } from "./faults.js";
import * as log from "./log.js";

export { Batch, Record } from "./batch.js";
export { Failure } from "./failure.js";
export { ConfigFault, ConfigFaults } from "./faults.js";

/** A settled batch: every record is delivered but those that the report rejects; these become dead letters. */
export class Report {
  #reasons = new Map();

  /**
   * The destination will never take this record. Equal reasons are kept once: leave out what differs from record to record.
   * @param {number} record its number in the batch, from 0
   * @param {unknown} reason a text, or an error
   */
  reject(record, reason) {
    const text = reason instanceof Error ? reason.message : String(reason);
    const records = this.#reasons.get(text);
    if (records) records.push(record);
    else this.#reasons.set(text, [record]);
  }

  /** How many records are rejected. */
  get rejections() {
    let sum = 0;
    for (const records of this.#reasons.values()) sum += records.length;
    return sum;
  }

  toWit() {
    const rejected = [...this.#reasons].map(([reason, records]) => ({
      records: Uint32Array.from(records).sort(),
      reason,
    }));
    return { rejected };
  }
}

/**
 * @typedef {object} Plan What the host has to know before it makes batches. Everything may be left out.
 * @property {("tag" | string[])[]} [partitionBy] records that differ in one of these never share a batch: `"tag"`, or the path of a field
 * @property {boolean} [inOrder] batches of one partition one after the other
 * @property {number} [recordOverhead] bytes that encoding adds to each record
 * @property {number | bigint} [maxBytes] the plugin's own default, where the operator says nothing under `batch`
 * @property {number} [maxRecords] the same
 * @property {number | bigint} [maxAgeMs] the same
 * @property {string[]} [http] where it will send requests: `http.destination(url)`
 * @property {string[]} [credentials] credentials that its requests will name
 * @property {{ bucket: string, keyPrefix: string }[]} [s3] buckets, and how keys begin
 * @property {string[]} [logGroups] log groups of CloudWatch Logs
 *
 * @typedef {object} Context What surrounds this output.
 * @property {string} output the output's name
 * @property {string} hostname the machine's name
 * @property {number} worker this worker's number, from 0
 *
 * @typedef {object} Definition
 * @property {string} name lower-case letters, digits, `_` and `-`
 * @property {string} version semantic version
 * @property {Record<string, object>} options JSON Schema of each option, with `description`; here `required: true` marks one that has to be
 *   there, and a `default` is filled in
 * @property {(config: any, context: Context) => Plan | void} [configure] checks the configuration; throws `ConfigFault`. Makes no calls but
 *   log and clock: `wharf validate` asks it too
 * @property {(batch: Batch, config: any, context: Context) => Report | void} deliver delivers a batch; throws `Failure`. It may be called again
 *   with the same batch after a failure or a restart
 * @property {(batch: Batch, config: any, context: Context) => void} [abandon] the host gives this batch up: undo what was left half done
 * @property {(config: any, context: Context) => void} [close] before the worker is dropped in peace
 */

/**
 * Makes the component's output: `export const output = defineOutput({ … })`.
 *
 * What is thrown and is no failure (a `TypeError`, say) is a fault of the plugin: it goes to the log with its stack, and ends the worker. The
 * host makes a new one, and gives a batch up that ends two of them.
 *
 * Functions may be `async`: what they wait for is waited for before the call ends.
 * @param {Definition} definition
 */
export function defineOutput(definition) {
  const { name, version, options = {}, configure, deliver, abandon, close } = definition;
  const schema = schemaOf(options);
  let config;
  let context;
  return {
    describe() {
      return { name, version, configSchema: JSON.stringify(schema) };
    },
    configure(text, surroundings) {
      return dying("configure", async () => {
        config = withDefaults(JSON.parse(text), options);
        context = surroundings;
        try {
          return toWitPlan((await configure?.(config, context)) ?? {});
        } catch (error) {
          throw toFaults(error);
        }
      });
    },
    deliver(batch) {
      return dying("deliver", async () => {
        const borrowed = new Batch(batch);
        try {
          return ((await deliver(borrowed, config, context)) ?? new Report()).toWit();
        } catch (error) {
          throw toFailure(error);
        } finally {
          borrowed.end();
        }
      });
    },
    abandon(batch) {
      return dying("abandon", async () => {
        const borrowed = new Batch(batch);
        try {
          await abandon?.(borrowed, config, context);
        } finally {
          borrowed.end();
        }
      });
    },
    close() {
      return dying("close", async () => close?.(config, context));
    },
  };
}

// The engine has a `fetch`, and nothing behind it: it would end the worker without a word.
globalThis.fetch = () => {
  throw new Error("a plugin has no fetch: requests leave by wharf/http.js");
};

/** An error that has no payload ends the worker: its text would be lost with it. */
async function dying(where, call) {
  try {
    return await call();
  } catch (error) {
    if (error === null || typeof error !== "object" || !Object.hasOwn(error, "payload")) {
      const told = error instanceof Error ? `${error.name}: ${error.message}\n${error.stack}` : String(error);
      log.error(`uncaught in ${where}: ${told}`);
    }
    throw error;
  }
}

function toFaults(error) {
  const faults = error instanceof ConfigFault ? [error] : error instanceof ConfigFaults ? error.faults : undefined;
  if (faults === undefined) return error;
  return { payload: faults.map(({ path, message }) => ({ path, message })) };
}

function schemaOf(options) {
  const properties = {};
  const required = [];
  for (const [option, { required: isRequired, ...schema }] of Object.entries(options)) {
    properties[option] = schema;
    if (isRequired) required.push(option);
  }
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    additionalProperties: false,
    properties,
    required,
  };
}

function withDefaults(config, options) {
  for (const [option, schema] of Object.entries(options)) {
    if (config[option] === undefined && schema.default !== undefined) config[option] = structuredClone(schema.default);
  }
  return config;
}

function toWitPlan(plan) {
  return {
    partitionBy: (plan.partitionBy ?? []).map((key) => (key === "tag" ? { tag: "tag" } : { tag: "field", val: key })),
    inOrder: plan.inOrder ?? false,
    recordOverhead: plan.recordOverhead ?? 0,
    maxBytes: big(plan.maxBytes),
    maxRecords: plan.maxRecords,
    maxAgeMs: big(plan.maxAgeMs),
    s3: plan.s3 ?? [],
    logGroups: plan.logGroups ?? [],
    http: plan.http ?? [],
    credentials: plan.credentials ?? [],
  };
}

function big(number) {
  return number === undefined ? undefined : BigInt(number);
}
