# SPDX-License-Identifier: GPL-3.0-or-later
"""What is recorded of kubectl's reading (and held against ours by the unit tests) is what the real kubectl reads."""

import json
import re
import subprocess
import typing as t
from pathlib import Path

from faults.conftest import KUBECONFIG

from differential.yaml_corpus import NAME, answers


def printed(text: str) -> t.Iterator[t.Any]:
    """kubectl prints one object after the other."""
    decoder, position = json.JSONDecoder(), 0
    while position < len(text.rstrip()):
        value, position = decoder.raw_decode(text, position)
        yield value
        position += len(text[position:]) - len(text[position:].lstrip())


def test_the_real_kubectl_reads_what_is_recorded(kubectl: str, tmp_path: Path) -> None:
    recorded = dict(enumerate(answers().items()))
    for number, (text, _answer) in recorded.items():
        (tmp_path / f"case-{number}.yaml").write_bytes(text.replace(NAME, f"case-{number}").encode())
    words: list[str | Path] = [kubectl, "--kubeconfig", KUBECONFIG, "create", "--dry-run=client", "--validate=false", "-o", "json"]
    done = subprocess.run([*words, "-f", tmp_path], capture_output=True, text=True, check=False)
    found: dict[int, list[t.Any] | None] = {}
    for item in printed(done.stdout):
        number = int(item["metadata"]["name"].removeprefix("case-"))
        item["metadata"] = {"name": NAME}  # without the namespace that kubectl added
        found.setdefault(number, []).append(item)  # type: ignore[union-attr]
    refused = {int(number) for number in re.findall(r"case-(\d+)\.yaml", done.stderr)}
    found |= dict.fromkeys(refused)
    assert len(found) == len(recorded) > 600
    wrong = {
        text: (found[number], answer)
        for number, (text, answer) in recorded.items()
        if json.dumps(found[number], sort_keys=True) != json.dumps(answer, sort_keys=True)
    }
    assert wrong == {}
