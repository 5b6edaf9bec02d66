# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains a classifier with JAX on all hosts of all slices, and goes on from its last checkpoint.

Every batch is made of the same samples in the same order whatever the number of hosts, so a training that was
disturbed ends where an undisturbed one does, and one process computes what many do.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from tensorboard.summary import Writer

DIGITS = Path(__file__).with_name("digits.csv.gz")
TRAINED = 1440
MEMORY = 68_719_476_736  # bytes, as GKE's page on TPUs says


def say(event: str, **fields: Any) -> None:
    """Print one line for each event; the first process prints what all processes know."""
    print(json.dumps({"event": event, "time": round(time.time(), 3), **fields}), flush=True)


def lock_memory() -> None:
    """libtpu locks more memory than a container may unless it asks; GKE names the host of a slice of TPUs."""
    if "TPU_WORKER_ID" in os.environ:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (MEMORY, MEMORY))


def join(timeout: int) -> None:
    """All hosts of all slices as one world, from what module jobset gives; without it one process."""
    hosts = int(os.environ.get("MUSTER_HOSTS", "1"))
    world = int(os.environ.get("MUSTER_SLICES", "1")) * hosts
    if world == 1:
        return
    # On CPUs; TPUs have collectives of their own.
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        coordinator_address=os.environ["MUSTER_COORDINATOR"],
        num_processes=world,
        process_id=int(os.environ["MUSTER_SLICE"]) * hosts + int(os.environ["JOB_COMPLETION_INDEX"]),
        initialization_timeout=timeout,
        # Address, number and rank of the processes are given above; nothing is detected.
        cluster_detection_method="deactivate",
        # A lost peer ends the others after this time, where it is not the JobSet that ends them first.
        heartbeat_timeout_seconds=10,
    )


# Data


def digits(path: Path) -> tuple[np.ndarray[Any, Any], ...]:
    """Handwritten digits of 8x8 pixels: 1440 to train on, 357 to measure on."""
    rows = np.loadtxt(path, delimiter=",", dtype=np.float32)
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    pixels, labels = rows[:, :-1] / 16.0, rows[:, -1].astype(np.int32)
    return pixels[:TRAINED], labels[:TRAINED], pixels[TRAINED:], labels[TRAINED:]


def batch_of(step: int, size: int, seed: int) -> np.ndarray[Any, Any]:
    """The samples of a step: those of an epoch in an order of its own."""
    epoch, number = divmod(step, TRAINED // size)
    order = np.random.default_rng([seed, epoch]).permutation(TRAINED)
    return order[number * size : (number + 1) * size]


# Network


def begin(seed: int, width: int) -> dict[str, Any]:
    """Parameters, momentum, step, and how often each sample was trained on."""
    one, two = jax.random.split(jax.random.PRNGKey(seed))
    params = {
        "w1": jax.random.normal(one, (64, width)) / 8.0,
        "b1": jnp.zeros(width),
        "w2": jax.random.normal(two, (width, 10)) / jnp.sqrt(width),
        "b2": jnp.zeros(10),
    }
    momentum = jax.tree.map(jnp.zeros_like, params)
    return {"params": params, "momentum": momentum, "step": jnp.int32(0), "seen": jnp.zeros(TRAINED, jnp.int32)}


def scores(params: dict[str, Any], pixels: Any) -> Any:
    hidden = jax.nn.relu(pixels @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def loss_of(params: dict[str, Any], pixels: Any, labels: Any) -> Any:
    """The mean over the whole batch, of which each host has a part."""
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(scores(params, pixels)), labels[:, None], axis=1))


def train(state: dict[str, Any], pixels: Any, labels: Any, samples: Any) -> tuple[dict[str, Any], Any]:
    loss, slopes = jax.value_and_grad(loss_of)(state["params"], pixels, labels)
    momentum = jax.tree.map(lambda old, slope: 0.9 * old + slope, state["momentum"], slopes)
    params = jax.tree.map(lambda old, change: old - 0.05 * change, state["params"], momentum)
    seen = state["seen"].at[samples].add(1)
    return {"params": params, "momentum": momentum, "step": state["step"] + 1, "seen": seen}, loss


# Training


def run(options: argparse.Namespace) -> None:
    first, hosts = jax.process_index() == 0, jax.process_count()
    if options.batch_size % jax.device_count() or TRAINED % options.batch_size:
        sys.exit(f"--batch-size {options.batch_size}: {TRAINED} has to be a multiple of it, and it one of {jax.device_count()}")
    pixels, labels, test_pixels, test_labels = digits(options.data_file)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    shared = NamedSharding(mesh, PartitionSpec("data"))
    state = multihost_utils.host_local_array_to_global_array(begin(options.seed, options.width), mesh, PartitionSpec())
    run_dir = Path(options.run_dir).absolute()
    layout = ocp.CheckpointManagerOptions(max_to_keep=2, save_interval_steps=options.save_every, create=True)
    with ocp.CheckpointManager(run_dir / "checkpoints", options=layout) as checkpoints:
        begun = checkpoints.latest_step() or 0
        if begun:
            state = checkpoints.restore(begun, args=ocp.args.StandardRestore(state))
        if first:
            say("start", jax=jax.__version__, platform=jax.devices()[0].platform, hosts=hosts, step=begun)
            board = Writer(str(run_dir / "tensorboard"))
        compiled, loss = jax.jit(train), jnp.nan
        for step in range(begun, options.steps):
            # Each host takes its part of the batch, in the order of the devices.
            chosen = batch_of(step, options.batch_size, options.seed)
            mine = np.split(chosen, hosts)[jax.process_index()]
            parts = [jax.make_array_from_process_local_data(shared, part) for part in (pixels[mine], labels[mine], mine.astype(np.int32))]
            state, loss = compiled(state, *parts)
            checkpoints.save(step + 1, args=ocp.args.StandardSave(state))
            if first and ((step + 1) % options.tell_every == 0 or step + 1 == options.steps):
                say("step", hosts=hosts, step=step + 1, steps=options.steps, loss=float(loss))
                board.add_scalar("loss", float(loss), step + 1)
                board.flush()
            time.sleep(options.step_time)
        checkpoints.wait_until_finished()
    if first:
        found = jax.device_get(state)
        right = np.argmax(scores(found["params"], test_pixels), axis=1) == test_labels
        seen = found["seen"]
        board.add_scalar("accuracy", float(np.mean(right)), int(found["step"]))
        board.close()
        say(
            "result",
            hosts=hosts,
            steps=int(found["step"]),
            accuracy=round(float(np.mean(right)), 4),
            # Of the steps that the parameters come from: how often the least and the most used sample was trained on.
            seen=[int(seen.min()), int(seen.max())],
        )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-file", type=Path, default=DIGITS, help="digits.csv.gz, beside this script by default")
    parser.add_argument("--run-dir", default=os.environ.get("MUSTER_RUN_DIR", "/workspace/shared/run"))
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch-size", type=int, default=48, help="of all hosts together")
    parser.add_argument("--save-every", type=int, default=10, help="steps between two checkpoints")
    parser.add_argument("--tell-every", type=int, default=10, help="steps between two lines of the log")
    parser.add_argument("--step-time", type=float, default=0.0, help="seconds to wait after each step")
    parser.add_argument("--width", type=int, default=128, help="of the hidden layer")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--timeout", type=int, default=300, help="seconds for all hosts to come")
    return parser.parse_args()


if __name__ == "__main__":
    given = read_options()
    lock_memory()
    join(given.timeout)
    run(given)
