"""Every bound of the wire, with its reason. What happens when one is met stands beside it."""

# -- identifiers ------------------------------------------------------------------------------------
NODE_ID_BYTES = 32  # an Ed25519 public key
SIGNATURE_BYTES = 64
SKILL_NAME_BYTES_MAX = 64
AGENT_NAME_BYTES_MAX = 32  # a pointer must fit 192 B

# -- signed frames ----------------------------------------------------------------------------------
FRAME_HEADER_BYTES = 4  # version u8, kind u8, length u16be
FRAME_BODY_BYTES_MAX = 0xFFFF  # what u16 can say; kinds below are tighter. Over: PeerError
RECORD_BODY_BYTES_MAX = 1_024  # one datagram holds a record and its box
POINTER_BODY_BYTES_MAX = 192  # a datagram answer holds at least four
NESTING_MAX = 16  # containers within containers; deeper is refused before decoding

# -- records ----------------------------------------------------------------------------------------
RECORD_ADDRESSES_MAX = 4
RECORD_SKILLS_MAX = 10
ADDRESS_BYTES_MAX = 160
OWNER_CERT_BYTES_MAX = 140
CARD_BYTES_MAX = 16 * 1024
CARD_SKILLS_MAX = 64
INDEX_KEYS_MAX = 32  # an agent's index keys beyond are cut; `publish` says so
TTL_S_MIN = 60
TTL_S_MAX = 86_400
TTL_S_DEFAULT = 7_200
GONE_EXTRA_TTL_S = 1_200  # a `gone` record outlives what it withdraws
CLOCK_SKEW_S = 600  # accepted in either direction
REPUBLISH_TTL_FRACTION = 0.375  # +- 20 %

# -- links ------------------------------------------------------------------------------------------
LINK_HEADER_BYTES = 5  # length u32be (kind and body), kind u8
LINK_FRAME_BYTES_MAX = 128 * 1024  # over: the link is closed
LINK_FEATURES_MAX = 16
LINK_BAD_FRAMES_MAX = 100  # a peer that sends more undecodable frames is cut

# -- datagrams --------------------------------------------------------------------------------------
DATAGRAM_BYTES_MAX = 1_200  # below every common path MTU

# -- team channel (gossip) --------------------------------------------------------------------------
CHAT_BODY_BYTES_MAX = 60 * 1024  # with 64 seen marks it still fits a signed frame; larger things are blobs
CHAT_KIND_BYTES_MAX = 24
CHAT_MEMBERS_MAX = 64  # the largest team a config may allow; a longer frontier is undecodable
CHAT_PUSH_ALL_MAX = 16  # teams up to this size are pushed to whole
CHAT_PUSH_SOME = 6  # larger ones: so many random members, digests to the rest
CHAT_UNANSWERED_MAX = 512  # entries beyond a member's last word: no more pushes, it is "behind" and pulls
CHAT_AHEAD_MAX = 64  # entries of one author held while an earlier one is missing; over: dropped, pulled later
CHAT_WAITING_MAX = 256  # entries of one author that wait for what they had seen; over: dropped, pulled later
CHAT_TAIL_ENTRIES = 256  # newest entries of one author kept in memory; older ones are read from disk
CHAT_TAIL_BYTES = 1024 * 1024  # likewise
CHAT_BLOCK_ENTRIES = 64  # rows of one storage space, so that an old range is a short read
CHAT_WANT_ENTRIES_MAX = 128  # one answer; the asker asks again
CHAT_WANT_BYTES_MAX = 1024 * 1024  # likewise
CHAT_BATCH_BYTES_MAX = 96 * 1024  # entries back to back in one link frame
CHAT_MARKS_MAX = 256  # marks in one Held; the rest go in the next
CHAT_GAP_S = 60.0  # a gap that nobody could fill for so long counts as met
CHAT_TELL_S = 30.0  # frontier exchange, +- 10 %
CHAT_TELL_AGAIN_S = 2.0  # least time between two frontiers that answer the same member
CHAT_ANSWER_S = 2.0  # a want without progress for so long is asked of another, then doubled
CHAT_ANSWER_S_MAX = 30.0
CHAT_HELD_S = 0.05  # acknowledgements gather for so long
CHAT_REPAIR_S = 0.1  # a gap may close by itself for so long
BLOB_BYTES_MAX = 16 * 1024 * 1024
BLOB_CHUNK_BYTES = 60 * 1024
BLOB_CHUNKS_MAX = -(-BLOB_BYTES_MAX // BLOB_CHUNK_BYTES)  # their hashes fit one link frame
BLOB_FETCHES_MAX = 4  # fetched at once; more wait
BLOB_FETCHES_WAITING_MAX = 64  # over: UsageError
BLOB_PIECES_AT_ONCE = 8  # asked of one member at a time: 480 KiB under way
BLOB_ANSWER_S = 10.0  # without a piece for so long another member is asked; 60 KiB over 6 KB/s still arrive
BLOB_GIVE_UP_S = 30.0  # without a new piece for so long: missing
