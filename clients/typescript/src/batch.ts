/** Many claims in one request. Each has an answer of its own, also when others fail. */

import { claimBody } from "./ask.js";
import type { Claim } from "./ask.js";
import type { Client } from "./client.js";
import { decided } from "./decision.js";
import type { Answer, Decision } from "./decision.js";
import { SemelError, Unavailable, Unknown, fromProblem } from "./errors.js";
import { Permit } from "./permit.js";
import type { PermitAnswer } from "./permit.js";
import { pause } from "./retry.js";

/** How many claims one request may hold. */
const CLAIMS_MAX = 1000;

interface Problem {
  readonly decision: "error";
  readonly problem: { readonly status: number; readonly code?: string; readonly title: string; readonly detail?: string };
}

type Item = (Answer & PermitAnswer) | Problem;

/** A claim that waits for its answer, and the answer that it has so far. */
interface Open {
  readonly body: object;
  answer: Decision | SemelError;
}

/** See `Client.claimMany`. */
export async function claimMany(client: Client, claims: readonly Claim[]): Promise<(Decision | SemelError)[]> {
  const unasked = new Unavailable("nothing was done: it was not asked for yet");
  const all: Open[] = [];
  for (const claim of claims) {
    all.push({ body: await claimBody({ ...client.terms, ...claim }), answer: unasked });
  }
  for (let start = 0; start < all.length; start += CLAIMS_MAX) {
    await claimPart(client, all.slice(start, start + CLAIMS_MAX));
  }
  return all.map(({ answer }) => answer);
}

/** Asks for the claims of one request; those that may still be answered are asked for again, each with the permit id that it had. */
async function claimPart(client: Client, part: readonly Open[]): Promise<void> {
  const pauses = client.retry.pauses();
  let left = part;
  for (;;) {
    const answers = await ask(client, left);
    left.forEach((open, at) => {
      const answer = answers[at] ?? new Unknown("the server left an answer out: ask again with the same key");
      // An earlier try may have taken, so a later one that did nothing does not make it undone.
      if (!(answer instanceof Unavailable && open.answer instanceof Unknown)) {
        open.answer = answer;
      }
    });
    left = left.filter(({ answer }) => answer instanceof Unavailable || answer instanceof Unknown);
    const next = pauses.next().value;
    if (left.length === 0 || next === undefined) {
      return;
    }
    await pause(next);
  }
}

async function ask(client: Client, part: readonly Open[]): Promise<readonly (Decision | SemelError)[]> {
  const askedAt = performance.now();
  try {
    const body = { items: part.map((open) => open.body) };
    const { answers } = await client.transport.post<{ answers: readonly Item[] }>("/v1/claim/batch", body);
    return answers.map((item) => answered(client, item, askedAt));
  } catch (error) {
    if (error instanceof SemelError) {
      // Thrown, it would take the permits of other requests with it.
      const failed: SemelError = error;
      return part.map(() => failed);
    }
    throw error;
  }
}

function answered(client: Client, item: Item, askedAt: number): Decision | SemelError {
  if ("problem" in item) {
    const { status, code, title, detail } = item.problem;
    return fromProblem(status, code, detail ?? title);
  }
  return decided(item, () => new Permit(client.transport, client.retry, item, askedAt));
}
