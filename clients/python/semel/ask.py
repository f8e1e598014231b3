"""What a caller asks for. A claim mints its permit id once, so that a retry after a lost reply finds its own run."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Dict, Optional, TypedDict, Union

from .key import Key, mint_permit_id

Span = Union[float, timedelta]
"""A span of time: seconds, or a timedelta."""


class Terms(TypedDict, total=False):
    """What many claims may have in common; see `Claim`."""

    owner: Optional[str]
    label: Optional[str]
    lease: Optional[Span]
    retention: Optional[Span]
    lapse: Optional[str]
    attempts_max: Optional[int]
    reentrant: bool


class Options(Terms, total=False):
    """What one claim may say beside its key; see `Claim`."""

    request: Any
    fingerprint: Optional[str]
    permit_id: str
    first_event: Optional[str]


@dataclass(frozen=True)
class Claim:
    """A claim that can be sent again: the same object is the same ask."""

    key: Key
    request: Any = None
    """Anything that JSON can say; two requests under one key must agree on it. None: nobody compares."""
    fingerprint: Optional[str] = None
    """The request's digest (64 hex digits), for callers that digest it themselves."""
    permit_id: str = field(default_factory=mint_permit_id, repr=False)
    owner: Optional[str] = None
    """Who asks, for people that look."""
    lease: Optional[Span] = None
    """How long the permit is good without renewal; the server's default is 60 seconds."""
    retention: Optional[Span] = None
    """How long the outcome is remembered; the server's default is a day."""
    lapse: Optional[str] = None
    """What a lapsed lease means: "rerun" (the default), or "hold" until a person has looked."""
    attempts_max: Optional[int] = None
    reentrant: bool = False
    """Whether the same owner may take over its own run."""
    first_event: Optional[str] = None
    label: Optional[str] = None
    """What the work is, in words for people; never part of the identity. At most 256 bytes."""

    def body(self) -> Dict[str, Any]:
        """The claim for the server. Outcomes are asked for as bytes, so that a replay is exact."""
        members = {
            "scope": list(self.key.scope) or None,
            "operation": self.key.operation,
            "name": self.key.name,
            "request": self.request,
            "fingerprint": self.fingerprint,
            "permit_id": self.permit_id,
            "owner": self.owner,
            "lease_ms": milliseconds(self.lease),
            "retention_ms": milliseconds(self.retention),
            "lapse": self.lapse,
            "attempts_max": self.attempts_max,
            "reentrant": self.reentrant or None,
            "label": self.label,
            "first_event": self.first_event,
            "outcome_as": "base64",
        }
        return {name: value for name, value in members.items() if value is not None}


def seconds(span: Span) -> float:
    """A span as seconds."""
    return span.total_seconds() if isinstance(span, timedelta) else float(span)


def milliseconds(span: Optional[Span]) -> Optional[int]:
    """A span as the server takes it."""
    return None if span is None else round(seconds(span) * 1000)
