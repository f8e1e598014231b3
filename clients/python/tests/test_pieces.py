"""Pieces that need no server."""

from __future__ import annotations

import unittest
from typing import Callable, List

from semel import Key, Refused, Retry, Unavailable, Unknown
from semel.errors import from_problem
from semel.heartbeat import pause
from semel.key import derived
from semel.outcome import to_json


def failing(*errors: Exception) -> Callable[[], str]:
    """Fails in these ways, one after the other, and then answers."""
    left = list(errors)

    def ask() -> str:
        if left:
            raise left.pop(0)
        return "answered"

    return ask


def at_once(_: float) -> None:
    """Sleeps not at all."""


class Retries(unittest.TestCase):
    def test_an_ask_is_made_again_until_it_is_answered(self) -> None:
        errors = [Unavailable("nothing was done"), Unknown("it may have taken"), Unavailable("nothing was done")]
        self.assertEqual(Retry(3).ask(failing(*errors), at_once), "answered")

    def test_an_ask_that_may_have_taken_is_never_said_to_have_done_nothing(self) -> None:
        unknown, unavailable = Unknown("it may have taken"), Unavailable("nothing was done")
        for later in ([unavailable, unavailable], [Refused("no", "forbidden")], [Unavailable("later", 60)]):
            with self.assertRaises(Unknown):
                Retry(2).ask(failing(unknown, *later), at_once)
        with self.assertRaises(Unavailable):
            Retry(2).ask(failing(unavailable, unavailable, unavailable), at_once)

    def test_what_is_refused_is_not_asked_for_again(self) -> None:
        with self.assertRaises(Refused):
            Retry(2).ask(failing(Refused("no", "forbidden")), at_once)

    def test_pauses_grow_spread_and_are_as_long_as_the_server_asks_for(self) -> None:
        pauses: List[float] = []
        errors = [Unavailable("away"), Unavailable("away"), Unavailable("later", 3.0)]
        Retry(4).ask(failing(*errors), pauses.append)
        self.assertTrue(0.025 <= pauses[0] <= 0.05 <= pauses[1] <= 0.1 and pauses[2] == 3.0, pauses)


class Pieces(unittest.TestCase):
    def test_an_answer_that_nobody_of_ours_gave_is_unknown(self) -> None:
        self.assertIsInstance(from_problem(502, None, "bad gateway"), Unknown)
        self.assertIsInstance(from_problem(503, "unknown", "d"), Unknown)
        self.assertIsInstance(from_problem(503, "unavailable", "d"), Unavailable)
        self.assertIsInstance(from_problem(429, "quota_exceeded", "d"), Unavailable)
        self.assertIsInstance(from_problem(500, "corrupt", "d"), Refused)
        self.assertIsInstance(from_problem(403, "forbidden", "d"), Refused)

    def test_a_lease_is_renewed_when_a_third_of_it_is_used_and_soon_after_a_failure(self) -> None:
        self.assertEqual(pause(60, 60, 0), 20)
        self.assertEqual(pause(60, 60, 30), 2.5)
        self.assertEqual(pause(60, 60, 59), 1)
        self.assertEqual(pause(60, 60, 61), 0)

    def test_a_derived_key_is_the_same_in_every_language(self) -> None:
        self.assertEqual(derived("00" * 31 + "2a", "provider.charge"), "ee609d345e770af998ba6b603112eb8b9f4ab7d24f3648edb1aaf2c63b909fd8")

    def test_what_is_no_json_is_refused_before_it_is_sent(self) -> None:
        for value in (float("nan"), object(), "\ud800"):
            with self.assertRaises((TypeError, ValueError)):
                to_json(value).encode()

    def test_a_scope_that_is_one_word_is_a_mistake(self) -> None:
        with self.assertRaises(TypeError):
            Key("charge", "order-1042", "acme")  # type: ignore[arg-type]
