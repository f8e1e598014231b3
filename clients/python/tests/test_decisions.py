"""Every decision, as a caller hears it."""

from __future__ import annotations

import threading
import unittest

from semel import Busy, Claim, Client, Held, Key, Mismatch, Recorded, Refused, Replay, Run, Unavailable

from .cutter import Cutter
from .place import TOKEN, URL, client, fresh_key, granted


class Decisions(unittest.TestCase):
    def test_the_first_claim_runs_and_the_second_replays_its_json(self) -> None:
        key = fresh_key()
        permit = granted(client().claim(key, request={"cents": 4200}))
        self.assertEqual(permit.attempt, 1)
        self.assertGreater(permit.fence, 0)
        until = permit.complete({"id": "ch_1", "größe": [1, 2.5, None]})
        second = client().claim(key, request={"cents": 4200})
        assert isinstance(second, Replay)
        self.assertEqual(second.outcome.value, {"id": "ch_1", "größe": [1, 2.5, None]})
        self.assertEqual(second.outcome.text, '{"id":"ch_1","größe":[1,2.5,null]}')
        self.assertEqual(second.remembered_until, until)

    def test_bytes_are_replayed_byte_for_byte(self) -> None:
        for data in [b"\x00\xff\xfe", b"", b'{ "a" :1.0 }']:
            key = fresh_key()
            granted(client().claim(key)).complete(data)
            replay = client().claim(key)
            assert isinstance(replay, Replay)
            self.assertEqual(replay.outcome.data, data)

    def test_kind_references_and_details_are_replayed(self) -> None:
        key = fresh_key()
        permit = granted(client().claim(key))
        references = [("payment", "pay_1"), ("invoice", "inv_1")]
        permit.complete(kind="skipped", references=references, details={"why": "paid before"})
        replay = client().claim(key)
        assert isinstance(replay, Replay)
        told = replay.outcome
        seen = (told.kind, list(told.references), told.details)
        self.assertEqual(seen, ("skipped", references, {"why": "paid before"}))
        self.assertEqual(told.references[0].kind, "payment")

    def test_a_second_caller_is_told_who_runs(self) -> None:
        key = fresh_key()
        granted(client(owner="worker-7").claim(key, lease=30))
        busy = client().claim(key)
        assert isinstance(busy, Busy)
        self.assertEqual(busy.owner, "worker-7")
        self.assertTrue(0 < busy.retry_after <= 30, busy)

    def test_another_request_under_the_same_key_is_a_mismatch(self) -> None:
        key = fresh_key()
        granted(client().claim(key, request={"cents": 4200})).complete()
        mismatch = client().claim(key, request={"cents": 1})
        assert isinstance(mismatch, Mismatch)
        self.assertEqual(mismatch.mismatches, 1)

    def test_a_held_key_tells_why(self) -> None:
        key = fresh_key()
        self.assertTrue(granted(client().claim(key)).hold("the provider hung up"))
        held = client().claim(key)
        assert isinstance(held, Held)
        self.assertIn("the provider hung up", held.reason)

    def test_a_released_key_runs_again_as_attempt_2_with_a_higher_fence(self) -> None:
        key = fresh_key()
        first = granted(client().claim(key))
        self.assertTrue(first.release("not now"))
        self.assertTrue(first.release("not now"), "said twice, it is still released")
        second = granted(client().claim(key))
        self.assertFalse(first.release("not now"), "another run has the key now")
        self.assertEqual(second.attempt, 2)
        self.assertGreater(second.fence, first.fence)

    def test_record_once_records_once_and_then_replays(self) -> None:
        key = fresh_key("event")
        self.assertIsInstance(client().record_once(key, {"seen": True}), Recorded)
        again = client().record_once(key, {"seen": False})
        assert isinstance(again, Replay)
        self.assertEqual(again.outcome.value, {"seen": True})

    def test_get_tells_without_claiming(self) -> None:
        key = fresh_key()
        self.assertIsNone(client().get(key))
        permit = granted(client(owner="worker-7").claim(key))
        running = client().get(key)
        assert running is not None
        self.assertEqual((running.state, running.owner, running.key), ("running", "worker-7", key))
        permit.complete("done")
        done = client().get(permit.id)
        assert done is not None and done.outcome is not None
        self.assertEqual((done.state, done.outcome.value, done.attempt), ("done", "done", 1))

    def test_get_tells_the_label_and_how_every_attempt_ended(self) -> None:
        key = fresh_key()
        granted(client(owner="worker-1").claim(key, label="POST /charges")).release("not now")
        granted(client(owner="worker-2").claim(key, label="POST /charges")).complete("done")
        record = client().get(key)
        assert record is not None
        self.assertEqual((record.label, record.owner), ("POST /charges", "worker-2"))
        ended = [(one.attempt, one.owner, one.ended, one.reason) for one in record.history]
        self.assertEqual(ended, [(1, "worker-1", "released", "not now"), (2, "worker-2", "completed", None)])
        self.assertTrue(all(one.since <= one.until for one in record.history))

    def test_a_renewal_after_the_end_says_so_and_raises_nothing(self) -> None:
        permit = granted(client().claim(fresh_key()))
        self.assertTrue(permit.renew())
        permit.complete("done")
        self.assertFalse(permit.renew())
        self.assertFalse(permit.lost.is_set())

    def test_get_waits_until_the_run_settles(self) -> None:
        key = fresh_key()
        permit = granted(client().claim(key))
        settling = threading.Timer(0.2, permit.complete, ["done"])
        settling.start()
        record = client().get(key, wait=20)
        assert record is not None and record.outcome is not None
        self.assertEqual(record.outcome.value, "done")

    def test_many_claims_are_answered_in_order_and_one_that_is_wrong_spoils_no_other(self) -> None:
        first, done, last = fresh_key(), fresh_key(), fresh_key()
        granted(client().claim(done)).complete("before")
        answers = client().claim_many([Claim(key) for key in (first, done, Key("", "n"), last)])
        self.assertEqual([type(answer) for answer in answers], [Run, Replay, Refused, Run])

    def test_what_is_refused_says_its_code(self) -> None:
        with self.assertRaises(Refused) as caught:
            client().claim(Key("", "n"))
        self.assertEqual(caught.exception.code, "invalid_request")

    @unittest.skipIf(TOKEN is None, "the server wants no token")
    def test_a_token_opens_its_scope_and_nothing_else(self) -> None:
        for asking, key, code in [
            (Client(URL), fresh_key(), "unauthorized"),
            (Client(URL, "semel_" + "A" * 43), fresh_key(), "unauthorized"),
            (client(), Key("charge", "order-1042", ("acme",)), "forbidden"),
        ]:
            with self.assertRaises(Refused) as caught:
                asking.claim(key)
            self.assertEqual(caught.exception.code, code)

    def test_a_server_that_is_not_there_has_done_nothing(self) -> None:
        with Cutter() as gone:
            gone.stop()
        with self.assertRaises(Unavailable):
            client(gone.url, retries=1).claim(fresh_key())
