import socket

import pytest

from kopeck_trainer.errors import RendezvousError
from kopeck_trainer.rendezvous import fully_qualified, wait_for_master

RESOLV_CONF = """
search team.svc.example.org svc.example.org example.org
nameserver 10.0.0.10
options ndots:5
"""


def test_a_service_name_gets_the_domain_of_the_cluster_and_a_dot() -> None:
    host = fully_qualified("pod-0.job.team.svc", "team", RESOLV_CONF)
    assert host == "pod-0.job.team.svc.example.org."


@pytest.mark.parametrize(
    ("host", "resolv_conf"),
    [("127.0.0.1", RESOLV_CONF), ("gpu-box", RESOLV_CONF), ("pod-0.job.team.svc", "")],
)
def test_other_names_are_used_as_they_are(host: str, resolv_conf: str) -> None:
    assert fully_qualified(host, "team", resolv_conf) == host


def test_the_wait_ends_when_the_port_answers() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        pauses: list[float] = []

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            server.listen()

        assert wait_for_master("localhost", port, seconds=60, pause=pause) == "127.0.0.1"
    assert pauses == [1.0]


def test_the_deadline_says_what_was_missing() -> None:
    with pytest.raises(RendezvousError, match=r"within 0 s: nobody\.invalid\. has no add"):
        wait_for_master("nobody.invalid.", 29500, seconds=0, pause=lambda _seconds: None)
