// The bytes of docs/wire.md: identifiers, signed frames, boxed datagrams, messages of the DHT. Nothing here does IO.

import { decode, encode } from "@msgpack/msgpack";
import { secretbox } from "@noble/ciphers/salsa";
import { ed25519, edwardsToMontgomeryPriv, edwardsToMontgomeryPub, x25519 } from "@noble/curves/ed25519";
import { blake2b } from "@noble/hashes/blake2b";
import { concatBytes, randomBytes, utf8ToBytes } from "@noble/hashes/utils";

export const K = 20;
export const ALPHA = 3;
export const DATAGRAM_BYTES_MAX = 1200;
const SKEW_S = 600;

export class WireError extends Error {
  constructor(code) {
    super(code);
    this.code = code;
  }
}

// -- Identifiers

export const blake = (data, size = 32) => blake2b(data, { dkLen: size });
export const networkId = (mesh) => blake(utf8ToBytes(mesh), 16);
export const dhtId = (node) => blake(node, 20);
export const recordKey = (node, agent) => blake(concatBytes(utf8ToBytes("record"), node, utf8ToBytes(agent)), 20);
export const indexKey = (text) => blake(utf8ToBytes(text), 16);

/** Where pointers stand: `depth` bits of the publisher's DHT id choose the shard. */
export function pointerKey(index, depth = 0, publisher = new Uint8Array(20)) {
  const shard = depth ? publisher[0] >> (8 - depth) : 0;
  return blake(concatBytes(utf8ToBytes("pointer"), index, Uint8Array.of(depth, shard)), 20);
}

const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";

export function nodeText(node) {
  const bits = [...node].map((byte) => byte.toString(2).padStart(8, "0")).join("").padEnd(260, "0");
  return bits.match(/.{5}/g).map((five) => BASE32[parseInt(five, 2)]).join("");
}

export function nodeFromText(text) {
  const bits = [...text].map((letter) => BASE32.indexOf(letter).toString(2).padStart(5, "0")).join("");
  const bytes = Uint8Array.from(bits.match(/.{8}/g) ?? [], (eight) => parseInt(eight, 2));
  if (bytes.length !== 32 || nodeText(bytes) !== text) throw new WireError("bad-node-id");
  return bytes;
}

export const same = (a, b) => a.length === b.length && a.every((byte, at) => byte === b[at]);

// -- Signed frames

const KINDS = [
  "", "record", "pointer", "log", "vote", "decision", "grant", "invite", "bid", "task", "result", "cert", "revoke",
  "token", "receipt", "ticket", "seeds", "transcript",
];
const BODY_BYTES_MAX = { record: 1024, pointer: 192 };
const FIELDS = {
  record:
    "node agent seq issued ttl gone boot addresses endpoint skills features index_model card owner_cert".split(" "),
  pointer: "node agent seq issued ttl index depth sketch endpoint".split(" "),
};

/** A frame whose signature holds, as {kind, raw, and the body's fields}. Throws WireError with a code of the page. */
export function openFrame(raw, network) {
  if (raw.length < 4 + 64) throw new WireError("short-frame");
  if (raw[0] !== 1) throw new WireError("unknown-version");
  const kind = KINDS[raw[1]];
  if (!kind) throw new WireError("unknown-kind");
  const length = (raw[2] << 8) | raw[3];
  if (length > (BODY_BYTES_MAX[kind] ?? 0xffff)) throw new WireError("frame-too-large");
  if (raw.length < 4 + length + 64) throw new WireError("short-frame");
  if (raw.length > 4 + length + 64) throw new WireError("frame-length");
  const body = raw.subarray(4, 4 + length);
  const signer = signerOf(body);
  const domain = concatBytes(utf8ToBytes(`ioa-p2p/${kind}`), Uint8Array.of(0));
  const covered = [domain, raw.subarray(0, 2), Uint8Array.of(network.length), network, raw.subarray(2, 4 + length)];
  if (!verified(raw.subarray(4 + length), concatBytes(...covered), signer)) throw new WireError("bad-signature");
  return { kind, raw, ...named(FIELDS[kind] ?? [], decoded(body)) };
}

/** A body begins as a fixarray or array 16, then bin 8 of 32 bytes: readable before anything costs much. */
function signerOf(body) {
  const at = body[0] === 0xdc ? 3 : 1;
  const array = (body[0] > 0x90 && body[0] < 0xa0) || (body[0] === 0xdc && (body[1] || body[2]));
  if (!array || body[at] !== 0xc4 || body[at + 1] !== 32 || body.length < at + 34) throw new WireError("no-signer");
  return body.subarray(at + 2, at + 34);
}

function verified(signature, data, signer) {
  try {
    return ed25519.verify(signature, data, signer, { zip215: false });
  } catch {
    return false;
  }
}

function named(fields, values) {
  if (!Array.isArray(values) || values.length < fields.length - 1) throw new WireError("undecodable");
  return Object.fromEntries(fields.map((field, at) => [field, values[at]]));
}

function decoded(bytes) {
  try {
    return decode(bytes, { useBigInt64: true });
  } catch {
    throw new WireError("undecodable");
  }
}

/** Whether a record or pointer may be believed at this wall time (unix seconds). */
export function inTime(head, now) {
  return Number(head.issued) <= now + SKEW_S && now < Number(head.issued) + Number(head.ttl) + SKEW_S;
}

// -- Datagrams

export class Identity {
  /** seed: 32 secret bytes. A client that only asks may draw new ones at each start. */
  constructor(mesh, seed = randomBytes(32), secret = new Uint8Array()) {
    this.node = ed25519.getPublicKey(seed);
    this.network = networkId(mesh);
    this.private = edwardsToMontgomeryPriv(seed);
    this.mesh = concatBytes(this.network, secret);
  }

  seal(to, message, nonce = randomBytes(24)) {
    const box = secretbox(this.boxKey(to, this.node, to), nonce).seal(message);
    return concatBytes(Uint8Array.of(1, 1), this.node, nonce, box);
  }

  /** {from, message}. Throws WireError: it is not for us, of another mesh, or garbage. */
  open(datagram) {
    if (datagram.length < 74 || datagram[0] !== 1 || datagram[1] !== 1) throw new WireError("unknown-version");
    const from = datagram.subarray(2, 34);
    try {
      const key = this.boxKey(from, from, this.node);
      return { from, message: secretbox(key, datagram.subarray(34, 58)).open(datagram.subarray(58)) };
    } catch {
      throw new WireError("not-opened");
    }
  }

  boxKey(peer, sender, receiver) {
    const shared = x25519.getSharedSecret(this.private, edwardsToMontgomeryPub(peer));
    const personalization = new Uint8Array(16);
    personalization.set(utf8ToBytes("ioa-p2p/box"));
    return blake2b(concatBytes(shared, sender, receiver, this.mesh), { dkLen: 32, personalization });
  }
}

// -- DHT: requests as arrays that begin with their tag

const PAD = new Uint8Array(328);
const NONE = new Uint8Array();

export const findRecord = (id, key) => encode([4, id, true, key, PAD]);
export const findPointers = (id, key, cursor = NONE) => encode([5, id, true, key, cursor, NONE, PAD]);

/** A Found: {id, frames, contacts, cursor, split}; what later versions append is skipped. */
export function readFound(message) {
  const [tag, id, , , frames = [], contacts = [], cursor = NONE, split = false] = decoded(message);
  if (tag !== 6) throw new WireError("undecodable");
  return { id, frames, contacts: contacts.map(readContact).filter(Boolean), cursor, split };
}

/** `key 32 | address 4 or 16 | port u16be`; null for what nobody can be sent to. */
export function readContact(packed) {
  const address = packed.subarray(32, -2);
  const port = (packed.at(-2) << 8) | packed.at(-1);
  if (![4, 16].includes(address.length) || !port) return null;
  const host = address.length === 4 ? address.join(".") : ipv6(address);
  return { node: packed.slice(0, 32), host, port };
}

function ipv6(address) {
  const groups = Array.from({ length: 8 }, (_, at) => ((address[2 * at] << 8) | address[2 * at + 1]).toString(16));
  return groups.join(":");
}
