# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: s3_bucket
short_description: Manage private S3 buckets
description:
  - Creates, updates and deletes buckets that only the account can use. Public access is blocked, objects are encrypted, and requests
    without TLS are refused. None of the three can be disabled.
  - Unlike M(amazon.aws.s3_bucket) it shows every request in check mode.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - amazon.aws.common.modules
  - amazon.aws.region.modules
  - amazon.aws.tags
  - muster.ml.attributes
  - muster.ml.aws
  - muster.ml.aws.support
options:
  name:
    description: Name of the bucket, unique in all of AWS.
    type: str
    required: true
  versioning:
    description: Keep older versions of objects.
    type: bool
  encryption_key_arn:
    description: KMS key for the encryption of objects. Defaults to the key of S3.
    type: str
  delete_data:
    description: Delete the bucket with its objects, with O(state=absent). Otherwise a bucket that is not empty is kept.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Create a bucket for the scripts of the trainings
  muster.ml.s3_bucket:
    region: us-west-2
    name: example-training-artifacts
    versioning: true
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "S3 bucket my-models was kept: it holds objects (model.pt); delete_data: true deletes it"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["s3:create_bucket (create)", "s3:put_bucket_policy (only over TLS)"]
bucket:
  description: Bucket with its settings. Empty if it does not exist.
  returned: success
  type: dict
  sample: {name: my-models, bucket_region: eu-west-1, encryption: {sse_algorithm: AES256}, versioning: false}
"""

from ansible_collections.muster.ml.plugins.module_utils._aws.s3_bucket import S3Bucket
from ansible_collections.muster.ml.plugins.module_utils._edge.aws import aws_main, converger, spec_of
from ansible_collections.muster.ml.plugins.module_utils._edge.cloud import text

ARGUMENT_SPEC = spec_of(S3Bucket, "region", "account", "partition", encryption_key_arn=text(no_log=False))
execute = converger(S3Bucket, "bucket", with_caller=True)


def main() -> None:
    aws_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()
