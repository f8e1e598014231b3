"""What the store keeps for one key, for those that look without claiming."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Mapping, Optional

from .decision import instant, moment
from .key import Key
from .outcome import Outcome, outcome_answer


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
    """Of a running record."""
    reason: Optional[str]
    """Of a released or a held record."""
    lapsed: bool
    """Of a running record: nobody renewed it in time, and the next claim decides."""
    first_seen_at: datetime
    changed_at: datetime
    remembered_until: Optional[datetime]
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
        members,
    )
