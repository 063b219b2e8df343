// Counters that never repeat and never go back, whatever stops the host ($INDEX). Numbers are BigInt.

import * as host from "wharf:output/sequence@0.1.0";

/** The batch's number in this counter: the same for ever, in every attempt. */
export function assign(name, batch, start = 0n) {
  return host.assign(name, batch.raw, BigInt(start));
}
/** Another number, where `taken` proved to be used by somebody outside. */
export function reassign(name, batch, taken) {
  return host.reassign(name, batch.raw, BigInt(taken));
}
