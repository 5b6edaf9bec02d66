# SPDX-License-Identifier: GPL-3.0-or-later
"""studioml_client in a folder: what is merged, what is refused, what is removed; tests/studioml has the role and the real client."""

import json
import stat
import typing as t
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import rsa

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Conflict, InvalidInput, MusterError
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._kube.made_once import to_be_dropped
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import client_files, keys
from ansible_collections.muster.ml.plugins.modules import studioml_client
from ansible_collections.muster.ml.tests.unit.fakes import tasks

pytestmark = pytest.mark.usefixtures("small_keys")
PUBLIC = keys.rsa_pair(rsa.generate_private_key(65537, 2048), Sensitive("phrase")).public
SIGNER, OTHER = keys.new_signing_pair(to_be_dropped()), keys.new_signing_pair(to_be_dropped())
SECRETS = ("canary-password", "canary-access", "canary-storage", SIGNER.private.reveal().splitlines()[2])
FOREIGN = """\
# mine
verbose: debug
pip: [numpy]
storage:
  compression: gzip
"""


class Home:
    """A folder, and what the module said."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings: list[str] = []

    @property
    def file(self) -> Path:
        return self.path / "config.yaml"

    @property
    def config(self) -> dict[str, t.Any]:
        return dict(yaml.safe_load(self.file.read_text()))

    def write(self, text: str) -> None:
        self.path.mkdir(exist_ok=True)
        self.file.write_text(text)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.path.iterdir()) if self.path.is_dir() else []

    def __call__(self, *, check: bool = False, **more: t.Any) -> dict[str, t.Any]:
        options: dict[str, t.Any] = {
            "path": str(self.path), "amqp_url": "amqp://me:canary-password@broker:5672/%2f", "bucket": "store",
            "database_bucket": "metadata",
            "access_key": "canary-access",
            "secret_key": "canary-storage", "public_key": PUBLIC, "signing_key": SIGNER.private.reveal(), **more,
        }  # fmt: skip
        context = HostContext(tasks.options(studioml_client, options), check=check, warn=self.warnings.append, diff=True)
        try:
            found: dict[str, t.Any] = studioml_client.execute(context)
        except MusterError as error:
            self.clean([str(error), error.details])
            raise
        self.clean(found)
        return found

    def clean(self, said: t.Any) -> None:
        text = json.dumps([said, self.warnings], default=str)
        assert [secret for secret in SECRETS if secret in text] == []


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / ".studioml")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_the_client_needs_is_written_once(home: Home) -> None:
    planned = home(check=True)
    assert home.names() == []
    made = home()
    assert (made["changed"], made["actions"]) == (True, planned["actions"])
    assert home.config == {
        "database": {
            "type": "s3", "endpoint": "https://storage.googleapis.com", "bucket": "metadata", "authentication": "none",
            "credentials": {"aws": {"access_key": "canary-access", "secret_access_key": "canary-storage", "region": "us-east-1"}},
        },
        "storage": {
            "type": "s3", "endpoint": "https://storage.googleapis.com", "bucket": "store",
            "credentials": {"aws": {"access_key": "canary-access", "secret_access_key": "canary-storage", "region": "us-east-1"}},
        },
        "cloud": {"queue": {
            "rmq": "amqp://me:canary-password@broker:5672/%2f?connection_attempts=30&retry_delay=.5&socket_timeout=5", "persistent": True,
        }},
        "env": {"AWS_ACCESS_KEY_ID": "canary-access", "AWS_SECRET_ACCESS_KEY": "canary-storage", "AWS_DEFAULT_REGION": "us-east-1"},
        "public_key_path": str(home.path / "runner.pub.pem"), "signing_key_path": str(home.path / "signing_key"),
        "verbose": "info", "resources_needed": {"cpus": 1, "gpus": 0, "ram": "2gb", "hdd": "3gb"},
    }  # fmt: skip
    assert home.names() == [".muster.json", "config.yaml", "runner.pub.pem", "signing_key"]
    assert [mode(home.path / name) for name in home.names()] == [0o600, 0o600, 0o644, 0o600]
    assert mode(home.path) == 0o700
    assert not [secret for secret in SECRETS if secret in (home.path / ".muster.json").read_text()]
    for check in (False, True):
        assert home(check=check)["actions"] == []


def test_settings_of_others_stay_and_comments_are_in_a_backup(home: Home) -> None:
    home.write(FOREIGN)
    home.file.chmod(0o644)
    made = home()
    assert "keep a backup of it, because its comments are lost" in made["actions"]
    assert (home.config["verbose"], home.config["pip"], home.config["storage"]["compression"]) == ("debug", ["numpy"], "gzip")
    assert mode(home.file) == 0o600
    (backup,) = [name for name in home.names() if name.endswith("~")]
    assert ((home.path / backup).read_text(), mode(home.path / backup)) == (FOREIGN, 0o600)
    assert not home()["changed"]
    assert home(verbose="debug")["actions"] == []
    removed = home(state="absent")
    assert removed["kept"] == []
    assert home.config == yaml.safe_load(FOREIGN)
    assert home.names() == ["config.yaml", backup]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("verbose: debug", "verbose"), ("storage: {bucket: theirs}", "storage.bucket"),
        ("cloud: {queue: {rmq: amqp://a}}", "cloud.queue.rmq"), ("env: none", "env.AWS_ACCESS_KEY_ID, env.AWS_DEFAULT_REGION"),
    ],
)  # fmt: skip
def test_a_foreign_value_that_differs_is_named_and_kept_unless_it_is_allowed(home: Home, text: str, name: str) -> None:
    home.write(text)
    with pytest.raises(Conflict, match=f"config.yaml has other values for {name}.*overwrite"):
        home(verbose="error")
    assert (home.file.read_text(), home.names()) == (text, ["config.yaml"])
    assert home(verbose="error", overwrite=True)["changed"]
    assert home.config["storage"]["bucket"] == "store"
    assert not home(verbose="error")["changed"]


def test_what_is_ours_follows_its_options(home: Home) -> None:
    home(lifetime="30m")
    assert home.config["experimentLifetime"] == "30m"
    made = home(bucket="other", secret_key="canary-storage2", verbose="error")
    assert made["diff"][0]["after"].keys() == {
        "storage.bucket", "storage.credentials.aws.secret_access_key", "database.credentials.aws.secret_access_key",
        "env.AWS_SECRET_ACCESS_KEY", "verbose",
    }  # fmt: skip
    assert "experimentLifetime" not in home.config
    assert home.config["env"]["AWS_SECRET_ACCESS_KEY"] == "canary-storage2"


def test_a_value_of_ours_that_somebody_changed_is_theirs(home: Home) -> None:
    home()
    home.write(home.file.read_text().replace("bucket: store", "bucket: theirs"))
    with pytest.raises(Conflict, match=r"storage\.bucket"):
        home()
    removed = home(state="absent")
    assert removed["kept"] == [f"{home.file}: storage.bucket"]
    assert "was changed since it was written, and is kept" in home.warnings[0]
    assert home.config == {"storage": {"bucket": "theirs"}}


def test_a_key_of_somebody_else_is_not_replaced(home: Home) -> None:
    home.path.mkdir()
    (home.path / "signing_key").write_text(OTHER.private.reveal())
    with pytest.raises(Conflict, match="signing_key is another key"):
        home()
    assert home.names() == ["signing_key"]
    assert home(overwrite=True)["changed"]
    assert home(signing_key=OTHER.private.reveal())["actions"] == [f"write {home.path / 'signing_key'}"]


def test_nothing_of_ours_stays(home: Home) -> None:
    home()
    assert home(state="absent", check=True)["changed"]
    assert "config.yaml" in home.names()
    assert home(state="absent")["changed"]
    assert not home.path.exists()
    assert home(state="absent")["actions"] == []


def test_links_lead_a_removal_nowhere(home: Home, tmp_path: Path) -> None:
    """Of the configuration, of a key and of the folder itself: what they lead to is not Muster's, and the removal ends well."""
    inner, theirs = tmp_path / "disk", tmp_path / "dotfiles.yaml"
    inner.mkdir()
    home.path.symlink_to(inner)
    theirs.touch()
    (inner / "config.yaml").symlink_to(theirs)
    home()
    (inner / "signing_key").rename(tmp_path / "signing_key")
    (inner / "signing_key").symlink_to(tmp_path / "signing_key")
    assert home(state="absent")["kept"] == [str(home.path / "signing_key")]
    assert (theirs.read_text(), (tmp_path / "signing_key").exists()) == ("{}\n", True)
    assert home.path.is_symlink()
    assert home.names() == ["config.yaml", "signing_key"]


@pytest.mark.parametrize("number", range(6))
def test_a_run_that_was_stopped_does_not_make_strangers_of_our_values(home: Home, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    home()
    write, left = client_files.Folder._write, [number]

    def dying(folder: t.Any, file: Path, text: str, bits: int) -> None:
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        write(folder, file, text, bits)

    changed = {"bucket": "other", "signing_key": OTHER.private.reveal()}
    with monkeypatch.context() as patch:
        patch.setattr(client_files.Folder, "_write", dying)
        if number < 4:  # the record, the key, the configuration, the record
            with pytest.raises(KeyboardInterrupt):
                home(**changed)
        else:
            home(**changed)
    home(**changed)
    assert (home.config["storage"]["bucket"], home(**changed)["changed"]) == ("other", False)
    assert home(state="absent")["kept"] == []
    assert not home.path.exists()


def test_modes_are_narrowed(home: Home) -> None:
    home()
    home.file.chmod(0o644)
    (home.path / "signing_key").chmod(0o640)
    assert home()["actions"] == [f"set the mode of {home.path / 'signing_key'} to 0600", f"set the mode of {home.file} to 0600"]
    assert not home()["changed"]


def test_a_link_to_the_configuration_stays_one(home: Home, tmp_path: Path) -> None:
    dotfile = tmp_path / "dotfiles.yaml"
    dotfile.write_text("pip: [numpy]\n")
    home.path.mkdir()
    home.file.symlink_to(dotfile)
    home()
    assert home.file.is_symlink()
    assert yaml.safe_load(dotfile.read_text())["pip"] == ["numpy"]


REFUSED: dict[str, tuple[dict[str, t.Any], str]] = {
    "address": ({"amqp_url": "amqp://broker"}, "not the address of a broker with user and password"),
    "no address": ({"amqp_url": "http://[me"}, "not the address of a broker"),
    "dollar": ({"amqp_url": "amqp://me:canary-password$X@broker:5672/%2f"}, r"cloud\.queue\.rmq: the value has a \$"),
    "public key": ({"public_key": "ssh-rsa"}, "BEGIN RSA PUBLIC KEY"),
    "signing key": ({"signing_key": SIGNER.public}, "not an OPENSSH PRIVATE KEY"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_nonsense_is_refused_before_anything_is_written(home: Home, what: str) -> None:
    more, reason = REFUSED[what]
    with pytest.raises(InvalidInput, match=reason):
        home(**more)
    assert home.names() == []


@pytest.mark.parametrize(
    ("text", "reason"), [("a: [", "line 1 cannot be read"), ("- a", "is not a table"), ("a: !!python/name:x ", "cannot be read")]
)
def test_a_file_that_is_no_configuration_is_left_alone(home: Home, text: str, reason: str) -> None:
    home.write(text)
    with pytest.raises(InvalidInput, match=reason):
        home()
    assert home.file.read_text() == text


def test_a_record_of_somebody_else_is_refused(home: Home) -> None:
    home.write("")
    (home.path / ".muster.json").write_text("[]")
    with pytest.raises(InvalidInput, match="not a record of this collection"):
        home()
