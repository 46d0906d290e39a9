"""The public names: all there, all light until asked for."""

import subprocess
import sys

import pytest

import ioa_p2p


@pytest.mark.parametrize("name", ioa_p2p.__all__)
def test_every_public_name_can_be_had(name: str) -> None:
    assert getattr(ioa_p2p, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        _ = ioa_p2p.Nodes


def test_importing_the_package_loads_no_library() -> None:
    heavy = "{'nacl', 'msgspec', 'libp2p', 'asyncio', 'numpy'}"
    code = f"import sys, ioa_p2p; sys.exit(str({heavy} & set(sys.modules)) if {heavy} & set(sys.modules) else 0)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
