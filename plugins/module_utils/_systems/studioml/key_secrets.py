# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets with keys and logins of StudioML: stored values are checked, missing ones are generated, and usable ones are never replaced.

The functions read from the cluster and return the objects to apply, in order, by ``_kube/made_once.py``: two runs at once end with
one key, and killed in between, the next run finishes:

- A new passphrase is stored before the key that it encrypts. A key without its passphrase is therefore never the trace of a killed run.
- Another passphrase for a stored key is written after the key, because the option still has it when the task runs again.
- A new generation has the same passphrase, so it is one write, so key and passphrase always match.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Callable, Mapping, Sequence

from ..._core.errors import Failed, InvalidInput, NotFound
from ..._core.pool import OnProgress
from ..._core.sensitive import Sensitive
from ..._kube.cluster import Cluster, Reads
from ..._kube.engine import apply_objects
from ..._kube.made_once import MadeOf, MadeOnce, apply_made_once
from ..._kube.objects import ANNOTATION_GENERATED, LABEL_OWNER, Manifest, Ref, annotations_of, labels_of
from ..._kube.report import Report
from ..._kube.secret_text import encoded, text_of
from ..._kube.served import Promised
from . import keys
from .amqp_url import check_credential
from .keys import Pair

PRIVATE_KEY, PUBLIC_KEY, PASSPHRASE = "ssh-privatekey", "ssh-publickey", "ssh-passphrase"
"""Keys of the Secrets, as the runner's mounts name them."""
USERNAME, PASSWORD = "username", "password"
"""Keys of the Secret with the login, those of type kubernetes.io/basic-auth."""
ANNOTATION_GENERATION = "muster.ml/key-generation"
ANNOTATION_FINGERPRINTS = "muster.ml/key-fingerprints"
"""A line for each public key in the Secret: its name and its fingerprint."""
_LATER = "made by the run"
"""The placeholder for generated values in check mode: a discarded key would have another fingerprint than the real one."""


@dataclasses.dataclass(frozen=True)
class Desired:
    """The options of a Secret. Private key and passphrase are those of the user, or None."""

    namespace: str
    name: str
    owner: str
    generation: int = 1
    private_key: Sensitive | None = None
    public_key: str | None = None
    passphrase: Sensitive | None = None
    username: str | None = None
    password: Sensitive | None = None
    passphrase_secret: str = ""
    adopt: bool = False
    check: bool = False

    def given_decryption_key(self) -> Pair | None:
        """The user's own key for requests, checked."""
        if self.passphrase:
            keys.check_passphrase(self.passphrase, "passphrase")
        if not self.private_key:
            return None
        keys.check_rsa_text(self.private_key, "private_key")
        if not self.passphrase:
            raise InvalidInput("private_key needs passphrase, with which it is encrypted.")
        key = keys.read_rsa_key(self.private_key, self.passphrase, "private_key")
        if self.public_key:
            keys.check_rsa_public(self.public_key, key, "public_key")
        return keys.rsa_pair(key, self.passphrase, self.private_key)

    def check_login(self) -> None:
        """Refuse a login with which the runner could not connect."""
        check_credential(Sensitive(self.username or ""), "broker_user")
        if self.password is not None:
            check_credential(self.password, "broker_password")

    def given_signing_key(self) -> Pair | None:
        """The user's own signing key, checked."""
        if not self.private_key:
            return None
        pair = keys.read_signing_pair(self.private_key, "private_key")
        if self.public_key and ed25519_of_queue(self.public_key, "public_key") != pair.fingerprint:
            raise InvalidInput("public_key does not belong to private_key.", "Leave it out: it is derived.")
        return pair


@dataclasses.dataclass(frozen=True)
class Material:
    """The objects to apply, in this order, and the fingerprints by key of the Secret (None: not generated yet)."""

    objects: Sequence[Manifest]
    fingerprints: Mapping[str, str | None]


@dataclasses.dataclass(frozen=True)
class _Stored:
    """A Secret of the cluster, or its absence."""

    ref: Ref
    item: Manifest | None
    desired: Desired

    @classmethod
    def read(cls, cluster: Reads, name: str, desired: Desired) -> _Stored:
        ref = Ref("v1", "Secret", name, desired.namespace)
        return cls(ref, cluster.get(ref), desired)

    @property
    def bare(self) -> bool:
        """Whether the Secret has another owner and is not adopted: it is used as it is, or refused."""
        owner = labels_of(self.item or {}).get(LABEL_OWNER)
        return self.item is not None and owner != self.desired.owner and not self.desired.adopt

    @property
    def generation(self) -> int:
        recorded = annotations_of(self.item or {}).get(ANNOTATION_GENERATION, "")
        return int(recorded) if recorded.isdecimal() else 1

    @property
    def raised(self) -> bool:
        """Whether the options demand a newer key than the one that is stored."""
        return self.item is not None and self.desired.generation > self.generation

    def what(self, key: str) -> str:
        return f"{self.ref}: {key}"

    def text(self, key: str) -> Sensitive | None:
        """One value of the Secret; None if it has no such key."""
        return text_of(self.item, key) if self.item else None

    def manifest(self, data: Mapping[str, str | Sensitive], fingerprints: Mapping[str, str | None] | None = None,
                 *, generated: bool, numbered: bool = False) -> Manifest:  # fmt: skip
        """The Secret with these values. Of a Secret with another owner only the values are compared."""
        metadata: Manifest = {"name": self.ref.name, "namespace": self.ref.namespace}
        if not self.bare:
            annotations = {ANNOTATION_GENERATED: "key"} if generated else {}
            if fingerprints:
                lines = [f"{name} {found or _LATER}" for name, found in sorted(fingerprints.items())]
                annotations[ANNOTATION_FINGERPRINTS] = "\n".join(lines)
            if generated and (fingerprints or numbered):
                annotations[ANNOTATION_GENERATION] = str(max(self.desired.generation, self.generation))
            metadata["annotations"] = annotations
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded(data)}


def store(
    cluster: Cluster,
    plan: Callable[[MadeOnce], Material],
    desired: Desired,
    *,
    force_conflicts: bool,
    promised: Promised | None = None,
    on_progress: OnProgress | None = None,
) -> tuple[Report, Material]:
    """Apply the objects that PLAN returns. PROMISED: what check mode counts as there, to which they are added."""

    def make(once: MadeOnce) -> tuple[Sequence[Manifest], Material]:
        material = plan(once)
        return material.objects, material

    def apply(objects: Sequence[Manifest], made_of: MadeOf) -> Report:
        return apply_objects(
            cluster, objects, owner=desired.owner, check=desired.check, namespace=desired.namespace, adopt=desired.adopt,
            force_conflicts=force_conflicts, references=promised, made_of=made_of, on_progress=on_progress,
        )  # fmt: skip

    return apply_made_once(cluster, make, apply)


def decryption_key(once: MadeOnce, desired: Desired, given: Pair | None) -> Material:
    """The key that opens requests, and its passphrase in another Secret."""
    stored = _Stored.read(once, desired.name, desired)
    phrases = _Stored.read(once, desired.passphrase_secret, desired)
    old = phrases.text(PASSPHRASE)
    if old and not desired.passphrase:
        keys.check_passphrase(old, phrases.what(PASSPHRASE))
    # In check mode nothing is encrypted with the placeholder, because no key is made.
    passphrase = desired.passphrase or old or (Sensitive(_LATER) if desired.check else once.text(32))
    current, fits = _current(stored, phrases, [one for one in (desired.passphrase, old) if one])
    pair = _chosen(stored, current, given)
    if pair is current and current and fits != passphrase:
        key = keys.read_rsa_key(current.private, t.cast(Sensitive, fits), stored.what(PRIVATE_KEY))
        pair = given or keys.rsa_pair(key, passphrase)
    pair = pair or _made(desired, lambda: keys.rsa_pair(keys.new_rsa_key(once), passphrase))
    public = _public(stored, pair, lambda text, what: keys.fingerprint(keys.read_rsa_public(text, what, bits=keys.BITS)))
    shown = {PUBLIC_KEY: pair.fingerprint or None}
    key_secret = stored.manifest({PRIVATE_KEY: pair.private, PUBLIC_KEY: public}, shown, generated=True)
    phrase_secret = phrases.manifest({PASSPHRASE: passphrase}, generated=True)
    key_first = current is not None and passphrase != old
    return Material([key_secret, phrase_secret] if key_first else [phrase_secret, key_secret], shown)


def signing_key(once: MadeOnce, desired: Desired, given: Pair | None) -> Material:
    """The key with which a client signs its requests."""
    stored = _Stored.read(once, desired.name, desired)
    text = stored.text(PRIVATE_KEY)
    current = None
    if text is not None:
        try:
            current = keys.read_signing_pair(text, stored.what(PRIVATE_KEY))
        except InvalidInput:
            if not stored.raised:
                raise
    pair = _chosen(stored, current, given) or _made(desired, lambda: keys.new_signing_pair(once))
    public = _public(stored, pair, ed25519_of_queue)
    shown = {PUBLIC_KEY: pair.fingerprint or None}
    return Material([stored.manifest({PRIVATE_KEY: pair.private, PUBLIC_KEY: public}, shown, generated=True)], shown)


def broker_login(once: MadeOnce, desired: Desired) -> Material:
    """The login of the broker's user that runners and clients have."""
    stored = _Stored.read(once, desired.name, desired)
    user, password = stored.text(USERNAME), stored.text(PASSWORD)
    if user and user.reveal() != desired.username and not stored.raised:
        raise InvalidInput(
            f"{stored.ref} has the login of {user.reveal()}, and broker_user is {desired.username}.",
            f"Keep the user, or set generation: {stored.generation + 1}, which makes another login.",
        )
    if stored.raised:
        password = None
    if password and not desired.password:
        check_credential(password, stored.what(PASSWORD))
    made = Sensitive(_LATER) if desired.check else once.text(24)
    data: dict[str, str | Sensitive] = {USERNAME: str(desired.username), PASSWORD: desired.password or password or made}
    return Material([stored.manifest(data, generated=True, numbered=True)], {})


def check_public_keys(texts: Mapping[str, str], others: Mapping[str, str], read: Callable[[str, str], str]) -> None:
    """Raise for the first prefix or public key that the runner could not use. ``others``: names of Secrets by prefix."""
    for prefix in (*texts, *others):
        keys.check_prefix(prefix, "public_keys" if prefix in texts else "public_key_secrets")
    twice = sorted(texts.keys() & others.keys())
    if twice:
        raise InvalidInput(f"public_keys and public_key_secrets both have the prefix '{twice[0]}'.", "A prefix has one key.")
    for prefix, text in texts.items():
        read(text, f"public_keys.{prefix}")


def public_keys(
    once: MadeOnce, desired: Desired, texts: Mapping[str, str], others: Mapping[str, str], read: Callable[[str, str], str]
) -> Material:
    """Public keys by prefix of queue names, those of other Secrets among them. ``read`` checks one and returns its fingerprint."""
    stored = _Stored.read(once, desired.name, desired)
    found = {prefix: _Stored.read(once, name, desired) for prefix, name in others.items()}
    values: dict[str, str | None] = dict(texts)
    for prefix, secret in found.items():
        theirs = secret.text(PUBLIC_KEY)
        if theirs is None and not desired.check:
            raise NotFound(
                f"{secret.ref} has no {PUBLIC_KEY} for the prefix '{prefix}'.",
                "Content signing_key of this module makes a Secret that has one.",
                ref=secret.ref,
            )
        values[prefix] = theirs.reveal() if theirs else None
    shown: dict[str, str | None] = {}
    data: dict[str, str | Sensitive] = {}
    for prefix, text in values.items():
        shown[prefix] = read(text, f"public key of {prefix}") if text else None
        data[prefix] = _kept_spelling(stored, prefix, f"{(text or _LATER).strip()}\n", shown[prefix], read)
    placeholder = stored.text(keys.PLACEHOLDER)
    if placeholder or not stored.bare:
        data[keys.PLACEHOLDER] = placeholder or "Public keys by prefix of queue names.\n"
    return Material([stored.manifest(data, shown, generated=False)], shown)


def runner_keys(cluster: Cluster, namespace: str, name: str, passphrase_secret: str) -> Sensitive | None:
    """Private key and passphrase as one text, after a check that the one opens the other; None if a Secret is missing."""
    stored, phrases = (_Stored.read(cluster, one, Desired(namespace, one, "")) for one in (name, passphrase_secret))
    if stored.item is None or phrases.item is None:
        return None
    found = {}
    for secret, key in ((stored, PRIVATE_KEY), (stored, PUBLIC_KEY), (phrases, PASSPHRASE)):
        text = secret.text(key)
        if text is None:
            raise InvalidInput(f"{secret.what(key)} is missing.", "The runner mounts it.")
        found[key] = text
    keys.check_passphrase(found[PASSPHRASE], phrases.what(PASSPHRASE))
    keys.read_rsa_key(found[PRIVATE_KEY], found[PASSPHRASE], stored.what(PRIVATE_KEY))
    return Sensitive("\n".join(text.reveal() for text in found.values()))


@dataclasses.dataclass(frozen=True)
class Contents:
    """The values of a Secret by key, and the number of its key or password."""

    values: Mapping[str, Sensitive]
    generation: int


def contents(cluster: Cluster, namespace: str, names: Sequence[str]) -> dict[str, Contents]:
    """Read the contents of the Secrets; those that do not exist are left out."""
    found = {}
    for name in names:
        stored = _Stored.read(cluster, name, Desired(namespace, name, ""))
        if stored.item is not None:
            texts = {key: t.cast(Sensitive, stored.text(key)) for key in stored.item.get("data") or {}}
            found[name] = Contents(texts, stored.generation)
    return found


def has_public_key(secret: Manifest) -> bool:
    """Whether a Secret of public keys has one, besides the placeholder."""
    return bool(set(secret.get("data") or {}) - {keys.PLACEHOLDER})


def ed25519_of_queue(text: str, what: str) -> str:
    """The fingerprint of a public key that checks signatures."""
    return keys.fingerprint(keys.read_ssh_public(text, what))


def rsa_of_queue(text: str, what: str) -> str:
    """The fingerprint of a public key that encrypts reports."""
    return keys.fingerprint(keys.read_rsa_public(text, what))


def _current(stored: _Stored, phrases: _Stored, candidates: Sequence[Sensitive]) -> tuple[Pair | None, Sensitive | None]:
    """The stored key and the passphrase that opens it. One that cannot be opened is an error, unless the options request another one."""
    text, what = stored.text(PRIVATE_KEY), stored.what(PRIVATE_KEY)
    if text is None:
        return None, None
    try:
        keys.check_rsa_text(text, what)
        for passphrase in candidates:
            key = keys.opened_rsa_key(text, passphrase, what)
            if key:
                return keys.rsa_pair(key, passphrase, text), passphrase
    except InvalidInput:
        if not stored.raised:
            raise
    if stored.raised:
        return None, None
    raise Failed(
        f"{what} cannot be decrypted with the passphrase in {phrases.ref}."
        if candidates
        else f"{phrases.ref}, which has the passphrase of {what}, does not exist.",
        "Put the right one back, or set passphrase. "
        f"generation: {stored.generation + 1} makes another key; requests that wait for the present one are then not run.",
        ref=stored.ref,
    )


def _chosen(stored: _Stored, current: Pair | None, given: Pair | None) -> Pair | None:
    """The stored key, the user's own, or None where one is to be made."""
    if current is None or given is None:
        return given or (None if stored.raised else current)
    if current.fingerprint == given.fingerprint:
        return current
    if stored.raised:
        return given
    raise InvalidInput(
        f"{stored.ref} holds the key {current.fingerprint}, and private_key is another one, {given.fingerprint}.",
        f"generation: {stored.generation + 1} replaces it; what was encrypted or signed with the present one is lost then.",
    )


def _made(desired: Desired, make: Callable[[], Pair]) -> Pair:
    return Pair(Sensitive(_LATER), _LATER, "") if desired.check else make()


def _public(stored: _Stored, pair: Pair, read: Callable[[str, str], str]) -> str:
    """The public key of a pair. In a Secret of another owner it is checked, because it cannot be corrected."""
    text = stored.text(PUBLIC_KEY)
    if not stored.bare or stored.raised or text is None:
        return _kept_spelling(stored, PUBLIC_KEY, pair.public, pair.fingerprint, read)
    if read(text.reveal(), stored.what(PUBLIC_KEY)) != pair.fingerprint:
        raise InvalidInput(
            f"{stored.what(PUBLIC_KEY)} does not belong to its private key.",
            "Correct it, or set adopt: true: it is then derived from the private key.",
        )
    return str(text.reveal())


def _kept_spelling(stored: _Stored, key: str, text: str, fingerprint: str | None, read: Callable[[str, str], str]) -> str:
    """The stored text, where it is the same public key: another comment or line break is no reason to write."""
    present = stored.text(key)
    try:
        same = present is not None and fingerprint and read(present.reveal(), key) == fingerprint
    except InvalidInput:
        same = False
    return str(present.reveal()) if present and same else text
