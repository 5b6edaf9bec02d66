# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks that are killed between any two writes, many times: the next one goes on, and in the end nothing is missing or left.

python -m simulators.aws.killed --times 50

A round has an empty account; runs of eks.yml, each killed after some more writes than the one before left undone; one to the end,
which has to give what an undisturbed run gives; one more, which has to write nothing; and the same with eks_teardown.yml, after which
the account has to be as it was.
"""

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from .holdings import holdings
from .play import Play, playground

SETTINGS: dict[str, Any] = {
    "eks_cluster_public_access_cidrs": ["203.0.113.0/24"],
    "eks_nodegroups_groups": [{"name": "system", "instance_types": ["m6i.large"], "scaling_config": {"min_size": 1, "max_size": 2}}],
    "efs_filesystem_delete_data": True,
    "s3_artifacts_delete_data": True,
    "eks_cluster_delete_data": True,
    "muster_wait_timeout": 60,
}
KILLS = 5  # in each direction of a round


def counts(play: Play) -> dict[str, int]:
    return {kind: len(rows) for kind, rows in holdings(play.aws).items()}


def to_the_end(play: Play, playbook: str) -> list[str]:
    """The writes of a run that nobody disturbs."""
    play.aws.clear()
    done = play(playbook)
    if done.returncode:
        raise SystemExit(f"{playbook} failed:\n{play.outputs[-1][-4000:]}")
    return play.aws.writes()


def disturbed(play: Play, playbook: str, writes: int, draw: random.Random, times: int) -> list[int]:
    """After how many writes each of the killed runs ended."""
    places = [draw.randrange(max(1, 2 * writes // times)) for _time in range(times)]
    return [place for place in places if play.killed(playbook, place)]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Kill the playbooks of EKS between any two writes.")
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**6)))
    options = parser.parse_args(argv)
    draw, kills = random.Random(options.seed), 0  # noqa: S311  # no secret
    with tempfile.TemporaryDirectory() as folder, playground(Path(folder), SETTINGS) as play:
        before = holdings(play.aws)
        up = len(to_the_end(play, "eks"))
        whole = counts(play)
        down = len(to_the_end(play, "eks_teardown"))
        wrong = [] if holdings(play.aws) == before else ["an undisturbed teardown leaves something"]
        while kills < options.times and not wrong:
            kills += len(disturbed(play, "eks", up, draw, KILLS))
            to_the_end(play, "eks")
            wrong += [] if counts(play) == whole else [f"not as undisturbed: {counts(play)}, not {whole}"]
            wrong += [] if not (again := to_the_end(play, "eks")) else [f"a second run writes {again}"]
            kills += len(disturbed(play, "eks_teardown", down, draw, KILLS))
            to_the_end(play, "eks_teardown")
            wrong += [] if holdings(play.aws) == before else ["a teardown leaves something"]
            print(f"{kills} of {options.times} kills, seed {options.seed}", file=sys.stderr, flush=True)
    print(json.dumps({"kills": kills, "seed": options.seed, "writes": [up, down], "wrong": wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
