// Numbers for the host's /metrics, as wharf_plugin_<name>. At most 100 series an output.

import { counterAdd, gaugeSet, histogramObserve } from "wharf:output/metrics@0.1.0";

const pairs = (labels) => Object.entries(labels).map(([name, value]) => [name, String(value)]);

/** Adds to a counter. */
export function count(name, value = 1, labels = {}) {
  counterAdd(name, BigInt(value), pairs(labels));
}
/** Sets a gauge. */
export function gauge(name, value, labels = {}) {
  gaugeSet(name, value, pairs(labels));
}
/** Observes a value in a histogram: seconds, bytes, or whatever the name says. */
export function observe(name, value, labels = {}) {
  histogramObserve(name, value, pairs(labels));
}
