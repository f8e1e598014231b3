"""A permit goes to another process, which goes on and completes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unittest

from semel import Lost, Replay

from .place import URL, client, fresh_key, granted


class HandOver(unittest.TestCase):
    def test_another_process_goes_on_where_this_one_was_and_completes(self) -> None:
        key = fresh_key()
        granted(client().claim(key)).release("not now")
        permit = granted(client().claim(key))
        permit.step("charge", lambda: "ch_1")
        words = [sys.executable, "-m", "tests.worker", "resume", URL, permit.text]
        out = subprocess.run(words, check=True, capture_output=True, timeout=30).stdout
        derived = permit.derive("provider.charge")
        seen = {"attempt": 2, "fence": permit.fence, "derived": derived, "charge": "ch_1"}
        self.assertEqual(json.loads(out), seen)
        replay = client().claim(key)
        assert isinstance(replay, Replay)
        self.assertEqual(replay.outcome.value, seen)
        with self.assertRaises(Lost):
            permit.complete("late")

    def test_a_permit_that_was_lost_is_not_taken_up_again(self) -> None:
        permit = granted(client().claim(fresh_key()))
        permit.release("not now")
        with self.assertRaises(Lost):
            client().permit(permit.text)

    def test_a_permit_whose_run_is_completed_is_not_taken_up_again(self) -> None:
        permit = granted(client().claim(fresh_key()))
        permit.complete("done")
        with self.assertRaisesRegex(Lost, "completed under it"):
            client().permit(permit.text)

    @unittest.skipUnless(hasattr(os, "fork"), "there are no forks here")
    def test_a_forked_process_opens_connections_of_its_own(self) -> None:
        shared, key = client(), fresh_key()
        permit = granted(shared.claim(key))
        child = os.fork()
        if child == 0:
            try:
                shared.permit(permit.text).complete("the child's")
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        replay = shared.claim(key)
        assert isinstance(replay, Replay)
        self.assertEqual(replay.outcome.value, "the child's")
