"""What a member is in an election; `election.py` shows how one becomes another."""

from enum import Enum


class Role(Enum):
    FOLLOWER = "follower"
    PRE_CANDIDATE = "pre-candidate"
    CANDIDATE = "candidate"
    COORDINATOR = "coordinator"
