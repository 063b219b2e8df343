"""Holds the local S3 server against what an independent client (boto3) expects of S3.

check_server.py ENDPOINT     the server has the bucket "logs", and faults on keys that contain their names (see local_server.rs)
"""

import base64
import concurrent.futures
import sys
import time

import boto3
import botocore
from botocore.config import Config
from botocore.exceptions import ClientError, HTTPClientError

ENDPOINT = sys.argv[1]
BUCKET = "logs"


def client(secret="testsecret", key="test", timeout=30):
    return boto3.client(
        "s3",
        endpoint_url=ENDPOINT,
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        config=Config(
            s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, read_timeout=timeout, max_pool_connections=16
        ),
    )


s3 = client()


def code_of(call, **arguments):
    try:
        call(**arguments)
    except ClientError as error:
        return error.response["Error"]["Code"]
    except HTTPClientError as error:
        return type(error).__name__
    return "ok"


def put(key, body=b"body", **more):
    return code_of(s3.put_object, Bucket=BUCKET, Key=key, Body=body, **more)


def there(key):
    return code_of(s3.head_object, Bucket=BUCKET, Key=key) == "ok"


def expect(what, actual, *wanted):
    if actual not in wanted:
        sys.exit(f"{what}: {actual!r} instead of {' or '.join(map(repr, wanted))}")


def signatures():
    for name, other, code in [
        ("wrong secret", client(secret="wrong"), "SignatureDoesNotMatch"),
        ("unknown key", client(key="nobody"), "InvalidAccessKeyId"),
    ]:
        expect(name, code_of(other.put_object, Bucket=BUCKET, Key="auth", Body=b"x"), code)
    expect("another bucket's owner", put("auth", ExpectedBucketOwner="999999999999"), "AccessDenied")
    expect("missing bucket", code_of(s3.put_object, Bucket="not-there", Key="auth", Body=b"x"), "NoSuchBucket")
    expect("nothing was stored", there("auth"), False)


def attributes():
    expect("put", put("a/b c+%=ü", b"hello", Metadata={"batch": "1"}, Tagging="k=v&x=y%20z", ContentType="text/plain",
                      StorageClass="STANDARD_IA"), "ok")
    answer = s3.get_object(Bucket=BUCKET, Key="a/b c+%=ü", ChecksumMode="ENABLED")
    expect("body", answer["Body"].read(), b"hello")
    expect("metadata", answer["Metadata"], {"batch": "1"})
    expect("storage class", answer["StorageClass"], "STANDARD_IA")
    expect("tags", s3.get_object_tagging(Bucket=BUCKET, Key="a/b c+%=ü")["TagSet"],
           [{"Key": "k", "Value": "v"}, {"Key": "x", "Value": "y z"}])
    expect("bad storage class", put("bad", StorageClass="SOMETIMES"), "InvalidStorageClass")
    expect("11 tags", put("bad", Tagging="&".join(f"t{n}=x" for n in range(11))), "InvalidTag")
    expect("range", s3.get_object(Bucket=BUCKET, Key="a/b c+%=ü", Range="bytes=1-3")["Body"].read(), b"ell")


def checksums():
    for name in ["CRC32", "SHA1", "SHA256"]:
        expect(name, put(f"checksum-{name}", ChecksumAlgorithm=name), "ok")
        answer = s3.head_object(Bucket=BUCKET, Key=f"checksum-{name}", ChecksumMode="ENABLED")
        expect(f"{name} is kept", f"Checksum{name}" in answer, True)
    wrong = base64.b64encode(b"\0\0\0\1").decode()
    expect("wrong CRC32", put("wrong", ChecksumCRC32=wrong), "BadDigest")
    expect("wrong CRC32C", put("wrong", ChecksumCRC32C=wrong), "BadDigest")
    expect("wrong CRC64NVME", put("wrong", ChecksumCRC64NVME=base64.b64encode(bytes(8)).decode()), "BadDigest")
    expect("wrong MD5", put("wrong", ContentMD5=base64.b64encode(bytes(16)).decode()), "BadDigest")
    expect("nothing was stored", there("wrong"), False)


def conditional_writes():
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for number in range(10):
            key = f"race-{number}"
            race = [pool.submit(put, key, str(writer).encode(), IfNoneMatch="*") for writer in range(8)]
            codes = [racer.result() for racer in race]
            expect(f"winners of {key}", codes.count("ok"), 1)
            expect(f"losers of {key}", codes.count("PreconditionFailed"), 7)
            winner = str(codes.index("ok")).encode()
            expect(f"the winner's body in {key}", s3.get_object(Bucket=BUCKET, Key=key)["Body"].read(), winner)
    expect("an unconditional overwrite", put("race-0"), "AccessDenied")
    expect("If-Match on another ETag", put("race-0", IfMatch='"00"'), "PreconditionFailed")


def listing():
    for number in range(7):
        put(f"list/{number % 2}/{number}")
    pages = list(s3.get_paginator("list_objects_v2").paginate(
        Bucket=BUCKET, Prefix="list/", PaginationConfig={"PageSize": 3}))
    expect("pages", len(pages), 3)
    keys = [entry["Key"] for page in pages for entry in page["Contents"]]
    expect("keys", keys, sorted(f"list/{number % 2}/{number}" for number in range(7)))
    folders = s3.list_objects_v2(Bucket=BUCKET, Prefix="list/", Delimiter="/")["CommonPrefixes"]
    expect("folders", [folder["Prefix"] for folder in folders], ["list/0/", "list/1/"])


def multipart():
    big, small = b"b" * (5 << 20), b"s"

    def begin(key, **more):
        return s3.create_multipart_upload(Bucket=BUCKET, Key=key, **more)["UploadId"]

    def part(key, upload, number, body):
        answer = s3.upload_part(Bucket=BUCKET, Key=key, UploadId=upload, PartNumber=number, Body=body)
        return {"PartNumber": number} | {name: value for name, value in answer.items()
                                         if name == "ETag" or name.startswith("Checksum") and name != "ChecksumType"}

    def complete(key, upload, parts, **more):
        return code_of(s3.complete_multipart_upload, Bucket=BUCKET, Key=key, UploadId=upload,
                       MultipartUpload={"Parts": parts}, **more)

    upload = begin("parts", Metadata={"batch": "2"}, ChecksumAlgorithm="CRC32")
    first, second = part("parts", upload, 1, big), part("parts", upload, 2, small)
    expect("part 10001", code_of(s3.upload_part, Bucket=BUCKET, Key="parts", UploadId=upload, PartNumber=10001, Body=b"x"),
           "InvalidArgument")
    expect("listed parts", [row["Size"] for row in s3.list_parts(Bucket=BUCKET, Key="parts", UploadId=upload)["Parts"]],
           [5 << 20, 1])
    expect("listed uploads", [row["Key"] for row in s3.list_multipart_uploads(Bucket=BUCKET, Prefix="par")["Uploads"]],
           ["parts"])
    expect("wrong order", complete("parts", upload, [second, first]), "InvalidPartOrder")
    expect("wrong ETag", complete("parts", upload, [first, second | {"ETag": '"00"'}]), "InvalidPart")
    expect("no part checksums", complete("parts", upload, [{"PartNumber": 1, "ETag": first["ETag"]}]), "InvalidRequest")
    expect("complete", complete("parts", upload, [first, second], IfNoneMatch="*"), "ok")
    answer = s3.get_object(Bucket=BUCKET, Key="parts")
    expect("its body", answer["Body"].read(), big + small)
    expect("its metadata", answer["Metadata"], {"batch": "2"})

    upload = begin("parts")
    parts = [part("parts", upload, 1, small)]
    expect("complete on an existing key", complete("parts", upload, parts, IfNoneMatch="*"), "PreconditionFailed")
    expect("the upload is kept", len(s3.list_parts(Bucket=BUCKET, Key="parts", UploadId=upload)["Parts"]), 1)
    s3.abort_multipart_upload(Bucket=BUCKET, Key="parts", UploadId=upload)
    expect("after abort", code_of(s3.list_parts, Bucket=BUCKET, Key="parts", UploadId=upload), "NoSuchUpload")

    upload = begin("small-parts")
    parts = [part("small-parts", upload, number, small) for number in (1, 2)]
    expect("small parts", complete("small-parts", upload, parts), "EntityTooSmall")
    s3.abort_multipart_upload(Bucket=BUCKET, Key="small-parts", UploadId=upload)

    upload = begin("inside-200")
    parts = [part("inside-200", upload, 1, small)]
    expect("an error inside a 200", complete("inside-200", upload, parts) in ("ok", "200"), False)
    expect("it was not carried out", there("inside-200"), False)
    s3.abort_multipart_upload(Bucket=BUCKET, Key="inside-200", UploadId=upload)


def faults():
    for name in ["SlowDown", "InternalError", "AccessDenied", "ExpiredToken", "ConditionalRequestConflict", "NoSuchBucket"]:
        expect(name, put(f"fault-{name}"), name)
        expect(f"nothing was stored under {name}", there(f"fault-{name}"), False)
    # What a client makes of an answer that comes before its body is read depends on timing.
    expect("early", put("fault-early", b"x" * (8 << 20)), "SlowDown", "ConnectionClosedError", "EndpointConnectionError")
    expect("reset", put("fault-reset", b"x" * (8 << 20)), "ConnectionClosedError", "EndpointConnectionError")
    expect("nothing was stored", there("fault-reset"), False)
    expect("lost reply", put("fault-lost"), "ConnectionClosedError")
    expect("it was stored", there("fault-lost"), True)
    began = time.monotonic()
    expect("stall", put("fault-stall"), "ok")
    expect("it took a while", time.monotonic() - began >= 0.5, True)
    expect("stalled reply", code_of(client(timeout=0.5).put_object, Bucket=BUCKET, Key="fault-late", Body=b"x"),
           "ReadTimeoutError")
    expect("it was stored", there("fault-late"), True)


for check in [signatures, attributes, checksums, conditional_writes, listing, multipart, faults]:
    check()
    print(f"{check.__name__}: as S3 does (boto3 {boto3.__version__}, botocore {botocore.__version__})")
