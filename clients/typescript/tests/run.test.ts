/** The whole cycle: work that runs once, its heartbeat, its steps, and its failures. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { FailedBefore, Lost, NotRun, once } from "../src/index.js";
import { pause } from "../src/retry.js";
import { Cutter } from "./cutter.js";
import { client, freshKey, granted } from "./place.js";

test("of many callers one runs and all get its value", async () => {
  const key = freshKey();
  let runs = 0;
  const work = async (): Promise<number> => {
    await pause(50);
    return (runs += 1);
  };
  const values = await Promise.all(Array.from({ length: 8 }, () => client().run(key, work, { waitMs: 20_000 })));
  assert.deepEqual([values, runs], [Array.from({ length: 8 }, () => 1), 1]);
});

test("a function that is wrapped happens once for each order", async () => {
  const orders: string[] = [];
  const charge = once(
    client(),
    { operation: "charge", name: (id: string, _cents: number) => id, request: (_id, cents) => cents, scope: ["tests"] },
    async (permit, id, cents) => {
      orders.push(id);
      return { cents, attempt: permit.attempt };
    },
  );
  const { name } = freshKey();
  assert.deepEqual(await charge(name, 4200), { cents: 4200, attempt: 1 });
  assert.deepEqual(await charge(name, 4200), { cents: 4200, attempt: 1 });
  assert.deepEqual(orders, [name]);
  await assert.rejects(charge(name, 1), (error) => error instanceof NotRun && error.decision.decision === "mismatch");
});

test("a caller that does not wait is told that another runs", async () => {
  const key = freshKey();
  granted(await client().claim(key));
  const asked = client().run(key, () => 1);
  await assert.rejects(asked, (error) => error instanceof NotRun && error.decision.decision === "busy");
});

test("an error of the work releases the key, and the next attempt skips what is finished", async () => {
  const key = freshKey();
  const charges: number[] = [];
  const attempt = (fails: boolean): Promise<string> =>
    client().run(key, async (permit) => {
      const charge = await permit.step("charge", async () => ({ id: `ch_${charges.push(permit.attempt)}` }));
      if (fails) {
        throw new Error("the mail server is away");
      }
      return `${charge.id}, mailed by attempt ${permit.attempt}`;
    });
  await assert.rejects(attempt(true), (error) => (error as Error).message === "the mail server is away");
  assert.equal(await attempt(false), "ch_1, mailed by attempt 2");
  assert.deepEqual(charges, [1]);
});

test("a failure that is stored is what every later caller gets", async () => {
  const key = freshKey();
  const failing = (): never => {
    throw new Error("the card is stolen");
  };
  await assert.rejects(client().run(key, failing, { storeFailure: true }), (error) => !(error instanceof FailedBefore));
  await assert.rejects(
    client().run(key, () => 1),
    (error) => error instanceof FailedBefore && error.outcome.text === "the card is stolen",
  );
});

test("a heartbeat keeps a short lease, which lapses without it", async () => {
  const key = freshKey();
  const kept = await client().run(key, (permit) => pause(3_000).then(() => !permit.isLost), { leaseMs: 2_000 });
  assert.equal(kept, true);
  assert.equal((await client().get(key))?.attempt, 1);
  const left = freshKey();
  const forgotten = granted(await client().claim(left, { leaseMs: 500 }));
  const taken = granted(await client().claim(left, { waitMs: 20_000 }));
  assert.deepEqual([taken.attempt, forgotten.isLost], [2, true]);
});

test("work whose key is taken over is told, and its outcome is not stored", async () => {
  const key = freshKey();
  const owner = "worker-7";
  const asked = client().run(
    key,
    async (permit) => {
      const told = new Promise((resolve) => permit.lost.addEventListener("abort", resolve));
      const second = granted(await client().claim(key, { owner, reentrant: true }));
      await told;
      await second.complete("the second's");
      return "the first's";
    },
    { owner, leaseMs: 600 },
  );
  await assert.rejects(asked, (error) => error instanceof Lost);
  assert.equal((await client().get(key))?.outcome?.value, "the second's");
});

test("work that cannot renew is told before its lease is over", async () => {
  const cutter = await Cutter.start();
  try {
    const permit = granted(await client({}, cutter.url).claim(freshKey(), { leaseMs: 600 }));
    cutter.stop();
    const heartbeat = permit.heartbeat();
    await new Promise((resolve) => permit.lost.addEventListener("abort", resolve));
    heartbeat.stop();
    assert.ok(permit.isLost);
  } finally {
    cutter.stop();
  }
});
