"""Hosts that are Linux network namespaces with addresses of their own, for the demo and for tests. Needs root.

    with Hosts() as hosts:
        hosts.net("outside", "11.0.0.0/24")                    a switch
        hosts.host("birch", "outside", "11.0.0.2")             a computer on it
        hosts.net("home", "10.1.0.0/24")
        hosts.router("door", "outside", "11.0.0.9", "home", "10.1.0.1")     masquerades, as a home router does
        hosts.host("kitchen", "home", "10.1.0.2", gateway="10.1.0.1")
        subprocess.run([*hosts.inside("kitchen"), "ping", ...])

Only the namespaces made here are touched; their names begin with our process id. All that is within one, cables
and processes apart, goes with it, and leaving the block removes them all. Addresses mean nothing outside.
"""

import contextlib
import ipaddress
import os
import shutil
import subprocess
from collections.abc import Sequence

NAT = """
table ip door {
    chain out {
        type nat hook postrouting priority srcnat;
        oifname "out" masquerade random
    }
    chain through {
        type filter hook forward priority filter; policy drop;
        iifname "in" accept
        ct state established,related accept
    }
}
"""
"""As home routers do: who is within may ask anybody outside, and gets answers from whom it asked only."""


class HostsError(Exception):
    """Namespaces cannot be made here; its words say why."""


def lacking(*, nat: bool = False) -> str:
    """Why no hosts can be made on this machine; empty when they can."""
    if not hasattr(os, "geteuid") or os.geteuid():
        return "needs root: network namespaces are made for it"
    tools = ["ip", "nft"] if nat else ["ip"]
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return f"needs {' and '.join(missing)} (Debian: apt install iproute2 nftables)" if missing else ""


class Hosts:
    """Hosts, routers and switches by name; `mark` begins the names of all that this object makes."""

    def __init__(self) -> None:
        self.mark = f"ioa{os.getpid()}-"
        self._made: list[str] = []
        self._nets: dict[str, ipaddress.IPv4Network] = {}

    def __enter__(self) -> "Hosts":
        """Raises HostsError."""
        if why := lacking():
            raise HostsError(why)
        return self

    def __exit__(self, *_: object) -> None:
        while self._made:
            with contextlib.suppress(HostsError):
                _run("ip", "netns", "delete", self.mark + self._made.pop())

    def net(self, name: str, network: str) -> None:
        """A switch of its own; hosts that are put on it see each other and nobody else."""
        self._nets[name] = ipaddress.IPv4Network(network)
        self._make(name)
        self._ip(name, "link add switch type bridge")
        self._ip(name, "link set switch up")

    def host(self, name: str, net: str, address: str, gateway: str = "") -> None:
        """A computer with one address; gateway: the router by which it gets out, if any."""
        self._make(name)
        self._plug(name, "eth", net, address)
        if gateway:
            self._ip(name, f"route add default via {gateway}")

    def router(self, name: str, outer: str, outside: str, inner: str, inside: str, udp_s: int = 30) -> None:
        """Between two nets; whatever passes outwards gets its outer address, and a port drawn anew once a UDP peer
        was silent for udp_s. Raises HostsError without nft."""
        if why := lacking(nat=True):
            raise HostsError(why)
        self._make(name)
        self._plug(name, "out", outer, outside)
        self._plug(name, "in", inner, inside)
        self.run(name, "nft", "-f", "-", text=NAT)
        self._set(name, "ipv4/ip_forward", 1)
        for state in ("", "_stream"):
            self._set(name, f"netfilter/nf_conntrack_udp_timeout{state}", udp_s)

    def inside(self, name: str) -> list[str]:
        """Words before a command that is to run there; it keeps its process id."""
        return ["ip", "netns", "exec", self.mark + name]

    def run(self, name: str, *command: str, text: str = "") -> str:
        """A command there, with this standard input; its output. Raises HostsError."""
        return _run(*self.inside(name), *command, text=text)

    def _set(self, name: str, key: str, value: int) -> None:
        self.run(name, "sh", "-c", f"echo {value} >/proc/sys/net/{key}")

    def _make(self, name: str) -> None:
        _run("ip", "netns", "add", self.mark + name)
        self._made.append(name)
        self._ip(name, "link set lo up")

    def _plug(self, name: str, device: str, net: str, address: str) -> None:
        """A cable between the two; both ends are made where they belong."""
        port = f"p{len(self._made)}{device}"
        self._ip(name, f"link add {device} type veth peer name {port} netns {self.mark + net}")
        self._ip(net, f"link set {port} master switch up")
        self._ip(name, f"address add {address}/{self._nets[net].prefixlen} dev {device}")
        self._ip(name, f"link set {device} up")

    def _ip(self, name: str, words: str) -> None:
        _run("ip", "-n", self.mark + name, *words.split())


def _run(*command: str, text: str = "") -> str:
    done = _done(command, text)
    if done.returncode:
        raise HostsError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def _done(command: Sequence[str], text: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=30, check=False)
