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
# A record holds ten names of 64 B, or four addresses of 192 B, not both in full: the body bound decides.
RECORD_ADDRESSES_MAX = 4  # two of our own, two through relays
RECORD_SKILLS_MAX = 10  # the card holds the others
ADDRESS_BYTES_MAX = 192  # an IPv6 relay address with two peer ids
ENDPOINT_TEXT_BYTES_MAX = 64  # a full IPv6 address with scope and port
ENDPOINT_BYTES_MAX = 18  # 16 of IPv6, 2 of port
FEATURES_MAX = 16  # what one major version may add
FEATURE_BYTES_MAX = 24  # a word, not a text
INDEX_MODEL_BYTES_MAX = 32  # name and version of the index model
SKETCH_BYTES = 64  # 256 numbers of two bits; a pointer must fit 192 B
SKETCH_PRODUCT_MAX = SKETCH_BYTES * 4 * 9  # of any two sketches, in either direction
SHARD_DEPTHS = (0, 4, 8)  # bits; where a crowded key's pointers go too: 16 times as many holders each
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

# -- the DHT ----------------------------------------------------------------------------------------
RECORD_FRAME_BYTES_MAX = FRAME_HEADER_BYTES + RECORD_BODY_BYTES_MAX + SIGNATURE_BYTES
DATAGRAM_BODY_BYTES_MAX = DATAGRAM_BYTES_MAX - 74  # less header, sender, nonce and box
BOX_PEERS_MAX = 4_096  # box keys kept, about 1 MB; over: the longest unused is made again when needed
DHT_ID_BYTES = 20  # as in the Kademlia paper; BLAKE2b-160
DHT_K = 20  # copies of each value, entries of a bucket (Kademlia paper, 4.1)
DHT_ALPHA = 3  # requests of one lookup under way at once
DHT_SHORTLIST = 6 * DHT_K  # candidates a path keeps, as many as a lookup may ask; over: the farthest is forgotten
DHT_CONTACTS_MAX = 16  # contacts in one answer: 832 B with IPv6
DHT_SUBNET_BUCKET_MAX = 2  # entries of one /24 or /48 in a bucket; over: not entered
DHT_SUBNET_TABLE_MAX = 3  # and in the table, and in one answer
DHT_TOKEN_BYTES = 8  # nobody guesses one within its ten minutes
DHT_TOKEN_S = 300  # a token holds for one to two of these
DATAGRAM_PADDED_BYTES_MIN = 428  # of a request: a third of the largest answer and a Ping behind it. Under: PeerError
DHT_PAD_BYTES = 328  # a request with it is at least so large, sealed
DHT_AGREE = 2  # holders that must agree on the newest seq before a read ends early: one alone may have missed it
DHT_LOOKUP_S = 15  # then a lookup ends with what it has
DHT_LOOKUP_CALLS_MAX = 120  # likewise
DHT_CALLS_MAX = 4_096  # requests under way; over: a new one counts as unanswered
DHT_CALL_S = 2.0  # without an answer by then the peer missed
DHT_SLOW_S = (0.1, 0.2, 1.0)  # least, first and most patience before a peer frees its place in a lookup
DHT_MISSES_MAX = 3  # then a peer leaves the table
DHT_SUSPECTS_MAX = 1_024  # peers remembered as slow; over: the oldest is forgotten
DHT_SUSPECT_S = (60, 600)  # how long one is left out of lookups: at first, doubled each time, and at most
DHT_CONTACTED_MAX = 1_024  # peers we wrote to, who prove nothing of our reach; over: the oldest goes
DHT_CONTACTED_S = 600  # a home router forgets a mapping well before
DHT_DIAL_BACK_S = 10  # between requests to be dialled back, and between those granted
DHT_JUMP_S = 5.0  # a timer this late means that we slept: nobody is blamed for silence
DHT_SEARCHES_MAX = 64  # lookups under way; over: queued
DHT_QUEUE_MAX = 1_024  # lookups queued; over: UsageError('busy')
DHT_PUTS_MAX = 4  # puts of the publisher under way at once; the rest wait their turn
DHT_PUT_QUORUM = 0.75  # of the holders found must confirm
DHT_STORE_TRIES = 3  # of one Store that is not answered
DHT_SEEDS_MAX = 32  # over: UsageError
DHT_SEED_RETRY_S = (1, 60)  # first and longest wait between tries of a silent seed, for ever
DHT_PEERS_SAVED_MAX = 200  # good peers on disk; over: the longest unheard goes
DHT_SAVE_PEERS_S = 30  # how often they are written, if changed
DHT_REFRESH_S = 300  # between refreshes of the table, checks of copies and digests
DHT_PINGS_MAX = 16  # pings to learned contacts under way; over: the contact is not tried now

# -- what a holder keeps ----------------------------------------------------------------------------
STORE_ITEMS_MAX = 16_384  # in all; over: expired ones go, then a put is refused as FULL; likewise below
STORE_BYTES_MAX = 12 * 1024 * 1024  # a device of 110 MB spares that much
STORE_NODE_ITEMS_MAX = 2_112  # of one publisher: all its agents with all their index keys; in a small mesh all are here
STORE_SUBNET_ITEMS_MAX = 2_048  # stored from one /24 or /48, or by one private peer, in an empty store; see Store
STORE_KEY_ITEMS_MAX = 1_024  # pointers under one key, 260 KiB; over: a fair sample of them is kept
STORE_BUDGET = (400, 50)  # frames one sender may have checked: at once, and more a second; over: PeerError
STORE_BUDGET_PEERS_MAX = 1_024  # senders counted; over: the longest idle is forgotten
DHT_PASS_ON_S = 2.0  # newcomers of so long are seen to together
DHT_KEEPERS = 3  # of the holders of an item see to its copies: one may be silent
DHT_KEEP_MAX = 1_024  # items one node sees to at a time, besides its own; over: a random part
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
REPUBLISH_SPREAD = 0.2  # +-: agents of one start do not re-issue as one
# -- moving bytes (net/) ----------------------------------------------------------------------------
LINK_HELLO_BYTES_MAX = 2 * 1024  # nothing longer is read before the hello. Over: the link is closed
LINK_PING_BYTES_MAX = 64  # a pong repeats it. Over: a bad frame
LINK_BEAT_S = 1.1  # a link that heard nothing for so long is pinged; longer than the beat of talk once a second
LINK_SILENT_BEATS_MAX = 2  # this many pings in a row unanswered: closed as silent, 3.3-4.4 s after the last byte
LINK_HELLO_BEATS_MAX = 9  # about 10 s for the hello. Over: closed
LINK_HELD_BEATS_MAX = 2  # an inbound link waits this long for the outcome of our own dial to the same peer
LINK_STALL_BEATS_MAX = 9  # about 10 s in which not one queued byte could be written: closed, the logs repair
LINK_STEADY_S = 10.0  # a link that stood shorter counts as a failed dial, or accept-and-cut would spin
LINK_BACKOFF_S = 0.5  # before the second dial; doubles, +- half
LINK_BACKOFF_S_MAX = 60.0  # a neighbour that comes back is found within a minute
LINK_QUEUE_BYTES_MAX = 4 * 1024 * 1024  # per link, outbound. Full: `send` says False and counts
LINK_QUEUE_FRAMES_MAX = 8 * 1024  # per link, outbound: small frames cost more than their bytes
LINK_URGENT_BYTES_MAX = 1024 * 1024  # likewise, of decisions and task traffic: a talk that fills its queue delays none
LINK_BULK_BYTES_MAX = 1024 * 1024  # likewise, of blob pieces: two fetches' worth of what is asked at a time
LINK_BULK_WRITE_BYTES_MAX = 64 * 1024  # one write of blob pieces: what comes meanwhile waits for no more than one
LINK_WRITE_BYTES_MAX = 256 * 1024  # one write, so that a pong waits for no more than this
LINK_INBOX_BYTES_MAX = 4 * 1024 * 1024  # all links, inbound. Full: no window credit until the node has read
LINK_WANTS_MAX = 256  # peers we try to stay linked to. Over: ignored and counted
LINKS_MAX = 192  # all links and handshakes, wanted ones excepted. Over: refused and counted
LINKS_INBOUND_MAX = 128  # of these, inbound: strangers cannot take the places of those we dial
LINKS_PER_PEER_MAX = 3  # one that stands, one on either side of a tie
DATAGRAM_BATCH_MAX = 64  # handed over at once, so that a flood leaves room for other work
LINK_WINDOW_BYTES = 1024 * 1024  # what a peer may send ahead of our reading, topped up by quarters. Over: cut
LINK_SOCKETS_INBOUND_MAX = 256  # accepted sockets. Over: the oldest without a link is closed, else the newcomer
LINK_BARE_S = 12.0  # an accepted connection without a link may stay so long. Over: closed
LINK_STREAMS_MAX = 32  # of one connection: its link, identify, ping. Over: closed
LINK_HANDSHAKE_S = 8.0  # for a dial, and for each step of an accepted socket's handshake. Over: closed
LINK_DIALS_MAX = 16  # at a time; others wait
LINK_CLOSE_S = 5.0  # closing never takes longer; flushing is one second of it
# -- node and its local control ---------------------------------------------------------------------
MESH_NAME_BYTES_MAX = 64  # a name people type
SEEDS_MAX = 16  # in a configuration: half of what the DHT tries, for others name seeds too. Over: UsageError
ALLOW_MAX = 1_024  # longer lists need grants, not a list
CONTROL_REQUEST_BYTES_MAX = 256 * 1024  # a goal, not a file; over: the request is refused
CONTROL_ANSWER_BYTES_MAX = 1024 * 1024  # one line to a local client; larger results are refused, files go by path
CONTROL_BACKLOG_BYTES_MAX = 4 * 1024 * 1024  # unread by a client that stopped reading; over: it is cut off
CONTROL_CLIENTS_MAX = 64  # more are told busy
CONTROL_REQUEST_WAIT_S = 10.0  # a client that says nothing for longer is cut off
CONTROL_PATH_BYTES_MAX = 100  # a unix socket's path fits 108 bytes on Linux, 104 on macOS

# -- team channel (gossip) --------------------------------------------------------------------------
CHAT_BODY_BYTES_MAX = 60 * 1024  # with 64 seen marks it still fits a signed frame; larger things are blobs
CHAT_KIND_BYTES_MAX = 24  # a word, not a text
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
CHAT_WANT_BYTES_MAX = 256 * 1024  # likewise; 10 KB/s still bring it within CHAT_RANGE_S_MAX
CHAT_WANTS_AT_ONCE = 4  # ranges asked of one member at a time, at most: 1 MiB of its link's queue
CHAT_RANGE_S_MAX = 30.0  # who brings one range more slowly is left for another
CHAT_BATCH_BYTES_MAX = 96 * 1024  # entries back to back in one link frame
CHAT_MARKS_MAX = 256  # marks in one Held; the rest go in the next
CHAT_GAP_S = 60.0  # a gap that nobody could fill for so long counts as met
CHAT_TELL_S = 30.0  # frontier exchange, +- 10 %
CHAT_TELL_AGAIN_S = 2.0  # least time between two frontiers that answer the same member
CHAT_ANSWER_S = 2.0  # a want without progress for so long is asked of another
CHAT_ANSWER_S_MAX = 30.0  # who did not help rests for 2, 4, 8 .. s, at most so long
CHAT_EARLY_S = 0.001  # a timer that fires so early, by rounding, is due all the same
CHAT_HELD_S = 0.05  # acknowledgements gather for so long
CHAT_REPAIR_S = 0.1  # a gap may close by itself for so long
BLOB_BYTES_MAX = 64 * 1024 * 1024  # an hour of sound, a few hundred photographs; its manifest fits one piece
BLOB_CHUNK_BYTES = 60 * 1024  # two pieces fit one link frame, and a chat line need not wait long
BLOB_CHUNKS_MAX = -(-BLOB_BYTES_MAX // BLOB_CHUNK_BYTES)  # their hashes fit one link frame
BLOB_FETCHES_MAX = 4  # fetched at once; more wait
BLOB_FETCHES_WAITING_MAX = 64  # over: UsageError
BLOB_PIECES_AT_ONCE = 4  # asked of one member for one blob: four fetches fit its link's bulk lane
BLOB_SOURCES_MAX = 4  # members that one blob is fetched from at the same time
BLOBS_KEPT_BYTES_MAX = 2 * 1024 * 1024 * 1024  # whole blobs on disk. Over: UsageError, and nothing more is fetched
BLOB_PARTS_MAX = 16  # blobs begun, and left, on disk: 1 GiB at most. Over: the oldest is deleted
BLOB_PART_S = 86_400  # likewise after a day: who wanted it has it, or has given it up
BLOB_CLEAN_S = 3_600.0  # between looks at them
BLOB_ANSWER_S = 10.0  # without a piece for so long another member is asked; 60 KiB over 6 KB/s still arrive
BLOB_GIVE_UP_S = 30.0  # without a new piece for so long: missing
# -- decision log and election ----------------------------------------------------------------------
TEAM_ID_BYTES = 16  # random: two teams never share one
TEAM_VOTERS_MAX = 64  # the largest team a config may ask for; also bounds a certificate
INCARNATION_MAX = 1 << 16  # each one is a re-forming by hand or after a lost majority
TERM_MAX = 1 << 48  # ten elections a second would last 900,000 years
TERM_LEAP_MAX = 1 << 20  # one message cannot burn the number space; more: PeerError('term-leap')
VOTE_FRAME_BYTES_MAX = 320  # body of 9 fields <= 204 B, header 4, signature 64
DECISION_STEP_BYTES_MAX = 40 * 1024  # with a full certificate the entry still fits a signed frame
ENTRY_FRAME_BYTES_MAX = FRAME_HEADER_BYTES + FRAME_BODY_BYTES_MAX + SIGNATURE_BYTES  # any signed frame
DECISION_INDEX_MAX = 1 << 40  # a thousand entries a second would last 34 years
DECISION_LOG_ENTRIES_MAX = 8_192  # after the last checkpoint: held in memory, read at a start. UsageError('log-full')
DECISION_OPEN_MAX = 1_024  # proposals not yet committed; more: UsageError('busy')
APPEND_ENTRIES_MAX = 64  # one batch; the rest follows with the next
APPEND_BYTES_MAX = 96 * 1024  # with a certificate of 64 votes still below a link frame
APPEND_WINDOW = 512  # entries sent to one follower and not acknowledged; then only beats

# -- teams ------------------------------------------------------------------------------------------
TEAM_MEMBERS_MIN = 1  # a node alone may use its own only agent; it is then its own majority
TEAM_MEMBERS_MAX = TEAM_VOTERS_MAX  # agents; the default policy forms and signs at most 16
TEAM_MEMBERS_DEFAULT_MAX = 16  # everyone links everyone: beyond it chat fans out through some only
GOAL_CHARS_MAX = 2_000  # a page; it stands in the roster, data goes as attachments
BRIEF_CHARS_MAX = 240  # a skill's description in a roster: what a planner reads of it
ROSTER_BYTES_MAX = 24 * 1024  # with 64 counter-signatures it fits one step
INVITE_FRAME_BYTES_MAX = 192  # body of 5 fields <= 100 B, header 4, signature 64
STEP_TASKS_MAX = 16  # tasks one step may start, await or cancel by name
TEAM_TASKS_MAX = 256  # tasks of one team in its life; over: the step is refused
TASK_INPUTS_MAX = 16  # types, as many as a skill may name
TASK_ATTEMPTS_MAX = 8  # over: the task failed
TASK_DEATHS_MAX = 2  # of the process of one task while its node lives; the second is a dead letter
TASK_STARTS_MAX = 4  # starts of one task whose node crashed in its middle; then it is a dead letter too
TASK_VALUE_BYTES_MAX = 16 * 1024  # inline inputs or outputs of one task; larger values go as blobs
TASK_BLOBS_MAX = 8  # their names and hashes still fit one step
BLOB_NAME_CHARS_MAX = 120  # a file name with its ending
# Texts that people read; longer ones are cut by who writes them, refused by who reads.
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
TEAMS_OVER_MAX = 200  # concluded teams a node remembers, as many as it can tell of; over: the oldest is forgotten
LINES_KEPT_MAX = 64  # said lines a planner sees

# -- storage ----------------------------------------------------------------------------------------
STORE_WAL_BYTES_MAX = 4 * 1024 * 1024  # the WAL file is cut back to this after a checkpoint

# -- adapters ---------------------------------------------------------------------------------------
# One JSON line of an agent, so one value of it; larger things are attachments. Over: Failed
ADAPTER_LINE_BYTES_MAX = 1024 * 1024
ADAPTER_OUTPUT_BYTES_MAX = 64 * 1024 * 1024  # all lines of one run. Over: the run is Failed and its process killed
ADAPTER_EVENTS_MAX = 100_000  # events of one run: a long streamed text fits, an endless loop does not. Over: as above
ADAPTER_STDERR_BYTES_MAX = 8 * 1024  # the end of an agent's stderr, kept for its error messages; the rest is dropped
ADAPTER_NOTE_CHARS_MAX = 200  # one line of a terminal; longer notes are cut
ADAPTER_CONCURRENCY_MAX = 64  # processes of one agent. Over: UsageError
ADAPTER_CANCEL_S_MAX = 5.0  # grace before TERM and before KILL: an end within 10 s. Over: UsageError
ADAPTER_BACKOFF_S_MAX = 30.0  # longest wait before a worker process that keeps dying is started again
ATTACHMENTS_MAX = TASK_BLOBS_MAX  # files of one task or result, each a blob. Over: Failed
ATTACHMENT_BYTES_MAX = BLOB_BYTES_MAX  # all files of one task or result. Over: Failed
ATTACHMENT_NAME_CHARS_MAX = 100  # fits a blob's name, and every file system's
AGENT_QUEUE_MAX = (
    QUEUE_MAX  # tasks waiting for one agent of ours: what was accepted must not be refused here. Over: Busy
)

# -- disjoint paths and regions of the DHT ----------------------------------------------------------
DHT_PATHS_READ = 4  # at 20 % colluding liars hardly a read fails (S/Kademlia paper, 5.3; our T04)
DHT_PATHS_WRITE = 8  # likewise at 40 %, for stores and for searches that feed an assignment
DHT_REGION_MAX = 64  # holders in a crowded region: 40 ids made to push others out, and the 20 that belong there
DHT_REGION_SAMPLES = 15  # searches whose reach says how dense the mesh is; over: the oldest is forgotten

# -- popular keys and search by sketch --------------------------------------------------------------
POINTERS_LOT = 4  # of pointers ranked by sketch every so many-th is drawn by lot: of eight, six are the best
POINTERS_SOURCE_FIRST = 2  # pointers of one source ranked by sketch before all other sources had a place
POINTERS_CURSOR_BYTES = 6  # start u32be, number given u16be; another length: PeerError
POINTERS_PAGE = 4  # pointers that fit one answer whatever their size
POINTERS_READ_MAX = 256  # agents after which a read turns no more pages; all first pages are taken
POINTERS_PAGED_HOLDERS = 3  # drawn by lot and read to the end; of the others a read takes the first page
POINTERS_RANKED_MAX = 32  # that one read by sketch brings; over: left unread, the next cell has nearer ones
POINTERS_AGREE = 3  # holders on different paths that know nothing nearer: then a read by sketch has the nearest
POINTERS_TOP = 3  # the nearest that they must agree on: what one page gives by merit
POINTERS_SHARDS = 2  # of the 16 at depth 4 that a read of a popular key looks at: each costs a lookup
POINTERS_SHARDS_THOROUGH = 4  # likewise, for what feeds an assignment
POINTER_SOURCE_BYTES = 4  # tells sources of one answer apart: two alike by chance share a turn, no more

# -- staying in the mesh ----------------------------------------------------------------------------
REQUEST_BUDGET_KEY = (1_000, 200)  # requests of one node: a put of 32 pointers among few nodes asks each 66 times
REQUEST_BUDGET_ADDRESS = (4_000, 1_000)  # and of one address: twenty busy nodes behind one home router
REQUEST_SENDERS_MAX = 4_096  # of each kind counted; over: the longest idle is forgotten
DIGEST_BUDGET = (2_000, 100)  # frames one neighbour may have checked: two full digests at once
DIGEST_JOIN_MAX = 100  # entries told on connect, records first: a newcomer is soon of use, the rest comes by and by
DIGEST_NEWS_S = 0.5  # changes of where agents are, told to neighbours together
WALL_S_MIN = 1_767_225_600  # 2026 began: a clock before it was never set
CLOCK_VOICES_MAX = 64  # peers whose time counts; over: the longest unheard goes
CLOCK_WATCH_S = 10.0  # between looks at our own clock: a fault is told within 30 s
CLOCK_ASKED = 8  # peers asked for their time when our clock was set: half of them may be silent
REACH_VOICES_MAX = 16  # peers whose word on our endpoint counts; over: the longest unheard goes
REACH_DOUBT_S = 30.0  # between times that others are asked because one peer sees us elsewhere: it may lie
BOOTS_MAX = 4_096  # nodes whose newest start is remembered; over: the longest unheard goes
CALLERS_MAX = 512  # nodes that asked us of late and so may know us: told when we moved; over: the oldest is left out

# -- the local directory (storage/catalogue.py) -----------------------------------------------------
CATALOGUE_RECORDS_MAX = 10_000  # a small mesh whole; over: expired ones go, then strangers' oldest, then others'
CATALOGUE_BYTES_MAX = 64 * 1024 * 1024  # of rows: 6 KiB each, so that cards with schemas fit; over: likewise
CATALOGUE_NODE_RECORDS_MAX = AGENTS_MAX  # of one node: it says it has no more; over: its oldest goes
CATALOGUE_WORDS_MAX = 64  # of a query; the rest of a long text tells little more
CATALOGUE_COMMON_RECORDS = 500  # agents; words that more hold tell little, and reading their lists costs most
CATALOGUE_BATCH_MAX = 100  # frames heard that are written in one transaction: some 20 ms of a thread; the rest follows
CATALOGUE_WAITING_MAX = 4_096  # frames heard and not yet written; over: the oldest is not kept, it is heard again
CATALOGUE_ENCODED_AT_ONCE = 16  # cards encoded in one go: some 50 ms of a thread
CARDS_TRIED_MAX = 1_024  # cards of linked nodes asked for unasked; over: the oldest may be asked for again
CATALOGUE_WAIT_S = 0.5  # what is heard gathers for so long before it is written
CATALOGUE_WAL_BYTES_MAX = 4 * 1024 * 1024  # its log is cut back to this after a checkpoint

# -- relaying (links through a third peer) ----------------------------------------------------------
RELAY_RESERVATIONS_MAX = 32  # nodes we let be reached through us. Over: refused, they ask another neighbour
RELAY_RESERVATIONS_PER_HOST_MAX = 8  # of these, at one IP address: keys are free
RELAY_RESERVATION_S = 600  # a place not renewed is free again; renewed at half of it
RELAY_CIRCUITS_MAX = 64  # links passed on at a time. Over: refused
RELAY_WINDOW_BYTES = 256 * 1024  # what may come ahead of passing it on: 64 circuits that stall hold 64 MiB at most
RELAY_CIRCUITS_PER_PEER_MAX = 16  # of these, with one node at either end
RELAY_CIRCUIT_BYTES_MAX = 256 * 1024 * 1024  # some hours of talk, or a few large files. Over: cut, and dialled anew
RELAY_CIRCUIT_S_MAX = 4 * 3600  # likewise
RELAY_MESSAGE_BYTES_MAX = 4 * 1024  # circuit relay v2's own messages: an id, a status, some addresses
LINK_STAGGER_S = 0.5  # a dial that takes longer runs on beside one to the peer's next address

# -- finding agents (node/) -------------------------------------------------------------------------
PAST_TEAMS_MAX = 500  # teams we launched whose results count for trust; over: the oldest is forgotten
LOADS_KEPT_MAX = 1_024  # nodes whose last load is remembered; over: the longest unheard is forgotten
FIND_CELLS_MAX = 8  # cells of the index model that a search asks for, nearest first; see docs/search-mesh.md
FIND_WORDS_BESIDE_CELLS = 8  # words of a query, rarest first, where there is a model; likewise
FIND_WORDS_MAX = 20  # where there is none; more add little and cost a lookup each
POINTERS_BRIEF_K = 6  # nearest holders that a brief read hears: on four paths, so one liar hides nothing
FIND_CELL_POINTERS = 24  # of one cell, the nearest: hardly anybody farther is looked at
FIND_WORD_POINTERS = 32  # of one word; who is under several words is found under a rarer one
FIND_KEYS_AT_ONCE = 6  # index keys looked up at the same time
FIND_RPCS_MAX = 150  # requests of one search, all kinds together; no more keys are begun when the rest may need it
FIND_BYTES_MAX = 512 * 1024  # datagrams and cards of one search, both ways; likewise
FIND_CANDIDATES_MAX = 2_048  # agents pre-ranked in one search; over: those seen later are not looked at
FIND_CARDS_MAX = 26  # cards read for one ranking; most come along with their records
FIND_RECORDS_MAX = 32  # records asked for to fill these: some are gone, some nodes silent
PLACES_CACHED = 16_384  # nodes and addresses whose place, subnet and packed form are remembered: at most 3 MB each

# -- first contacts ---------------------------------------------------------------------------------
SEED_TEXT_BYTES_MAX = 320  # a key, the longest host name there is, a port. Longer: PeerError
SEED_LIST_MAX = DHT_SEEDS_MAX  # a node tries no more. Over: PeerError
SEED_LIST_FILE_BYTES_MAX = 64 * 1024  # the longest list is 11 KB, twice that in hex. Larger: refused unread
SEED_LIST_S_MAX = 400 * 86_400  # a year and a month to renew it: an abandoned mesh's list must end some day
SEED_LIST_KEYS_MAX = 8  # signers a node believes: who signs now, who follows, a few to spare. Over: UsageError
PATH_CHARS_MAX = 4_096  # no file system takes more. Over: UsageError
DNS_WAIT_S = 10.0  # one name, all its tries; a resolver that is silent for longer will not answer
DNS_RECORDS_MAX = DHT_SEEDS_MAX  # TXT records read of one name; the rest is left out and counted
DNS_NAMES_MAX = 8  # a few organisations that run seeds. Over: UsageError
LAN_PEERS_MAX = 64  # nodes of one LAN remembered; over: the one heard of first is forgotten
LAN_SEEDS_MAX = 8  # of them tried as seeds and linked for being near; the DHT finds the others
LAN_ADDRESSES_MAX = 4  # of one announcement; the rest is left out
LAN_WAIT_S = 3.0  # for the details of an announcement; multicast answers come within a second

# -- nodes that do not answer -----------------------------------------------------------------------
SILENT_S = (15.0, 300.0)  # a node that could not be reached is left out of searches: first, and at most, doubling
SILENT_NODES_MAX = 1_024  # of them remembered; over: the one noted longest ago is forgotten
SILENT_WAIT_S = 1.0  # for a node's first word in a search once others have answered; a far one needs 0.5 s

# -- checkpoints and roster changes -----------------------------------------------------------------
CHECKPOINT_ENTRIES = 512  # between checkpoints: what a start folds anew; a state is encoded that seldom
ARCHIVE_ENTRIES_MAX = 16_384  # entries below the checkpoint kept on disk, for transcripts: some 16 MB a team
SNAPSHOT_BYTES_MAX = 32 * 1024 * 1024  # 256 tasks with the largest specs and outcomes are 20 MiB. PeerError
SNAPSHOT_PART_BYTES_MAX = 64 * 1024  # one part of it: half a link frame, so that beats find room beside it
ROSTER_CHANGES_MAX = 256  # in a team's life: each stays in every snapshot. Over: UsageError
VOTERS_ADMITTED_MAX = TEAM_MEMBERS_DEFAULT_MAX  # nodes of a team that grows later; everyone links everyone

# -- what must last (storage/) ----------------------------------------------------------------------
DAMAGED_FILES_MAX = 3  # of a database, set aside for whoever wants to look; over: the oldest goes
SALVAGE_ROWS = 500  # moved to a new file in one transaction; some MB at most

# -- language models (llm/, mind/, adapters/openai.py) ------------------------------------------------
MODEL_ANSWER_BYTES_MAX = 256 * 1024  # text of one answer: a long report; over: ModelError, the connection is closed
MODEL_STREAM_BYTES_MAX = 16 * 1024 * 1024  # the same on the wire, where each token is an event of 300 B; over: likewise
MODEL_TOOL_CALLS_MAX = 16  # of one answer; over: likewise
MODEL_JSON_CHARS_MAX = 64 * 1024  # of an answer read as JSON; a plan has 2,000. Over: the rest is not read
MODEL_TRIES_MAX = 3  # of one request to an endpoint that is busy or down; over: ModelError
MODEL_S_MAX = 600.0  # between two bytes of an answer: a large model on a small board thinks long
MODEL_RETRY_S_MAX = 600.0  # of Retry-After believed; a request has less time anyway
PLAN_ANSWER_TOKENS_MAX = 2_000  # of a plan: sixteen orders with a goal each; over: cut off, and the model is told
TOOL_RESULT_CHARS_MAX = 16_000  # of a tool's result that a model is shown; over: cut
LINE_TOKENS_MAX = 600  # of a line said by a model, and of the talk shown to it

# -- tasks and budgets ------------------------------------------------------------------------------
AMOUNT_MAX = 1 << 53  # tokens, money, calls: what JSON readers still count exactly. Larger: PeerError
QUEUE_KEPT = 32  # places of QUEUE_MAX that strangers leave to the owner's own goals; an eighth of a smaller queue
AGENTS_BELOW_MAX = 64  # agents at work below one root goal, nested teams included; over: the step is refused
LETTERS_MAX = 256  # dead letters a node keeps until their owner forgets them; over: the forgotten, then the oldest go
TASK_EVENTS_KEPT = 32  # of one task, for watchers that come back after a cut; over: they are told of the gap

# -- keepers ----------------------------------------------------------------------------------------
KEEPERS_MAX = 2  # of a team: one may be off while the other serves
KEEPER_BLOB_BYTES_MAX = 256 * 1024 * 1024  # of one team's files fetched unasked by a keeper; the rest its author has

# -- forming anew -----------------------------------------------------------------------------------
WITNESSES_MAX = 4  # nodes called as witness of one team: the first that answers is one
ABSENT_MAX = 64  # nodes of earlier incarnations that are told of the newest; over: the longest gone are not

# -- faults of members and disks ----------------------------------------------------------------------
CHAT_CHAIN_ENTRIES_MAX = 65_536  # lines of one member in one team: a start reads them, some 10 us each. UsageError
CHAT_CHAIN_BYTES_MAX = 16 * 1024 * 1024  # and their frames: 256 MiB a team of sixteen at most. Over: likewise
CHAT_HEARSAY_MAX = CHAT_UNANSWERED_MAX  # lines shown as missing on one member's word: no author pushes more unanswered
ASK_KEY_CHARS_MAX = 200  # a client's name for a goal it may ask again: any id fits. UsageError

# -- answers of several needs -----------------------------------------------------------------------
RESULTS_MAX = 8  # tasks that one conclusion names as its answer: one a need, and a goal is read as 8 needs at most

# -- transcripts (a team's log and talk as a file) ---------------------------------------------------
TRANSCRIPT_RECORD_BYTES_MAX = 160 * 1024  # two whole frames, the proof of a fork, and what names them. PeerError
TRANSCRIPT_HEAD_BYTES_MAX = 64  # the first line: a name and a version. Longer: it is no transcript
TRANSCRIPT_AUTHORS_MAX = 320  # whoever was in one team: 64 at first, and each of 256 changes another. PeerError
TRANSCRIPT_PAGE_ROWS = 64  # read from disk at once: 4 MiB at most

# -- who came in later ------------------------------------------------------------------------------
INTRODUCTION_LINKS_MAX = 32  # changes of the roster in one introduction: sixteen newcomers at once. Over: PeerError
INTRODUCTION_BYTES_MAX = 64 * 1024  # frames and votes in it, half a link frame; the largest change alone is 61 KiB

# -- signed, and not founded yet --------------------------------------------------------------------
INVITES_SIGNED_MAX = 256  # rosters of an asked node: a launch takes seconds. Over: the oldest is forgotten
