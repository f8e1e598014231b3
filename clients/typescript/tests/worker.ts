/** A process of its own: `worker.js resume URL PERMIT`, or `worker.js take URL SCOPE OPERATION NAME LEDGER`. */

import { appendFileSync } from "node:fs";

import { Client } from "../src/index.js";

const [, , word, url = "", ...words] = process.argv;
const token = process.env["SEMEL_TOKEN"];
const client = new Client(url, { owner: "typescript", ...(token === undefined ? {} : { token }) });

/** Goes on under a permit of another process. */
async function resume(text: string): Promise<unknown> {
  const permit = await client.permit(text);
  const { attempt, fence } = permit;
  const charge = await permit.step("charge", () => "charged twice");
  const seen = { attempt, fence, derived: await permit.derive("provider.charge"), charge };
  await permit.complete(seen);
  return seen;
}

/** Waits for the key, and does its work: a line in a ledger. */
function take(scope: string, operation: string, name: string, ledger: string): Promise<unknown> {
  return client.run(
    { operation, name, scope: [scope] },
    async (permit) => {
      appendFileSync(ledger, `typescript attempt ${permit.attempt}\n`);
      const derived = await permit.derive("provider.charge");
      return { by: "typescript", attempt: permit.attempt, fence: permit.fence, derived };
    },
    { waitMs: 30_000, request: { cents: 4200 } },
  );
}

const [first = "", second = "", third = "", fourth = ""] = words;
console.log(JSON.stringify(word === "resume" ? await resume(first) : await take(first, second, third, fourth)));
