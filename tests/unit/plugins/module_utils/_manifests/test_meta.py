# SPDX-License-Identifier: GPL-3.0-or-later
"""Names, quantities, hashes."""

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._manifests import meta


@pytest.mark.parametrize("value", ["1", 1, 0.5, "500m", "12Gi", "12G", "1e3", "0.1", "100k"])
def test_quantities_that_kubernetes_takes(value: object) -> None:
    assert meta.quantity(value, "memory") == str(value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("12 GB", "memory: '12 GB' is not a quantity. Write 12G (powers of 1000) or 12Gi (powers of 1024)."),
        ("12gb", "memory: '12gb' is not a quantity."),
        ("4K", "memory: '4K' is not a quantity. Write 4k (powers of 1000) or 4Ki (powers of 1024)."),
        ("-1", "memory: '-1' is not a quantity."),
        ("", "memory: '' is not a quantity."),
        (True, "memory: 'True' is not a quantity."),
    ],
)
def test_other_quantities_are_refused_with_the_right_spelling(value: object, said: str) -> None:
    with pytest.raises(InvalidInput) as error:
        meta.quantity(value, "memory")
    assert str(error.value).startswith(said)


@pytest.mark.parametrize("name", ["Adult", "1job", "job-", "a_b", "", "a" * 53])
def test_names_that_cannot_be_a_service(name: str) -> None:
    with pytest.raises(InvalidInput):
        meta.check_name(name, "name", limit=meta.STATEFULSET_NAME_MAX, service=True)


def test_an_owner_always_fits_into_a_label() -> None:
    assert meta.owner("persia_job", "adult") == "persia_job.adult"
    long, other = meta.owner("training_statefulset", "a" * 52), meta.owner("training_statefulset", "a" * 51 + "b")
    assert len(long) == 63
    assert long != other


def test_an_unknown_key_is_answered_with_the_near_one() -> None:
    with pytest.raises(InvalidInput, match=r"unknown key 'readonly'\. Did you mean 'readOnly'"):
        meta.refuse_unknown_keys({"readonly": True}, ["readOnly", "name"], "mount")


def test_the_fingerprint_does_not_depend_on_order() -> None:
    assert meta.spec_hash({"a": 1, "b": [2]}) == meta.spec_hash({"b": [2], "a": 1})
    assert meta.spec_hash({"a": 1}) != meta.spec_hash({"a": "1"})


@pytest.mark.parametrize("value", [0, -1, 70000, True, "80"])
def test_what_is_no_port(value: object) -> None:
    with pytest.raises(InvalidInput):
        meta.check_port(value, "port")  # type: ignore[arg-type]
