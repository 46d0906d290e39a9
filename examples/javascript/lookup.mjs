// Finds agents by an index key and prints their records: node lookup.mjs [--mesh NAME] KEY@HOST:PORT word:hello
//
//   index key ── FindPointers ──> pointers ── FindRecord each ──> records, newest seq, signatures checked ──> JSON lines

import { Peer, walk } from "./search.mjs";
import {
  Identity, findPointers, findRecord, inTime, indexKey, nodeFromText, nodeText, openFrame, pointerKey, recordKey, same,
} from "./wire.mjs";

const USAGE = "usage: node lookup.mjs [--mesh NAME] KEY@HOST:PORT INDEX-KEY   (word:hello, skill:text.greet, out:TYPE)";
const MESH_DEFAULT = "ioa";

async function main(args) {
  const mesh = args[0] === "--mesh" ? args.splice(0, 2)[1] : MESH_DEFAULT;
  const [seedText, text] = args;
  if (!mesh || !seedText || !text) throw new Error(USAGE);
  const seed = readSeed(seedText);
  const peer = new Peer(new Identity(mesh), seed.host.includes(":") ? "udp6" : "udp4");
  try {
    const agents = await pointers(peer, seed, text);
    if (!agents) {
      console.error(`the seed did not answer: is it up, and of mesh ${mesh}? A node of another mesh does not answer`);
      return 1;
    }
    const records = await Promise.all(agents.map((agent) => record(peer, seed, agent)));
    const alive = records.filter((one) => one && !one.gone);
    alive.forEach((one) => console.log(JSON.stringify(readable(one))));
    console.error(`${alive.length} agents under ${text}`);
    return alive.length ? 0 : 1;
  } finally {
    peer.close();
  }
}

/** One proven pointer of each agent under the key; null if nobody answered. */
async function pointers(peer, seed, text) {
  const index = indexKey(text);
  const key = pointerKey(index);
  const { frames, answered } = await walk(peer, seed, key, (id, cursor) => findPointers(id, key, cursor));
  if (!answered) return null;
  const proven = opened(peer, frames, (frame) => frame.kind === "pointer" && same(frame.index, index) && frame.depth === 0);
  return [...new Map(proven.map((one) => [nodeText(one.node) + one.agent, one])).values()];
}

/** The newest proven record of the agent; of one seq, all take the frame that all holders serve. */
async function record(peer, seed, { node, agent, seq }) {
  const key = recordKey(node, agent);
  const { frames } = await walk(peer, seed, key, (id) => findRecord(id, key));
  const own = (frame) => frame.kind === "record" && same(frame.node, node) && frame.agent === agent && frame.seq >= seq;
  return opened(peer, frames, own).sort((a, b) => (a.seq > b.seq ? -1 : 1))[0];
}

/** Those that are signed, in time, and what was asked for. */
function opened(peer, frames, wanted) {
  return frames.flatMap((raw) => {
    try {
      const frame = openFrame(raw, peer.identity.network);
      return wanted(frame) && inTime(frame, Date.now() / 1000) ? [frame] : [];
    } catch {
      return [];
    }
  });
}

function readSeed(text) {
  const match = /^([a-z2-7]{52})@\[?([0-9a-fA-F.:]+)\]?:(\d+)$/.exec(text);
  if (!match) throw new Error(`not a seed: ${text}; write it as key@address:port`);
  return { node: nodeFromText(match[1]), host: match[2], port: Number(match[3]) };
}

function readable({ kind, raw, ...fields }) {
  const hex = (value) => (value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value);
  const plain = (value) => (typeof value === "bigint" ? Number(value) : hex(value));
  return { ...Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, plain(value)])), node: nodeText(fields.node) };
}

main(process.argv.slice(2)).then(
  (code) => (process.exitCode = code),
  (fault) => {
    console.error(fault.message);
    process.exitCode = 2;
  },
);
