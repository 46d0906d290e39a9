// One walk towards a key, as docs/wire.md, "Lookup", has it: iterative, three requests under way, nearest first.

import dgram from "node:dgram";

import { ALPHA, DATAGRAM_BYTES_MAX, K, dhtId, readFound, same } from "./wire.mjs";

const ANSWER_MS = 2000;
const REQUESTS_MAX = 120;
const PAGES_MAX = 8;

/** Sends requests from one UDP socket and matches their answers. family: "udp4" or "udp6". */
export class Peer {
  constructor(identity, family) {
    this.identity = identity;
    this.waiting = new Map();
    this.nextId = Math.floor(Math.random() * 2 ** 31);
    this.socket = dgram.createSocket(family);
    this.socket.on("message", (datagram, from) => this.heard(datagram, from));
    this.socket.on("error", () => {}); // a host that refuses counts as one that is silent
  }

  /** The Found of `contact`, or null if it does not answer in time. request: (id) => bytes. */
  ask(contact, request) {
    const id = this.nextId++;
    return new Promise((resolve) => {
      const end = (found) => {
        clearTimeout(timer);
        this.waiting.delete(id);
        resolve(found);
      };
      const timer = setTimeout(end, ANSWER_MS, null);
      this.waiting.set(id, { contact, end });
      this.socket.send(this.identity.seal(contact.node, request(id)), contact.port, contact.host);
    });
  }

  /** An answer counts only from the key and the endpoint that were asked; all else is dropped without a word. */
  heard(datagram, from) {
    if (datagram.length > DATAGRAM_BYTES_MAX) return;
    try {
      const { from: node, message } = this.identity.open(datagram);
      const found = readFound(message);
      const call = this.waiting.get(found.id);
      if (call && same(call.contact.node, node) && call.contact.port === from.port) call.end(found);
    } catch {
      // not for us, or not an answer
    }
  }

  close() {
    this.socket.close();
  }
}

/**
 * Frames found under a key, each holder's as it came: unchecked; answered: whether anybody did. request: (id, cursor) => bytes; cursor is undefined
 * in the first request of a holder.
 */
export async function walk(peer, seed, key, request) {
  const candidates = new Map();
  const frames = [];
  let requests = 0;

  const learn = (contact) => {
    const text = Buffer.from(contact.node).toString("hex");
    if (contact.host.includes(":") !== seed.host.includes(":") || candidates.has(text)) return;
    candidates.set(text, { contact, distance: distance(contact.node, key), state: "new" });
  };
  const nearest = () =>
    [...candidates.values()].filter(({ state }) => state !== "lost").sort((a, b) => (a.distance < b.distance ? -1 : 1)).slice(0, K);

  const visit = async (candidate) => {
    candidate.state = "asked";
    let found = await peer.ask(candidate.contact, (id) => request(id));
    candidate.state = found ? "answered" : "lost";
    for (let page = 1; found; page++) {
      found.contacts.forEach(learn);
      frames.push(...found.frames);
      if (!found.cursor.length || page === PAGES_MAX) return;
      const { cursor } = found;
      found = await peer.ask(candidate.contact, (id) => request(id, cursor));
    }
  };
  const worker = async () => {
    for (;;) {
      const next = nearest().find(({ state }) => state === "new");
      if (next && requests < REQUESTS_MAX) {
        requests++;
        await visit(next);
      } else if (nearest().some(({ state }) => state === "asked")) {
        await new Promise((resolve) => setTimeout(resolve, 5)); // an answer under way may name nearer ones
      } else return;
    }
  };
  learn(seed);
  await Promise.all(Array.from({ length: ALPHA }, worker));
  return { frames, requests, answered: [...candidates.values()].some(({ state }) => state === "answered") };
}

function distance(node, key) {
  return dhtId(node).reduce((sum, byte, at) => (sum << 8n) | BigInt(byte ^ key[at]), 0n);
}
