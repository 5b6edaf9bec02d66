# SPDX-License-Identifier: GPL-3.0-or-later
"""A released manifest made from a Go module: of pinned sources, with the digest of the release, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import typing as t
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, Rejected
from ansible_collections.muster.ml.plugins.module_utils._local.released import ReleasedManifest, write

MODULE, SUM = "example.com/robot", "h1:abc="


class Programs:
    """Go, which keeps the module in FOLDER, and kustomize, which prints its page."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.sum, self.pages = folder, SUM, [{}]

    def __call__(self, argv: list[str], *, env: t.Mapping[str, str] | None = None, cwd: str | None = None) -> str:
        if argv[0] == "go":
            assert argv == ["go", "mod", "download", "-json", f"{MODULE}@v1.0.0"]
            return json.dumps({"Path": MODULE, "Dir": str(self.folder), "Version": "v1.0.0", "Sum": self.sum})
        page = json.loads((Path(argv[2]) / "kustomization.yaml").read_text())
        (base,) = page.pop("resources")
        assert (Path(argv[2]) / base).resolve() == self.folder / "config"
        self.pages.append(page)
        return "kind: A\n"


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    folder = tmp_path / "module"
    (folder / "crd").mkdir(parents=True)
    (folder / "config").mkdir()
    for name in ("b.yaml", "a.yaml"):
        (folder / "crd" / name).write_text(f"kind: {name[0]}\n")
    (folder / "licence.txt").write_text("# YEAR\n")
    (tmp_path / "go.sum").write_text(f"{MODULE} v1.0.0 {SUM}\n")
    return Programs(folder)


def desired(folder: Path, text: str, **given: t.Any) -> ReleasedManifest:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return ReleasedManifest(path=folder / "out" / "m.yaml", sha256=digest, module=MODULE, module_dir=folder, **given)


def no_kustomize() -> Path:
    raise AssertionError("kustomize is not needed")


SOURCES = [{"files": "licence.txt", "replace": {"YEAR": "2025"}}, {"text": "# all\n"}, {"files": "crd/*.yaml", "before": "---\n# {path}\n"}]
JOINED = "# 2025\n# all\n---\n# crd/a.yaml\nkind: a\n---\n# crd/b.yaml\nkind: b\n"


def test_files_are_joined_in_the_order_of_their_names(tmp_path: Path, programs: Programs) -> None:
    one = desired(tmp_path, JOINED, sources=SOURCES)
    write(one, no_kustomize, programs)
    assert one.path.read_text() == JOINED
    assert one.path.stat().st_mode & 0o777 == 0o644


def test_a_kustomization_is_built_of_folders_of_the_module(tmp_path: Path, programs: Programs) -> None:
    page = {"namespace": "robots", "images": [{"name": "staging/robot", "newTag": "v1"}]}
    write(desired(tmp_path, "kind: A\n", kustomization={**page, "resources": ["config"]}), lambda: Path("kustomize"), programs)
    assert programs.pages[-1] == page


def test_what_is_there_is_not_made_again(tmp_path: Path, programs: Programs) -> None:
    one = desired(tmp_path, JOINED, sources=SOURCES)
    write(one, no_kustomize, programs)
    write(one, no_kustomize, lambda *_words, **_more: pytest.fail("a program was started"))
    one.path.write_text("changed")
    assert not one.is_there()
    write(one, no_kustomize, programs)
    assert one.is_there()


@pytest.mark.parametrize(
    ("text", "pinned", "sources", "error", "said"),
    [
        ("other", SUM, SOURCES, Rejected, "m.yaml: made of example.com/robot, it has sha256 .*, expected"),
        (JOINED, "h1:other=", SOURCES, Rejected, "example.com/robot v1.0.0 has the sum h1:other=, and go.sum in"),
        (JOINED, SUM, [{"files": "none/*"}], InvalidInput, "module example.com/robot has no file none"),
    ],
)
def test_what_is_refused_is_not_written(
    tmp_path: Path, programs: Programs, text: str, pinned: str, sources: list[dict[str, str]], error: type, said: str
) -> None:
    programs.sum = pinned
    one = desired(tmp_path, text, sources=sources)
    with pytest.raises(error, match=said):
        write(one, no_kustomize, programs)
    assert not one.path.exists()
