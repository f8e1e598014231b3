"""What the store keeps for one key, for those that look without claiming."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Mapping, Optional, Tuple

from .decision import instant, moment
from .key import Key
from .outcome import Outcome, outcome_answer


@dataclass(frozen=True)
class EndedAttempt:
    """An attempt that is over."""

    attempt: int
    owner: Optional[str]
    since: datetime
    until: datetime
    ended: str
    """"completed", "released", "lapsed" or "held"."""
    reason: Optional[str]


@dataclass(frozen=True)
class Record:
    """What the store keeps for one key."""

    key: Key
    id: str
    state: str
    """"running", "done", "released" or "held"."""
    attempt: int
    outcome: Optional[Outcome]
    """Of a done record; without its bytes if this caller may not see them."""
    owner: Optional[str]
    """Who runs it, or ran it last."""
    reason: Optional[str]
    """Of a released or a held record."""
    lapsed: bool
    """Of a running record: it was not renewed in time, and the next claim runs it again."""
    first_seen_at: datetime
    changed_at: datetime
    remembered_until: Optional[datetime]
    label: Optional[str]
    """What the work is, in words for people."""
    history: Tuple[EndedAttempt, ...]
    """The last 8 attempts that are over, oldest first."""
    members: Mapping[str, Any]
    """Everything the server said of it."""

    @property
    def is_settled(self) -> bool:
        """Whether waiting longer would show nothing new by itself."""
        return self.state != "running" or self.lapsed


def record_answer(members: Mapping[str, Any]) -> Record:
    """A record from the server."""
    outcome = members.get("outcome")
    return Record(
        Key(members["operation"], members["name"], tuple(members["scope"])),
        members["id"],
        members["state"],
        members["attempt"],
        None if outcome is None else outcome_answer(outcome),
        members.get("owner"),
        members.get("reason"),
        members.get("lapsed", False),
        instant(members["first_seen_at"]),
        instant(members["changed_at"]),
        moment(members.get("remembered_until")),
        members.get("label"),
        tuple(_ended(attempt) for attempt in members.get("history", ())),
        members,
    )


def _ended(members: Mapping[str, Any]) -> EndedAttempt:
    since, until = instant(members["from"]), instant(members["until"])
    return EndedAttempt(members["attempt"], members["owner"], since, until, members["ended"], members["reason"])
