"""An S3 client that is not ours (boto3).

s3_client.py make-bucket ENDPOINT BUCKET
s3_client.py read ENDPOINT BUCKET FOLDER   every object, checksums verified, as a file of its key; prints one JSON line an object
"""

import json
import pathlib
import sys

import boto3
from botocore.config import Config


def client(endpoint):
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="testsecret",
        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 5, "mode": "standard"}),
    )


def read(s3, bucket, folder):
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for entry in page.get("Contents", []):
            answer = s3.get_object(Bucket=bucket, Key=entry["Key"], ChecksumMode="ENABLED")
            path = pathlib.Path(folder) / entry["Key"].lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(answer["Body"].read())
            print(json.dumps({
                "key": entry["Key"],
                "size": entry["Size"],
                "etag": answer["ETag"],
                "metadata": answer["Metadata"],
                "content_type": answer.get("ContentType"),
                "content_encoding": answer.get("ContentEncoding"),
            }))


def main():
    command, endpoint, bucket, *rest = sys.argv[1:]
    s3 = client(endpoint)
    if command == "make-bucket":
        s3.create_bucket(Bucket=bucket)
    elif command == "read":
        read(s3, bucket, rest[0])
    else:
        sys.exit(f"unknown command {command}")


if __name__ == "__main__":
    main()
