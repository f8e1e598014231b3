/** Pieces that need no server. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Refused, Retry, Unavailable, Unknown } from "../src/index.js";
import { fromProblem } from "../src/errors.js";
import { pauseMs } from "../src/heartbeat.js";
import { derived } from "../src/key.js";
import { Permit } from "../src/permit.js";
import { Transport } from "../src/transport.js";

/** Fails in these ways, one after the other, and then answers. */
function failing(...errors: Error[]): () => Promise<string> {
  return async () => {
    const error = errors.shift();
    if (error !== undefined) {
      throw error;
    }
    return "answered";
  };
}

const unavailable = (): Unavailable => new Unavailable("nothing was done");
const unknown = (): Unknown => new Unknown("it may have taken");
const atOnce = async (): Promise<void> => undefined;

test("an ask is made again until it is answered", async () => {
  assert.equal(await new Retry(3).ask(failing(unavailable(), unknown(), unavailable()), atOnce), "answered");
});

test("an ask that may have taken is never said to have done nothing", async () => {
  const asks = [
    failing(unknown(), unavailable(), unavailable()),
    failing(unknown(), new Refused("no", "forbidden")),
    failing(unknown(), new Unavailable("later", 60_000)),
  ];
  for (const ask of asks) {
    await assert.rejects(new Retry(2).ask(ask, atOnce), (error) => error instanceof Unknown);
  }
  const nothing = failing(unavailable(), unavailable(), unavailable());
  await assert.rejects(new Retry(2).ask(nothing, atOnce), (error) => error instanceof Unavailable);
});

test("what is refused is not asked for again", async () => {
  const ask = failing(new Refused("no", "forbidden"));
  await assert.rejects(new Retry(2).ask(ask, atOnce), (error) => error instanceof Refused);
});

test("pauses grow, spread and are as long as the server asks for", async () => {
  const pauses: number[] = [];
  const errors = [unavailable(), unavailable(), new Unavailable("later", 3_000)];
  await new Retry(4).ask(failing(...errors), async (ms) => void pauses.push(ms));
  const [first = 0, second = 0, third = 0] = pauses;
  assert.ok(first >= 25 && first <= 50 && second >= 50 && second <= 100 && third === 3_000, pauses.join());
});

test("an answer that nobody of ours gave is unknown", () => {
  assert.ok(fromProblem(502, undefined, "bad gateway") instanceof Unknown);
  assert.ok(fromProblem(503, "unknown", "d") instanceof Unknown);
  assert.ok(fromProblem(503, "unavailable", "d") instanceof Unavailable);
  assert.ok(fromProblem(429, "quota_exceeded", "d") instanceof Unavailable);
  assert.ok(fromProblem(500, "corrupt", "d") instanceof Refused);
  assert.ok(fromProblem(403, "forbidden", "d") instanceof Refused);
});

test("a lease is renewed when a third of it is used, and soon after a failure", () => {
  assert.equal(pauseMs(60_000, 60_000, 0), 20_000);
  assert.equal(pauseMs(60_000, 60_000, 30_000), 2_500);
  assert.equal(pauseMs(60_000, 60_000, 59_000), 1_000);
  assert.equal(pauseMs(60_000, 60_000, 61_000), 0);
});

test("a derived key is the same in every language", async () => {
  const id = "00".repeat(31) + "2a";
  assert.equal(await derived(id, "provider.charge"), "ee609d345e770af998ba6b603112eb8b9f4ab7d24f3648edb1aaf2c63b909fd8");
});

test("a fence that JavaScript cannot hold is an error and no other number", () => {
  const transport = new Transport("http://127.0.0.1:1", "secret", 1);
  const answer = { id: "00", permit: "p1.secret", attempt: 1, fence: 2 ** 53, lease_ms: 1, steps: [] };
  let error: unknown;
  try {
    new Permit(transport, new Retry(), answer, 0);
  } catch (thrown) {
    error = thrown;
  }
  assert.ok(error instanceof RangeError);
  const permit = new Permit(transport, new Retry(), { ...answer, fence: 2 ** 53 - 1 }, 0);
  assert.ok(!JSON.stringify(permit).includes("secret"));
});
