"""What is wrong in a configuration."""

from __future__ import annotations


class ConfigFault(Exception):
    """One thing wrong in the configuration: the option's name (or a JSON Pointer, or "" for the whole), and what to write instead.
    Raise one, or `ConfigFaults([...])` for all at once."""

    def __init__(self, option: str, message: str):
        super().__init__(message)
        self.message = message
        plain = option == "" or option.startswith("/")
        self.path = option if plain else "/" + option.replace("~", "~0").replace("/", "~1")


class ConfigFaults(Exception):
    """Everything that is wrong in the configuration, all at once."""

    def __init__(self, faults: list[ConfigFault]):
        super().__init__("; ".join(fault.message for fault in faults))
        self.faults = faults
