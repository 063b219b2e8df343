"""Holds the limits of the local CloudWatch Logs server against AWS's own service description, as botocore brings it.

check_logs_rules.py RULES    a JSON file of the server's constants, and of the error codes that it gave, by operation
"""

import json
import re
import sys

from botocore.loaders import Loader

MODEL = Loader().load_service_model("logs", "service-2")
SHAPES, OPERATIONS = MODEL["shapes"], MODEL["operations"]
# Errors of the protocol and of every AWS service, which no operation lists:
# https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/CommonErrors.html
COMMON = {
    "AccessDeniedException", "ExpiredTokenException", "IncompleteSignatureException", "InternalFailure",
    "InvalidSignatureException", "MissingAuthenticationTokenException", "SerializationException", "ThrottlingException",
    "UnknownOperationException", "UnrecognizedClientException",
}


def text(shape, member=None):
    """A documentation string without its markup."""
    html = SHAPES[shape]["members"][member]["documentation"] if member else SHAPES[shape]["documentation"]
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", "", html))


def operation_text(name):
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", "", OPERATIONS[name]["documentation"]))


def number(pattern, where):
    found = re.search(pattern, where)
    if not found:
        sys.exit(f"AWS's description has no {pattern!r} any more: {where}")
    return int(found.group(1).replace(",", ""))


def compare(ours):
    put = operation_text("PutLogEvents")
    yield "call bytes", ours["max_call_bytes"], number(r"maximum batch size is ([\d,]+) bytes", put)
    yield "event overhead", ours["event_overhead_bytes"], number(r"plus ([\d,]+) bytes for each log event", put)
    yield "call events", ours["max_call_events"], SHAPES["InputLogEvents"]["max"]
    yield "call events, text", ours["max_call_events"], number(r"events in a batch is ([\d,]+)", put)
    yield "event bytes", ours["max_event_bytes"], number(r"no larger than (\d+) MB", put) << 20
    yield "hours ahead", ours["max_ahead_seconds"], number(r"more than (\d+) hours in the future", put) * 3600
    yield "days old", ours["max_age_seconds"], number(r"older than (\d+) days", put) * 86400
    yield "span", ours["max_call_span_seconds"], number(r"single batch cannot exceed (\d+) hours", put) * 3600
    yield "smallest message", 1, SHAPES["EventMessage"]["min"]
    yield "smallest time", 0, SHAPES["Timestamp"]["min"]
    yield "group name", ours["max_group_name_characters"], SHAPES["LogGroupName"]["max"]
    yield "group name pattern", ours["group_name_pattern"], SHAPES["LogGroupName"]["pattern"]
    yield "stream name", ours["max_stream_name_characters"], SHAPES["LogStreamName"]["max"]
    yield "stream name pattern", ours["stream_name_pattern"], SHAPES["LogStreamName"]["pattern"]
    yield "reserved prefix", True, f"can't start with the string {ours['reserved_group_prefix']}" in operation_text(
        "CreateLogGroup")
    yield "classes", ours["classes"], SHAPES["LogGroupClass"]["enum"]
    yield "default class", True, f"default of {ours['default_class']} is used" in text(
        "CreateLogGroupRequest", "logGroupClass")
    days = re.search(r"Possible values are: ([\d, and]+)", text("Days")).group(1)
    yield "retention", ours["retention_days"], [int(day) for day in re.findall(r"\d+", days)]
    yield "tags", ours["max_tags"], SHAPES["Tags"]["max"]
    yield "tag keys", ours["max_tag_key_characters"], SHAPES["TagKey"]["max"]
    yield "tag values", ours["max_tag_value_characters"], SHAPES["TagValue"]["max"]
    yield "KMS keys", ours["max_kms_key_characters"], SHAPES["KmsKeyId"]["max"]
    yield "groups", ours["max_groups"], number(r"up to ([\d,]+) log groups", operation_text("CreateLogGroup"))
    yield "CreateLogStream", ours["create_log_stream_per_second"], number(
        r"limit of (\d+) TPS", operation_text("CreateLogStream"))
    yield "DescribeLogStreams", ours["describe_log_streams_per_second"], number(
        r"limit of (\d+) transactions per second", operation_text("DescribeLogStreams"))
    yield "described", ours["max_described"], SHAPES["DescribeLimit"]["max"]
    yield "page", ours["max_page_events"], SHAPES["EventsLimit"]["max"]
    yield "page bytes", ours["max_page_bytes"], number(r"up to (\d+) MB of log events", operation_text(
        "GetLogEvents")) << 20
    yield "filtered streams", ours["max_filtered_streams"], SHAPES["InputLogStreamNames"]["max"]
    yield "filter pattern", ours["max_filter_pattern_characters"], SHAPES["FilterPattern"]["max"]
    keys = SHAPES["EntityKeyAttributes"]
    yield "key attributes", ours["key_attributes"], [keys["min"], keys["max"]]
    named = re.search(r"allowed attributes \(key names\): ([\w, ]+and \w+)", text("Entity", "keyAttributes")).group(1)
    yield "names of key attributes", ours["key_attribute_names"], re.findall(r"[A-Z]\w+", named)
    yield "attributes", ours["max_attributes"], SHAPES["EntityAttributes"]["max"]
    yield "attribute names", ours["max_attribute_name_characters"], SHAPES["EntityAttributesKey"]["max"]
    yield "attribute values", ours["max_attribute_value_characters"], SHAPES["EntityAttributesValue"]["max"]
    yield "key attribute values", ours["max_attribute_value_characters"], SHAPES["EntityKeyAttributesValue"]["max"]
    yield "entity errors", ours["entity_errors"], SHAPES["EntityRejectionErrorType"]["enum"]
    yield "inclusive", True, "inclusive" in text("RejectedLogEventsInfo", "tooNewLogEventStartIndex")
    yield "exclusive", True, "exclusive" in text("RejectedLogEventsInfo", "tooOldLogEventEndIndex")
    for name, codes in ours["errors"].items():
        modelled = {error["shape"] for error in OPERATIONS[name].get("errors", [])}
        yield f"errors of {name}", sorted(set(codes) - modelled - COMMON), []


def main():
    with open(sys.argv[1], encoding="utf-8") as rules:
        compared = list(compare(json.load(rules)))
    wrong = [f"{what}: {ours!r}, and AWS says {theirs!r}" for what, ours, theirs in compared if ours != theirs]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(compared)} rules are those of {MODEL['metadata']['uid']}")


main()
