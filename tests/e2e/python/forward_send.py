"""Sends events by fluent-logger, one a message; it asks for no acknowledgements, since it cannot.

forward_send.py HOST PORT PREFIX COUNT    (HOST may be unix://PATH)
Every event is {"log": "PREFIX-00000000 …", "n": number}; half of them have times with nanoseconds.
"""

import sys

from fluent import sender

host, port, prefix, count = sys.argv[1:]
half = int(count) // 2
for nanoseconds, numbers in [(False, range(half)), (True, range(half, int(count)))]:
    logger = sender.FluentSender("app", host=host, port=int(port), nanosecond_precision=nanoseconds)
    for number in numbers:
        event = {"log": f"{prefix}-{number:08} the quick brown fox", "n": number}
        if not logger.emit("events", event):
            sys.exit(f"event {number} was not sent: {logger.last_error}")
    logger.close()
print(f"sent {count}")
