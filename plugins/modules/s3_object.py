# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: s3_object
short_description: Manage files in S3
description:
  - Uploads a file to a bucket, unless the bucket has it already. Files are compared by their SHA-256, which S3 keeps.
  - Unlike M(amazon.aws.s3_object) it leaves the encryption to the bucket, finds an unchanged file in a bucket that encrypts with a key of
    KMS, returns no signed URL, and can plan for a bucket that does not exist yet.
  - A file goes with its bucket, see M(muster.ml.s3_bucket).
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - amazon.aws.common.modules
  - amazon.aws.region.modules
  - muster.ml.attributes
  - muster.ml.aws.support
options:
  bucket:
    description: Name of the bucket, which the account of the caller must own.
    type: str
    required: true
  name:
    description: Key of the object in the bucket.
    type: str
    required: true
  src:
    description: Path of the file, on the host that runs the module. It is read into memory.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Upload the script of a training
  muster.ml.s3_object:
    region: us-west-2
    bucket: example-training-artifacts
    name: elastic/train.py
    src: /home/me/train.py
"""

RETURN = r"""
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["s3:put_object (upload 1024 bytes)"]
object:
  description: Checksum, size and encryption of the object, in snake_case. Empty if it does not exist.
  returned: success
  type: dict
  sample: {key: train/train.py, content_length: 1024, server_side_encryption: AES256}
"""

import typing as t
from pathlib import Path

from ansible_collections.muster.ml.plugins.module_utils._aws.s3_object import S3Object
from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._edge.aws import aws_main, converger

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "bucket": {"type": "str", "required": True},
    "name": {"type": "str", "required": True},
    "src": {"type": "path", "required": True},
}


def resource(params: dict[str, t.Any]) -> S3Object:
    """The object that the options describe."""
    try:
        content = Path(params["src"]).read_bytes()
    except OSError as error:
        raise InvalidInput(f"src: {params['src']} cannot be read: {error.strerror}") from error
    return S3Object(params["bucket"], params["name"], params["account"], content)


execute = converger(resource, "object", with_caller=True)


def main() -> None:
    aws_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
