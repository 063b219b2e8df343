// A batch and its records.

import { Body } from "wharf:output/records@0.1.0";

/** Bytes of bodies that come out of the host at once: small windows cost crossings, large ones memory. */
const WINDOW_BYTES = 128 * 1024;
/** Records whose sizes are asked for at once. */
const LISTED = 8192;
/** The largest piece that the host encodes. */
const MAX_PIECE = 64n << 20n;

const utf8 = new TextDecoder();

/**
 * @typedef {object} Encoding How records become bytes, natively in the host.
 * @property {"json_lines" | "json_array" | "text"} format
 * @property {string | null} [dateKey] the key that carries the record's time, `date` where nothing is said; null leaves it out
 * @property {string} [dateFormat] `iso8601` (where nothing is said), `iso8601_nanos`, `double`, `epoch`, `epoch_ms`, `java_sql_timestamp`
 * @property {string} [logKey] write only this key's value
 * @property {"none" | "gzip" | "zstd"} [compression]
 * @property {number} [level] the compressor's
 * @property {number} [first] first record, with `count`
 * @property {number} [count] how many records
 * @property {number[]} [only] record numbers, ascending, instead of `first` and `count`
 */

/** Records that belong together, fixed for ever. Good for the call that it was given to, and no longer. */
export class Batch {
  #raw;
  #own = new Set();

  constructor(raw) {
    this.#raw = raw;
  }

  /** WIT's batch, for interfaces that are imported as they are. */
  get raw() {
    return this.#raw;
  }
  /** 32 lower-case hexadecimal digits. */
  get id() {
    return this.#raw.id();
  }
  /** 1 the first time. */
  get attempt() {
    return this.#raw.attempt();
  }
  /** The tag, where every record has the same one; else the first record's. */
  get tag() {
    return this.#raw.tag();
  }
  /** What all records have in common, for each of the plan's `partitionBy`. */
  get partition() {
    return this.#raw.partition();
  }
  /** How many records. */
  get count() {
    return this.#raw.count();
  }
  /** Bytes of all bodies, without separators. */
  get size() {
    return Number(this.#raw.size());
  }
  /** Earliest record time, nanoseconds since 1970 UTC, a BigInt. */
  get firstTime() {
    return this.#raw.firstTime();
  }
  /** Latest record time, nanoseconds since 1970 UTC, a BigInt. */
  get lastTime() {
    return this.#raw.lastTime();
  }

  /**
   * The records one by one. Bodies come out of the host in windows, so that a large batch never lies in memory whole.
   * @returns {Generator<Record>}
   */
  *records({ first = 0, count = this.count - first } = {}) {
    const end = Math.min(first + count, this.count);
    let sizes = [];
    let listed = first;
    for (let next = first; next < end; ) {
      if (next - listed >= sizes.length) {
        listed = next;
        sizes = this.#raw.sizes(next, Math.min(LISTED, end - next));
      }
      const from = next - listed;
      let to = from;
      for (let bytes = 0; to < sizes.length && (to === from || bytes + sizes[to] <= WINDOW_BYTES); to++) bytes += sizes[to];
      const window = new Window(this.#raw, next, to - from);
      let start = 0;
      for (let i = from; i < to; i++) {
        yield new Record(window, next + i - from, start, start + sizes[i]);
        start += sizes[i];
      }
      next += to - from;
    }
  }

  /**
   * Records as one body that stays in the host, for `http.send` and other calls. At most 64 MiB; see `pieces`.
   * @param {Encoding} encoding
   */
  encode(encoding) {
    const encoder = this.#encoder(encoding);
    try {
      const body = encoder.next(MAX_PIECE);
      if (body !== undefined && !encoder.finished()) {
        drop(body);
        throw new RangeError("the records take more than 64 MiB in one body: encode them in pieces, or let the plan have smaller batches");
      }
      return this.#keep(body ?? Body.fromBytes(new Uint8Array()));
    } finally {
      drop(encoder);
    }
  }

  /**
   * Records as bodies of at most so many bytes (64 KiB to 64 MiB). Each is gone when the next is asked for.
   * @param {Encoding} encoding
   * @param {number} maxBytes
   */
  *pieces(encoding, maxBytes) {
    const encoder = this.#encoder(encoding);
    try {
      for (let body; (body = encoder.next(BigInt(maxBytes))) !== undefined; ) {
        try {
          yield body;
        } finally {
          drop(body);
        }
      }
    } finally {
      drop(encoder);
    }
  }

  #encoder({ format, dateKey = "date", dateFormat = "iso8601", logKey, compression = "none", level, first, count, only }) {
    const some = first !== undefined || count !== undefined;
    const start = first ?? 0;
    const select = only
      ? { tag: "indexes", val: Uint32Array.from(only) }
      : some
        ? { tag: "range", val: [start, count ?? this.count - start] }
        : { tag: "all" };
    return this.#raw.encode(select, { format, dateKey: dateKey ?? undefined, dateFormat, logKey, compression, level });
  }

  #keep(body) {
    this.#own.add(body);
    return body;
  }

  /** The call is over: bodies are given back to the host at once, and not when the collector comes by. */
  end() {
    for (const body of this.#own) drop(body);
    this.#own.clear();
  }
}

/** Gives a handle back, once. */
export function drop(handle) {
  try {
    handle[Symbol.dispose || Symbol.for("dispose")]();
  } catch {
    // It was given back before.
  }
}

/** Some neighbouring records. Bodies are there; what else describes them is asked for when somebody wants it. */
class Window {
  #raw;
  #first;
  #count;
  #times;
  #kinds;
  #tags;
  #text;

  constructor(raw, first, count) {
    this.#raw = raw;
    this.#first = first;
    this.#count = count;
    this.bytes = raw.read(first, count);
  }
  time(index) {
    this.#times ??= this.#raw.times(this.#first, this.#count);
    return this.#times[index - this.#first];
  }
  kind(index) {
    this.#kinds ??= this.#raw.kinds(this.#first, this.#count);
    return this.#kinds[index - this.#first];
  }
  tag(index) {
    this.#tags ??= this.#raw.tags(this.#first, this.#count);
    let place = index - this.#first;
    for (const [tag, records] of this.#tags) {
      if (place < records) return tag;
      place -= records;
    }
    return "";
  }
  text(start, end) {
    // One decoding for all of a window's records. Where it gave as many characters as there are bytes, each character is one byte.
    this.#text ??= utf8.decode(this.bytes);
    return this.#text.length === this.bytes.length
      ? this.#text.slice(start, end)
      : utf8.decode(this.bytes.subarray(start, end));
  }
}

/** One record. */
export class Record {
  #window;
  #start;
  #end;

  constructor(window, index, start, end) {
    this.#window = window;
    this.#start = start;
    this.#end = end;
    /** Its number in the batch, from 0: what `report.reject` takes. */
    this.index = index;
  }
  /** Nanoseconds since 1970 UTC, a BigInt. */
  get time() {
    return this.#window.time(this.index);
  }
  /** The time as JavaScript has it, to the millisecond. */
  get date() {
    return new Date(Number(this.time / 1_000_000n));
  }
  /** The tag that its source gave it. */
  get tag() {
    return this.#window.tag(this.index);
  }
  /** `"text"`: any bytes; or `"json"`: one JSON object. */
  get kind() {
    return this.#window.kind(this.index) === 1 ? "json" : "text";
  }
  /** The body as it is. */
  get bytes() {
    return this.#window.bytes.subarray(this.#start, this.#end);
  }
  /** The body as text; what is no UTF-8 in it is U+FFFD. */
  get text() {
    return this.#window.text(this.#start, this.#end);
  }
  /** The body parsed as JSON, whatever its kind. Throws `SyntaxError` where it is none: reject the record then. */
  json() {
    return JSON.parse(this.text);
  }
  /** The record as an object: of text, `{ log: text }`. */
  value() {
    return this.kind === "json" ? this.json() : { log: this.text };
  }
}
