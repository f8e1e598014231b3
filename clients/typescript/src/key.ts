/** What must happen once, and what is derived from it. The digests are the same in every language. */

/** What must happen once: an operation, the name of one of its kind, and whose it is (a path of tenants). */
export interface Key {
  readonly operation: string;
  readonly name: string;
  readonly scope?: readonly string[];
}

/** A key for a system further down, the same on every attempt and in every language. */
export async function derived(recordId: string, label: string): Promise<string> {
  const parts = [fromHex(recordId), new TextEncoder().encode(label)];
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + 8 + part.length, 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const part of parts) {
    view.setBigUint64(at, BigInt(part.length));
    bytes.set(part, at + 8);
    at += 8 + part.length;
  }
  return toHex(new Uint8Array(await (await webCrypto()).subtle.digest("SHA-256", bytes)));
}

/** A new permit id: 128 random bits. Whoever knows it may settle the run. */
export async function mintPermitId(): Promise<string> {
  return toHex((await webCrypto()).getRandomValues(new Uint8Array(16)));
}

/** Node 18 keeps its Web Crypto in a module; everything newer has it at hand. */
async function webCrypto(): Promise<Crypto> {
  if (globalThis.crypto !== undefined) {
    return globalThis.crypto;
  }
  const inNode = "node:crypto";
  return ((await import(inNode)) as { webcrypto: Crypto }).webcrypto;
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function fromHex(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}
