# SPDX-License-Identifier: GPL-3.0-or-later
"""In a pod: read the output of every experiment from the store with boto3, and print the accuracy that each has written."""

from __future__ import annotations

import io
import json
import sys
import tarfile

import boto3

URL, BUCKET = sys.argv[1:]

s3 = boto3.client("s3", endpoint_url=URL, region_name="us-east-1")
found = {}
for row in s3.list_objects_v2(Bucket=BUCKET, Prefix="experiments/")["Contents"]:
    _folder, name, file = row["Key"].split("/")
    if file != "output.tar":
        continue
    packed = io.BytesIO(s3.get_object(Bucket=BUCKET, Key=row["Key"])["Body"].read())
    with tarfile.open(fileobj=packed) as archive:
        texts = [archive.extractfile(member) for member in archive.getmembers() if member.isfile()]
        lines = [line for text in texts if text for line in text.read().decode(errors="replace").splitlines()]
    accuracies = [json.loads(line)["experiment"]["accuracy"] for line in lines if '{"experiment": {"accuracy"' in line]
    found[name] = accuracies[-1] if accuracies else None
sys.stdout.write(json.dumps(found))
