# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens: the caller proves with its key who it is, and gets one (RFC 7523, as
developers.google.com/identity/protocols/oauth2/service-account).

An access token that was handed to the client (GCP_ACCESS_TOKEN) is known from the start.
"""

import base64
import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from .discovery import Body
from .state import PROJECT, number

HOST = "oauth2.googleapis.com"
TOKEN_URI = f"https://{HOST}/token"
CALLER = f"ansible@{PROJECT}.iam.gserviceaccount.com"
# A canary: no output may show it.
ACCESS_TOKEN = "ya29.canary-access-token-of-google"
LIFE_S = 3600


class Tokens:
    """The tokens that are good, with who has each."""

    def __init__(self, folder: Path) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.good: dict[str, str] = {ACCESS_TOKEN: CALLER}
        private = self._key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        service_account = {
            "type": "service_account", "project_id": PROJECT, "private_key_id": "0123456789abcdef",
            "private_key": private.decode(), "client_email": CALLER, "client_id": "100000000000000000001",
            "auth_uri": "https://accounts.google.com/o/oauth2/auth", "token_uri": TOKEN_URI, "universe_domain": "googleapis.com",
        }  # fmt: skip
        path = folder / "service_account.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps(service_account), encoding="utf-8")

    def token(self, body: bytes) -> tuple[int, Body]:
        """What the token endpoint answers to a form."""
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        grant = form.get("grant_type", "")
        if grant != "urn:ietf:params:oauth:grant-type:jwt-bearer":
            return 400, {"error": "unsupported_grant_type", "error_description": f"Invalid grant_type: {grant}"}
        if problem := self._problem(form.get("assertion", "")):
            return 400, {"error": "invalid_grant", "error_description": problem}
        token = f"ya29.c.canary-token-{number()}"
        self.good[token] = CALLER
        return 200, {"access_token": token, "expires_in": LIFE_S - 1, "token_type": "Bearer"}

    def _problem(self, assertion: str) -> str:
        try:
            header, payload, signature = assertion.split(".")
            claims: dict[str, Any] = json.loads(_decoded(payload))
            self._key.public_key().verify(_decoded(signature), f"{header}.{payload}".encode(), padding.PKCS1v15(), hashes.SHA256())
        except (ValueError, InvalidSignature):
            return "Invalid JWT Signature."
        if claims.get("iss") != CALLER or claims.get("aud") != TOKEN_URI:
            return "Invalid JWT: issuer or audience"
        if not claims.get("scope"):
            return "Invalid OAuth scope or ID token audience provided."
        if not claims["iat"] - 300 <= time.time() <= claims["exp"] <= claims["iat"] + LIFE_S:
            return "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe."
        return ""


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
