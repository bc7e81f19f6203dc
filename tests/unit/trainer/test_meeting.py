"""Ranks that come, come late, or never, to the store of rank 0."""

import socket
import threading
from pathlib import Path

import pytest
from torch._C._distributed_c10d import TCPStore

from kopeck_trainer.environment import RankEnvironment
from kopeck_trainer.errors import RendezvousError
from kopeck_trainer.meeting import meet


def a_rank(rank: int, port: int, *, world_size: int = 2, seconds: float = 30) -> RankEnvironment:
    return RankEnvironment(
        config_path=Path("config.json"),
        job_uid="uid",
        attempt=0,
        rank=rank,
        local_rank=0,
        world_size=world_size,
        local_world_size=1,
        master_address="127.0.0.1",
        master_port=port,
        rendezvous_seconds=seconds,
        hang_seconds=30,
        run_directory=None,
        annotations=None,
    )


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        free: int = server.getsockname()[1]
    return free


def test_ranks_that_all_come_meet(port: int) -> None:
    said: list[str] = []
    stores: list[TCPStore] = []
    first = threading.Thread(target=lambda: stores.append(meet(a_rank(0, port), said.append)))
    first.start()
    assert meet(a_rank(1, port), said.append).check(["met/0", "met/1"])
    first.join()
    assert said == []


def test_a_rank_that_died_on_its_way_is_named_when_the_time_is_over(port: int) -> None:
    with pytest.raises(RendezvousError, match=r"^rank 1, 2 did not come in 1 s$"):
        meet(a_rank(0, port, world_size=3, seconds=1), lambda _sentence: None)


def test_who_waits_says_for_whom(port: int) -> None:
    said: list[str] = []
    with pytest.raises(RendezvousError):
        meet(a_rank(0, port, seconds=1), said.append, say_seconds=0.2)
    assert set(said) == {"waiting for rank 1"}


def test_without_rank_0_the_others_give_up_in_time(port: int) -> None:
    with pytest.raises(RendezvousError, match="does not answer"):
        meet(a_rank(1, port, seconds=1), lambda _sentence: None)
