# SPDX-License-Identifier: GPL-3.0-or-later
"""The server: moto's, behind a gate that notes every request, lets faults happen and answers for EKS itself.

    python -m simulators.aws.server --port 4566 [--cluster-endpoint https://... --cluster-ca FILE [--cluster-credential FILE --gpus N]]

Clients need `AWS_ENDPOINT_URL=http://127.0.0.1:4566` and any credentials. `/_simulator/...` is the tests' side door.
"""

import argparse
import base64
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

# Without AWS's managed policies no role of EKS can be made. moto reads this when it is imported.
os.environ.setdefault("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from ..cluster import ApiClient
from ..processes import end_with
from . import efs, eks, permissions, pods, repairs, tagging
from .api import Asked, Refused, check, protocol
from .eks import images
from .environ import Environ, address, error_body, headers_of, read_body, recognise
from .journal import CUT, JOURNAL, Fault
from .state import SETTINGS

Start = Callable[[str, list[tuple[str, str]]], Any]
SIDE_DOOR = "/_simulator/"
# The agent of Pod Identity, which on AWS each node has at an address of its own (EKS user guide, "How EKS Pod Identity works").
AGENT = "/v1/credentials"
WEB_IDENTITY = "AssumeRoleWithWebIdentity"
# How each protocol of AWS says "not so fast"; clients retry on exactly these codes (botocore/data/_retry.json).
THROTTLED = {
    "rest-json": ("ThrottlingException", 429),
    "json": ("ThrottlingException", 400),
    "query": ("Throttling", 400),
    "ec2": ("RequestLimitExceeded", 503),
    "rest-xml": ("SlowDown", 503),
}
# What a read is answered with that knows nothing yet of what was just created.
NOT_SEEN = {
    "eks": ("ResourceNotFoundException", "No such resource", 404),
    "s3": ("NoSuchBucket", "The specified bucket does not exist", 404),
}


class Gate:
    """What stands before moto."""

    def __init__(self) -> None:
        self.moto = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ: Environ, start: Start) -> Iterable[bytes]:
        if environ["PATH_INFO"].startswith(SIDE_DOOR):
            return self.side_door(environ, start)
        if environ["PATH_INFO"] == AGENT:
            return self.hand_out(Asked("eks-auth", "AssumeRoleForPodIdentity", "", {}), environ, start)
        asked = recognise(environ)
        if asked is None and f"Action={WEB_IDENTITY}" in read_body(environ).decode(errors="replace"):
            return self.hand_out(Asked("sts", WEB_IDENTITY, "", {}), environ, start)
        if asked is None:
            return self.moto(environ, start)
        try:
            session = pods.session_of(environ["REQUEST_METHOD"], address(environ), headers_of(environ), read_body(environ))
            if session:
                asked = replace(asked, role=session.role)
            called = permissions.CALLER_KEY in environ.get("HTTP_AUTHORIZATION", "")
            if called:
                CUT.meet(asked)
            self.faults(asked)
            check(asked)
            if session:
                pods.judge(asked, session)
            if called:
                JOURNAL.need(SETTINGS.phase, permissions.judge(asked))
            if asked.service == "eks":
                return self.answer(asked, eks.answer(asked), start)
            if asked.service == "efs" and (found := efs.answer(asked)) is not None:
                return self.answer(asked, found, start)
            if asked.service == "resourcegroupstaggingapi":
                return self.answer(asked, tagging.answer(asked), start)
            if asked.service == "ssm" and (value := images.parameter(asked)) is not None:
                return self.answer(asked, value, start)
            repairs.guard(asked)
            if asked.operation in repairs.IAM_OPERATIONS:
                return self.answer_xml(asked, repairs.IAM_OPERATIONS[asked.operation], start)
        except Exception as error:  # noqa: BLE001  # a mistake of ours must not look like a busy service, which is asked again
            return self.refuse(asked, error, start, silent=environ["REQUEST_METHOD"] == "HEAD")
        return self.moto(environ, noting(asked, start))

    @staticmethod
    def refuse(asked: Asked, error: Exception, start: Start, *, silent: bool = False) -> Iterable[bytes]:
        refused = error if isinstance(error, Refused) else Refused("SimulatorBroken", traceback.format_exc(), 418)
        content_type, body = error_body(asked, refused)
        if silent:
            body = b""
        JOURNAL.note(asked, refused.status)
        headers = [("Content-Type", content_type), ("x-amzn-ErrorType", refused.code)]
        start(f"{refused.status} Refused", [*headers, ("Content-Length", str(len(body)))])
        return [body]

    def hand_out(self, asked: Asked, environ: Environ, start: Start) -> Iterable[bytes]:
        """Keys of a role, to a pod that shows the token of its service account."""
        try:
            if asked.operation == WEB_IDENTITY:
                form = {name: values[0] for name, values in parse_qs(read_body(environ).decode()).items()}
                kind, body = "text/xml", pods.xml_of(pods.of_web_identity(form))
            else:
                found = pods.of_agent(environ.get("HTTP_AUTHORIZATION", ""))
                kind, body = "application/json", json.dumps(found).encode()
        except Exception as error:  # noqa: BLE001  # as above
            return self.refuse(asked, error, start)
        JOURNAL.note(asked, 200)
        start("200 OK", [("Content-Type", kind), ("Content-Length", str(len(body)))])
        return [body]

    @staticmethod
    def faults(asked: Asked) -> None:
        if JOURNAL.fault("throttle", asked.operation):
            code, status = THROTTLED[protocol(asked.service)]
            raise Refused(code, "Rate exceeded", status)
        if asked.service in NOT_SEEN and JOURNAL.fault("stale", asked.operation):
            raise Refused(*NOT_SEEN[asked.service])
        if fault := JOURNAL.fault("refuse", asked.operation):
            raise Refused(fault.detail["code"], fault.detail["message"], fault.detail.get("status", 400))

    @staticmethod
    def answer(asked: Asked, result: Any, start: Start) -> Iterable[bytes]:
        body = json.dumps(result, default=str).encode()
        JOURNAL.note(asked, 200)
        start("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]

    @staticmethod
    def answer_xml(asked: Asked, handler: Callable[[dict[str, Any]], None], start: Start) -> Iterable[bytes]:
        handler(asked.params)
        JOURNAL.note(asked, 200)
        start("200 OK", [("Content-Type", "text/xml")])
        return [f"<{asked.operation}Response><ResponseMetadata/></{asked.operation}Response>".encode()]

    @staticmethod
    def side_door(environ: Environ, start: Start) -> Iterable[bytes]:
        name, body = environ["PATH_INFO"].removeprefix(SIDE_DOOR), read_body(environ)
        reply: Any = {}
        if name == "requests":
            reply = list(JOURNAL.entries)
        elif name == "fault":
            JOURNAL.inject(Fault(**json.loads(body)))
        elif name == "caller":
            SETTINGS.caller_address, SETTINGS.caller_private_address = json.loads(body)
        elif name == "cut":
            CUT.prepare(json.loads(body))
        elif name == "is_cut":
            reply = CUT.reached.is_set()
        elif name == "release":
            CUT.release()
        elif name == "quota":
            SETTINGS.quotas |= json.loads(body)
        elif name == "policies":
            SETTINGS.phase, SETTINGS.policies = json.loads(body)
        elif name == "needed":
            reply = JOURNAL.needed
        elif name == "faults":
            reply = [asdict(fault) for fault in JOURNAL.faults]
        elif name == "clear":
            JOURNAL.clear()
        text = json.dumps(reply).encode()
        start("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(text)))])
        return [text]


def noting(asked: Asked, start: Start) -> Start:
    def noted(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
        JOURNAL.note(asked, int(status.split()[0]))
        return start(status, headers, *rest)

    return noted


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="An AWS account on this machine.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at; pods need one that they can reach")
    parser.add_argument("--port", type=int, default=4566, help="0 takes a free one; it is printed")
    parser.add_argument("--cluster-endpoint", default="https://127.0.0.1:6443", help="API server of every EKS cluster")
    parser.add_argument("--cluster-ca", type=Path, help="its certificate authority (PEM)")
    parser.add_argument("--cluster-credential", type=Path, help="an ExecCredential for it; pods then may have roles")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs of each simulated node on which the device plugin runs")
    parser.add_argument("--polls", type=int, default=2, help="how often a state is read before it moves on")
    parser.add_argument("--while", type=int, dest="during", metavar="PID", help="end with this process")
    options = parser.parse_args(argv)
    if options.during:
        end_with(options.during)
    ca = options.cluster_ca.read_bytes() if options.cluster_ca else b"no certificate authority was given"
    SETTINGS.endpoint = options.cluster_endpoint
    SETTINGS.certificate_authority = base64.b64encode(ca).decode()
    SETTINGS.polls = options.polls
    if options.cluster_credential:
        SETTINGS.api_client = ApiClient(options.cluster_endpoint, options.cluster_ca, options.cluster_credential)
        if options.gpus:
            SETTINGS.api_client.report_gpus_for_ever(options.gpus)
    repairs.apply()
    server = make_server(options.host, options.port, Gate(), threaded=True, request_handler=MotoRequestHandler)
    print(f"listening on http://{options.host}:{server.server_port}", flush=True)
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
