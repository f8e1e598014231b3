/** A permit goes to another process, which goes on and completes. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";

import { Lost } from "../src/index.js";
import { URL_UNDER_TEST, client, freshKey, granted } from "./place.js";

test("another process goes on where this one was, and completes", async () => {
  const key = freshKey();
  await granted(await client().claim(key)).release("not now");
  const permit = granted(await client().claim(key));
  await permit.step("charge", () => "ch_1");
  const worker = new URL("worker.js", import.meta.url).pathname;
  const out = await new Promise<string>((resolve, reject) => {
    const words = [worker, "resume", URL_UNDER_TEST, permit.text];
    execFile(process.execPath, words, (error, out) => (error ? reject(error) : resolve(out)));
  });
  const seen = { attempt: 2, fence: permit.fence, derived: await permit.derive("provider.charge"), charge: "ch_1" };
  assert.deepEqual(JSON.parse(out), seen);
  const replay = await client().claim(key);
  assert.ok(replay.decision === "replay");
  assert.deepEqual(replay.outcome.value, seen);
  await assert.rejects(permit.complete("late"), (error) => error instanceof Lost);
});

test("a permit that was lost is not taken up again", async () => {
  const permit = granted(await client().claim(freshKey()));
  await permit.release("not now");
  await assert.rejects(client().permit(permit.text), (error) => error instanceof Lost);
});

test("a permit whose run is completed is not taken up again", async () => {
  const permit = granted(await client().claim(freshKey()));
  await permit.complete("done");
  await assert.rejects(client().permit(permit.text), (error) => {
    return error instanceof Lost && /completed under it/.test(error.message);
  });
});
