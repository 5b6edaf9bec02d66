# SPDX-License-Identifier: GPL-3.0-or-later
"""Object stores on this machine, at its address on the cluster's bridge: S3 (moto, which checks signatures and policies) and
Google Cloud Storage (gcp-storage-emulator). Each has the same archive, and a second port where it comes at 128 KiB a second until it is
interrupted.

    stores.py start STATE NODE_ADDRESS     says as JSON where and what they are
    stores.py stop STATE
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import tarfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

BUCKET, KEY = "sets", "vision/data.tar"
SLOW = 128 << 10
READS = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{BUCKET}/*"}


def archive() -> bytes:
    """Real files, the same bytes each time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
            member = tarfile.TarInfo(path.name)
            member.size = path.stat().st_size
            tar.addfile(member, io.BytesIO(path.read_bytes()))
    return buffer.getvalue()


def listen(host: str) -> socket.socket:
    found = socket.create_server((host, 0))
    found.listen()
    return found


def slowly(host: str, port: int) -> int:
    """A port that passes on what PORT answers, at a pace; what is asked for again after an interruption comes at once."""
    door = listen(host)

    def serve(client: socket.socket) -> None:
        with client, socket.create_connection((host, port)) as server:
            request = client.recv(1 << 16)
            server.sendall(request)
            threading.Thread(target=forward, args=(client, server, 0), daemon=True).start()
            forward(server, client, 0 if b"\r\nrange:" in request.lower() else SLOW)

    def forward(source: socket.socket, sink: socket.socket, pace: int) -> None:
        sent = 0
        try:
            while chunk := source.recv(1 << 14):
                sink.sendall(chunk)
                sent += len(chunk)
                if pace:  # after two MiB a tenth of it: on a busy machine, too, the pod is deleted before the end
                    time.sleep(len(chunk) / pace * (1 if sent < 2 << 20 else 10))
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return  # one of the two has gone: a pod was lost

    def accept() -> None:
        while True:
            client, _address = door.accept()
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return int(door.getsockname()[1])


def s3(host: str, content: bytes) -> dict[str, Any]:
    """moto with a bucket and a user who may read it; from then on it checks."""
    import boto3
    from moto import settings
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    server = make_server(host, 0, DomainDispatcherApplication(create_backend_app), threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://{host}:{server.server_port}"
    anybody = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1", "endpoint_url": url}
    bucket, iam = boto3.client("s3", **anybody), boto3.client("iam", **anybody)
    bucket.create_bucket(Bucket=BUCKET)
    bucket.put_object(Bucket=BUCKET, Key=KEY, Body=content)
    policy = json.dumps({"Version": "2012-10-17", "Statement": [READS]})
    iam.create_user(UserName="reader")
    iam.put_user_policy(UserName="reader", PolicyName="read", PolicyDocument=policy)
    access = iam.create_access_key(UserName="reader")["AccessKey"]
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    return {
        "url": url,
        "slow_url": f"http://{host}:{slowly(host, server.server_port)}",
        "access_key": access["AccessKeyId"],
        "secret_key": access["SecretAccessKey"],
    }


def gs(host: str, content: bytes) -> dict[str, Any]:
    """Google's, with a public bucket."""
    from gcp_storage_emulator.server import create_server

    with listen(host) as free:
        port = int(free.getsockname()[1])
    create_server(host, port, in_memory=True, default_bucket=BUCKET).start()
    url = f"http://{host}:{port}"
    name = urllib.parse.quote(KEY, safe="")
    request = urllib.request.Request(f"{url}/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={name}", content)  # noqa: S310
    request.add_header("Content-Type", "application/x-tar")
    urllib.request.urlopen(request).close()  # noqa: S310
    return {"url": url, "slow_url": f"http://{host}:{slowly(host, port)}"}


def host_near(node: str) -> str:
    """This machine's own address on the way to a node."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((node, 9))
        return str(probe.getsockname()[0])


def serve(node: str) -> None:
    host, content = host_near(node), archive()
    found = {
        "pid": os.getpid(),
        "object": f"{BUCKET}/{KEY}",
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
        "s3": s3(host, content),
        "gs": gs(host, content),
    }
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    signal.pause()


def start(state: Path, *what: str) -> None:
    stop(state)
    log = state.with_suffix(".log").open("w")
    process = subprocess.Popen(
        [sys.executable, __file__, "serve", *what],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True,
    )  # fmt: skip
    line = process.stdout.readline() if process.stdout else b""
    if not line:
        raise SystemExit(state.with_suffix(".log").read_text())
    state.touch(mode=0o600)
    state.write_bytes(line)
    sys.stdout.write(line.decode())


def stop(state: Path) -> None:
    if state.exists():
        pid = json.loads(state.read_text())["pid"]
        command = Path(f"/proc/{pid}/cmdline")
        if command.exists() and Path(__file__).name in command.read_text():
            os.kill(pid, signal.SIGTERM)
        state.unlink()


def main() -> None:
    verb, *rest = sys.argv[1:]
    if verb == "serve":
        serve(*rest)
    elif verb == "start":
        start(Path(rest[0]), *rest[1:])
    else:
        stop(Path(rest[0]))


if __name__ == "__main__":
    main()
