"""Writes a few events by an independent client (boto3), one of them twice.

write_logs.py ENDPOINT GROUP
"""

import sys
import time

import logs_client

endpoint, group = sys.argv[1:]
logs = logs_client.client(endpoint)
logs.create_log_group(logGroupName=group)
base = int(time.time() * 1000)
for stream in ["a", "b"]:
    logs.create_log_stream(logGroupName=group, logStreamName=stream)
    events = [{"timestamp": base + n, "message": f"{stream} {n}"} for n in range(3)]
    logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events[:2])
    if stream == "a":
        logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events[1:2])
    logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events[2:])
