# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: files
short_description: Read files and folders for the pods of a training
author: Muster contributors (!UNKNOWN)
description:
  - Returns one mapping of paths to contents, as the option O(muster.ml.persia_job#module:files) of the modules for trainings takes it.
  - A file has its own name. What is in a folder has its path below that folder. Hidden files and C(__pycache__) are left out.
  - Files that Ansible Vault has encrypted are decrypted.
options:
  _terms:
    description: Paths of files and folders on the controller, absolute or relative as for P(ansible.builtin.file#lookup).
    type: list
    elements: path
"""

EXAMPLES = r"""
- name: Train with a script and with all that is in a folder
  muster.ml.persia_job:
    name: adult
    namespace: ml
    files: "{{ lookup('muster.ml.files', 'adult-income', 'settings.yml') }}"
"""

RETURN = r"""
_raw:
  description: One mapping. The content of a file is its text, or a mapping with V(base64) where it is no UTF-8.
  type: list
  elements: dict
  sample: [{train.py: "print(1)", data/x.bin: {base64: AAEC}}]
"""

import base64
import os
import pathlib
import typing as t

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ansible_collections.muster.ml.plugins.module_utils._manifests.shared import CONFIG_MAP_MAX


class LookupModule(LookupBase):
    def run(self, terms: list[str], variables: dict[str, t.Any] | None = None, **kwargs: t.Any) -> list[dict[str, t.Any]]:
        self.set_options(var_options=variables, direct=kwargs)
        found: dict[str, pathlib.Path] = {}
        for term in terms:
            for name, path in self.named(term, variables):
                if found.setdefault(name, path) != path:
                    raise AnsibleError(f"{path} and {found[name]} would both be '{name}' in the pods. Rename one of them.")
        sizes = {name: path.stat().st_size for name, path in found.items()}
        if sum(sizes.values()) > CONFIG_MAP_MAX:
            largest = max(sizes, key=sizes.__getitem__)
            raise AnsibleError(
                f"{len(sizes)} files of {sum(sizes.values())} bytes, a ConfigMap holds 1 MiB; the largest is {found[largest]} "
                f"({sizes[largest]} bytes). Put large files on the shared storage."
            )
        return [{name: self.content(path) for name, path in found.items()}]

    def named(self, term: str, variables: dict[str, t.Any] | None) -> t.Iterator[tuple[str, pathlib.Path]]:
        """The files of a term with their names in the pods."""
        given = self.find_file_in_search_path(variables or {}, "files", term, ignore_missing=True)
        if not given:
            raise AnsibleError(f"There is no file and no folder {term}.")
        top = pathlib.Path(given)
        if not top.is_dir():
            yield top.name, top
            return
        for folder, folders, names in os.walk(top):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__")
            for name in sorted(name for name in names if not name.startswith(".")):
                path = pathlib.Path(folder, name)
                yield str(path.relative_to(top)), path

    def content(self, path: pathlib.Path) -> str | dict[str, str]:
        """The text of a file; base64 where it is none."""
        data = pathlib.Path(self._loader.get_real_file(str(path))).read_bytes()
        try:
            return data.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(data).decode()}
