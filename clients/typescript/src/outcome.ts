/** What a run produced: bytes, what kind of end it was, and what it created. */

/** Everything that JSON can say. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** Something that a run created or changed: `{ kind: "charge", id: "ch_1" }`. */
export interface Reference {
  readonly kind: string;
  readonly id: string;
}

/** What an outcome may say beside its bytes. */
export interface Notes {
  /** "success" (the default), "failure", or a word of your own. */
  readonly kind?: string;
  readonly references?: readonly Reference[];
  readonly details?: Json;
}

/** What a run produced, exactly as it was stored. */
export class Outcome {
  constructor(
    readonly data: Uint8Array,
    readonly kind = "success",
    readonly references: readonly Reference[] = [],
    readonly details: unknown = null,
  ) {}

  /** The stored JSON, read. Throws a SyntaxError if the bytes are no JSON: then `data` is what you want. */
  get value(): unknown {
    return JSON.parse(this.text);
  }

  /** The bytes as text, for people. */
  get text(): string {
    return new TextDecoder().decode(this.data);
  }
}

/** The members of an answer that hold stored bytes. */
export interface StoredAnswer {
  readonly json?: unknown;
  readonly base64?: string;
}

/** An outcome as the server tells it. */
export interface OutcomeAnswer extends StoredAnswer {
  readonly kind?: string;
  readonly references?: readonly Reference[];
  readonly details?: unknown;
}

/** The JSON text of a value. What JSON cannot say at all (undefined, a function) is null, as it is in an array. */
export function toJson(value: unknown): string {
  return JSON.stringify(value) ?? "null";
}

/** How a value travels: bytes as base64, everything else as JSON. */
export function valueMember(value: unknown): StoredAnswer {
  return value instanceof Uint8Array ? { base64: toBase64(value) } : { json: value ?? null };
}

/** The bytes that an answer holds. None at all is what callers get that may not see them. */
export function storedBytes(members: StoredAnswer): Uint8Array {
  if (members.base64 !== undefined) {
    return fromBase64(members.base64);
  }
  return new TextEncoder().encode("json" in members ? toJson(members.json) : "");
}

/** An outcome for the server. */
export function outcomeAsk(value: unknown, notes: Notes): OutcomeAnswer {
  return { ...notes, ...valueMember(value) };
}

/** An outcome from the server. */
export function outcomeAnswer(members: OutcomeAnswer): Outcome {
  const { kind, references, details } = members;
  return new Outcome(storedBytes(members), kind, references ?? [], details ?? null);
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  // In parts: an argument list has a bound that an outcome may exceed.
  for (let at = 0; at < bytes.length; at += 8192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  return btoa(text);
}

function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
}
