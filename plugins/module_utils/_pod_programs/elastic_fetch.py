# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fetch the script of an elastic job from its bucket: fetch.py URL FILE

The image's own client does it: aws or boto3 for s3://, gcloud, gsutil or google-cloud-storage for gs://.

Python 3.7 is enough, as for launch.py.
"""

from __future__ import annotations

import os
import shutil
import sys

CLIENTS = {
    "s3": (("aws", "s3", "cp", "--no-progress"),),
    "gs": (("gcloud", "storage", "cp"), ("gsutil", "cp")),
}


def fetch_by_program(scheme: str, url: str, path: str) -> None:
    """Become the first program that is there; return where none is."""
    for program, *options in CLIENTS.get(scheme, ()):
        if shutil.which(program):
            os.execvp(program, [program, *options, url, path])


def fetch_by_library(scheme: str, url: str, path: str) -> None:
    """Download with the cloud's Python library."""
    bucket, _slash, key = url.partition("://")[2].partition("/")
    if scheme == "s3":
        import boto3

        boto3.client("s3").download_file(bucket, key, path)
    elif scheme == "gs":
        from google.cloud import storage

        storage.Client().bucket(bucket).blob(key).download_to_filename(path)
    else:
        raise SystemExit(f"{url}: only s3 and gs are understood")


def main() -> None:
    """Fetch what the command line names."""
    url, path = sys.argv[1:]
    scheme = url.partition("://")[0]
    fetch_by_program(scheme, url, path)
    fetch_by_library(scheme, url, path)


if __name__ == "__main__":
    main()
