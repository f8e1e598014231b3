"""Work that happens once: the client of semel's claim server.

    client = Client("http://127.0.0.1:4747")
    receipt = client.run(Key("charge", "order-1042"), lambda permit: charge(permit), request={"cents": 4200})

Layout, the same as in the TypeScript client:
- `client`: the way to a server. `permit`: the right to run. `once`: the whole cycle around a function.
- `ask`: what a claim says. `decision`: what it is told. `outcome`, `record`, `key`: what those speak of.
- `heartbeat`: keeps a lease. `retry`: asks again. `batch`: many at once. `transport`: connections. `errors`: what to do when.
"""

from .ask import Claim, Options, Span
from .client import Client
from .decision import Busy, Decision, Held, Mismatch, Recorded, Replay, Run
from .errors import Error, FailedBefore, Lost, NotRun, Refused, Unavailable, Unknown
from .heartbeat import Heartbeat
from .key import Key
from .once import once
from .outcome import Outcome, Reference
from .permit import Permit
from .record import EndedAttempt, Record
from .retry import Retry

__all__ = [
    "Busy",
    "Claim",
    "Client",
    "Decision",
    "EndedAttempt",
    "Error",
    "FailedBefore",
    "Heartbeat",
    "Held",
    "Key",
    "Lost",
    "Mismatch",
    "NotRun",
    "Options",
    "Outcome",
    "Permit",
    "Record",
    "Recorded",
    "Reference",
    "Refused",
    "Replay",
    "Retry",
    "Run",
    "Span",
    "Unavailable",
    "Unknown",
    "once",
]
