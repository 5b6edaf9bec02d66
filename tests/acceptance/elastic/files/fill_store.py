# SPDX-License-Identifier: GPL-3.0-or-later
"""In the pod of the store: make a user, a bucket that it may read, and the objects of the training; by boto3, no code of ours signs."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import boto3

URL, BUCKET = "http://127.0.0.1:7070", "training"
OWNER, READER = os.environ["ROOT_ACCESS_KEY"], os.environ["AWS_ACCESS_KEY_ID"]
FILES = Path("/srv")

admin = ["versitygw", "admin", "--access", OWNER, "--secret", os.environ["ROOT_SECRET_KEY"], "--endpoint-url", URL]
user = ["--access", READER, "--secret", os.environ["AWS_SECRET_ACCESS_KEY"], "--role", "user"]
# What it says may repeat the keys.
if subprocess.run([*admin, "create-user", *user], capture_output=True, check=False).returncode:
    sys.exit("versitygw did not create the user")

keys = {"aws_access_key_id": OWNER, "aws_secret_access_key": os.environ["ROOT_SECRET_KEY"]}
s3 = boto3.client("s3", endpoint_url=URL, region_name="us-east-1", **keys)
s3.create_bucket(Bucket=BUCKET)
reads = {"Effect": "Allow", "Principal": {"AWS": [READER]}, "Action": ["s3:GetObject"], "Resource": [f"arn:aws:s3:::{BUCKET}/*"]}
s3.put_bucket_policy(Bucket=BUCKET, Policy=json.dumps({"Version": "2012-10-17", "Statement": [reads]}))
made, rows = io.BytesIO(), (FILES / "digits.csv.gz").read_bytes()
with tarfile.open(fileobj=made, mode="w") as archive:
    member = tarfile.TarInfo("digits.csv.gz")
    member.size = len(rows)
    archive.addfile(member, io.BytesIO(rows))
s3.put_object(Bucket=BUCKET, Key="digits.tar", Body=made.getvalue())
s3.put_object(Bucket=BUCKET, Key="train.py", Body=(FILES / "train.py").read_bytes())
sys.stdout.write(hashlib.sha256(made.getvalue()).hexdigest())
