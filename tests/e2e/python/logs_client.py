"""A CloudWatch Logs client that is not ours (boto3).

logs_client.py make-group ENDPOINT GROUP
logs_client.py read ENDPOINT GROUP    every event of every stream, in the order of GetLogEvents: one JSON line each, {stream, timestamp, message}
"""

import json
import sys

import boto3
from botocore.config import Config


def client(endpoint):
    return boto3.client(
        "logs",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="testsecret",
        config=Config(retries={"max_attempts": 8, "mode": "standard"}),
    )


def streams(logs, group):
    for page in logs.get_paginator("describe_log_streams").paginate(logGroupName=group):
        for stream in page["logStreams"]:
            yield stream["logStreamName"]


def events(logs, group, stream):
    token = {}
    while True:
        page = logs.get_log_events(logGroupName=group, logStreamName=stream, startFromHead=True, **token)
        yield from page["events"]
        if token.get("nextToken") == page["nextForwardToken"]:
            return
        token = {"nextToken": page["nextForwardToken"]}


def read(logs, group):
    for stream in streams(logs, group):
        for event in events(logs, group, stream):
            print(json.dumps({"stream": stream, "timestamp": event["timestamp"], "message": event["message"]}))


def main():
    command, endpoint, group = sys.argv[1:]
    logs = client(endpoint)
    if command == "make-group":
        logs.create_log_group(logGroupName=group)
    elif command == "read":
        read(logs, group)
    else:
        sys.exit(f"unknown command {command}")


if __name__ == "__main__":
    main()
