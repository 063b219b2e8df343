"""Sends messages by logging.handlers.SysLogHandler.

syslog_send.py HOW WHERE PREFIX COUNT    (HOW is tcp or udp with a port as WHERE, or unix with a path)
"""

import logging
import logging.handlers
import socket
import sys

how, where, prefix, count = sys.argv[1:]
address = where if how == "unix" else ("127.0.0.1", int(where))
kind = socket.SOCK_STREAM if how == "tcp" else socket.SOCK_DGRAM
handler = logging.handlers.SysLogHandler(address, facility="local1", socktype=kind)
logger = logging.getLogger("e2e")
logger.addHandler(handler)
for number in range(int(count)):
    logger.warning("%s-%08d the quick brown fox é", prefix, number)
handler.close()
