# SPDX-License-Identifier: GPL-3.0-or-later
"""The edge of module studioml_experiment, where an experiment meets its broker and its bucket."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import pathlib
import shutil
import tempfile
import typing as t
from collections.abc import Iterator, Mapping

from .._core.clock import Clock, utc
from .._core.errors import Failed, InvalidInput
from .._core.files import replaced
from .._core.sensitive import Sensitive
from .._manifests.pods import text, texts
from .._systems.object_store import store
from .._systems.rabbitmq.api import ManagementApi
from .._systems.rabbitmq.publish import STUDIOML, TopicQueue
from .._systems.studioml import bucket as buckets
from .._systems.studioml import keys, message, results, workspace
from .._systems.studioml.experiment import GOOGLE, Experiment, Resources, Storage, request
from .._systems.studioml.submission import Depth, Life, Seen
from .failure import Result
from .host import HostContext

Params = Mapping[str, t.Any]


class Channel(TopicQueue):
    """A queue of StudioML at a broker."""

    def depth(self) -> Depth:
        return Depth(*self.counts())


def run(ctx: HostContext, api: ManagementApi) -> Result:
    """Submit the experiment unless that was done, wait for its end, report."""
    params = ctx.params
    if not params["store_kubernetes"]:
        storage_of(params)
    if params["state"] == "absent":
        wanted = Experiment(params["name"], params["queue"], "none.py", Resources(**params["resources_needed"]))
        wanted.check()
        with reached(params, api.clock) as (storage, bucket):
            return _removed(ctx, _life(ctx, api, wanted, storage, bucket), api)
    wanted, pair = experiment_of(params), signing_pair(params)
    with reached(params, api.clock) as (storage, bucket):
        return _run(ctx, api, wanted, pair, storage, bucket)


def _life(ctx: HostContext, api: ManagementApi, wanted: Experiment, storage: Storage, bucket: buckets.S3Bucket) -> Life:
    channel = Channel(api, ctx.params["vhost"], wanted.queue, STUDIOML, f"StudioML.{wanted.queue}", ctx.params["bind"])
    hidden = (storage.secret_key, storage.access_key, *wanted.secret_env.values())
    return Life(wanted, bucket, channel, lambda: utc(api.clock), hidden)


def _removed(ctx: HostContext, life: Life, api: ManagementApi) -> Result:
    """Remove the experiment from its queue. One without a note was not submitted by this module; the output stays in the bucket."""
    seen, wanted = life.seen(), life.wanted
    there = seen.note is not None and seen.ended != "finished"
    if there and not ctx.check:
        life.remove(ctx.params["wait_timeout"], api.clock, ctx.progress)
    actions = [f"take {wanted.name} out of queue {wanted.queue}"] if there else []
    return {**ctx.changes(actions), "actions": actions, "state": "absent" if there or not seen.ended else seen.ended}


def _run(ctx: HostContext, api: ManagementApi, wanted: Experiment, pair: keys.Pair, storage: Storage, bucket: buckets.S3Bucket) -> Result:
    params = ctx.params
    with workspace.packed(params["workspace"], params["exclude"], params["filename"]) as packed:
        wanted = dataclasses.replace(wanted, workspace=packed.key)
        life = _life(ctx, api, wanted, storage, bucket)
        seen = life.seen()
        if seen.note:
            life.check_same(seen.note)
        submitting = to_submit(seen, resubmit=params["resubmit"])
        actions = _submitted(ctx, life, seen, packed, storage) if submitting else []
    if not ctx.check and not (seen.ended and not submitting):
        seen = life.wait(params["wait_timeout"], api.clock, ctx.progress) if params["wait"] else life.seen()
    report = _report(life, seen, planned=submitting and ctx.check, metric=params["metric"])
    if report["state"] == "finished" and params["dest"]:
        actions += _fetched(life, pathlib.Path(params["dest"]), check=ctx.check)
    return {**ctx.changes(actions), "actions": actions, "signing_fingerprint": pair.fingerprint, **report}


# Options


@contextlib.contextmanager
def reached(params: Params, clock: Clock) -> Iterator[tuple[Storage, buckets.S3Bucket]]:
    """Connect to the bucket for the time of the with block: in a store inside a cluster, or in one with an endpoint."""
    where = params["store_kubernetes"]
    if not where:
        storage = storage_of(params)
        yield storage, buckets.connect(storage, params["store_ca_cert"])
        return
    with store.inside(where, clock) as found:
        keys_of = {"access_key": found.login.access_key, "secret_key": found.login.secret_key}
        storage = storage_of({**params, "endpoint_url": found.endpoint, **keys_of})
        yield storage, buckets.connect(storage, None, found.way)


def storage_of(params: Params) -> Storage:
    """The bucket, with the address of its store."""
    bucket, endpoint = params["bucket"], params["endpoint_url"]
    if bucket.startswith("gs://"):
        bucket = bucket.removeprefix("gs://").rstrip("/")
        if endpoint != GOOGLE:
            raise InvalidInput(f"bucket: gs:// is for {GOOGLE}, and endpoint_url is {endpoint}.", "Give the name of the bucket alone.")
    found = Storage(bucket, endpoint, params["region"], Sensitive(params["access_key"]), Sensitive(params["secret_key"]))
    found.check()
    _for_runners(found, params).check()
    return found


def _for_runners(storage: Storage, params: Params) -> Storage:
    return dataclasses.replace(storage, endpoint=params["runner_endpoint_url"] or storage.endpoint)


def experiment_of(params: Params) -> Experiment:
    """The experiment without its workspace."""
    same = ("name", "queue", "filename", "pythonver", "project", "lifetime", "max_duration")
    found = Experiment(
        **{name: params[name] for name in same},
        resources=Resources(**params["resources_needed"]),
        args=tuple(texts(params["args"], "args")),
        pythonenv=tuple(params["pythonenv"]),
        env={name: text(value, f"env: {name}") for name, value in params["env"].items()},
        secret_env={name: Sensitive(text(value, f"secret_env: {name}")) for name, value in params["secret_env"].items()},
    )
    found.check()
    return found


def signing_pair(params: Params) -> keys.Pair:
    """The key that signs, if the runner would take its signatures as far as is known here."""
    pair = keys.read_signing_pair(Sensitive(params["signing_key"]), "signing_key")
    keys.read_rsa_public(params["public_key"], "public_key", bits=keys.BITS)
    known, queue = params["signing_public_keys"], params["queue"]
    if known is None:
        return pair
    prefix = message.longest_prefix(queue, known)
    if prefix is None:
        raise InvalidInput(
            f"signing_public_keys: no prefix fits queue {queue}, so the runner would refuse every request of it.",
            f"Prefixes: {', '.join(sorted(known))}.",
        )
    expected = keys.fingerprint(keys.read_ssh_public(known[prefix], f"signing_public_keys: {prefix}"))
    if expected != pair.fingerprint:
        raise InvalidInput(
            f"signing_key has the fingerprint {pair.fingerprint}, but queue {queue} is checked with {expected}, the key of {prefix}.",
            "Sign with that key, or choose a queue whose prefix has yours.",
        )
    return pair


# Submitting


def to_submit(seen: Seen, *, resubmit: bool) -> bool:
    """Whether to submit, by what is in the bucket."""
    if seen.ended == "finished":
        return False
    if seen.output or (seen.note and seen.note.state == "submitted"):
        return resubmit
    return True


def _submitted(ctx: HostContext, life: Life, seen: Seen, packed: workspace.Packed, storage: Storage) -> list[str]:
    """Submit the experiment. Returns the actions that were done, or would be."""
    wanted, params = life.wanted, ctx.params
    if seen.note and seen.ended != "failed":
        sure = "and has no result" if seen.note.state == "submitted" else "but it is not known whether the broker got it"
        ctx.warn(f"Experiment {wanted.name} was submitted at {seen.note.submitted}, {sure}. It is submitted again, and may run twice.")
    actions = life.channel.prepare(check=ctx.check)
    if packed.key not in life.bucket.look(packed.key):
        actions.append(f"store {packed.key} with {packed.files} files")
        if not ctx.check:
            life.bucket.put(packed.key, packed.file)
    if not ctx.check:
        made = request(wanted, _for_runners(storage, params), ctx.clock.time())
        life.submit(seen, message.build(made, params["public_key"], Sensitive(params["signing_key"])))
    return [*actions, f"publish {wanted.name} to queue {wanted.queue}"]


# Reporting


def _report(life: Life, seen: Seen, *, planned: bool, metric: str | None) -> Result:
    """Report the state of the experiment; raise Failed if it has failed."""
    wanted, note = life.wanted, seen.note
    place = {"name": wanted.name, "queue": wanted.queue, "bucket": life.bucket.name, "output": wanted.output}
    times = {"submitted": note.submitted, "submissions": note.count} if note else {"submitted": None, "submissions": 0}
    found: Result = {"experiment": {**place, **times}, "state": "absent" if planned else seen.ended or "submitted"}
    if planned or seen.result is None or not seen.ended:
        return found
    found["metrics"] = dict(seen.result.results)
    if seen.ended == "failed":
        last = " | ".join(seen.result.last)
        raise Failed(
            f"Experiment {wanted.name} has failed. The end of its output: {last}.",
            "Correct it, and choose another name, or set resubmit to true if something else was the cause. Runners of 0.14 begin one that "
            "failed again until its lifetime is over; state: absent takes it out of the queue.",
            details=found,
        )
    return {**found, "metric": results.metric(seen.result, metric, wanted.name) if metric else None}


def _fetched(life: Life, dest: pathlib.Path, *, check: bool) -> list[str]:
    """Download the output into a file."""
    if not dest.parent.is_dir():
        raise InvalidInput(f"dest: folder {dest.parent} does not exist.", "Create it first.")
    with tempfile.TemporaryFile() as file:
        life.bucket.get(life.wanted.output, file)
        if dest.is_file() and _sum(dest) == hashlib.file_digest(file, "sha256").digest():
            return []
        if not check:
            file.seek(0)
            # Readable for its owner only: variables of the program are in it.
            with replaced(dest) as made:
                shutil.copyfileobj(file, made)
    return [f"write {dest}"]


def _sum(path: pathlib.Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
