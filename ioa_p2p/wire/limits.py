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

# -- decision log and election ----------------------------------------------------------------------
TEAM_ID_BYTES = 16
TEAM_VOTERS_MAX = 64  # the largest team a config may ask for; also bounds a certificate
INCARNATION_MAX = 1 << 16  # each one is a re-forming by hand or after a lost majority
TERM_MAX = 1 << 48
TERM_LEAP_MAX = 1 << 20  # one message cannot burn the number space; more: PeerError('term-leap')
VOTE_FRAME_BYTES_MAX = 320  # body of 9 fields <= 204 B, header 4, signature 64
DECISION_STEP_BYTES_MAX = 40 * 1024  # with a full certificate the entry still fits a signed frame
ENTRY_FRAME_BYTES_MAX = FRAME_HEADER_BYTES + FRAME_BODY_BYTES_MAX + SIGNATURE_BYTES
DECISION_LOG_ENTRIES_MAX = 1 << 20  # Propose beyond: UsageError('log-full')
DECISION_OPEN_MAX = 1_024  # proposals not yet committed; more: UsageError('busy')
APPEND_ENTRIES_MAX = 64
APPEND_BYTES_MAX = 96 * 1024  # with a certificate of 64 votes still below a link frame
APPEND_WINDOW = 512  # entries sent to one follower and not acknowledged; then only beats
