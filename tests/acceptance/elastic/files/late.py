# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends on every rank but the first one, which works for some more seconds and then writes the model, or fails: late.py SECONDS [fail]."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
model = torch.ones(1)
dist.all_reduce(model)
if dist.get_rank() == 0:
    time.sleep(float(sys.argv[1]))
    if sys.argv[2:] == ["fail"]:
        sys.exit(3)
    folder = Path(os.environ["MUSTER_RUN_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    # The number of ranks: of all of them, and not of the first one after it has begun again alone.
    (folder / "model").write_text(str(int(model.item())), encoding="ascii")
