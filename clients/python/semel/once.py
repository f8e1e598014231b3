"""The whole cycle around a function: claim, run with a heartbeat, complete; or replay."""

from __future__ import annotations

import functools
import json
import logging
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence, TypeVar, Union

from .ask import Options, Span, Terms
from .decision import Replay, Run
from .errors import Error, FailedBefore, NotRun
from .key import Key
from .outcome import to_json

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec, Unpack

    from .client import Client
    from .permit import Permit

    P = ParamSpec("P")

T = TypeVar("T")
log = logging.getLogger("semel")


def run(
    client: Client,
    key: Key,
    work: Callable[[Permit], T],
    wait: Span = 0.0,
    store_failure: bool = False,
    **options: Unpack[Options],
) -> T:
    """See `Client.run`."""
    decision = client.claim(key, wait=wait, **options)
    if isinstance(decision, Run):
        return _run(decision.permit, work, store_failure)
    if isinstance(decision, Replay):
        if decision.outcome.kind == "failure":
            raise FailedBefore(decision.outcome)
        value: T = decision.outcome.value
        return value
    raise NotRun(decision)


def _run(permit: Permit, work: Callable[[Permit], T], store_failure: bool) -> T:
    try:
        with permit.heartbeat():
            value = work(permit)
    except Exception as failure:
        # An interrupt or an exit is no Exception: it proves nothing about the effect, and the lease decides.
        _fail(permit, failure, store_failure)
        raise
    text = to_json(value)
    permit.complete(json.loads(text))
    # The first caller gets what every later one will get: what JSON makes of the value.
    replayed: T = json.loads(text)
    return replayed


def _fail(permit: Permit, failure: Exception, store_failure: bool) -> None:
    """Releases the key, or stores the failure. The caller gets its own error either way: if this fails too, the lease decides."""
    try:
        if store_failure:
            permit.complete(str(failure).encode(), kind="failure")
        else:
            permit.release(f"the work failed: {type(failure).__name__}")
    except Error as error:
        log.warning("a failure of the work was not noted, the lease decides: %s", error)


def once(
    client: Client,
    *,
    operation: str,
    name: Callable[..., str],
    scope: Union[Sequence[str], Callable[..., Sequence[str]]] = (),
    request: Optional[Callable[..., Any]] = None,
    wait: Span = 0.0,
    store_failure: bool = False,
    **terms: Unpack[Terms],
) -> Callable[[Callable[Concatenate[Permit, P], T]], Callable[P, T]]:
    """Makes a function happen once for what it is called with. `name`, `scope` and `request` are functions of its
    arguments; the function gets the permit before them, and its callers leave it out."""

    def around(work: Callable[Concatenate[Permit, P], T]) -> Callable[P, T]:
        @functools.wraps(work)
        def called(*args: P.args, **kwargs: P.kwargs) -> T:
            whose = scope(*args, **kwargs) if callable(scope) else scope
            key = Key(operation, name(*args, **kwargs), tuple(whose))
            asked = request(*args, **kwargs) if request else None
            return run(
                client, key, lambda permit: work(permit, *args, **kwargs), wait, store_failure, request=asked, **terms
            )

        return called

    return around
