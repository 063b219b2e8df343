// HTTP and HTTPS. The host resolves names, connects, speaks TLS, and adds credentials; each call is one attempt, and nothing is retried or
// followed behind the plugin's back.

import { send as hostSend } from "wharf:output/http@0.1.0";
import { Body } from "wharf:output/records@0.1.0";
import { drop } from "./batch.js";
import { Failure } from "./failure.js";
import { ConfigFault } from "./faults.js";

/** Longest piece of an answer's body that a failure shows, characters. */
const SHOWN = 300;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * Sends a request and waits for the answer, whatever its status is. Throws where there is none.
 * @param {object} request
 * @param {string} [request.method] `POST` where nothing is said
 * @param {string} request.url absolute; its scheme, host and port must be in the plan and granted
 * @param {{ [name: string]: string } | [string, string][]} [request.headers]
 * @param {Body | Uint8Array | string} [request.body] what `batch.encode` gave, or bytes or text of the plugin's own
 * @param {unknown} [request.json] carried as JSON, instead of `body`
 * @param {string} [request.credential] a credential that the operator has configured and granted; the host adds it
 * @param {number} [request.timeoutMs] for the whole exchange
 * @param {number} [request.maxResponseBytes] 64 KiB where nothing is said, at most 1 MiB
 * @returns {Response}
 */
export function send({ method = "POST", url, headers = {}, body, json, credential, timeoutMs, maxResponseBytes }) {
  const list = Array.isArray(headers) ? [...headers] : Object.entries(headers);
  if (json !== undefined) {
    list.push(["content-type", "application/json"]);
    body = JSON.stringify(json);
  }
  const asked = `${method} ${shown(url)}`;
  const own = body === undefined || body instanceof Body ? undefined : Body.fromBytes(toBytes(body));
  try {
    return new Response(asked, hostSend({ method, url, headers: list, credential, timeoutMs, maxResponseBytes }, own ?? body));
  } finally {
    if (own) drop(own);
  }
}

function toBytes(body) {
  return typeof body === "string" ? encoder.encode(body) : body;
}

/** An answer. */
export class Response {
  #asked;
  #headers;

  constructor(asked, { status, headers, body, truncated, retryAfterMs }) {
    this.#asked = asked;
    this.#headers = headers;
    /** The status. */
    this.status = status;
    /** The body, as far as it was wanted. */
    this.bytes = body;
    /** There was more of it. */
    this.truncated = truncated;
    /** What `Retry-After` says, in milliseconds from now, a BigInt. */
    this.retryAfterMs = retryAfterMs;
  }
  /** Whether the status is 2xx. */
  get ok() {
    return this.status >= 200 && this.status < 300;
  }
  /** All headers, names in lower case. */
  get headers() {
    return this.#headers;
  }
  /** The first header of this name. */
  header(name) {
    return this.#headers.find(([one]) => one === name.toLowerCase())?.[1];
  }
  /** The body as text. */
  get text() {
    return decoder.decode(this.bytes);
  }
  /** The body parsed as JSON. What makes no sense may make some next time: that is a `transient` failure. */
  json() {
    try {
      return JSON.parse(this.text);
    } catch (error) {
      const cut = this.truncated ? ", which was cut: ask for more with maxResponseBytes" : "";
      throw new Failure("transient", `${this.#asked}: the answer's body${cut} is not the JSON that is expected: ${error.message}`);
    }
  }
  /** The answer, where its status is a success; else it throws a `Failure` of the kind that `kindOf` gives. */
  orFail() {
    const kind = kindOf(this.status);
    if (kind !== undefined) throw this.failure(kind);
    return this;
  }
  /** The answer as a failure of a kind, for a plugin that knows better. */
  failure(kind) {
    const text = this.text.trim();
    const told = text === "" ? "" : text.length > SHOWN ? `: ${text.slice(0, SHOWN)}…` : `: ${text}`;
    const location = this.status >= 300 && this.status < 400 ? this.header("location") : undefined;
    const to = location === undefined ? "" : ` (to ${location})`;
    return new Failure(kind, `${this.#asked} answered ${this.status}${to}${told}`, { retryAfterMs: this.retryAfterMs });
  }
}

const MISCONFIGURED = [402, 404, 405, 406, 410, 411, 412, 414, 415, 417, 426, 428, 431, 451, 501, 505];

/**
 * The kind of failure that a status is, as destinations of logs mean it; undefined where it is a success. The table is in
 * docs/plugins/errors.md.
 */
export function kindOf(status) {
  if (status >= 200 && status < 300) return undefined;
  if (status === 429) return "throttled";
  if ([408, 409, 421, 423, 425].includes(status)) return "transient";
  if ([401, 403, 407, 511].includes(status)) return "auth";
  if (MISCONFIGURED.includes(status) || (status >= 300 && status < 400)) return "misconfigured";
  return status >= 400 && status < 500 ? "rejected" : "transient";
}

/**
 * Scheme, host and port of a URL, as the plan's `http` wants them. Throws a `ConfigFault` that says what is wrong with it.
 * @param {string} url
 * @param {string} [option] the option that it comes from
 */
export function destination(url, option = "url") {
  const form = "write an absolute URL, as in https://api.example.com/v1/logs";
  const [, scheme, authority] = /^(https?):\/\/([^/?#\\]*)/i.exec(url) ?? [];
  if (authority === undefined || authority === "" || /\s/.test(authority)) throw new ConfigFault(option, form);
  if (authority.includes("@")) {
    throw new ConfigFault(option, "a URL has no user and password here: name a credential that Wharf's configuration has");
  }
  return `${scheme.toLowerCase()}://${authority}`;
}

/** What of a URL may be shown: a path or a query may have secrets in it. */
function shown(url) {
  try {
    return destination(url);
  } catch {
    return "(no URL)";
  }
}
