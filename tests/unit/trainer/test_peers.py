import pytest
from torch import distributed as dist
from torch.distributed.checkpoint.api import CheckpointException

from kopeck_trainer.peers import is_peer_lost, loss_of_peer

CLOSED = (
    "[/build/gloo/transport/tcp/pair.cc:561] Connection closed by peer [10.0.0.7]:35233. Oh no!"
)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RuntimeError(CLOSED), True),
        (dist.DistBackendError("NCCL error: remote process exited"), True),
        (CheckpointException("save", {1: (RuntimeError(CLOSED), None)}), True),
        (CheckpointException("save", {1: (OSError("no space left"), None)}), False),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ConnectionResetError("the user's own database"), False),
    ],
)
def test_a_lost_peer_is_told_from_an_error_of_ones_own(
    error: BaseException,
    *,
    expected: bool,
) -> None:
    assert is_peer_lost(error) is expected


def test_the_reason_is_what_the_connection_said() -> None:
    assert loss_of_peer(RuntimeError(CLOSED)) == "Connection closed by peer"
