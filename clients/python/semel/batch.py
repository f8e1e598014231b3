"""Many claims in one request. Each has an answer of its own, also when others fail."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Sequence, Union

from .ask import Claim
from .decision import Decision, decided
from .errors import Error, Unavailable, Unknown, from_problem
from .permit import Permit

if TYPE_CHECKING:
    from .client import Client

CLAIMS_MAX = 1000
"""How many claims one request may hold."""

Answer = Union[Decision, Error]


def claim_many(client: Client, claims: Sequence[Claim]) -> List[Answer]:
    """See `Client.claim_many`."""
    answers: Dict[int, Answer] = {}
    for start in range(0, len(claims), CLAIMS_MAX):
        _claim_part(client, range(start, min(start + CLAIMS_MAX, len(claims))), claims, answers)
    return [answers[at] for at in range(len(claims))]


def _claim_part(client: Client, part: Sequence[int], claims: Sequence[Claim], answers: Dict[int, Answer]) -> None:
    """Asks for the claims of one request; those that may still be answered are asked for again, each with the permit
    id that it had."""
    pauses = client.retry.pauses()
    left = list(part)
    while left:
        for at, answer in zip(left, _ask(client, [claims[at] for at in left])):
            # An earlier try may have taken, so a later one that did nothing does not make it undone.
            if not (isinstance(answer, Unavailable) and isinstance(answers.get(at), Unknown)):
                answers[at] = answer
        left = [at for at in left if isinstance(answers[at], (Unavailable, Unknown))]
        pause = next(pauses, None)
        if pause is None:
            return
        if left:
            time.sleep(pause)


def _ask(client: Client, claims: Sequence[Claim]) -> Sequence[Answer]:
    asked_at = time.monotonic()
    try:
        body = {"items": [client.body(claim) for claim in claims]}
        answer = client.transport.post("/v1/claim/batch", body)
    except Error as error:
        # Raised, it would take the permits of other requests with it.
        return [error] * len(claims)
    told: List[Answer] = [_answer(client, item, asked_at) for item in answer["answers"]]
    missing = Unknown("the server left an answer out: ask again with the same key")
    return told + [missing] * (len(claims) - len(told))


def _answer(client: Client, item: Mapping[str, Any], asked_at: float) -> Answer:
    if item["decision"] == "error":
        problem = item["problem"]
        return from_problem(problem["status"], problem.get("code"), problem.get("detail") or problem["title"])
    return decided(item, lambda answer: Permit(client.transport, client.retry, answer, asked_at))
