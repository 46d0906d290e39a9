"""What one node is told: a frozen `Config`, read from flags, environment, file and defaults, in that order.

    --set dht.port=7000  >  IOA_P2P_DHT_PORT=7000  >  config.toml: [dht] port = 7000  >  default
                                     │
              SETTINGS (key, kind, default, meaning) ──> Config, with the origin of every value

`SETTINGS` is the one table of all keys: it checks values, writes the commented first file and finds the
nearest known key for a misspelt one. Agents are tables of their own: `[agents.NAME]`.
"""

import difflib
import ipaddress
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from ioa_p2p.errors import UsageError
from ioa_p2p.node.home import Home
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.codec import check_nesting

Profile = Literal["lan", "wan", "battery"]
Lan = Literal["auto", "on", "off"]
ENVIRONMENT_PREFIX = "IOA_P2P_"
_NO_SETTINGS = frozenset({"IOA_P2P_HOME", "IOA_P2P_NAME"})  # read by node.home
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


class Seed(NamedTuple):
    """A node known beforehand. host: an IP address or a name; port: its DHT's UDP port."""

    node: bytes
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{ids.node_text(self.node)}@{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """One `[agents.NAME]` table. `options` is the whole table without `adapter`; the adapter checks it."""

    name: str
    adapter: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def table(self) -> dict[str, Any]:
        """The table as written."""
        return {"adapter": self.adapter, **self.options}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything a node is told. Field `a_b` is key `a.b` or `a_b` of config.toml; see `SETTINGS`.

    allow: keys of the nodes that may give this node tasks; itself always, nobody else by default.
    may_coordinate, rank: as the node's members say in a roster (wire/roster.py, Member).
    planner: "rules" or "llm"; model: which one, empty = OPENAI_MODEL, or the only one there.
    origins: key -> "flag", "environment IOA_P2P_...", "file ..." or "default".
    """

    home: Home
    mesh: str = "ioa"
    profile: Profile = "lan"
    dht_host: str = "127.0.0.1"
    dht_port: int = 0
    link_host: str = "127.0.0.1"
    link_port: int = 0
    seeds: tuple[Seed, ...] = ()
    seed_dns: tuple[str, ...] = ()
    lan: Lan = "auto"
    allow: tuple[bytes, ...] = ()
    witness: tuple[bytes, ...] = ()
    ttl_s: int = limits.TTL_S_DEFAULT
    meaning: bool = True
    relay: bool = True
    relay_reservations_max: int = limits.RELAY_RESERVATIONS_MAX
    relay_bytes_max: int = limits.RELAY_CIRCUIT_BYTES_MAX
    relay_s_max: int = limits.RELAY_CIRCUIT_S_MAX
    may_coordinate: bool = True
    rank: int = 100
    planner: str = "rules"
    model: str = ""
    seed_list_file: str = ""
    seed_list_keys: tuple[bytes, ...] = ()
    tasks_max: int = limits.QUEUE_MAX
    tasks_per_requester_max: int = limits.QUEUE_PER_REQUESTER_MAX
    agents: Mapping[str, AgentConfig] = field(default_factory=dict[str, AgentConfig])
    origins: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def name(self) -> str:
        """The node's name on this machine (`--name`); never seen by others."""
        return self.home.name


class Kind(NamedTuple):
    """How a value is read. parse: text of a flag or variable -> TOML value; check: TOML value -> ours.

    Both raise ValueError; `wanted` ends the sentence "... must be".
    """

    wanted: str
    parse: Callable[[str], Any]
    check: Callable[[Any], Any]


class Setting(NamedTuple):
    """One key of config.toml; `field` names it in `Config`, whose default it shares. live: a running node takes over
    another value, see `reloaded`."""

    key: str
    field: str
    kind: Kind
    meaning: str
    live: bool = False

    @property
    def variable(self) -> str:
        return ENVIRONMENT_PREFIX + self.key.replace(".", "_").upper()

    @property
    def default(self) -> Any:
        return Config.__dataclass_fields__[self.field].default


def load(home: Home, flags: Mapping[str, str], environment: Mapping[str, str]) -> Config:
    """The configuration of the node in `home`. Raises UsageError naming the key, where it stands, and the way out."""
    _refuse_unknown(environment_keys(environment), "the environment", [s.variable for s in SETTINGS])
    _refuse_unknown(flags, "--set", [s.key for s in SETTINGS])
    home.need()
    table = read_file(home.config)
    agents = read_agents(table.pop("agents", {}), str(home.config))
    written = dict(_flatten(table))
    _refuse_unknown(written, str(home.config), [s.key for s in SETTINGS] + ["agents"])
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for setting in SETTINGS:
        value, origins[setting.key] = _choose(setting, flags, environment, written, home.config)
        values[setting.field] = value
    return Config(home=home, agents=agents, origins=origins, **values)


def reloaded(running: Config, read: Config) -> tuple[Config, list[str]]:
    """What a running node goes on with after its configuration was read again, and the keys that must wait."""
    changed = [one for one in SETTINGS if getattr(running, one.field) != getattr(read, one.field)]
    live = {one.field: getattr(read, one.field) for one in changed if one.live}
    waiting = [one.key for one in changed if not one.live]
    waiting += ["agents"] if running.agents != read.agents else []
    return replace(running, **live), waiting


def check_flags(flags: Mapping[str, str]) -> dict[str, Any]:
    """Flags as the TOML values they stand for, checked. Raises UsageError('unknown-setting' | 'bad-setting')."""
    _refuse_unknown(flags, "--set", [s.key for s in SETTINGS])
    given = [setting for setting in SETTINGS if setting.key in flags]
    for setting in given:
        _read(setting, flags[setting.key], "flag", text=True)
    return {setting.key: setting.kind.parse(flags[setting.key]) for setting in given}


def read_file(path: Path) -> dict[str, Any]:
    """A TOML file as a table. Raises UsageError('bad-config')."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        check_nesting(table)
    except (OSError, ValueError, RecursionError) as fault:
        raise UsageError("bad-config", f"{path}: {fault}", "correct the file; it is TOML") from None
    return table


def read_agents(tables: Any, where: str) -> dict[str, AgentConfig]:
    """The `[agents.NAME]` tables. Raises UsageError('bad-agent')."""
    if not isinstance(tables, dict):
        raise UsageError("bad-agent", f"{where}: agents must be tables", 'write [agents.NAME] and adapter = "python"')
    return {name: _read_agent(name, table, where) for name, table in cast(dict[str, Any], tables).items()}


def parse_seed(text: str) -> Seed:
    """`key@host:port`, IPv6 as `key@[::1]:port`. Raises UsageError('bad-seed')."""
    key, _, place = text.strip().partition("@")
    host, _, port = place.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (_is_host(host) and port.isdecimal() and 0 < int(port) < 65_536):
        raise UsageError(
            "bad-seed",
            f"not a seed: {text[:120]!r}",
            "a seed is key@host:port, as its `id` prints it",
        )
    return Seed(ids.node_from_text(key), host, int(port))


def environment_keys(environment: Mapping[str, str]) -> list[str]:
    """The variables that are settings (or mean to be)."""
    return [name for name in environment if name.startswith(ENVIRONMENT_PREFIX) and name not in _NO_SETTINGS]


def _choose(
    setting: Setting, flags: Mapping[str, str], environment: Mapping[str, str], written: Mapping[str, Any], file: Path
) -> tuple[Any, str]:
    """The value that wins and where it came from."""
    if setting.key in flags:
        return _read(setting, flags[setting.key], "flag", text=True), "flag"
    if setting.variable in environment:
        origin = f"environment {setting.variable}"
        return _read(setting, environment[setting.variable], origin, text=True), origin
    if setting.key in written:
        return _read(setting, written[setting.key], str(file)), f"file {file}"
    return setting.default, "default"


def _read(setting: Setting, value: Any, origin: str, *, text: bool = False) -> Any:
    try:
        return setting.kind.check(setting.kind.parse(value) if text else value)
    except UsageError as fault:
        raise UsageError("bad-setting", f"{setting.key} ({origin}): {fault}", fault.hint) from None
    except ValueError:
        message = f"{setting.key} ({origin}) is {str(value)[:80]!r}; it must be {setting.kind.wanted}"
        raise UsageError("bad-setting", message, f"{setting.key}: {setting.meaning}") from None


def _read_agent(name: str, table: Any, where: str) -> AgentConfig:
    if not ids.is_agent_name(name):
        wanted = f"lower-case words joined by '-', at most {limits.AGENT_NAME_BYTES_MAX} letters"
        raise UsageError("bad-agent", f"{where}: agent name {name[:60]!r}", f"an agent's name is {wanted}")
    options = dict(cast(dict[str, Any], table)) if isinstance(table, dict) else {}
    adapter = options.pop("adapter", None)
    if not isinstance(adapter, str) or not adapter:
        raise UsageError("bad-agent", f"{where}: [agents.{name}] has no adapter", 'write adapter = "python"')
    return AgentConfig(name, adapter, options)


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(cast(dict[str, Any], value), f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _refuse_unknown(keys: Mapping[str, Any] | Sequence[str], where: str, known: list[str]) -> None:
    for key in keys:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else "every key stands in the config.toml that `init` writes"
            raise UsageError("unknown-setting", f"{where}: unknown key {key[:80]!r}", hint)


# -- kinds of values


def _fail_unless(holds: bool) -> None:
    if not holds:
        raise ValueError


def _whole(low: int, high: int) -> Kind:
    def check(value: Any) -> int:
        _fail_unless(isinstance(value, int) and not isinstance(value, bool) and low <= value <= high)
        return value

    return Kind(f"a whole number from {low} to {high}", int, check)


def _words(*choices: str) -> Kind:
    def check(value: Any) -> str:
        _fail_unless(value in choices)
        return value

    return Kind("one of " + ", ".join(choices), str, check)


def _list_of(item: Callable[[str], Any], wanted: str, count_max: int) -> Kind:
    def check(value: Any) -> tuple[Any, ...]:
        _fail_unless(isinstance(value, list))
        texts = cast(list[Any], value)
        _fail_unless(len(texts) <= count_max and all(isinstance(text, str) for text in texts))
        return tuple(dict.fromkeys(item(text) for text in texts))

    def parse(text: str) -> list[str]:
        return [part.strip() for part in text.split(",") if part.strip()]

    return Kind(f"a list of at most {count_max} {wanted}", parse, check)


def _mesh(value: Any) -> str:
    _fail_unless(
        isinstance(value, str) and 0 < len(value.encode()) <= limits.MESH_NAME_BYTES_MAX and value.isprintable()
    )
    return value


def _host(value: Any) -> str:
    ipaddress.ip_address(value if isinstance(value, str) else "")
    return value


def _domain(text: str) -> str:
    _fail_unless("." in text and _HOST_NAME.fullmatch(text.rstrip(".")) is not None)
    return text.rstrip(".").lower()


def _path(value: Any) -> str:
    _fail_unless(isinstance(value, str) and "\0" not in value and len(value) <= limits.PATH_CHARS_MAX)
    return value


def _flag(value: Any) -> bool:
    _fail_unless(isinstance(value, bool))
    return value


def _flag_text(text: str) -> bool:
    _fail_unless(text in ("true", "false"))
    return text == "true"


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return _HOST_NAME.fullmatch(text) is not None
    return True


_PORT = _whole(0, 65_535)
_ADDRESS = Kind("an IP address of this machine", str, _host)
_FLAG = Kind("true or false", _flag_text, _flag)

SETTINGS: tuple[Setting, ...] = (
    Setting(
        "mesh",
        "mesh",
        Kind(f"text of 1 to {limits.MESH_NAME_BYTES_MAX} bytes", str, _mesh),
        "the mesh's name; nodes of another mesh are refused",
    ),
    Setting("profile", "profile", _words("lan", "wan", "battery"), "how often beats are sent: lan, wan or battery"),
    Setting(
        "seeds",
        "seeds",
        _list_of(parse_seed, "seeds, each key@host:port", limits.SEEDS_MAX),
        "nodes to ask first, each key@host:port as `ioa-p2p id` prints it",
        live=True,
    ),
    Setting(
        "seed_dns",
        "seed_dns",
        _list_of(_domain, "domain names", limits.DNS_NAMES_MAX),
        "domain names whose TXT records ioa-p2p-seed=key@host:port name more seeds",
        live=True,
    ),
    Setting(
        "lan",
        "lan",
        _words("auto", "on", "off"),
        "find nodes of this mesh on the local network by multicast, and be found; auto = on unless profile or dht.host "
        "says that there is none",
        live=True,
    ),
    Setting(
        "allow",
        "allow",
        _list_of(ids.node_from_text, "node ids", limits.ALLOW_MAX),
        "node ids that may give this node tasks; nobody else may",
        live=True,
    ),
    Setting(
        "witness",
        "witness",
        _list_of(ids.node_from_text, "node ids", limits.WITNESSES_MAX),
        "node ids that may witness this node's teams of two: one that is there keeps their decisions and votes",
        live=True,
    ),
    Setting("ttl_s", "ttl_s", _whole(limits.TTL_S_MIN, limits.TTL_S_MAX), "seconds a published record lives"),
    Setting("relay", "relay", _FLAG, "pass links on to nodes that strangers cannot reach; it sees only sealed bytes"),
    Setting("meaning", "meaning", _FLAG, "search by meaning too, if the extra `semantic` is installed"),
    Setting("may_coordinate", "may_coordinate", _FLAG, "this node is willing to lead teams"),
    Setting(
        "rank", "rank", _whole(0, 255), "how well it would lead (power, links, model); the higher is elected sooner"
    ),
    Setting("planner", "planner", _words("rules", "llm"), "who plans: rules, or a model at OPENAI_BASE_URL"),
    Setting("model", "model", Kind("text", str, _path), "which model; empty = OPENAI_MODEL, or the only one there"),
    Setting("dht.host", "dht_host", _ADDRESS, "address the DHT binds; 127.0.0.1 = this machine only"),
    Setting("dht.port", "dht_port", _PORT, "UDP port of the DHT; 0 = any free one"),
    Setting("link.host", "link_host", _ADDRESS, "address links bind; 127.0.0.1 = this machine only"),
    Setting("link.port", "link_port", _PORT, "TCP port of links; 0 = any free one"),
    Setting(
        "seed_list.file",
        "seed_list_file",
        Kind("a path", str, _path),
        "a signed list of seeds, read again when it changes; empty = where `ioa-p2p seeds add` puts it",
        live=True,
    ),
    Setting(
        "seed_list.keys",
        "seed_list_keys",
        _list_of(ids.node_from_text, "node ids", limits.SEED_LIST_KEYS_MAX),
        "node ids whose seed lists are believed; nobody else's are",
        live=True,
    ),
    Setting(
        "limits.tasks_max",
        "tasks_max",
        _whole(1, 10_000),
        "tasks waiting or running here; more are told busy",
        live=True,
    ),
    Setting(
        "limits.tasks_per_requester_max",
        "tasks_per_requester_max",
        _whole(1, 10_000),
        "the same, of one requester",
        live=True,
    ),
    Setting(
        "limits.relay_reservations_max",
        "relay_reservations_max",
        _whole(1, 1_024),
        "nodes that may be reached through this one; more are told to ask another",
    ),
    Setting(
        "limits.relay_bytes_max",
        "relay_bytes_max",
        _whole(1024 * 1024, (1 << 32) - 1),
        "bytes that one relayed link may use before it must be dialled anew",
    ),
    Setting("limits.relay_s_max", "relay_s_max", _whole(60, 7 * 86_400), "likewise, seconds"),
)
