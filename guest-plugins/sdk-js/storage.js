// Small durable state of this output, seen by all of its workers and by nobody else. Every change is on disk when the call returns. Keys are
// at most 512 bytes, values at most 1,024 bytes. Values are texts here; `getBytes` and Uint8Array arguments are for others.

import * as host from "wharf:output/storage@0.1.0";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const toBytes = (value) => (typeof value === "string" ? encoder.encode(value) : value);
const toText = (bytes) => (bytes === undefined ? undefined : decoder.decode(bytes));

/** The value, or undefined. */
export const getBytes = (key) => host.get(key);
/** The value as text, or undefined. */
export const get = (key) => toText(host.get(key));
/** @param {string | Uint8Array} value */
export function set(key, value) {
  host.set(key, toBytes(value));
}
/** Deleting what is not there is no error. */
export function remove(key) {
  host.delete(key);
}
/** Sets `key` to `value` if its value now is `expected` (undefined: absent). Gives whether it did. */
export function compareAndSet(key, expected, value) {
  const optional = (bytes) => (bytes === undefined ? undefined : toBytes(bytes));
  return host.compareAndSet(key, optional(expected), optional(value));
}
/** All keys with the prefix, and their values as text, ascending. */
export function* list(prefix = "") {
  for (let after; ; ) {
    const page = host.list(prefix, after, 1000);
    for (const [key, value] of page) yield [key, toText(value)];
    if (page.length < 1000) return;
    after = page[page.length - 1][0];
  }
}
/** All changes or none, at most 256: `{ key: value }`, where undefined deletes. */
export function transact(changes) {
  host.transact(
    Object.entries(changes).map(([key, value]) =>
      value === undefined ? { tag: "delete", val: key } : { tag: "set", val: [key, toBytes(value)] },
    ),
  );
}

/** Durable progress of one batch: rows that go away in the very step that settles the batch. */
export function progress(batch) {
  return {
    get: (key) => toText(host.progressGet(batch.raw, key)),
    set: (key, value) => host.progressSet(batch.raw, key, toBytes(value)),
    remove: (key) => host.progressDelete(batch.raw, key),
    list: (prefix = "") => host.progressList(batch.raw, prefix).map(([key, value]) => [key, toText(value)]),
  };
}
