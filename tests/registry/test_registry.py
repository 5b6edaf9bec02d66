# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/images.yml at a real registry: what it uploads and when, whom it shows the password, and a pod that pulls what it said."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support import canary
from support.places import BIN, ROOT

from registry.server import CACHE, PASSWORD, USER, Registry, address_for, running

KUBECONFIG = Path(os.environ["MUSTER_KUBECONFIG"])
SECRETS = {"the password": PASSWORD}


def greeter(greeting: str) -> dict[str, Any]:
    """A small image, in place of PERSIA's."""
    recipe = {
        "debian": {"suite": "bookworm", "variant": "extract", "packages": ["busybox-static"]},
        "files": [{"dest": "/greet", "mode": "0755", "content": f"#!/bin/busybox sh\necho {greeting}\n"}],
        "config": {"entrypoint": ["/greet"]},
    }
    return {"greeter": {"image": "muster.local/greeter:1", "variable": "greeter_image", "recipe": recipe}}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with running(tmp_path_factory.mktemp("registry"), address_for(KUBECONFIG)) as found:
        yield found


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of our own for images; programs and root file systems are those of the machine."""
    folder = tmp_path_factory.mktemp("cache")
    for name in ("bin", "debian"):
        (CACHE / name).mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(CACHE / name)
    return folder


class Images:
    """Runs of the playbook; settings travel in a file, as a vault's would."""

    def __init__(self, registry: Registry, cache: Path) -> None:
        self.registry = registry
        self.settings = {
            "images_registry": f"{registry.address}/team",
            "images_registry_username": USER,
            "images_registry_password": PASSWORD,
            "images_registry_ca_cert": str(registry.authority),
            "images_names": ["greeter"],
            "local_images_recipes": greeter("hello"),
            "local_images_cache_dir": str(cache),
        }
        self.file = cache / "settings.json"

    def run(
        self, playbook: str, *options: str, environment: Mapping[str, str] | None = None, **settings: Any
    ) -> subprocess.CompletedProcess[str]:
        self.file.touch(mode=0o600)
        given = {**self.settings, **settings}
        self.file.write_text(json.dumps({name: value for name, value in given.items() if value is not None}))
        words = [BIN / "ansible-playbook", "-i", "inventories/existing", "-e", f"@{self.file}", playbook, *options]
        own = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"), "NO_COLOR": "1", "DOCKER_CONFIG": "/nowhere"}
        whole = {**os.environ, **own, **(environment or {})}
        with canary.ProcessWatch(SECRETS) as watch:
            done = subprocess.run(words, cwd=ROOT, env=whole, capture_output=True, text=True, check=False)
        assert not watch.found
        assert not canary.in_text(SECRETS, (done.stdout + done.stderr).encode())
        return done

    def play(self, *options: str, **settings: Any) -> tuple[bool, str]:
        """Whether it changed something, and the image that it printed."""
        done = self.run("playbooks/images.yml", *options, **settings)
        assert done.returncode == 0, done.stdout + done.stderr
        shown = re.search(r"greeter_image: (\S+@sha256:[0-9a-f]{64})", done.stdout)
        return " changed=0 " not in done.stdout, shown[1] if shown else ""

    def refused(self, *options: str, **settings: Any) -> str:
        before = self.registry.uploads()
        done = self.run("playbooks/images.yml", *options, **settings)
        assert done.returncode != 0, done.stdout
        assert " changed=0 " in done.stdout
        assert self.registry.uploads() == before
        return " ".join((done.stdout + done.stderr).split())


@pytest.fixture(scope="module")
def images(registry: Registry, cache: Path) -> Images:
    return Images(registry, cache)


def test_a_plan_uploads_nothing(images: Images) -> None:
    assert images.play("--check") == (True, "")
    assert images.registry.uploads() == []


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"images_registry": ""}, "images_registry is not set"),
        ({"images_registry_password": "wrong"}, "the registry refuses the credentials"),
        ({"images_registry_username": "", "images_registry_password": ""}, "asks for credentials, and there are none"),
        ({"images_registry_ca_cert": ""}, "has a certificate that this machine does not trust"),
        ({"images_registry": "127.0.0.1:9/team"}, "Check images_registry, the network"),
    ],
    ids=["no registry", "wrong password", "no login", "unknown authority", "nobody there"],
)
def test_what_cannot_be_pushed_is_said_before_anything_is_built(images: Images, cache: Path, settings: dict[str, str], told: str) -> None:
    assert told in images.refused(**settings)
    assert not (cache / "images").exists()


def test_an_image_is_pushed_once_and_a_pod_pulls_it_by_digest(images: Images, cache: Path) -> None:
    changed, image = images.play("-vvvv")
    assert changed
    name, _at, digest = image.partition("@")
    assert name == f"{images.registry.address}/team/greeter"
    manifest = images.registry.manifest_of("team/greeter/manifests/1")
    assert f"sha256:{hashlib.sha256(manifest).hexdigest()}" == digest
    assert {layer["mediaType"].rpartition("+")[2] for layer in json.loads(manifest)["layers"]} == {"gzip"}
    uploaded = images.registry.uploads()
    assert uploaded
    for options in ((), ("--check",)):
        assert images.play(*options) == (False, image)
    shutil.rmtree(cache / "images")  # another machine's cache is empty
    assert images.play() == (False, image)
    assert images.registry.uploads() == uploaded
    pulled(images, image, "hello")


def test_published_images_are_copied(registry: Registry, images: Images, cache: Path) -> None:
    """From a list as init.yml writes it, with the login that the user has for the registry in an image's name."""
    _changed, image = images.play()
    source = f"{image.partition('@')[0]}:1"
    listed = cache / "images.txt"
    listed.write_text(f"# Images\ngreeter_image: {source}\nother_manifest: https://example.com/x.yaml\n")
    secret = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    (cache / "config.json").write_text(json.dumps({"auths": {registry.address: {"auth": secret}}}))
    login = {"DOCKER_CONFIG": str(cache), "SSL_CERT_FILE": str(registry.authority)}
    unset = dict.fromkeys(("images_names", "local_images_recipes"))
    settings = {**unset, "images_registry": f"{registry.address}/mirror", "images_file": str(listed)}
    copy = partial(images.play, environment=login, **settings)
    uploaded = images.registry.uploads()
    assert copy("--check") == (True, "")
    assert images.registry.uploads() == uploaded
    changed, copied = copy()
    assert (changed, copied) == (True, f"{registry.address}/mirror/team/greeter:1@{image.partition('@')[2]}")
    assert (copy(), copy("--check")) == ((False, copied), (False, copied))
    listed.write_text(f"greeter_image: {source}of-nobody\n")
    assert "greeter:1of-nobody: " in images.refused(environment=login, **settings)


def pulled(images: Images, image: str, greeting: str) -> None:
    done = images.run("tests/registry/pull.yml", image=image, greeting=greeting, kubeconfig=str(KUBECONFIG),
                      address=images.registry.address, become=os.geteuid() != 0)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_another_recipe_replaces_what_is_under_the_name(images: Images) -> None:
    before = images.play()[1]
    changed, after = images.play(local_images_recipes=greeter("goodbye"))
    assert (changed, after == before) == (True, False)
    pulled(images, after, "goodbye")
