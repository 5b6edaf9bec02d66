# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How far a training travels through the code: what a reader has to follow from the module to the engine.

A stop is a call of one of our functions that is handed the training, as options or as a value made of them; reading a computed property is
one, too. A climb is a call that goes back to a file which the walk has left already; what a property computes is read where it is used.

Before there was one life of a training, the walk of elastic_job had 72 stops and 7 climbs, counted in the same way.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import types
import typing as t

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.spec import ElasticJob
from ansible_collections.muster.ml.plugins.module_utils._training.kind import Desired
from ansible_collections.muster.ml.plugins.modules import elastic_job
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.plugins.modules.test_elastic_job import JOB as ELASTIC

END = "apply_objects"
VALUES = (Context, ElasticJob, Desired)
# The look whether there is room is beside the way: it reads, and nothing of it goes on to the engine.
FILES = {"files": {"train.py": "print()"}, "script": "train.py", "preflight": False}


def is_property(code: types.CodeType) -> bool:
    members = [member for value in VALUES for member in vars(value).values()]
    getters = [m.fget if isinstance(m, property) else m.func for m in members
               if isinstance(m, (property, functools.cached_property))]  # fmt: skip
    return code in [inspect.unwrap(t.cast("t.Any", getter)).__code__ for getter in getters]


def walk(module: types.ModuleType, params: dict[str, t.Any], cluster: FakeCluster) -> list[tuple[str, str, bool]]:
    """File and function of each stop up to the engine, and whether it is a property."""
    given = ArgumentSpecValidator(module.ARGUMENT_SPEC, **module.CONSTRAINTS).validate(copy.deepcopy(params))
    assert not given.error_messages
    context = Context(params=given.validated_parameters, check=False, connect=lambda: cluster)
    stops: list[tuple[str, str, bool]] = []

    def note(frame: types.FrameType, event: str, _arg: object) -> None:
        code = frame.f_code
        _before, ours, path = code.co_filename.partition("/plugins/module")
        if event != "call" or not ours or code.co_name.startswith("<") or (stops and stops[-1][1] == END):
            return
        handed = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]
        options = [value for value in handed if isinstance(value, dict) and {"script", "state"} <= value.keys()]
        if code.co_name == END or options or any(isinstance(value, VALUES) for value in handed):
            stops.append((path, code.co_name, is_property(code)))

    sys.setprofile(note)
    try:
        module.execute(context)
    finally:
        sys.setprofile(None)
    return stops


def climbs(stops: list[tuple[str, str, bool]]) -> list[str]:
    """The calls that go back."""
    files: list[str] = []
    found = []
    for path, name, computed in stops:
        if computed or (files and files[-1] == path):
            continue
        if path in files:
            found.append(f"{path}: {name}")
        files.append(path)
    return found


def test_the_walk_from_the_module_to_the_engine_is_short(cluster: FakeCluster) -> None:
    stops = walk(elastic_job, {**ELASTIC, **FILES}, cluster)
    assert stops[-1][1] == END
    assert len(stops) <= 25, "\n".join(f"{path} {name}" for path, name, _computed in stops)
    assert len(climbs(stops)) <= 1, climbs(stops)
