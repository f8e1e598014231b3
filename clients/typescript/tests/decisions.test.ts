/** Every decision, as a caller hears it. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Refused, Unavailable } from "../src/index.js";
import { Cutter } from "./cutter.js";
import { TOKEN, URL_UNDER_TEST, client, freshKey, granted } from "./place.js";

test("the first claim runs and the second replays its JSON", async () => {
  const key = freshKey();
  const permit = granted(await client().claim(key, { request: { cents: 4200 } }));
  assert.equal(permit.attempt, 1);
  assert.ok(permit.fence > 0);
  const until = await permit.complete({ id: "ch_1", "größe": [1, 2.5, null] });
  const second = await client().claim(key, { request: { cents: 4200 } });
  assert.ok(second.decision === "replay");
  assert.deepEqual(second.outcome.value, { id: "ch_1", "größe": [1, 2.5, null] });
  assert.equal(second.outcome.text, '{"id":"ch_1","größe":[1,2.5,null]}');
  assert.deepEqual(second.rememberedUntil, until);
});

test("bytes are replayed byte for byte", async () => {
  for (const data of [Uint8Array.of(0, 255, 254), new Uint8Array(0), new TextEncoder().encode('{ "a" :1.0 }')]) {
    const key = freshKey();
    await granted(await client().claim(key)).complete(data);
    const replay = await client().claim(key);
    assert.ok(replay.decision === "replay");
    assert.deepEqual(replay.outcome.data, data);
  }
});

test("kind, references and details are replayed", async () => {
  const key = freshKey();
  const references = [{ kind: "payment", id: "pay_1" }, { kind: "invoice", id: "inv_1" }];
  const notes = { kind: "skipped", references, details: { why: "paid before" } };
  await granted(await client().claim(key)).complete(null, notes);
  const replay = await client().claim(key);
  assert.ok(replay.decision === "replay");
  const { kind, details } = replay.outcome;
  assert.deepEqual({ kind, references: replay.outcome.references, details }, notes);
});

test("a second caller is told who runs", async () => {
  const key = freshKey();
  granted(await client({ owner: "worker-7" }).claim(key, { leaseMs: 30_000 }));
  const busy = await client().claim(key);
  assert.ok(busy.decision === "busy");
  assert.equal(busy.owner, "worker-7");
  assert.ok(busy.retryAfterMs > 0 && busy.retryAfterMs <= 30_000);
});

test("another request under the same key is a mismatch", async () => {
  const key = freshKey();
  await granted(await client().claim(key, { request: { cents: 4200 } })).complete();
  const mismatch = await client().claim(key, { request: { cents: 1 } });
  assert.ok(mismatch.decision === "mismatch");
  assert.equal(mismatch.mismatches, 1);
});

test("a held key tells why", async () => {
  const key = freshKey();
  const permit = granted(await client().claim(key));
  assert.equal(await permit.hold("the provider hung up"), true);
  const held = await client().claim(key);
  assert.ok(held.decision === "held");
  assert.match(held.reason, /the provider hung up/);
});

test("a released key runs again as attempt 2 with a higher fence", async () => {
  const key = freshKey();
  const first = granted(await client().claim(key));
  assert.equal(await first.release("not now"), true);
  assert.equal(await first.release("not now"), true, "said twice, it is still released");
  const second = granted(await client().claim(key));
  assert.equal(await first.release("not now"), false, "another run has the key now");
  assert.equal(second.attempt, 2);
  assert.ok(second.fence > first.fence);
});

test("recordOnce records once and then replays", async () => {
  const key = freshKey("event");
  assert.equal((await client().recordOnce(key, { seen: true })).decision, "recorded");
  const again = await client().recordOnce(key, { seen: false });
  assert.ok(again.decision === "replay");
  assert.deepEqual(again.outcome.value, { seen: true });
});

test("get tells without claiming", async () => {
  const key = freshKey();
  assert.equal(await client().get(key), null);
  const permit = granted(await client({ owner: "worker-7" }).claim(key));
  const running = await client().get(key);
  assert.deepEqual([running?.state, running?.owner, running?.key], ["running", "worker-7", key]);
  await permit.complete("done");
  const done = await client().get(permit.id);
  assert.deepEqual([done?.state, done?.outcome?.value, done?.attempt], ["done", "done", 1]);
});

test("get tells the label and how every attempt ended", async () => {
  const key = freshKey();
  await granted(await client({ owner: "worker-1" }).claim(key, { label: "POST /charges" })).release("not now");
  await granted(await client({ owner: "worker-2" }).claim(key, { label: "POST /charges" })).complete("done");
  const record = await client().get(key);
  assert.deepEqual([record?.label, record?.owner], ["POST /charges", "worker-2"]);
  const history = record?.history ?? [];
  const ended = history.map((one) => [one.attempt, one.owner, one.ended, one.reason]);
  assert.deepEqual(ended, [[1, "worker-1", "released", "not now"], [2, "worker-2", "completed", null]]);
  assert.ok(history.every(({ from, until }) => from <= until));
});

test("a renewal after the end says so and throws nothing", async () => {
  const permit = granted(await client().claim(freshKey()));
  assert.equal(await permit.renew(), true);
  await permit.complete("done");
  assert.equal(await permit.renew(), false);
  assert.equal(permit.lost.aborted, false);
});

test("get waits until the run settles", async () => {
  const key = freshKey();
  const permit = granted(await client().claim(key));
  const waiting = client().get(key, { waitMs: 20_000 });
  await permit.complete("done");
  assert.equal((await waiting)?.outcome?.value, "done");
});

test("many claims are answered in order and one that is wrong spoils no other", async () => {
  const keys = [freshKey(), freshKey(), freshKey()];
  await granted(await client().claim(keys[1] ?? freshKey())).complete("before");
  const wrong = { operation: "", name: "n" };
  const answers = await client().claimMany([...keys.slice(0, 2), wrong, ...keys.slice(2)].map((key) => ({ key })));
  const words = answers.map((answer) => (answer instanceof Error ? answer.name : answer.decision));
  assert.deepEqual(words, ["run", "replay", "Refused", "run"]);
});

test("what is refused says its code", async () => {
  await assert.rejects(client().claim({ operation: "", name: "n" }), (error) => {
    return error instanceof Refused && error.code === "invalid_request";
  });
});

test("a token opens its scope and nothing else", async () => {
  // A server without tokens lets everybody in.
  const foreign = { operation: "charge", name: "order-1042", scope: ["acme"] };
  const asked = TOKEN === undefined ? [] : [
    { by: new Client(URL_UNDER_TEST), key: freshKey(), code: "unauthorized" },
    { by: new Client(URL_UNDER_TEST, { token: `semel_${"A".repeat(43)}` }), key: freshKey(), code: "unauthorized" },
    { by: client(), key: foreign, code: "forbidden" },
  ];
  for (const { by, key, code } of asked) {
    await assert.rejects(by.claim(key), (error) => error instanceof Refused && error.code === code);
  }
});

test("a server that is not there has done nothing", async () => {
  const gone = await Cutter.start();
  const away = client({ retries: 1 }, gone.url);
  gone.stop();
  await assert.rejects(away.claim(freshKey()), (error) => error instanceof Unavailable);
});
