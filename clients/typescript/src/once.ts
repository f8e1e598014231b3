/** The whole cycle around a function: claim, run with a heartbeat, complete; or replay. */

import type { Options, Terms } from "./ask.js";
import type { Client } from "./client.js";
import { FailedBefore, NotRun, SemelError } from "./errors.js";
import type { Key } from "./key.js";
import { toJson } from "./outcome.js";
import type { Permit } from "./permit.js";

/** How to run once. */
export interface Running {
  /** How long to wait for another caller to settle; 0 unless told. */
  readonly waitMs?: number;
  /** Whether a failure of the work is stored, and told to every later caller, instead of releasing the key. */
  readonly storeFailure?: boolean;
}

/** See `Client.run`. */
export async function run<T>(
  client: Client,
  key: Key,
  work: (permit: Permit) => T | Promise<T>,
  options: Options & Running = {},
): Promise<T> {
  const { storeFailure, ...asked } = options;
  const decision = await client.claim(key, asked);
  switch (decision.decision) {
    case "run":
      return ran(decision.permit, work, storeFailure ?? false);
    case "replay":
      if (decision.outcome.kind === "failure") {
        throw new FailedBefore(decision.outcome);
      }
      return decision.outcome.value as T;
    default:
      throw new NotRun(decision);
  }
}

async function ran<T>(permit: Permit, work: (permit: Permit) => T | Promise<T>, storeFailure: boolean): Promise<T> {
  const heartbeat = permit.heartbeat();
  let value: T;
  try {
    value = await work(permit);
  } catch (failure) {
    heartbeat.stop();
    await fail(permit, failure, storeFailure);
    throw failure;
  }
  heartbeat.stop();
  const text = toJson(value);
  await permit.complete(JSON.parse(text));
  // The first caller gets what every later one will get: what JSON makes of the value.
  return JSON.parse(text) as T;
}

/** Releases the key, or stores the failure. The caller gets its own error either way: if this fails too, the lease decides. */
async function fail(permit: Permit, failure: unknown, storeFailure: boolean): Promise<void> {
  try {
    if (storeFailure) {
      const text = failure instanceof Error ? failure.message : String(failure);
      await permit.complete(new TextEncoder().encode(text), { kind: "failure" });
    } else {
      await permit.release(`the work failed: ${failure instanceof Error ? failure.name : typeof failure}`);
    }
  } catch (error) {
    if (!(error instanceof SemelError)) {
      throw error;
    }
    console.warn(`semel: a failure of the work was not noted, the lease decides: ${error.message}`);
  }
}

/** What makes a function's call one of a kind. */
export interface OnceOptions<A extends readonly unknown[]> extends Terms, Running {
  readonly operation: string;
  readonly name: (...args: A) => string;
  readonly scope?: readonly string[] | ((...args: A) => readonly string[]);
  readonly request?: (...args: A) => unknown;
}

/**
 * Makes a function happen once for what it is called with. `name`, `scope` and `request` are functions of its arguments;
 * the function gets the permit before them, and its callers leave it out.
 */
export function once<A extends readonly unknown[], T>(
  client: Client,
  options: OnceOptions<A>,
  work: (permit: Permit, ...args: A) => T | Promise<T>,
): (...args: A) => Promise<T> {
  const { operation, name, scope = [], request, ...terms } = options;
  return (...args) => {
    const key = { operation, name: name(...args), scope: typeof scope === "function" ? scope(...args) : scope };
    return run(client, key, (permit) => work(permit, ...args), { ...terms, request: request?.(...args) });
  };
}
