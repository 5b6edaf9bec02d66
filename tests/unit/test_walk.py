# SPDX-License-Identifier: GPL-3.0-or-later
"""How much code one task runs: the functions, and their files, that elastic_job calls to create a training, from module to API server.

Everything counts: the preflight, the engine, callbacks, threads, properties. Only the cluster is a fake, so that its client does not count.
"""

import sys
import threading
import types
import typing as t

from ansible_collections.muster.ml.plugins.modules import elastic_job
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.plugins.modules.test_elastic_job import JOB as ELASTIC

MOST_FUNCTIONS, MOST_FILES = 286, 52
FILES = {"files": {"train.py": "print()"}, "script": "train.py"}


def called(module: types.ModuleType, params: dict[str, t.Any], cluster: FakeCluster) -> set[tuple[str, str]]:
    """File and qualified name of every function of the collection that the module calls."""
    context = tasks.context(module, cluster, params)
    found: set[tuple[str, str]] = set()

    def note(frame: types.FrameType, event: str, _arg: object) -> None:
        code = frame.f_code
        _before, ours, path = code.co_filename.partition("/plugins/module")
        # Comprehensions, lambdas and bodies of modules have no name of their own.
        if event == "call" and ours and not code.co_name.startswith("<"):
            found.add((f"plugins/module{path}", code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        module.execute(context)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def test_a_task_runs_little_code(cluster: FakeCluster) -> None:
    found = called(elastic_job, {**ELASTIC, **FILES}, cluster)
    files = {path for path, _name in found}
    sys.stdout.write(f"{len(found)} functions, {MOST_FUNCTIONS} at most; {len(files)} files, {MOST_FILES} at most\n")
    assert len(found) <= MOST_FUNCTIONS, "\n".join(f"{path} {name}" for path, name in sorted(found))
    assert len(files) <= MOST_FILES, "\n".join(sorted(files))
