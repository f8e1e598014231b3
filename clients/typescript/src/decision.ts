/** What a caller is told. These are answers, not errors: exactly one caller hears run, everyone else what happened. */

import { outcomeAnswer } from "./outcome.js";
import type { Outcome, OutcomeAnswer } from "./outcome.js";
import type { Permit } from "./permit.js";

/** Run, then complete or release the permit. */
export interface Run {
  readonly decision: "run";
  readonly permit: Permit;
}

/** The work is done: answer with the stored outcome. */
export interface Replay {
  readonly decision: "replay";
  readonly outcome: Outcome;
  readonly rememberedUntil: Date | null;
  readonly id: string;
}

/** Another caller runs: ask again after `retryAfterMs`, or wait. */
export interface Busy {
  readonly decision: "busy";
  readonly owner: string;
  readonly since: Date;
  readonly retryAfterMs: number;
  readonly id: string;
}

/** Another request was made under this key: refuse. */
export interface Mismatch {
  readonly decision: "mismatch";
  readonly mismatches: number;
  readonly id: string;
}

/** Nobody may run until a person or a probe decides. */
export interface Held {
  readonly decision: "held";
  readonly reason: string;
  readonly id: string;
}

/** The outcome is stored, and this call stored it. */
export interface Recorded {
  readonly decision: "recorded";
  readonly rememberedUntil: Date | null;
  readonly id: string;
}

/** What a claim is told. */
export type Decision = Run | Replay | Busy | Mismatch | Held;

/** A decision as the server tells it; which members there are depends on its word. */
export interface Answer {
  readonly decision: string;
  readonly id: string;
  readonly outcome: OutcomeAnswer;
  readonly remembered_until: string | null;
  readonly owner: string;
  readonly since: string;
  readonly retry_after_ms: number;
  readonly mismatches: number;
  readonly reason: string;
}

/** A moment of the server's; a Date keeps its milliseconds. */
export function moment(text: string | null | undefined): Date | null {
  return text == null ? null : new Date(text);
}

/** The decision that an answer holds, if it gives no right to run. */
export function told(answer: Answer): Replay | Busy | Mismatch | Held {
  const { decision, id } = answer;
  switch (decision) {
    case "replay": {
      const outcome = outcomeAnswer(answer.outcome);
      return { decision, outcome, rememberedUntil: moment(answer.remembered_until), id };
    }
    case "busy": {
      const { owner, since, retry_after_ms: retryAfterMs } = answer;
      return { decision, owner, since: new Date(since), retryAfterMs, id };
    }
    case "mismatch":
      return { decision, mismatches: answer.mismatches, id };
    case "held":
      return { decision, reason: answer.reason, id };
    default:
      throw new TypeError(`the server's decision ${decision} is newer than this client: update the client`);
  }
}

/** The decision that a claim's answer holds. */
export function decided(answer: Answer, grant: () => Permit): Decision {
  return answer.decision === "run" ? { decision: "run", permit: grant() } : told(answer);
}
