# SPDX-License-Identifier: GPL-3.0-or-later
"""A sensitive value cannot be shown by forgetting that it is one."""

import copy
import dataclasses
import importlib.util
import itertools
import json
import pickle
import traceback

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core import sensitive
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive, printable, revealed

SECRET = "hunter2-hunter2"


@dataclasses.dataclass(frozen=True)
class Holder:
    token: Sensitive


def raised() -> str:
    try:
        raise ValueError(Sensitive(SECRET), {"a": [Sensitive(SECRET)]})
    except ValueError:
        return traceback.format_exc()


@pytest.mark.parametrize(
    "text",
    [
        str(Sensitive(SECRET)),
        repr(Sensitive(SECRET)),
        f"{Sensitive(SECRET)}",
        f"{Sensitive(SECRET):>40}",
        "%s %r" % (Sensitive(SECRET), Sensitive(SECRET)),  # noqa: UP031  # this way of formatting is what is tried
        "{0}".format(Sensitive(SECRET)),  # noqa: UP030, UP032  # and this one
        str({"a": [Sensitive(SECRET)]}),
        str(Holder(Sensitive(SECRET))),
        str(printable({"a": [Sensitive(SECRET)], "b": (Sensitive({"c": SECRET}),)})),
        raised(),
    ],
    ids=itertools.count(),  # the texts differ from run to run, as they should
)
def test_no_text_shows_it(text: str) -> None:
    assert SECRET not in text
    assert "redacted" in text


def test_what_writes_values_down_refuses_it() -> None:
    with pytest.raises(TypeError):
        json.dumps({"a": Sensitive(SECRET)})
    with pytest.raises(TypeError):
        pickle.dumps(Sensitive(SECRET))


def test_what_is_printable_can_be_written_down() -> None:
    shown = json.dumps(printable({"a": [Sensitive(SECRET)], "b": (Sensitive(SECRET),)}))
    assert SECRET not in shown


def test_equal_values_are_equal_and_look_equal_in_one_run() -> None:
    one, same, other = Sensitive(SECRET), Sensitive(SECRET), Sensitive("other")
    assert (one == same, one == other, one == SECRET) == (True, False, False)
    assert (str(one) == str(same), str(one) == str(other)) == (True, False)
    assert len({one, same, other}) == 2


def test_copies_and_wrapping_twice_keep_one_layer() -> None:
    assert Sensitive(Sensitive(SECRET)).reveal() == SECRET
    assert copy.deepcopy({"a": Sensitive(SECRET)})["a"].reveal() == SECRET
    assert revealed({"a": [Sensitive(SECRET)], "b": 1}) == {"a": [SECRET], "b": 1}


def test_a_log_of_another_run_tells_nothing() -> None:
    spec = importlib.util.spec_from_file_location("another_run", sensitive.__file__)
    assert spec
    assert spec.loader
    another = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(another)
    assert str(another.Sensitive(SECRET)) != str(Sensitive(SECRET))
