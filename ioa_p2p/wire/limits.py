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

# -- the DHT ----------------------------------------------------------------------------------------
RECORD_FRAME_BYTES_MAX = FRAME_HEADER_BYTES + RECORD_BODY_BYTES_MAX + SIGNATURE_BYTES
DATAGRAM_BODY_BYTES_MAX = DATAGRAM_BYTES_MAX - 74  # less header, sender, nonce and box
BOX_PEERS_MAX = 4_096  # box keys kept, about 1 MB; over: the longest unused is made again when needed
DHT_ID_BYTES = 20
DHT_K = 20  # copies of each value, entries of a bucket (Kademlia paper, 4.1)
DHT_ALPHA = 3  # requests of one lookup under way at once
DHT_SHORTLIST = 3 * DHT_K  # candidates a lookup keeps; over: the farthest is forgotten
DHT_CONTACTS_MAX = 16  # contacts in one answer: 832 B with IPv6
DHT_SUBNET_BUCKET_MAX = 2  # entries of one /24 or /48 in a bucket; over: not entered
DHT_SUBNET_TABLE_MAX = 3  # and in the table, and in one answer
DHT_TOKEN_BYTES = 8
DHT_TOKEN_S = 300  # a token holds for one to two of these
DHT_PAD_BYTES = 320  # a request with it is 400 B sealed, a third of the largest answer
DHT_AGREE = 3  # holders that must agree on the newest seq before a read ends early
DHT_LOOKUP_S = 15  # then a lookup ends with what it has
DHT_LOOKUP_CALLS_MAX = 120  # likewise
DHT_CALLS_MAX = 4_096  # requests under way; over: a new one counts as unanswered
DHT_CALL_S = 2.0  # without an answer by then the peer missed
DHT_SLOW_S = (0.1, 0.2, 1.0)  # least, first and most patience before a peer frees its place in a lookup
DHT_MISSES_MAX = 3  # then a peer leaves the table
DHT_SUSPECTS_MAX = 1_024  # peers remembered as slow; over: the oldest is forgotten
DHT_SUSPECT_S = 60  # how long one is left out of lookups
DHT_CONTACTED_MAX = 1_024  # peers we wrote to, remembered until we are proven reachable; over: the oldest goes
DHT_CONTACTED_S = 600  # a home router forgets a mapping well before
DHT_DIAL_BACK_S = 10  # between requests to be dialled back, and between those granted
DHT_JUMP_S = 5.0  # a timer this late means that we slept: nobody is blamed for silence
DHT_SEARCHES_MAX = 64  # lookups under way; over: queued
DHT_QUEUE_MAX = 1_024  # lookups queued; over: UsageError('busy')
DHT_PUTS_MAX = 4  # puts of the publisher under way at once; the rest wait their turn
DHT_PUT_QUORUM = 0.75  # of the holders found must confirm
DHT_COPIES_MIN = 10  # the publisher tops up below
DHT_SEEDS_MAX = 32  # over: UsageError
DHT_SEED_RETRY_S = (1, 60)  # first and longest wait between tries of a silent seed, for ever
DHT_PEERS_SAVED_MAX = 200  # good peers on disk; over: the longest unheard goes
DHT_SAVE_PEERS_S = 30  # how often they are written, if changed
DHT_REFRESH_S = 300  # between refreshes of the table, checks of copies and digests
DHT_PINGS_MAX = 16  # pings to learned contacts under way; over: the contact is not tried now

# -- what a holder keeps ----------------------------------------------------------------------------
STORE_ITEMS_MAX = 16_384  # in all; over: expired ones go, then a put is refused as FULL; likewise below
STORE_BYTES_MAX = 12 * 1024 * 1024
STORE_NODE_ITEMS_MAX = 512  # of one publisher: 15 agents with all their index keys
STORE_SUBNET_ITEMS_MAX = 2_048  # stored from one /24 or /48, or by one private peer
STORE_KEY_ITEMS_MAX = 1_024  # pointers under one key (SCENARIOS T06)
STORE_BUDGET = (400, 50)  # frames one sender may have checked: at once, and more a second; over: PeerError
STORE_BUDGET_PEERS_MAX = 1_024  # senders counted; over: the longest idle is forgotten
POINTERS_READ_MAX = 256  # pointers one search collects; over: the rest is left unread
POINTERS_PAGED_HOLDERS = 3  # holders that a search reads to the end; of the others it takes the first page
PASS_ON_MAX = 64  # items handed to one closer newcomer at once; the rest follow with the next check of copies
HAVE_MAX = 100  # frames asked about in one request

# -- neighbours' directories ------------------------------------------------------------------------
DIGEST_ENTRIES_MAX = 1_000  # newest first; older ones are found by lookup
RECORDS_BYTES_MAX = 96 * 1024  # of frames in one answer; the asker wants the rest again
CARDS_KEPT_MAX = 256  # about 4 MB at most; over: the longest unused goes
CARD_WAIT_S = 5  # then a card counts as not to be had
DIGEST_WAIT_S = 3  # how long "ready" waits for a link neighbour's digest

# -- publishing -------------------------------------------------------------------------------------
AGENTS_MAX = 64  # of one node; over: UsageError
PUBLISH_RETRY_S = (2, 60)  # first and longest wait before a put that failed is tried again
REPUBLISH_SPREAD = 0.2
