"""What must happen once, and what is derived from it. The digests are the same in every language."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import Tuple


@dataclass(frozen=True)
class Key:
    """What must happen once: an operation, the name of one of its kind, and whose it is (a path of tenants)."""

    operation: str
    name: str
    scope: Tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.scope, str):
            raise TypeError("a scope is a sequence of parts: write scope=('acme',), not scope='acme'")
        object.__setattr__(self, "scope", tuple(self.scope))


def derived(record_id: str, label: str) -> str:
    """A key for a system further down, the same on every attempt and in every language."""
    digest = hashlib.sha256()
    for part in (bytes.fromhex(record_id), label.encode()):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def mint_permit_id() -> str:
    """A new permit id: 128 random bits. Whoever knows it may settle the run."""
    return secrets.token_hex(16)
