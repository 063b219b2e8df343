// Why a batch was not delivered, and what the host's own errors become.

/**
 * Why a batch was not delivered. The plugin says which kind it was, the host decides when to try again.
 *
 * | kind | when |
 * |---|---|
 * | `throttled` | the service asked for less |
 * | `transient` | it may work next time |
 * | `auth` | the service refused who we are; never final |
 * | `misconfigured` | the destination or the configuration is wrong; retried slowly, shown loudly |
 * | `rejected` | the destination will never take this batch: all of it becomes dead letters |
 */
export class Failure extends Error {
  /**
   * @param {"throttled" | "transient" | "auth" | "misconfigured" | "rejected"} kind
   * @param {string} message what was tried, on what, what came back
   * @param {{ retryAfterMs?: number | bigint }} [more] what the service asked us to wait
   */
  constructor(kind, message, { retryAfterMs } = {}) {
    super(message);
    this.name = "Failure";
    this.kind = kind;
    this.retryAfterMs = retryAfterMs === undefined ? undefined : BigInt(retryAfterMs);
  }
}

/** What a host call threw: `{ payload: { tag, val } }`, as WIT's variants arrive. */
export function payloadOf(error) {
  return error !== null && typeof error === "object" && Object.hasOwn(error, "payload") ? error.payload : undefined;
}

/** Anything that was thrown in `deliver`, as what the component may throw; what is no failure stays as it is. */
export function toFailure(error) {
  const failure = error instanceof Failure ? error : failureOf(payloadOf(error));
  if (failure === undefined) return error;
  const { kind, message, retryAfterMs } = failure;
  return { payload: { kind, message, retryAfterMs } };
}

/** Nothing that the host says of itself makes a batch undeliverable: what is denied or invalid waits for a person. */
function failureOf(payload) {
  const { tag, val } = payload ?? {};
  switch (tag) {
    case "denied":
      return new Failure("misconfigured", `not granted: ${val}`);
    case "invalid":
      return new Failure("misconfigured", `the host refused the call: ${val}`);
    case "limit":
      return new Failure("transient", `limit: ${val}`);
    case "unavailable":
      return new Failure("transient", `the host cannot do this now: ${val}`);
    case "connection":
      return new Failure("transient", `no answer from ${val}`);
    case "credentials":
      return new Failure("auth", val);
    case "host":
      return failureOf(val);
    case "service": {
      const { status, code, message, retryAfterMs } = val;
      return new Failure(kindOfService(status), `the service answered ${status} ${code} (${message})`, { retryAfterMs });
    }
    default:
      return undefined;
  }
}

/** As the AWS services mean them, where the code does not tell. */
function kindOfService(status) {
  if (status === 429 || status === 503) return "throttled";
  if (status === 401 || status === 403) return "auth";
  if ([301, 302, 307, 308, 400, 404, 405, 501].includes(status)) return "misconfigured";
  if (status === 413) return "rejected";
  return "transient";
}
