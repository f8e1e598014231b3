"""Where the server under test is, and keys that no other test uses."""

from __future__ import annotations

import os
import secrets
from typing import Any

from semel import Client, Decision, Key, Permit, Run

URL = os.environ.get("SEMEL_URL", "http://127.0.0.1:4747")
"""The address of the server under test."""
TOKEN = os.environ.get("SEMEL_TOKEN")
"""A token for the scope `tests`, if the server wants one."""


def client(url: str = URL, **options: Any) -> Client:
    return Client(url, TOKEN, **options)


def fresh_key(operation: str = "charge") -> Key:
    """A key that nobody has claimed."""
    return Key(operation, secrets.token_hex(8), ("tests", "python"))


def granted(decision: Decision) -> Permit:
    """The permit of a decision that must be to run."""
    assert isinstance(decision, Run), f"must run, and is told {decision}"
    return decision.permit
