"""Every bound of the wire, with its reason. What happens when one is met stands beside it."""

# -- identifiers ------------------------------------------------------------------------------------
NODE_ID_BYTES = 32  # an Ed25519 public key
NETWORK_ID_BYTES = 16  # BLAKE2b-128 of the mesh's name
SIGNATURE_BYTES = 64  # an Ed25519 signature
SKILL_NAME_BYTES_MAX = 64  # ten of the longest still fit a record
AGENT_NAME_BYTES_MAX = 32  # a pointer must fit 192 B

# -- signed frames ----------------------------------------------------------------------------------
FRAME_HEADER_BYTES = 4  # version u8, kind u8, length u16be
FRAME_BODY_BYTES_MAX = 0xFFFF  # what u16 can say; kinds below are tighter. Over: PeerError
RECORD_BODY_BYTES_MAX = 1_024  # one datagram holds a record and its box
POINTER_BODY_BYTES_MAX = 192  # a datagram answer holds at least four
NESTING_MAX = 16  # containers within containers; people's JSON stays below ten. Deeper: PeerError

# -- records ----------------------------------------------------------------------------------------
# A record holds ten names of 64 B, or four addresses of 160 B, not both in full: the body bound decides.
RECORD_ADDRESSES_MAX = 4  # two families, one relay, one to spare
RECORD_SKILLS_MAX = 10  # the card holds the others
ADDRESS_BYTES_MAX = 160  # a relay address with two peer ids and a DNS name
ENDPOINT_TEXT_BYTES_MAX = 64  # a full IPv6 address with scope and port
ENDPOINT_BYTES_MAX = 18  # 16 of IPv6, 2 of port
FEATURES_MAX = 16  # what one major version may add
FEATURE_BYTES_MAX = 24  # a word, not a text
INDEX_MODEL_BYTES_MAX = 32  # name and version of the index model
SKETCH_BYTES = 64  # an int8 sketch; a pointer must fit 192 B
SHARD_BITS_MAX = 8  # 256 shards hold a key of more publishers than a mesh of this size has
OWNER_CERT_BYTES_MAX = 140  # two keys' worth of rights, dates and a signature
CARD_BYTES_MAX = 16 * 1024  # one link frame with room; a larger card is not fetched
CARD_SKILLS_MAX = 64  # more is a catalogue, not an agent
INDEX_KEYS_MAX = 32  # an agent's index keys beyond are cut; `publish` says so
TTL_S_MIN = 60  # below, re-issuing would cost more than the talk
TTL_S_MAX = 86_400  # the longest that the dead are offered
TTL_S_DEFAULT = 7_200  # re-issued about every 45 minutes
GONE_EXTRA_TTL_S = 1_200  # a `gone` record outlives what it withdraws
CLOCK_SKEW_S = 600  # accepted in either direction: clocks of small devices drift that far
REPUBLISH_TTL_FRACTION = 0.375  # +- 20 %: two tries fit before a record expires

# -- links ------------------------------------------------------------------------------------------
LINK_HEADER_BYTES = 5  # length u32be (kind and body), kind u8
LINK_FRAME_BYTES_MAX = 128 * 1024  # over: the link is closed
LINK_SOFTWARE_BYTES_MAX = 48  # name and version
LINK_CERTIFICATE_BYTES_MAX = 256  # an owner's certificate in its frame
LINK_BAD_FRAMES_MAX = 100  # a peer that sends more undecodable frames is cut

# -- datagrams --------------------------------------------------------------------------------------
DATAGRAM_BYTES_MAX = 1_200  # below every common path MTU
