"""What a caller is told. These are answers, not errors: exactly one caller hears Run, everyone else what happened."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Union

from .outcome import Outcome, outcome_answer

if TYPE_CHECKING:
    from .permit import Permit


@dataclass(frozen=True)
class Run:
    """Run, then complete or release the permit."""

    permit: Permit


@dataclass(frozen=True)
class Replay:
    """The work is done: answer with the stored outcome."""

    outcome: Outcome
    remembered_until: Optional[datetime]
    id: str


@dataclass(frozen=True)
class Busy:
    """Another caller runs: ask again after `retry_after` seconds, or wait."""

    owner: str
    since: datetime
    retry_after: float
    id: str

    @property
    def advice(self) -> str:
        return f"{self.owner or 'another caller'} runs since {self.since}: ask again later, or say how long to wait"


@dataclass(frozen=True)
class Mismatch:
    """Another request was made under this key: refuse."""

    mismatches: int
    id: str

    @property
    def advice(self) -> str:
        return "another request was made under this key: use a key of its own for it"


@dataclass(frozen=True)
class Held:
    """Nobody may run until a person or a probe decides."""

    reason: str
    id: str

    @property
    def advice(self) -> str:
        return f"held ({self.reason}): somebody must look, and resolve it"


@dataclass(frozen=True)
class Recorded:
    """The outcome is stored, and this call stored it."""

    remembered_until: Optional[datetime]
    id: str


Decision = Union[Run, Replay, Busy, Mismatch, Held]
"""What a claim is told."""


def moment(text: Optional[str]) -> Optional[datetime]:
    """A moment of the server's, which always speaks UTC."""
    return None if text is None else instant(text)


def instant(text: str) -> datetime:
    """The same, where there is one. Python before 3.11 does not read a Z."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def told(answer: Mapping[str, Any]) -> Union[Replay, Busy, Mismatch, Held]:
    """The decision that an answer holds, if it gives no right to run."""
    word, record_id = answer["decision"], answer["id"]
    if word == "replay":
        return Replay(outcome_answer(answer["outcome"]), moment(answer["remembered_until"]), record_id)
    if word == "busy":
        return Busy(answer["owner"], instant(answer["since"]), answer["retry_after_ms"] / 1000, record_id)
    if word == "mismatch":
        return Mismatch(answer["mismatches"], record_id)
    if word == "held":
        return Held(answer["reason"], record_id)
    raise ValueError(f"the server's decision {word!r} is newer than this client: update the client")


def decided(answer: Mapping[str, Any], grant: Callable[[Mapping[str, Any]], Permit]) -> Decision:
    """The decision that a claim's answer holds."""
    return Run(grant(answer)) if answer["decision"] == "run" else told(answer)
