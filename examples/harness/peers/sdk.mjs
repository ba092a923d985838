// The official TypeScript SDK connects to every URL of a list, so many at a time, and prints how many answered.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [, , path, width, modules] = process.argv;
const from = createRequire(pathToFileURL(`${modules}/`));
const sdk = (name) => import(pathToFileURL(from.resolve(`@modelcontextprotocol/sdk/client/${name}.js`)));
const { Client } = await sdk("index");
const { StreamableHTTPClientTransport } = await sdk("streamableHttp");

const urls = readFileSync(path, "utf8").split("\n").filter(Boolean).values();
let answered = 0;
const ask = async () => {
  for (const url of urls) {
    const client = new Client({ name: "peer", version: "1" });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    answered += client.getServerVersion() ? 1 : 0;
    await client.close();
  }
};
await Promise.all(Array.from({ length: Number(width) }, ask));
console.log(answered);
process.exit(0);
