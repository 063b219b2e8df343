// What is wrong in a configuration.

/**
 * One thing wrong in the configuration. Throw one, or `new ConfigFaults([...])` for all at once.
 */
export class ConfigFault extends Error {
  /**
   * @param {string} option the option's name, or a JSON Pointer (`/urls/0`), or "" for the whole
   * @param {string} message what is wrong, and what to write instead
   */
  constructor(option, message) {
    super(message);
    this.name = "ConfigFault";
    this.path = option === "" || option.startsWith("/") ? option : `/${option.replaceAll("~", "~0").replaceAll("/", "~1")}`;
  }
}

/** Everything that is wrong in the configuration, all at once. */
export class ConfigFaults extends Error {
  /** @param {ConfigFault[]} faults */
  constructor(faults) {
    super(faults.map((fault) => fault.message).join("; "));
    this.name = "ConfigFaults";
    this.faults = faults;
  }
}
