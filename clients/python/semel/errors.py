"""What can go wrong, and what to do then. A decision (replay, busy, mismatch, held) is an answer and no error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Union

if TYPE_CHECKING:
    from .decision import Busy, Held, Mismatch
    from .outcome import Outcome


class Error(Exception):
    """Something went wrong. The class says what to do now, the message what happened."""


class Lost(Error):
    """Another run took over, or the record is gone. Do not report success; claim again to hear what happened."""


class Unavailable(Error):
    """Nothing was done. Ask again later with the same key, after `retry_after` seconds if the server named a span."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unknown(Error):
    """The reply was lost: it may have taken. Ask again with the same key (and permit id); do not assume that it failed."""


class Refused(Error):
    """The server will not do this, however often it is asked. `code` is its word for why; mend the request."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class NotRun(Error):
    """The work did not run, and there is no outcome to replay. `decision` says why: busy, mismatch or held."""

    def __init__(self, decision: Union[Busy, Mismatch, Held]) -> None:
        super().__init__(decision.advice)
        self.decision = decision


class FailedBefore(Error):
    """The work failed before, and the failure was stored: it is what every caller gets. The work did not run again."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(f"the work failed before: {outcome.text}")
        self.outcome = outcome


def from_problem(
    status: int, code: Optional[str], detail: str, retry_after: float = 0.0
) -> Union[Unavailable, Unknown, Refused]:
    """The error that an answer without a decision means. What no server of ours said may have been said by a machine
    between us and it, after the server acted: that is unknown."""
    if code in ("unavailable", "full", "quota_exceeded") or status in (408, 429):
        return Unavailable(f"nothing was done: {detail}", retry_after)
    if code == "unknown" or (status >= 500 and code is None):
        return Unknown(f"it may have taken ({status}): {detail}")
    return Refused(f"refused ({status} {code or 'without a code'}): {detail}", code or str(status))
