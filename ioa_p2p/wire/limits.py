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

# -- teams ------------------------------------------------------------------------------------------
TEAM_MEMBERS_MIN = 2  # one voter alone is no team
TEAM_MEMBERS_MAX = TEAM_VOTERS_MAX  # agents; the default policy forms and signs at most 16
TEAM_MEMBERS_DEFAULT_MAX = 16  # everyone links everyone: beyond it chat fans out through some only
GOAL_CHARS_MAX = 2_000
BRIEF_CHARS_MAX = 240  # a skill's description in a roster: what a planner reads of it
ROSTER_BYTES_MAX = 24 * 1024  # with 64 counter-signatures it fits one step
INVITE_FRAME_BYTES_MAX = 192  # body of 5 fields <= 100 B, header 4, signature 64
STEP_TASKS_MAX = 16  # tasks one step may start, await or cancel by name
TEAM_TASKS_MAX = 256  # tasks of one team in its life; over: the step is refused
TASK_INPUTS_MAX = 16
TASK_ATTEMPTS_MAX = 8  # over: the task failed
TASK_STARTS_MAX = 2  # starts of one task at one worker; the second death is a dead letter
TASK_VALUE_BYTES_MAX = 16 * 1024  # inline inputs or outputs of one task; larger values go as blobs
TASK_BLOBS_MAX = 8
BLOB_NAME_CHARS_MAX = 120
BLOB_SIZE_MAX = 16 * 1024 * 1024  # a blob is held in memory while it is verified
LINE_CHARS_MAX = 2_000
SUMMARY_CHARS_MAX = 1_000
ANSWER_CHARS_MAX = 8_000
EVIDENCE_MAX = 64
REASON_CHARS_MAX = 200
ANCESTORS_MAX = 3  # nesting depth
CALLS_MAX = 64  # agents one launch may call for bids; more are not asked
QUEUE_PER_REQUESTER_MAX = 32  # accepted tasks not yet done, of one launcher; over: BUSY
QUEUE_MAX = 256  # and of all together
LAUNCHES_MAX = 64  # open launches of one node; over: UsageError
TEAMS_OPEN_MAX = 64  # open teams of one node; over: calls are declined
LINES_KEPT_MAX = 64  # said lines a planner sees
