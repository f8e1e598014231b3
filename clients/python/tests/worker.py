"""A process of its own: `worker resume URL PERMIT`, or `worker die URL SCOPE OPERATION NAME LEDGER`."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any, Dict

from semel import Client, Key, Permit


def resume(client: Client, text: str) -> Dict[str, Any]:
    """Goes on under a permit of another process."""
    permit = client.permit(text)
    charge = permit.step("charge", lambda: "charged twice")
    derived = permit.derive("provider.charge")
    seen = {"attempt": permit.attempt, "fence": permit.fence, "derived": derived, "charge": charge}
    permit.complete(seen)
    return seen


def die(client: Client, scope: str, operation: str, name: str, ledger: str) -> None:
    """Does the work, a line in a ledger, and waits to be killed before it can say so."""

    def work(permit: Permit) -> None:
        with open(ledger, "a") as file:
            file.write(f"python attempt {permit.attempt}\n")
            file.flush()
            os.fsync(file.fileno())
        told = {"attempt": permit.attempt, "fence": permit.fence, "derived": permit.derive("provider.charge")}
        print(json.dumps(told), flush=True)
        threading.Event().wait()

    client.run(Key(operation, name, (scope,)), work, request={"cents": 4200}, lease=1)


def main() -> None:
    word, url, *words = sys.argv[1:]
    client = Client(url, os.environ.get("SEMEL_TOKEN"), owner="python")
    if word == "resume":
        print(json.dumps(resume(client, *words)))
    else:
        die(client, *words)


if __name__ == "__main__":
    main()
