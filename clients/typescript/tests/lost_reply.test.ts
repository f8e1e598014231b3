/** Replies that are lost: what was asked for has happened, and asking again finds it. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Unknown } from "../src/index.js";
import type { Client } from "../src/index.js";
import { Cutter } from "./cutter.js";
import { client, freshKey, granted } from "./place.js";

async function cutting(cuts: number, retries: number, work: (client: Client, cutter: Cutter) => Promise<void>): Promise<void> {
  const cutter = await Cutter.start();
  try {
    cutter.cuts = cuts;
    await work(client({ retries }, cutter.url), cutter);
  } finally {
    cutter.stop();
  }
}

test("a claim whose reply is lost finds its own run", () =>
  cutting(2, 4, async (cut, cutter) => {
    const key = freshKey();
    const permit = granted(await cut.claim(key));
    assert.deepEqual([cutter.wereCut, permit.attempt], [2, 1]);
    await permit.complete("once");
    assert.equal((await client().get(key))?.attempt, 1);
  }));

test("without the permit id the run that nobody heard of keeps its caller out", () =>
  cutting(1, 0, async (cut) => {
    const key = freshKey();
    const permitId = "0123456789abcdef".repeat(2);
    await assert.rejects(cut.claim(key, { permitId }), (error) => error instanceof Unknown);
    assert.equal((await cut.claim(key)).decision, "busy");
    assert.equal(granted(await cut.claim(key, { permitId })).attempt, 1);
  }));

test("the work runs once however many replies are lost on its way", () =>
  cutting(0, 4, async (cut, cutter) => {
    let runs = 0;
    cutter.cuts = 1;
    const work = async (): Promise<number> => {
      cutter.cuts = 2;
      return (runs += 1);
    };
    const key = freshKey();
    assert.equal(await cut.run(key, work), 1);
    assert.equal(await cut.run(key, work), 1);
    assert.deepEqual([runs, cutter.wereCut, (await client().get(key))?.attempt], [1, 3, 1]);
  }));

test("many claims whose reply is lost find their own runs", () =>
  cutting(1, 4, async (cut, cutter) => {
    const answers = await cut.claimMany([{ key: freshKey() }, { key: freshKey() }]);
    const attempts = answers.map((answer) => (answer instanceof Error ? answer.message : granted(answer).attempt));
    assert.deepEqual([attempts, cutter.wereCut], [[1, 1], 1]);
  }));

test("an event whose reply is lost is still recorded by this call", () =>
  cutting(1, 4, async (cut) => {
    assert.equal((await cut.recordOnce(freshKey("event"), "seen")).decision, "recorded");
  }));
