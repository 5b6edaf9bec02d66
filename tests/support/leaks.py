# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks for what the Secrets of a namespace hold where it may not be: in other objects, in logs of pods, in files.

    python -m support.leaks KUBECONFIG CONTEXT NAMESPACE FILE ...

prints {secrets, places, found} as JSON: how many values were looked for, in how many places, and ``KEY of SECRET in PLACE`` for each that
was found. The values themselves never leave the program. FILEs are outputs of programs and records of support.witness.
"""

import base64
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from support.canary import in_text
from support.objects import Get, connected, items, reader, resources

Body = dict[str, Any]
PUBLIC = ("ssh-publickey", "ca.crt", "tls.crt", "username", "info", "AWS_ACCESS_KEY_ID")
"""Keys of Secrets whose values everybody may know."""
SHORTEST = 8
"""Characters of a value, or of a line of one: shorter ones are in many words."""


def values(secret: Body) -> dict[str, str]:
    """What of a Secret has to stay unseen: each value, and each of its lines, because an output may break or escape them."""
    found: dict[str, str] = {}
    for key, encoded in (secret.get("data") or {}).items():
        text = base64.b64decode(encoded).decode(errors="replace")
        # Public keys are by prefix of queue names.
        if key in PUBLIC or text.startswith(("ssh-ed25519 ", "-----BEGIN RSA PUBLIC KEY")):
            continue
        name = f"{key} of {secret['metadata']['name']}"
        lines = [line for line in text.splitlines() if not line.startswith(("-----", "Proc-Type", "DEK-Info"))]
        found |= {f"{name}, line {number}": line for number, line in enumerate(lines, 1) if len(line) >= SHORTEST}
        found |= {name: text} if len(text) >= SHORTEST else {}
    return found


def places(get: Get, namespace: str) -> Iterator[tuple[str, str]]:
    """Every object of the namespace but Secrets, its events, and the logs of its pods, as text."""
    for kind, path in {**resources(get), "Event": "/api/v1/events"}.items():
        for item in items(get, path) if kind != "Secret" else ():
            if item["metadata"].get("namespace") == namespace:
                yield f"{kind} {item['metadata']['name']}", json.dumps(item)


def logs(read: Any, pods: list[Body]) -> Iterator[tuple[str, str]]:
    """The log of each container, and of the one before it."""
    for pod in pods:
        meta = pod["metadata"]
        for status in (pod.get("status") or {}).get("containerStatuses") or []:
            for previous in (False, True) if status.get("restartCount") else (False,):
                place = f"log of {meta['name']}/{status['name']}"
                yield place, read(meta["name"], meta["namespace"], container=status["name"], previous=previous)


def leaks(secrets: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Which is where; lines of one value count once."""
    seen = {(name.split(", line ")[0], place) for place, text in found.items() for name in in_text(secrets, text.encode())}
    return sorted(f"{name} in {place}" for name, place in seen)


def main(kubeconfig: str, context: str, namespace: str, *files: str) -> Body:
    from kubernetes import client

    get = reader(kubeconfig, context or None)
    stored = items(get, f"/api/v1/namespaces/{namespace}/secrets")
    secrets = {name: value for secret in stored for name, value in values(secret).items()}
    found = dict(places(get, namespace))
    read = client.CoreV1Api(connected(kubeconfig, context or None)).read_namespaced_pod_log
    found |= dict(logs(read, list(items(get, f"/api/v1/namespaces/{namespace}/pods"))))
    found |= {Path(file).name: Path(file).read_text(encoding="utf-8") for file in files}
    return {"secrets": len(secrets), "places": len(found), "found": leaks(secrets, found)}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
