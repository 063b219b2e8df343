"""Holds the local CloudWatch Logs server against what an independent client (boto3) expects of CloudWatch Logs.

check_logs_server.py ENDPOINT     the server has the bucket "logs", and faults on streams that are named after them (see local_logs.rs)
"""

import json
import sys
import time

import boto3
import botocore
from botocore.config import Config
from botocore.exceptions import ClientError, HTTPClientError
from botocore.parsers import ResponseParserError

import logs_client

ENDPOINT = sys.argv[1]
GROUP = "/check/group"
DAY = 86_400_000


def client(service="logs", secret="testsecret", key="test", region="us-east-1", timeout=30):
    return boto3.client(
        service,
        endpoint_url=ENDPOINT,
        region_name=region,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        # What boto3 would find wrong by itself shall reach the server.
        config=Config(retries={"total_max_attempts": 1}, read_timeout=timeout, parameter_validation=False),
    )


logs = client()


def now():
    return int(time.time() * 1000)


def code_of(call, **arguments):
    try:
        call(**arguments)
    except ClientError as error:
        return error.response["Error"]["Code"]
    except (HTTPClientError, ResponseParserError) as error:
        return type(error).__name__
    return "ok"


def expect(what, actual, *wanted):
    if actual not in wanted:
        sys.exit(f"{what}: {actual!r} instead of {' or '.join(map(repr, wanted))}")


def make(stream, group=GROUP):
    logs.create_log_stream(logGroupName=group, logStreamName=stream)


def put(stream, *events, group=GROUP, **more):
    events = [{"timestamp": timestamp, "message": message} for timestamp, message in events]
    return logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events, **more)


def put_code(stream, *events, **more):
    return code_of(lambda: put(stream, *events, **more))


def check_members(value, shape, path):
    """Whether an answer has only members that AWS's description knows."""
    if shape.type_name == "structure":
        for name, member in value.items():
            expect(f"{path}.{name} is known to AWS", name in shape.members, True)
            check_members(member, shape.members[name], f"{path}.{name}")
    elif shape.type_name == "list":
        for member in value:
            check_members(member, shape.member, path)
    else:
        python = {"string": str, "long": int, "integer": int, "boolean": bool, "map": dict}[shape.type_name]
        expect(f"{path} is a {shape.type_name}", type(value), python)


def check_answer(http_response, model, **_):
    if http_response.status_code == 200 and http_response.content:
        check_members(json.loads(http_response.content), model.output_shape, model.name)


logs.meta.events.register("after-call.cloudwatch-logs", check_answer)


def groups():
    logs.create_log_group(logGroupName=GROUP, tags={"team": "a"}, logGroupClass="STANDARD", kmsKeyId="arn:aws:kms:x:y:key/z")
    expect("again", code_of(logs.create_log_group, logGroupName=GROUP), "ResourceAlreadyExistsException")
    expect("bad name", code_of(logs.create_log_group, logGroupName="a b"), "InvalidParameterException")
    expect("bad class", code_of(logs.create_log_group, logGroupName="x", logGroupClass="Y"), "InvalidParameterException")
    logs.put_retention_policy(logGroupName=GROUP, retentionInDays=7)
    expect("bad retention", code_of(logs.put_retention_policy, logGroupName=GROUP, retentionInDays=8),
           "InvalidParameterException")
    group = logs.describe_log_groups(logGroupNamePrefix=GROUP)["logGroups"][0]
    expect("retention", group["retentionInDays"], 7)
    expect("KMS key", group["kmsKeyId"], "arn:aws:kms:x:y:key/z")
    logs.tag_resource(resourceArn=group["logGroupArn"], tags={"more": "b"})
    expect("tags", logs.list_tags_for_resource(resourceArn=group["logGroupArn"])["tags"], {"team": "a", "more": "b"})
    logs.untag_resource(resourceArn=group["logGroupArn"], tagKeys=["more"])
    expect("tags", logs.list_tags_log_group(logGroupName=GROUP)["tags"], {"team": "a"})
    logs.delete_retention_policy(logGroupName=GROUP)
    expect("no retention", "retentionInDays" in logs.describe_log_groups(logGroupNamePrefix=GROUP)["logGroups"][0], False)
    logs.create_log_group(logGroupName="/check/other")
    logs.delete_log_group(logGroupName="/check/other")
    expect("gone", code_of(logs.delete_log_group, logGroupName="/check/other"), "ResourceNotFoundException")


def signatures():
    for name, other, code in [
        ("wrong secret", client(secret="wrong"), "InvalidSignatureException"),
        ("unknown key", client(key="nobody"), "UnrecognizedClientException"),
        ("wrong region", client(region="eu-north-1"), "InvalidSignatureException"),
    ]:
        expect(name, code_of(other.describe_log_groups), code)


def one_port_for_both():
    s3 = client("s3")
    s3.put_object(Bucket="logs", Key="beside/logs", Body=b"x")
    expect("S3 is there too", s3.get_object(Bucket="logs", Key="beside/logs")["Body"].read(), b"x")


def events():
    make("events")
    base = now()
    expect("empty", put_code("events"), "InvalidParameterException")
    expect("order", put_code("events", (base, "b"), (base - 1, "a")), "InvalidParameterException")
    expect("a megabyte and one", put_code("events", (base, "x" * 1_048_551)), "InvalidParameterException")
    expect("no stream", put_code("nothing", (base, "x")), "ResourceNotFoundException")
    answer = put("events", (base - 15 * DAY, "old"), (base, "ü\0😀"), (base + DAY // 8, "new"))
    expect("rejected", answer["rejectedLogEventsInfo"], {"tooOldLogEventEndIndex": 1, "tooNewLogEventStartIndex": 2})
    answer = put("events", (base, "again"), entity={"keyAttributes": {"Type": "Shop", "Name": "a"}})
    expect("entity", answer["rejectedEntityInfo"], {"errorType": "InvalidTypeValue"})
    expect("read", [(event["timestamp"], event["message"]) for event in logs_client.events(logs, GROUP, "events")],
           [(base, "ü\0😀"), (base, "again")])


def reading():
    base = now() - 60_000
    for stream in ["read-a", "read-b"]:
        make(stream)
        for call in range(3):
            put(stream, *[(base + 10 * call + n, f"{stream} {call} {n}") for n in range(10)])
    read = [event["message"] for event in logs_client.events(logs, GROUP, "read-a")]
    expect("all, once, in order", read, [f"read-a {call} {n}" for call in range(3) for n in range(10)])
    pages = list(logs.get_paginator("filter_log_events").paginate(
        logGroupName=GROUP, logStreamNamePrefix="read-", filterPattern='"1 7"', PaginationConfig={"PageSize": 1}))
    expect("filtered", [event["message"] for page in pages for event in page["events"]], ["read-a 1 7", "read-b 1 7"])
    names = [row["logStreamName"] for page in logs.get_paginator("describe_log_streams").paginate(
        logGroupName=GROUP, logStreamNamePrefix="read-", PaginationConfig={"PageSize": 1}) for row in page["logStreams"]]
    expect("streams", names, ["read-a", "read-b"])


def members():
    """Every member of every request that AWS's description knows is known to the server, under that name and with that type."""

    def example(shape):
        if shape.type_name == "structure":
            return {name: example(member) for name, member in shape.members.items()}
        if shape.type_name == "list":
            return [example(shape.member)]
        if shape.type_name == "map":
            return {"k": "v"}
        return {"string": "text", "long": 1, "integer": 1, "boolean": False}[shape.type_name]

    tried = 0
    for name in ["CreateLogGroup", "CreateLogStream", "DeleteLogGroup", "DeleteLogStream", "PutRetentionPolicy",
                 "DeleteRetentionPolicy", "PutLogEvents", "DescribeLogGroups", "DescribeLogStreams", "GetLogEvents",
                 "FilterLogEvents", "TagResource", "UntagResource", "ListTagsForResource", "ListTagsLogGroup"]:
        call = getattr(logs, botocore.xform_name(name))
        for member, shape in logs.meta.service_model.operation_model(name).input_shape.members.items():
            code = code_of(call, **{member: example(shape)})
            expect(f"{name}.{member} is known", code in ("SerializationException", "UnknownOperationException"), False)
            tried += 1
    expect("members were tried", tried > 40, True)


def faults():
    base = now()
    for code in ["ThrottlingException", "ServiceUnavailableException", "InternalFailure", "UnrecognizedClientException",
                 "ExpiredTokenException", "AccessDeniedException"]:
        make(f"fault-{code}")
        expect(code, put_code(f"fault-{code}", (base, "x")), code)
        expect(f"nothing was stored under {code}", list(logs_client.events(logs, GROUP, f"fault-{code}")), [])
    for name, answer, stored in [("lost", "ConnectionClosedError", 1), ("reset", "ConnectionClosedError", 0),
                                 ("late", "ReadTimeoutError", 1)]:
        make(f"fault-{name}")
        call = client(timeout=0.5).put_log_events
        event = {"timestamp": base, "message": "x"}
        expect(name, code_of(call, logGroupName=GROUP, logStreamName=f"fault-{name}", logEvents=[event]), answer)
        expect(f"stored after {name}", len(list(logs_client.events(logs, GROUP, f"fault-{name}"))), stored)
    make("fault-partial")
    # botocore takes what is no JSON for an answer without members.
    event = {"timestamp": base, "message": "x"}
    try:
        answer = client().put_log_events(logGroupName=GROUP, logStreamName="fault-partial", logEvents=[event])
    except (HTTPClientError, ResponseParserError):
        answer = {}
    expect("an answer that ends early is not whole", "nextSequenceToken" in answer, False)
    expect("stored", len(list(logs_client.events(logs, GROUP, "fault-partial"))), 1)
    make("fault-vanish")
    expect("vanished", put_code("fault-vanish", (base, "x")), "ResourceNotFoundException")
    make("fault-vanish")
    make("fault-reject")
    answer = put("fault-reject", *[(base, str(n)) for n in range(5)])
    expect("rejected", answer["rejectedLogEventsInfo"], {"tooOldLogEventEndIndex": 2, "tooNewLogEventStartIndex": 4})
    expect("the others", [event["message"] for event in logs_client.events(logs, GROUP, "fault-reject")], ["2", "3"])


for check in [groups, signatures, one_port_for_both, events, reading, members, faults]:
    check()
    print(f"{check.__name__}: as CloudWatch Logs does (boto3 {boto3.__version__}, botocore {botocore.__version__})")
