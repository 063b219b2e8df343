// Lines for the host's log. Rate limited. `console.log` works too (standard output is written as info, standard error as warn).

import { maxLevel, write } from "wharf:output/log@0.1.0";

const LEVELS = ["error", "warn", "info", "debug", "trace"];

/** Whether lines of this level are written at all: what is beyond need not be formatted. */
export function enabled(level) {
  return LEVELS.indexOf(level) <= LEVELS.indexOf(maxLevel());
}

/** @param {{ [name: string]: unknown }} [fields] */
export function error(message, fields) {
  line("error", message, fields);
}
/** @param {{ [name: string]: unknown }} [fields] */
export function warn(message, fields) {
  line("warn", message, fields);
}
/** @param {{ [name: string]: unknown }} [fields] */
export function info(message, fields) {
  line("info", message, fields);
}
/** @param {{ [name: string]: unknown }} [fields] */
export function debug(message, fields) {
  line("debug", message, fields);
}
/** @param {{ [name: string]: unknown }} [fields] */
export function trace(message, fields) {
  line("trace", message, fields);
}

function line(level, message, fields = {}) {
  write(level, String(message), Object.entries(fields).map(([name, value]) => [name, String(value)]));
}
