// The host's clocks, in nanoseconds, as BigInt.

import { monotonic as hostMonotonic, now as hostNow } from "wharf:output/clock@0.1.0";

/** Since 1970 UTC. May step. */
export const now = () => hostNow();
/** Since some moment of the host's process. Never steps back. */
export const monotonic = () => hostMonotonic();
