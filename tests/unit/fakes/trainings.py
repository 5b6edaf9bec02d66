# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of a small training."""

import typing as t

PERSIA: dict[str, t.Any] = {
    "name": "adult",
    "namespace": "default",
    "image": "example/persia:1",
    "global_config": {},
    "embedding_config": {"slots_config": {"age": {"dim": 8}}},
    "files": {"train.py": "", "data_loader.py": ""},
    "nn_worker": {"replicas": 1, "entry": "train.py"},
    "dataloader": {"replicas": 1, "entry": "data_loader.py"},
    "embedding_worker": {"replicas": 1},
    "embedding_parameter_server": {"replicas": 1},
}
