"""The inviter's side of an admission: only the invited one's own words count."""

from ioa_p2p.effects import Emit
from ioa_p2p.team.admission import Admission
from ioa_p2p.team.commands import AddMember
from ioa_p2p.team.events import AdmissionFailed
from tests.team.people import ANN, EVE, MALLORY, NETWORK, NOW, ROSTER, TEAM


def test_only_the_invited_one_can_decline() -> None:
    wanted = AddMember(TEAM, EVE.node, "eve", ("words.count",))
    admission = Admission(ANN, NETWORK, ROSTER, wanted, NOW)
    assert admission.on_decline(MALLORY.node, "busy") == []
    assert not admission.over
    assert admission.on_decline(EVE.node, "busy") == [Emit(AdmissionFailed(TEAM, EVE.node, "eve", "busy"))]
    assert admission.over
