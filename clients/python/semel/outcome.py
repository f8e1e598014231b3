"""What a run produced: bytes, what kind of end it was, and what it created."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any, Dict, Mapping, NamedTuple, Sequence, Tuple


class Reference(NamedTuple):
    """Something that a run created or changed: `("charge", "ch_1")`."""

    kind: str
    id: str


@dataclass(frozen=True)
class Outcome:
    """What a run produced, exactly as it was stored."""

    data: bytes
    kind: str = "success"
    references: Tuple[Reference, ...] = ()
    details: Any = None

    @property
    def value(self) -> Any:
        """The stored JSON, read. A ValueError if the bytes are no JSON: then `data` is what you want."""
        return json.loads(self.data)

    @property
    def text(self) -> str:
        """The bytes as text, for people."""
        return self.data.decode(errors="replace")


def to_json(value: Any) -> str:
    """The JSON text of a value, as short as Rust writes it. NaN is refused here: it is no JSON, and other languages choke on it."""
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def value_member(value: Any) -> Dict[str, Any]:
    """How a value travels: bytes as base64, everything else as JSON."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"base64": base64.b64encode(value).decode()}
    return {"json": value}


def stored_bytes(members: Mapping[str, Any]) -> bytes:
    """The bytes that an answer holds. None at all is what callers get that may not see them."""
    if "base64" in members:
        return base64.b64decode(members["base64"])
    return to_json(members["json"]).encode() if "json" in members else b""


def outcome_ask(value: Any, kind: str, references: Sequence[Tuple[str, str]], details: Any) -> Dict[str, Any]:
    """An outcome for the server."""
    outcome = {"kind": kind, **value_member(value)}
    if references:
        outcome["references"] = [{"kind": what, "id": which} for what, which in references]
    if details is not None:
        outcome["details"] = details
    return outcome


def outcome_answer(members: Mapping[str, Any]) -> Outcome:
    """An outcome from the server."""
    return Outcome(
        stored_bytes(members),
        members.get("kind", "success"),
        tuple(Reference(reference["kind"], reference["id"]) for reference in members.get("references", ())),
        members.get("details"),
    )
