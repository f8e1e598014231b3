/** What can go wrong, and what to do then. A decision (replay, busy, mismatch, held) is an answer and no error. */

import type { Busy, Held, Mismatch } from "./decision.js";
import type { Outcome } from "./outcome.js";

/** Something went wrong. The class says what to do now, the message what happened. */
export class SemelError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
  }
}

/** Another run took over, or the record is gone. Do not report success; claim again to hear what happened. */
export class Lost extends SemelError {}

/** Nothing was done. Ask again later with the same key, after `retryAfterMs` if the server named a span. */
export class Unavailable extends SemelError {
  constructor(message: string, readonly retryAfterMs = 0, cause?: unknown) {
    super(message, cause);
  }
}

/** The reply was lost: it may have taken. Ask again with the same key (and permit id); do not assume that it failed. */
export class Unknown extends SemelError {}

/** The server will not do this, however often it is asked. `code` is its word for why; mend the request. */
export class Refused extends SemelError {
  constructor(message: string, readonly code: string) {
    super(message);
  }
}

/** The work did not run, and there is no outcome to replay. `decision` says why: busy, mismatch or held. */
export class NotRun extends SemelError {
  constructor(readonly decision: Busy | Mismatch | Held) {
    super(advice(decision));
  }
}

/** The work failed before, and the failure was stored: it is what every caller gets. The work did not run again. */
export class FailedBefore extends SemelError {
  constructor(readonly outcome: Outcome) {
    super(`the work failed before: ${outcome.text}`);
  }
}

function advice(decision: Busy | Mismatch | Held): string {
  switch (decision.decision) {
    case "busy": {
      const who = decision.owner || "another caller";
      return `${who} runs since ${decision.since.toISOString()}: ask again later, or say how long to wait`;
    }
    case "mismatch":
      return "another request was made under this key: use a key of its own for it";
    case "held":
      return `held (${decision.reason}): somebody must look, and resolve it`;
  }
}

/**
 * The error that an answer without a decision means. What no server of ours said may have been said by a machine between
 * us and it, after the server acted: that is unknown.
 */
export function fromProblem(
  status: number,
  code: string | undefined,
  detail: string,
  retryAfterMs = 0,
): Unavailable | Unknown | Refused {
  if (code === "unavailable" || code === "full" || code === "quota_exceeded" || status === 408 || status === 429) {
    return new Unavailable(`nothing was done: ${detail}`, retryAfterMs);
  }
  if (code === "unknown" || (status >= 500 && code === undefined)) {
    return new Unknown(`it may have taken (${status}): ${detail}`);
  }
  return new Refused(`refused (${status} ${code ?? "without a code"}): ${detail}`, code ?? String(status));
}
