"""The lease while work runs: renewed at a third of it, and the work told when it is lost."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Optional, Type

from .errors import Error, Lost

if TYPE_CHECKING:
    from .permit import Permit


class Heartbeat:
    """Keeps a lease from `with` to the end of its block. Its end does not release the permit."""

    def __init__(self, permit: Permit) -> None:
        self._permit = permit
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="semel heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        # Not joined: a renewal in flight may take as long as its timeout, and the outcome should not wait for it.
        self._ended.set()

    def _beat(self) -> None:
        permit = self._permit
        while not self._ended.wait(pause(permit.lease, permit.good_until, time.monotonic())):
            left = permit.good_until - time.monotonic()
            if left <= 0:
                permit.lost.set()
                return
            try:
                if not permit.renew_once(timeout=left):
                    # Completed meanwhile: nothing is left to renew, and nothing is lost.
                    return
            except Lost:
                return
            except Error:
                # Asked again soon; the deadline says when it is too late.
                continue


def pause(lease: float, good_until: float, now: float) -> float:
    """How long until the next renewal: when a third of the lease is used. After a failed one that moment is past: soon
    then, not at once, and never later than the deadline."""
    third = lease / 3
    due = max(good_until - 2 * third, now + third / 8)
    return max(0.0, min(due, good_until) - now)
