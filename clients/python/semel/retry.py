"""Asking again: with backoff and jitter, and without forgetting that an earlier try may have taken."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Callable, Iterator, Optional, TypeVar

from .errors import Refused, Unavailable, Unknown

T = TypeVar("T")

RETRY_AFTER_MAX = 10.0
"""A server that asks for more patience than this is told of its caller's error instead."""


@dataclass(frozen=True)
class Retry:
    """How often to ask again, and how long to pause: half of each pause is left to chance, so that callers spread out."""

    retries: int = 4
    first: float = 0.05
    longest: float = 2.0

    def pauses(self) -> Iterator[float]:
        """The pauses before each further try."""
        for number in range(self.retries):
            whole = min(self.longest, self.first * 2**number)
            yield whole * random.uniform(0.5, 1.0)

    def ask(self, once: Callable[[], T], sleep: Callable[[float], None] = time.sleep) -> T:
        """Asks until there is an answer, or the retries are used up. If any try may have taken, the whole may have:
        an `Unknown` is never forgotten for a later error that says that nothing was done."""
        pauses, unknown = self.pauses(), None  # type: Iterator[float], Optional[Unknown]
        while True:
            try:
                return once()
            except Unknown as error:
                unknown, patience = error, 0.0
            except Unavailable as error:
                patience = error.retry_after
                if patience > RETRY_AFTER_MAX:
                    raise unknown or error from error
                last = error
            except Refused as error:
                if unknown is not None:
                    raise unknown from error
                raise
            pause = next(pauses, None)
            if pause is None:
                raise unknown or last
            sleep(max(pause, patience))
