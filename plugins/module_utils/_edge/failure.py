# SPDX-License-Identifier: GPL-3.0-or-later
"""The one place where an error becomes the result of a failed task, for all modules."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import re
import sys
import traceback
import typing as t

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from .._core.errors import MusterError
from .._core.files import NO_ROOM
from .._core.sensitive import printable
from .values import checked

Result = dict[str, t.Any]

LIBRARIES = {
    "boto3": "boto3>=1.41.0",
    "botocore": "botocore>=1.41.0",
    "cryptography": "cryptography>=45.0.0",
    "google.auth": "google-auth>=2.26.1",
    "google.cloud": "google-cloud-storage>=3.0.0",
    "google.protobuf": "protobuf>=5.26.1",
    "grpc": "grpcio>=1.67.1",
    "nacl": "PyNaCl>=1.5.0",
    "requests": "requests>=2.31.0",
    "tritonclient": "tritonclient[grpc]>=2.53.0",
    "yaml": "PyYAML>=6.0.1",
}
"""The imports that are not part of Python: name of the package in Python -> what to install, as the requirement files have it."""

EXPECTED = (MusterError, ImportError, OSError, AttributeError, TypeError)
"""Errors that ``failure`` can report, the last two of a library that is too old; anything else is a bug, and needs its traceback."""

_LOGIN = re.compile(r"(?<=:/)/?[^/\s@]*:[^/\s]*@")


def finish(module: AnsibleModule, spec: Result, constraints: Result, execute: t.Callable[[dict[str, t.Any]], Result]) -> None:
    """End MODULE with the result that EXECUTE returns for its checked options, or with the expected error that it raises."""
    try:
        result = execute(checked(spec, module.params, constraints))
    except EXPECTED as exc:
        module.fail_json(**failure(exc))
    module.exit_json(**result)


def failure(exc: BaseException) -> Result:
    """The arguments of ``fail_json`` for an expected error."""
    if isinstance(exc, MusterError):
        result: Result = {"msg": str(exc), **printable(exc.details)}
        if exc.ref:
            result["object"] = dataclasses.asdict(exc.ref)
        return t.cast(Result, without_logins(result))
    if isinstance(exc, OSError):
        where = f"{exc.filename}: " if exc.filename else ""
        hint = " Free space there, and run again." if exc.errno in NO_ROOM else ""
        told = {"msg": f"{where}{exc.strerror or exc}.{hint}", "exception": traceback.format_exc()}
        return t.cast(Result, without_logins(told))
    named = f"{exc.name}." if isinstance(exc, ImportError) else ""
    for library, requirement in LIBRARIES.items():
        if named.startswith(f"{library}."):
            return {"msg": missing_required_lib(requirement), "exception": traceback.format_exc()}
    if isinstance(exc, (AttributeError, TypeError)) and (old := _too_old()):
        return {"msg": f"A library is too old: {'; '.join(old)}. ({type(exc).__name__}: {exc})", "exception": traceback.format_exc()}
    raise exc


def _too_old() -> list[str]:
    """The imported libraries that are older than what is needed, each with the version that was found."""
    found = []
    for library, requirement in LIBRARIES.items():
        name, _sign, least = re.sub(r"\[.*\]", "", requirement).partition(">=")
        # A namespace such as google.cloud is there without this part of it, too.
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            version = importlib.metadata.version(name) if library in sys.modules else least
            if _numbers(version) < _numbers(least):
                found.append(f"{name} {version} of {sys.executable}, where {least} or newer is needed")
    return found


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def without_logins(value: t.Any) -> t.Any:
    """The value without the logins of URLs, at any depth: a text that an error quotes may be an address with a password."""
    if isinstance(value, str):
        return _LOGIN.sub("/***@", value) if ":/" in value else value
    if isinstance(value, dict):
        return {key: without_logins(item) for key, item in value.items()}
    return [without_logins(item) for item in value] if isinstance(value, list) else value
