"""The way to a claim server."""

from __future__ import annotations

import time
from ssl import SSLContext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple, Type, TypeVar, Union
from urllib.parse import quote, urlencode

from .ask import Claim, Options, Span, seconds
from .batch import claim_many
from .decision import Busy, Decision, Held, Mismatch, Recorded, Replay, decided, moment, told
from .errors import Error, Lost, Refused
from .key import Key
from .once import run
from .outcome import outcome_ask
from .permit import Permit
from .record import Record, record_answer
from .retry import Retry
from .transport import Transport

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")

WAIT_MAX = 60.0
"""How many seconds the server waits in one request; longer waits are several."""
EARLY_PAUSE = 0.25
"""How many seconds to pause if the server did not wait as long as it was asked to."""


class Client:
    """A claim server, for any number of threads. Lost replies are asked for again with the same key and permit id, so
    that nothing runs twice because of them."""

    def __init__(
        self,
        url: str,
        token: Optional[str] = None,
        timeout: float = 10.0,
        retries: int = 4,
        *,
        owner: Optional[str] = None,
        tls: Optional[SSLContext] = None,
    ) -> None:
        self.transport = Transport(url, token, timeout, tls)
        self.retry = Retry(retries)
        self._owner = owner

    def claim(self, key: Key, *, wait: Span = 0.0, **options: Unpack[Options]) -> Decision:
        """Asks to run. `wait`: how long to wait for another caller to settle before the answer is Busy."""
        body = self.body(Claim(key, **options))
        asked_at = 0.0

        def ask(patience: float) -> Dict[str, Any]:
            nonlocal asked_at
            asked_at = time.monotonic()
            return self._post("/v1/claim", body, patience)

        answer = _patiently(ask, seconds(wait), lambda answer: bool(answer["decision"] == "busy"), self.retry)
        return decided(answer, lambda granted: Permit(self.transport, self.retry, granted, asked_at))

    def claim_many(self, claims: Sequence[Claim]) -> List[Union[Decision, Error]]:
        """Asks for many in few requests. The answers are in order; where one is an error, the others still count."""
        return claim_many(self, claims)

    def record_once(
        self,
        key: Key,
        value: Any = None,
        *,
        kind: str = "success",
        references: Sequence[Tuple[str, str]] = (),
        details: Any = None,
        **options: Unpack[Options],
    ) -> Union[Recorded, Replay, Busy, Mismatch, Held]:
        """Claims and completes in one go, for what has happened already: an event that was seen, say."""
        outcome = outcome_ask(value, kind, references, details)
        body = {**self.body(Claim(key, **options)), "outcome": outcome}
        answer = self.retry.ask(lambda: self._post("/v1/record_once", body))
        if answer["decision"] == "recorded":
            return Recorded(moment(answer["remembered_until"]), answer["id"])
        return told(answer)

    def get(self, key: Union[Key, str], *, wait: Span = 0.0) -> Optional[Record]:
        """The record of a key (or of a record's id), without claiming it. `wait`: how long to wait for a running one to
        settle. None if there is no record."""

        def look(patience: float) -> Record:
            target = _record_target(key, patience)
            return record_answer(self.transport.get(target, self.transport.timeout + patience)["record"])

        try:
            return _patiently(look, seconds(wait), lambda record: not record.is_settled, self.retry)
        except Refused as refused:
            if refused.code == "not_found":
                return None
            raise

    def permit(self, text: str) -> Permit:
        """Goes on under a permit that another process handed on. Renews it, so `Lost` if it is not good any more."""
        asked_at = 0.0

        def ask() -> Dict[str, Any]:
            nonlocal asked_at
            asked_at = time.monotonic()
            return self._post("/v1/resume", {"permit": text, "outcome_as": "base64"})

        answer = self.retry.ask(ask)
        if answer["decision"] == "lost":
            raise Lost("the permit is not good any more: another run took over, or the record is gone")
        if answer["decision"] == "done":
            raise Lost("the permit is not good any more: the run was completed under it")
        return Permit(self.transport, self.retry, answer, asked_at)

    def run(
        self,
        key: Key,
        work: Callable[[Permit], T],
        *,
        wait: Span = 0.0,
        store_failure: bool = False,
        **options: Unpack[Options],
    ) -> T:
        """Runs `work` once for this key, or hands back the value that it had (as JSON: a tuple comes back as a list).

        An exception from the work releases the key (or is stored, with `store_failure`) and is raised. Work that does
        not know whether its effect landed calls `permit.hold` before it raises. `NotRun`: another caller runs, the
        request is another one, or somebody must look. `Lost` or `Unknown`: the work ran; do not report success."""
        return run(self, key, work, wait, store_failure, **options)

    def close(self) -> None:
        """Closes the connections that nobody uses."""
        self.transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def body(self, claim: Claim) -> Dict[str, Any]:
        """A claim for the server, with this client's owner if it names none."""
        owner = {} if self._owner is None else {"owner": self._owner}
        return {**owner, **claim.body()}

    def _post(self, path: str, body: Dict[str, Any], patience: float = 0.0) -> Dict[str, Any]:
        waiting = {"wait_ms": round(patience * 1000)} if patience > 0 else {}
        return self.transport.post(path, {**body, **waiting}, self.transport.timeout + patience)


def _record_target(key: Union[Key, str], patience: float) -> str:
    options = [("outcome_as", "base64")]
    if patience > 0:
        options.append(("wait", f"{round(patience * 1000)}ms"))
    if isinstance(key, str):
        return f"/v1/records/{quote(key, safe='')}?{urlencode(options)}"
    scope = [("scope", part) for part in key.scope]
    return f"/v1/record?{urlencode([*scope, ('operation', key.operation), ('name', key.name), *options])}"


def _patiently(ask: Callable[[float], T], wait: float, is_open: Callable[[T], bool], retry: Retry) -> T:
    """Asks until the answer is a last one or the wait is over; each request waits for as long as the server lets it."""
    until = time.monotonic() + wait
    while True:
        patience = min(max(0.0, until - time.monotonic()), WAIT_MAX)
        answer = retry.ask(lambda: ask(patience))
        left = until - time.monotonic()
        if not is_open(answer) or left <= 0:
            return answer
        # A server with too many waiting answers at once: it must not be asked again at once.
        time.sleep(min(left, EARLY_PAUSE))
