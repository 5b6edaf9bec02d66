# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: s3_bucket
short_description: Private buckets of S3 that converge
version_added: 0.2.0
description:
  - Makes, changes and deletes a bucket that is nobody's but the account's. Public access is blocked, objects are encrypted, and requests
    without TLS are refused; none of the three can be switched off.
  - Unlike M(amazon.aws.s3_bucket) it has check mode, and shows every request beforehand.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - amazon.aws.common.modules
  - amazon.aws.region.modules
  - amazon.aws.tags
  - amazon.aws.boto3
  - muster.ml.attributes
  - muster.ml.aws
options:
  name:
    description: Name of the bucket, unique in all of AWS.
    type: str
    required: true
  versioning:
    description: Whether older versions of objects are kept.
    type: bool
  encryption_key_arn:
    description: KMS key that objects are encrypted with; S3's own if it is left out.
    type: str
  delete_objects:
    description: With O(state=absent), whether the objects in it are deleted, too. Without it a bucket that holds something is kept.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Scripts of the trainings
  muster.ml.s3_bucket:
    region: us-west-2
    name: example-training-artifacts
    versioning: true
"""

RETURN = r"""
kept:
  description: That it was to be absent and was kept, and why. A warning says the same.
  returned: when it was kept
  type: str
actions:
  description: The requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
bucket:
  description: The bucket; empty where it does not exist.
  returned: success
  type: dict
"""

import dataclasses
import typing as t

from ansible_collections.muster.ml.plugins.module_utils._aws.s3_bucket import S3Bucket
from ansible_collections.muster.ml.plugins.module_utils._edge.aws import STATE, TAGS, aws_main

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    **STATE,
    **TAGS,
    "name": {"type": "str", "required": True},
    "versioning": {"type": "bool"},
    "encryption_key_arn": {"type": "str", "no_log": False},
    "delete_objects": {"type": "bool", "default": False},
}


def resource(params: dict[str, t.Any]) -> S3Bucket:
    """The bucket that the options describe."""
    return S3Bucket(**{field.name: params[field.name] for field in dataclasses.fields(S3Bucket)})


def main() -> None:
    """Run as a module."""
    aws_main(ARGUMENT_SPEC, resource, "bucket", with_caller=True)


if __name__ == "__main__":
    main()
