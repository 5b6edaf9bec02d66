# SPDX-License-Identifier: GPL-3.0-or-later
"""The cases that tests/unit holds us to are what the real kubectl does."""

import subprocess
import sys

from differential import proxies


def test_kubectl_takes_the_proxies_that_we_expect(kubectl: str) -> None:
    done = subprocess.run([sys.executable, proxies.__file__, kubectl], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
