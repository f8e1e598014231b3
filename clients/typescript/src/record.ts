/** What the store keeps for one key, for those that look without claiming. */

import { moment } from "./decision.js";
import type { Key } from "./key.js";
import { outcomeAnswer } from "./outcome.js";
import type { Outcome, OutcomeAnswer } from "./outcome.js";

/** What the store keeps for one key. */
export interface StoredRecord {
  readonly key: Key;
  readonly id: string;
  readonly state: "running" | "done" | "released" | "held";
  readonly attempt: number;
  /** Of a done record; without its bytes if this caller may not see them. */
  readonly outcome: Outcome | null;
  /** Of a running record. */
  readonly owner: string | null;
  /** Of a released or a held record. */
  readonly reason: string | null;
  /** Of a running record: nobody renewed it in time, and the next claim decides. */
  readonly lapsed: boolean;
  readonly firstSeenAt: Date;
  readonly changedAt: Date;
  readonly rememberedUntil: Date | null;
  /** Everything the server said of it. */
  readonly members: RecordAnswer;
}

/** A record as the server tells it. */
export interface RecordAnswer {
  readonly id: string;
  readonly scope: readonly string[];
  readonly operation: string;
  readonly name: string;
  readonly state: StoredRecord["state"];
  readonly attempt: number;
  readonly outcome?: OutcomeAnswer;
  readonly owner?: string;
  readonly reason?: string;
  readonly lapsed?: boolean;
  readonly first_seen_at: string;
  readonly changed_at: string;
  readonly remembered_until: string | null;
  readonly [member: string]: unknown;
}

/** Whether waiting longer would show nothing new by itself. */
export function isSettled(record: StoredRecord): boolean {
  return record.state !== "running" || record.lapsed;
}

/** A record from the server. */
export function recordAnswer(members: RecordAnswer): StoredRecord {
  const { id, scope, operation, name, state, attempt, outcome } = members;
  return {
    key: { operation, name, scope },
    id,
    state,
    attempt,
    outcome: outcome == null ? null : outcomeAnswer(outcome),
    owner: members.owner ?? null,
    reason: members.reason ?? null,
    lapsed: members.lapsed ?? false,
    firstSeenAt: new Date(members.first_seen_at),
    changedAt: new Date(members.changed_at),
    rememberedUntil: moment(members.remembered_until),
    members,
  };
}
