"""Replies that are lost: what was asked for has happened, and asking again finds it."""

from __future__ import annotations

import unittest

from semel import Busy, Claim, Permit, Recorded, Run, Unknown

from .cutter import Cutter
from .place import client, fresh_key, granted


class LostReplies(unittest.TestCase):
    def setUp(self) -> None:
        self.cutter = Cutter()
        self.addCleanup(self.cutter.stop)

    def attempt_of(self, permit: Permit) -> int:
        record = client().get(permit.id)
        assert record is not None
        return record.attempt

    def test_a_claim_whose_reply_is_lost_finds_its_own_run(self) -> None:
        self.cutter.cuts = 2
        permit = granted(client(self.cutter.url).claim(fresh_key()))
        self.assertEqual((self.cutter.were_cut, permit.attempt), (2, 1))
        permit.complete("once")
        self.assertEqual(self.attempt_of(permit), 1)

    def test_without_the_permit_id_the_run_that_nobody_heard_of_keeps_its_caller_out(self) -> None:
        key, permit_id = fresh_key(), "0123456789abcdef" * 2
        cut = client(self.cutter.url, retries=0)
        self.cutter.cuts = 1
        with self.assertRaises(Unknown):
            cut.claim(key, permit_id=permit_id)
        self.assertIsInstance(cut.claim(key), Busy)
        self.assertEqual(granted(cut.claim(key, permit_id=permit_id)).attempt, 1)

    def test_the_work_runs_once_however_many_replies_are_lost_on_its_way(self) -> None:
        key, permits = fresh_key(), []
        cut = client(self.cutter.url)
        self.cutter.cuts = 1

        def work(permit: Permit) -> int:
            permits.append(permit)
            self.cutter.cuts = 2
            return len(permits)

        self.assertEqual(cut.run(key, work), 1)
        self.assertEqual(cut.run(key, work), 1)
        self.assertEqual((len(permits), self.cutter.were_cut, self.attempt_of(permits[0])), (1, 3, 1))

    def test_many_claims_whose_reply_is_lost_find_their_own_runs(self) -> None:
        self.cutter.cuts = 1
        answers = client(self.cutter.url).claim_many([Claim(fresh_key()), Claim(fresh_key())])
        attempts = [answer.permit.attempt for answer in answers if isinstance(answer, Run)]
        self.assertEqual((attempts, self.cutter.were_cut), ([1, 1], 1))

    def test_an_event_whose_reply_is_lost_is_still_recorded_by_this_call(self) -> None:
        self.cutter.cuts = 1
        self.assertIsInstance(client(self.cutter.url).record_once(fresh_key("event"), "seen"), Recorded)

    def test_a_connection_that_was_closed_while_idle_costs_no_retry(self) -> None:
        cut = client(self.cutter.url, retries=0)
        permit = granted(cut.claim(fresh_key()))
        self.cutter.cuts = 1
        permit.complete("once")
        self.assertEqual(self.cutter.were_cut, 1)
