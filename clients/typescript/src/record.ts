/** What the store keeps for one key, for those that look without claiming. */

import { moment } from "./decision.js";
import type { Key } from "./key.js";
import { outcomeAnswer } from "./outcome.js";
import type { Outcome, OutcomeAnswer } from "./outcome.js";

/** An attempt that is over. */
export interface EndedAttempt {
  readonly attempt: number;
  readonly owner: string | null;
  readonly from: Date;
  readonly until: Date;
  readonly ended: "completed" | "released" | "lapsed" | "held";
  readonly reason: string | null;
}

/** What the store keeps for one key. */
export interface StoredRecord {
  readonly key: Key;
  readonly id: string;
  readonly state: "running" | "done" | "released" | "held";
  readonly attempt: number;
  /** Of a done record; without its bytes if this caller may not see them. */
  readonly outcome: Outcome | null;
  /** Who runs it, or ran it last. */
  readonly owner: string | null;
  /** Of a released or a held record. */
  readonly reason: string | null;
  /** Of a running record: it was not renewed in time, and the next claim runs it again. */
  readonly lapsed: boolean;
  readonly firstSeenAt: Date;
  readonly changedAt: Date;
  readonly rememberedUntil: Date | null;
  /** What the work is, in words for people. */
  readonly label: string | null;
  /** The last 8 attempts that are over, oldest first. */
  readonly history: readonly EndedAttempt[];
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
  readonly owner?: string | null;
  readonly reason?: string;
  readonly lapsed?: boolean;
  readonly first_seen_at: string;
  readonly changed_at: string;
  readonly remembered_until: string | null;
  readonly label?: string | null;
  readonly history?: readonly AttemptAnswer[];
  readonly [member: string]: unknown;
}

/** An attempt that is over, as the server tells it. */
export type AttemptAnswer = Omit<EndedAttempt, "from" | "until"> & { readonly from: string; readonly until: string };

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
    label: members.label ?? null,
    history: (members.history ?? []).map((ended) => {
      return { ...ended, from: new Date(ended.from), until: new Date(ended.until) };
    }),
    members,
  };
}
