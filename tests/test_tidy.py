"""House rules that no linter knows, as functions text -> complaints; each is shown to bite by a planted fault.

Broad excepts, prints, docstrings of modules, marker words in code and layers are left to ruff and import-linter.
"""

import ast
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINES_MAX = 500
LONG = "Long because: "  # what a longer file says, with its reason, in its first lines
MUTABLE_CALLS = {"list", "dict", "set", "defaultdict", "OrderedDict", "Counter", "deque", "bytearray"}
MUTABLE_NODES = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
PLACES = re.compile(r"/(?:wor[k]|roo[t]|hom[e]|op[t])/\w|\b(?:pyp[i]|np[m]js|pythonhoste[d])\.(?:org|com)\b")
MARKERS = re.compile(r"\b(?:TOD[O]|FIXM[E]|XX[X]|HAC[K])\b")

Rule = Callable[[str], Iterator[str]]


def too_long(text: str) -> Iterator[str]:
    lines = text.count("\n")
    if lines > LINES_MAX and LONG not in text[:2_000]:
        yield f"{lines} lines; split it, or say '{LONG}...' at its top"


def module_state(text: str) -> Iterator[str]:
    """Containers at module level that are not constant tables: a full table in UPPER_CASE is one."""
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and is_mutable(statement.value):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for name in (ast.unparse(target) for target in targets):
                if not (is_constant(name) and is_filled(statement.value)):
                    yield f"line {statement.lineno}: '{name}' is state of the module"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Global):
            yield f"line {node.lineno}: global {', '.join(node.names)}"


def is_mutable(value: ast.expr | None) -> bool:
    called = value.func if isinstance(value, ast.Call) else None
    called = called.value if isinstance(called, ast.Subscript) else called
    return isinstance(value, MUTABLE_NODES) or (
        called is not None and ast.unparse(called).split(".")[-1] in MUTABLE_CALLS
    )


def is_constant(name: str) -> bool:
    return name.lstrip("_").isupper() or name == "__all__"


def is_filled(value: ast.expr | None) -> bool:
    """Literals with something in them: an empty one waits to be filled at run time."""
    match value:
        case ast.List(elts=inside) | ast.Set(elts=inside) | ast.Dict(keys=inside):
            return bool(inside)
        case ast.Call(args=arguments):
            return bool(arguments)
        case _:
            return True


def places(text: str) -> Iterator[str]:
    yield from (f"names a place: {match.group()}" for match in PLACES.finditer(text))


def markers(text: str) -> Iterator[str]:
    yield from (f"unfinished: {match.group()}" for match in MARKERS.finditer(text))


def unknown_commands(text: str) -> Iterator[str]:
    """`./dev NAME` in prose or code blocks that the script does not know."""
    known = re.findall(r"^ {8}([a-z]+)(?: \|.*)?\)", (ROOT / "dev").read_text(), re.MULTILINE)
    for name in re.findall(r"\./dev ([a-z]+)", text):
        if name not in known:
            yield f"./dev has no command '{name}'"


def bounds_without_reason(text: str) -> Iterator[str]:
    """A bound's reason is a comment on its line, or for a group right above its first, or the bounds it is made of."""
    reasoned = False
    for line in text.splitlines():
        if not re.match(r"[A-Z_0-9]+ = ", line):
            reasoned = line.startswith("# ") and not line.startswith("# --")
        elif "  # " not in line and not reasoned and not re.search(r"= .*[A-Z]{3}", line):
            yield line.split(" = ")[0]


def tracked(*suffixes: str, under: str = "") -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", under or "."],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    files = [ROOT / line for line in listing.stdout.splitlines()]
    return [file for file in files if file.is_file() and (not suffixes or file.suffix in suffixes)]


def complaints(rule: Rule, files: list[Path]) -> list[str]:
    assert files
    return [f"{file.relative_to(ROOT)}: {complaint}" for file in files for complaint in rule(file.read_text())]


TEXTS = (".py", ".md", ".toml", ".yaml", ".yml", ".json", ".lock", ".sh", ".js", ".css", ".html", "")


@pytest.mark.parametrize(
    ("rule", "suffixes", "under"),
    [
        (too_long, (".py", ""), ""),
        (module_state, (".py",), "ioa_p2p"),
        (places, TEXTS, ""),
        (markers, TEXTS, ""),
        (unknown_commands, (".md",), ""),
        (bounds_without_reason, (".py",), "ioa_p2p/wire/limits.py"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_file_keeps_the_house_rule(rule: Rule, suffixes: tuple[str, ...], under: str) -> None:
    assert complaints(rule, tracked(*suffixes, under=under)) == []


def test_every_bound_is_used() -> None:
    names = re.findall(r"^([A-Z_0-9]+) = ", (ROOT / "ioa_p2p/wire/limits.py").read_text(), re.MULTILINE)
    files = [file for file in tracked(".py", under="ioa_p2p") if file.name != "limits.py"]
    used = set(re.findall(r"[A-Z_0-9]{4,}", "\n".join(file.read_text() for file in files)))
    assert [name for name in names if name not in used] == []


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        (too_long, "x = 1\n" * 501),
        (module_state, "seen = {}"),
        (module_state, "_seen: dict[str, int] = {}"),
        (module_state, "SEEN = set()"),
        (module_state, "queue = collections.deque[int](maxlen=9)"),
        (module_state, "def f():\n    global x\n    x = 1"),
        (places, "see " + "/".join(["", "home", "me", "notes"])),
        (places, "from files." + "pythonhosted" + ".org"),
        (markers, "later: " + "TO" + "DO"),
        (unknown_commands, "run `./dev dance`"),
        (bounds_without_reason, "# -- links ----\nFRAMES_MAX = 9\n"),
        (bounds_without_reason, "# why\nA_MAX = 1\n\nB_MAX = 2\n"),
    ],
)
def test_a_planted_fault_is_found(rule: Rule, fault: str) -> None:
    assert list(rule(fault))


@pytest.mark.parametrize(
    ("rule", "good"),
    [
        (too_long, LONG + "a table of the standard\n" + "x = 1\n" * 501),
        (module_state, "NAMES = {'a': 1}\n__all__ = ['a']\nlimit = 3\n_KIND = re.compile('a')"),
        (unknown_commands, "run `./dev test`, then `./dev bench link`"),
        (bounds_without_reason, "D_MAX = A_MAX + B_MAX\n"),
        (bounds_without_reason, "# both: what u16 can say\nA_MAX = 1\nB_MAX = 2\nC_MAX = 3  # a guess\n"),
    ],
)
def test_what_is_allowed_passes(rule: Rule, good: str) -> None:
    assert list(rule(good)) == []
