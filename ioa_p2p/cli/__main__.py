"""`python -m ioa_p2p.cli` is `ioa-p2p`."""

from ioa_p2p.cli import main

main()
