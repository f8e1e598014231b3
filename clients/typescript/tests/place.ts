/** Where the server under test is, and keys that no other test uses. */

import { Client } from "../src/index.js";
import type { ClientOptions, Decision, Key } from "../src/index.js";
import type { Permit } from "../src/permit.js";

/** The address of the server under test. */
export const URL_UNDER_TEST = process.env["SEMEL_URL"] ?? "http://127.0.0.1:4747";

/** A token for the scope `tests`, if the server wants one. */
export const TOKEN = process.env["SEMEL_TOKEN"];

export function client(options: ClientOptions = {}, url = URL_UNDER_TEST): Client {
  return new Client(url, TOKEN === undefined ? options : { token: TOKEN, ...options });
}

/** A key that nobody has claimed. */
export function freshKey(operation = "charge"): Key {
  const name = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
  return { operation, name, scope: ["tests", "typescript"] };
}

/** The permit of a decision that must be to run. */
export function granted(decision: Decision): Permit {
  if (decision.decision !== "run") {
    throw new Error(`must run, and is told ${JSON.stringify(decision)}`);
  }
  return decision.permit;
}
