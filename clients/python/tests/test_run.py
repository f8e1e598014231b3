"""The whole cycle: work that runs once, its heartbeat, its steps, and its failures."""

from __future__ import annotations

import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from typing import Dict, List

from semel import Busy, FailedBefore, Lost, Mismatch, NotRun, Permit, once

from .cutter import Cutter
from .place import client, fresh_key, granted


class Runs(unittest.TestCase):
    def test_of_many_callers_one_runs_and_all_get_its_value(self) -> None:
        key, runs, shared = fresh_key(), [], client()

        def work(permit: Permit) -> int:
            runs.append(permit)
            permit.lost.wait(0.05)
            return len(runs)

        with ThreadPoolExecutor(8) as callers:
            values = list(callers.map(lambda _: shared.run(key, work, wait=20), range(8)))
        self.assertEqual((values, len(runs)), ([1] * 8, 1))

    def test_a_function_that_is_decorated_happens_once_for_each_order(self) -> None:
        orders: List[str] = []

        @once(client(), operation="charge", name=lambda name, cents: name, request=lambda name, cents: cents, scope=["tests"])
        def charge(permit: Permit, name: str, cents: int) -> Dict[str, int]:
            orders.append(name)
            return {"cents": cents, "attempt": permit.attempt}

        name = fresh_key().name
        self.assertEqual(charge(name, 4200), {"cents": 4200, "attempt": 1})
        self.assertEqual(charge(name, cents=4200), {"cents": 4200, "attempt": 1})
        self.assertEqual(orders, [name])
        with self.assertRaises(NotRun) as caught:
            charge(name, 1)
        self.assertIsInstance(caught.exception.decision, Mismatch)

    def test_a_caller_that_does_not_wait_is_told_that_another_runs(self) -> None:
        key = fresh_key()
        granted(client().claim(key))
        with self.assertRaises(NotRun) as caught:
            client().run(key, lambda permit: 1)
        self.assertIsInstance(caught.exception.decision, Busy)

    def test_an_error_of_the_work_releases_the_key_and_the_next_attempt_skips_what_is_finished(self) -> None:
        key, charges = fresh_key(), []

        def attempt(fails: bool) -> str:
            def work(permit: Permit) -> str:
                def charge() -> str:
                    charges.append(permit.attempt)
                    return f"ch_{len(charges)}"

                charged = permit.step("charge", charge)
                if fails:
                    raise RuntimeError("the mail server is away")
                return f"{charged}, mailed by attempt {permit.attempt}"

            return client().run(key, work)

        with self.assertRaisesRegex(RuntimeError, "the mail server is away"):
            attempt(fails=True)
        self.assertEqual(attempt(fails=False), "ch_1, mailed by attempt 2")
        self.assertEqual(charges, [1])

    def test_a_failure_that_is_stored_is_what_every_later_caller_gets(self) -> None:
        key = fresh_key()

        def failing(permit: Permit) -> None:
            raise RuntimeError("the card is stolen")

        with self.assertRaises(RuntimeError):
            client().run(key, failing, store_failure=True)
        with self.assertRaises(FailedBefore) as caught:
            client().run(key, lambda permit: None)
        self.assertEqual(caught.exception.outcome.text, "the card is stolen")

    def test_an_interrupt_proves_nothing_and_leaves_the_lease_to_decide(self) -> None:
        key = fresh_key()

        def interrupted(permit: Permit) -> None:
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            client().run(key, interrupted, lease=30)
        self.assertIsInstance(client().claim(key), Busy)


class Leases(unittest.TestCase):
    def test_a_heartbeat_keeps_a_short_lease_which_lapses_without_it(self) -> None:
        key = fresh_key()
        self.assertTrue(client().run(key, lambda permit: not permit.lost.wait(3), lease=2))
        kept = client().get(key)
        assert kept is not None
        self.assertEqual(kept.attempt, 1)
        left = fresh_key()
        forgotten = granted(client().claim(left, lease=0.5))
        taken = granted(client().claim(left, wait=20))
        self.assertEqual((taken.attempt, forgotten.is_lost), (2, True))

    def test_work_whose_key_is_taken_over_is_told_and_its_outcome_is_not_stored(self) -> None:
        key = fresh_key()

        def work(permit: Permit) -> str:
            second = granted(client().claim(key, owner="worker-7", reentrant=True))
            self.assertTrue(permit.lost.wait(10))
            second.complete("the second's")
            return "the first's"

        with self.assertRaises(Lost):
            client().run(key, work, owner="worker-7", lease=0.6)
        record = client().get(key)
        assert record is not None and record.outcome is not None
        self.assertEqual(record.outcome.value, "the second's")

    def test_work_that_cannot_renew_is_told_before_its_lease_is_over(self) -> None:
        with Cutter() as cutter:
            permit = granted(client(cutter.url).claim(fresh_key(), lease=0.6))
            cutter.stop()
            with permit.heartbeat():
                self.assertTrue(permit.lost.wait(10))
            self.assertLess(time.monotonic() - permit.good_until, 5)
