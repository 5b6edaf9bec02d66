# SPDX-License-Identifier: GPL-3.0-or-later
"""Role studioml_client in a home of its own, and StudioML's own client with what the role wrote: it reads the configuration, and its
experiment is run by the stand-in."""

import hashlib
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from rabbitmq.playing import played
from rabbitmq.server import HOST
from support.places import cache_home

from studioml.world import ON_ONE, S3_ROOT, World

pytestmark = ON_ONE
REQUIREMENTS = Path(__file__).with_name("client.txt")
READ = "import json; from studio.db_providers import db_provider_setup as s; print(json.dumps(s.get_config()))"
TRAINING = 'import json, sys; print(json.dumps({"experiment": {"loss": 0.125, "arguments": sys.argv[1:]}}))\n'


@pytest.fixture(scope="session")
def client() -> Path:
    """The folder of the client's programs; installed once per machine."""
    folder = cache_home() / f"studioml-client-{hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]}"
    if not (folder / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        words = [folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r", REQUIREMENTS]
        subprocess.run(words, check=True)
        (folder / "done").touch()
    return folder / "bin"


class Home:
    """The home of somebody who uses the client."""

    METADATA = "leaf-metadata"

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder = world, folder
        self.studioml = folder / ".studioml"
        # Not in the bucket of results: experiments/NAME and experiments/NAME/output.tar cannot both be in the file system of versitygw.
        if self.METADATA not in [row["Name"] for row in world.store.client().list_buckets()["Buckets"]]:
            world.store.client().create_bucket(Bucket=self.METADATA)
        self.url = f"amqp://runner:{world.secrets()['password']}@{HOST}:{world.broker.ports['amqp']}/%2f"

    def play(self, *more: str, entry: str = "main", fails: bool = False, **variables: Any) -> str:
        """The role; its output shows no secret at -vvv."""
        given = {
            "amqp_url": self.url, "endpoint_url": self.world.store.endpoint, "bucket": self.world.store.bucket,
            "access_key": S3_ROOT,
            "secret_key": self.world.store.secret, "public_key": self.world.key.public,
            "signing_key": self.world.signer.private.reveal(), "database_bucket": self.METADATA, **variables,
        }  # fmt: skip
        named = {f"studioml_client_{name}": value for name, value in given.items()}
        secrets = {**self.world.secrets(), "signing": self.world.signer.private.reveal().splitlines()[2]}
        given = {"entry": entry, **named}
        home = str(self.folder)
        return played("tests/studioml/client.yml", self.folder, given, "-vvv", *more, secrets=secrets, fails=fails, HOME=home)

    def config(self) -> dict[str, Any]:
        return dict(yaml.safe_load((self.studioml / "config.yaml").read_text()))

    def run(self, client: Path, *words: str, cwd: Path | None = None) -> str:
        own = {"HOME": str(self.folder), "PATH": f"{client}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(
            [client / words[0], *words[1:]], cwd=cwd or self.folder, env=own, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def home(world: World, tmp_path: Path) -> Home:
    return Home(world, tmp_path)


def test_the_role_writes_merges_refuses_and_removes(home: Home) -> None:
    missing = home.play(amqp_url="", signing_key="", fails=True)
    assert "studioml_client_amqp_url, studioml_client_signing_key have to be set" in missing
    assert "changed=1" in home.play("--check", "--diff")
    assert not home.studioml.exists()
    assert "changed=1" in home.play("--diff")
    assert "changed=0" in home.play("--diff")
    assert stat.S_IMODE((home.studioml / "config.yaml").stat().st_mode) == 0o600
    (home.studioml / "config.yaml").write_text(yaml.safe_dump({**home.config(), "verbose": "crit", "pip": ["numpy"]}))
    assert "changed=0" in home.play()
    refused = home.play(options={"verbose": "error"}, fails=True)
    assert "config.yaml has other values for verbose" in " ".join(refused.split())
    assert "changed=1" in home.play(options={"verbose": "error", "overwrite": True})
    assert home.config()["verbose"] == "error"
    assert "changed=1" in home.play(entry="remove")
    assert home.config() == {"pip": ["numpy"]}
    assert "changed=0" in home.play(entry="remove")


def test_studiomls_own_client_reads_what_was_written(home: Home, client: Path) -> None:
    home.play()
    assert json.loads(home.run(client, "python", "-c", READ).splitlines()[-1]) == home.config()


# Shows row 002.23.
def test_an_experiment_of_studiomls_own_client_is_run(home: Home, client: Path, world: World) -> None:
    home.play(options={"verbose": "info"})
    work = home.folder / "work"
    work.mkdir()
    (work / "train.py").write_text(TRAINING)
    runner = world.started_runner("of-the-client")
    words = ["run", "--lifetime=30m", "--max-duration=20m", "--queue=rmq_test", "--force-git", "train.py", "--epochs", "2"]
    said = home.run(client, "studio", *words, cwd=work)
    found = re.search(r"submitted experiment (\S+)", said)
    assert found, said
    runner.says("experiment completed")
    assert '{"experiment": {"loss": 0.125, "arguments": ["--epochs", "2"]}}' in world.result(found[1])
