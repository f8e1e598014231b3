"""The right to run, and how it ends."""

from __future__ import annotations

import json
import threading
import time
from datetime import datetime
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, TypeVar

from .decision import moment
from .errors import Lost
from .heartbeat import Heartbeat
from .key import derived
from .outcome import outcome_ask, stored_bytes, to_json, value_member
from .retry import Retry
from .transport import Transport

T = TypeVar("T")


class Permit:
    """The right to run. Dropping it does not release it: a caller that goes away has proved nothing about its effect,
    and the lease decides."""

    def __init__(self, transport: Transport, retry: Retry, answer: Mapping[str, Any], asked_at: float) -> None:
        self._transport, self._retry = transport, retry
        self.id: str = answer["id"]
        """The id of the key's record: 64 hex digits."""
        self.text: str = answer["permit"]
        """The permit itself, to hand to another process (`Client.permit`). Whoever has it may settle the run."""
        self.attempt: int = answer["attempt"]
        """The how-manieth run this is. Beyond 1, an earlier run may have left effects behind."""
        self.fence: int = answer["fence"]
        """Grows with every grant. Hand it to whatever the work writes to, and have that refuse a lower one."""
        self.lease: float = answer["lease_ms"] / 1000
        """How many seconds the permit is good without renewal."""
        self.steps: Dict[str, bytes] = {step["name"]: stored_bytes(step) for step in answer["steps"]}
        """The finished steps of this attempt and of earlier ones."""
        # The deadline starts before the claim was sent: a slow reply must shorten the lease, never stretch it.
        self.good_until: float = asked_at + self.lease
        """Until when the lease is good at least, on the clock of `time.monotonic`."""
        self.lost = threading.Event()
        """Set when another run may have taken over. Work that can stop should stop then."""

    def derive(self, label: str) -> str:
        """A key for a system further down, the same on every attempt: `derive("provider.charge")`."""
        return derived(self.id, label)

    def complete(
        self,
        value: Any = None,
        *,
        kind: str = "success",
        references: Sequence[Tuple[str, str]] = (),
        details: Any = None,
    ) -> Optional[datetime]:
        """Ends the run with an outcome: bytes, or anything that JSON can say, and what the run created, such as
        `references=[("charge", "ch_1")]`. Tells until when it is remembered.
        `Lost`: do not report success. After `Unavailable` or `Unknown` the same call may be made again."""
        outcome = outcome_ask(value, kind, references, details)
        return moment(self._settle("/v1/complete", "the outcome was not stored", outcome=outcome)["remembered_until"])

    def release(self, reason: str = "") -> bool:
        """Gives up, so that another may run; to say so twice is harmless. False if there was nothing to give up: another
        run took over, or the run is completed."""
        return bool(self._ask("/v1/release", reason=reason)["decision"] == "released")

    def hold(self, reason: str) -> bool:
        """Ends the run so that it is not repeated before a person or a probe has decided. False if there was nothing to
        hold any more, which may be the work of an earlier try of this very call."""
        return bool(self._ask("/v1/hold", reason=reason)["decision"] == "held")

    def renew(self) -> bool:
        """Starts the lease anew. `heartbeat` does this by itself. False if the run was completed under this permit: then
        there is nothing to renew, and nothing is lost."""
        asked_at = time.monotonic()
        return self._renewed(self._settle("/v1/renew", "the lease was not renewed"), asked_at)

    def renew_once(self, timeout: float) -> bool:
        """The same without asking again: for callers with a schedule of their own."""
        asked_at = time.monotonic()
        answer = self._transport.post("/v1/renew", {"permit": self.text}, timeout)
        return self._renewed(self._unless_lost(answer, "the lease was not renewed"), asked_at)

    def step(self, name: str, work: Callable[[], T]) -> T:
        """Runs a part of the work, or hands back its value if it was finished before. The value is stored before this
        returns; it is what JSON makes of it."""
        if name not in self.steps:
            text = to_json(work())
            self._settle("/v1/step", f"the step {name!r} was not stored", name=name, **value_member(json.loads(text)))
            self.steps[name] = text.encode()
        value: T = json.loads(self.steps[name])
        return value

    def heartbeat(self) -> Heartbeat:
        """Renews at a third of the lease while a `with` block runs, and sets `lost` if that fails for too long."""
        return Heartbeat(self)

    @property
    def is_lost(self) -> bool:
        """Whether another run may have taken over: the server said so, or the lease ran out unrenewed."""
        return self.lost.is_set() or time.monotonic() >= self.good_until

    def _ask(self, path: str, **members: Any) -> Dict[str, Any]:
        body = {"permit": self.text, **members}
        return self._retry.ask(lambda: self._transport.post(path, body))

    def _settle(self, path: str, what: str, **members: Any) -> Dict[str, Any]:
        return self._unless_lost(self._ask(path, **members), what)

    def _unless_lost(self, answer: Dict[str, Any], what: str) -> Dict[str, Any]:
        if answer["decision"] == "lost":
            self.lost.set()
            raise Lost(f"{what}: another run took over, or the record is gone; do not report success")
        return answer

    def _renewed(self, answer: Mapping[str, Any], asked_at: float) -> bool:
        if answer["decision"] == "done":
            return False
        self.good_until = asked_at + answer["lease_ms"] / 1000
        return True

    def __repr__(self) -> str:
        return f"Permit(id={self.id[:8]}, attempt={self.attempt}, fence={self.fence})"
