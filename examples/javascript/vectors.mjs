// Reads the test vectors of the project: node vectors.mjs FOLDER. Prints how many hold; exits with 1 at the first that does not.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { ed25519 } from "@noble/curves/ed25519";

import { Identity, blake, dhtId, indexKey, networkId, nodeFromText, nodeText, openFrame, pointerKey, recordKey } from "./wire.mjs";

const folder = process.argv[2];
const load = (name) => JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"));
const bytes = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const hex = (data) => Buffer.from(data).toString("hex");

const IDENTIFIERS = {
  network: ({ mesh }) => networkId(mesh),
  node: ({ seed, text }) => {
    const node = ed25519.getPublicKey(bytes(seed));
    assert.equal(nodeText(node), text);
    assert.deepEqual(nodeFromText(text), node);
    return node;
  },
  dht: ({ node }) => dhtId(bytes(node)),
  record: ({ node, agent }) => recordKey(bytes(node), agent),
  index: ({ text }) => indexKey(text),
  pointer: ({ index, depth, publisher }) => pointerKey(bytes(index), depth, bytes(publisher)),
  "nested-team": ({ key, node, attempt }) =>
    blake(Buffer.concat([Buffer.from("nest"), bytes(key), bytes(node), Buffer.from([attempt])]), 16),
  card: ({ card }) => blake(bytes(card)),
};

const checks = {
  identifiers: (vector) => assert.equal(hex(IDENTIFIERS[vector.what](vector)), vector.id),
  signed: ({ frame, mesh, kind, value }) => {
    const opened = openFrame(bytes(frame), networkId(mesh));
    assert.equal(opened.kind, kind);
    if (opened.agent) assert.equal(opened.agent, value[1]);
  },
  refused: ({ frame, mesh, code }) => assert.throws(() => openFrame(bytes(frame), networkId(mesh)), { code }),
  datagrams: (vector) => {
    const [sender, receiver] = [vector.sender, vector.receiver].map(
      (seed) => new Identity(vector.mesh, bytes(seed), bytes(vector.secret)),
    );
    assert.equal(hex(sender.seal(receiver.node, bytes(vector.message), bytes(vector.nonce))), vector.datagram);
    assert.equal(hex(receiver.open(bytes(vector.datagram)).message), vector.message);
  },
};

for (const [name, check] of Object.entries(checks)) {
  const vectors = load(name);
  vectors.forEach(check);
  console.log(`${name}: ${vectors.length}`);
}
