# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of variables that their argument specs take, and that the roles or a cloud would refuse or misread later."""

from __future__ import annotations

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._aws.plan import refuse_tags
from ansible_collections.muster.ml.plugins.module_utils._cloud.texts import texts
from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._gcp import labels

AS_TEXT: t.Final = ("muster_only", "muster_systems")
"""Lists that may be given as text with commas: ``-e muster_systems=elastic``, and surveys of AWX."""
_FORMS: t.Final = {"list": '["a", "b"]', "dict": '{"key": "value"}'}


def refused(name: str, value: object, spec: t.Mapping[str, t.Any]) -> str:
    """Say why the value of a variable is refused, as the rest of a sentence that begins with its name; empty for a good value."""
    kind = str(spec.get("type", "str"))
    if isinstance(value, str) and kind in _FORMS and name not in AS_TEXT:
        # An argument spec takes text for both; a template that reads the variable gets the text, letter by letter.
        written = f'{{"{name}": {_FORMS[kind]}}}'
        return f"must be a {kind}, not text. With -e it is written as JSON: -e '{written}'."
    try:
        if isinstance(value, dict) and name == "muster_aws_tags":
            # IAM takes less than the others, and the same tags are on roles of IAM.
            refuse_tags(name, texts(name, value), "iam")
        if isinstance(value, dict) and name == "muster_gcp_labels":
            labels.refuse_labels(name, labels.texts(value, name))
    except InvalidInput as error:
        return f"has what the cloud refuses: {str(error).removeprefix(f'{name}: ')}."
    return ""
