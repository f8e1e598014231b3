/** What a caller asks for. A claim gets its permit id once, so that a retry after a lost reply finds its own run. */

import { mintPermitId } from "./key.js";
import type { Key } from "./key.js";

/** What many claims may have in common. */
export interface Terms {
  /** Who asks, for people that look. */
  readonly owner?: string;
  /** What the work is, in words for people; never part of the identity. At most 256 bytes. */
  readonly label?: string;
  /** How long the permit is good without renewal; the server's default is 60 seconds. */
  readonly leaseMs?: number;
  /** How long the outcome is remembered; the server's default is a day. */
  readonly retentionMs?: number;
  /** What a lapsed lease means: run again (the default), or hold until a person has looked. */
  readonly lapse?: "rerun" | "hold";
  readonly attemptsMax?: number;
  /** Whether the same owner may take over its own run. */
  readonly reentrant?: boolean;
}

/** What one claim may say beside its key. */
export interface Options extends Terms {
  /** Anything that JSON can say; two requests under one key must agree on it. Without it nobody compares. */
  readonly request?: unknown;
  /** The request's digest (64 hex digits), for callers that digest it themselves. */
  readonly fingerprint?: string;
  readonly permitId?: string;
  readonly firstEvent?: string;
}

/** One of many claims. */
export interface Claim extends Options {
  readonly key: Key;
}

/** A claim for the server: the same body is the same ask. Outcomes are asked for as bytes, so that a replay is exact. */
export async function claimBody({ key, ...options }: Claim): Promise<Record<string, unknown>> {
  return {
    scope: key.scope?.length ? key.scope : undefined,
    operation: key.operation,
    name: key.name,
    request: options.request ?? undefined,
    fingerprint: options.fingerprint,
    permit_id: options.permitId ?? (await mintPermitId()),
    owner: options.owner,
    lease_ms: options.leaseMs,
    retention_ms: options.retentionMs,
    lapse: options.lapse,
    attempts_max: options.attemptsMax,
    reentrant: options.reentrant || undefined,
    label: options.label,
    first_event: options.firstEvent,
    outcome_as: "base64",
  };
}
