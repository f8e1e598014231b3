/**
 * Work that happens once: the client of semel's claim server.
 *
 *     const client = new Client("http://127.0.0.1:4747");
 *     const receipt = await client.run({ operation: "charge", name: "order-1042" }, charge, { request: { cents: 4200 } });
 *
 * Layout, the same as in the Python client:
 * - `client`: the way to a server. `permit`: the right to run. `once`: the whole cycle around a function.
 * - `ask`: what a claim says. `decision`: what it is told. `outcome`, `record`, `key`: what those speak of.
 * - `heartbeat`: keeps a lease. `retry`: asks again. `batch`: many at once. `transport`: requests. `errors`: what to do when.
 */

export type { Claim, Options, Terms } from "./ask.js";
export { Client } from "./client.js";
export type { ClientOptions } from "./client.js";
export type { Busy, Decision, Held, Mismatch, Recorded, Replay, Run } from "./decision.js";
export { FailedBefore, Lost, NotRun, Refused, SemelError, Unavailable, Unknown } from "./errors.js";
export { Heartbeat } from "./heartbeat.js";
export type { Key } from "./key.js";
export { once } from "./once.js";
export type { OnceOptions, Running } from "./once.js";
export { Outcome } from "./outcome.js";
export type { Json, Notes, Reference } from "./outcome.js";
export type { Permit } from "./permit.js";
export type { EndedAttempt, StoredRecord } from "./record.js";
export { Retry } from "./retry.js";
