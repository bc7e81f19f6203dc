"""Running a function on a few real ranks over gloo, without importing torch in each of them."""

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["kopeck_trainer.train"])

WAIT_SECONDS = 300


def on_ranks(ranks: int, function: Callable[..., Any], meeting: Path, *arguments: Any) -> list[Any]:
    """What `function` returned on each rank, by rank. `meeting` is a folder to meet in."""
    meeting_file = meeting / f"meeting-{len(list(meeting.iterdir()))}"
    started = [_start(rank, ranks, meeting_file, function, arguments) for rank in range(ranks)]
    results = [_result(connection) for _, connection in started]
    for process, _ in started:
        process.join()
    return results


def _start(
    rank: int, ranks: int, meeting_file: Path, function: Callable[..., Any], arguments: Any
) -> tuple[Any, Connection]:
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(
        target=_run, args=(rank, ranks, meeting_file, sender, function, arguments), daemon=True
    )
    process.start()
    sender.close()
    return process, receiver


def _result(connection: Connection) -> Any:
    assert connection.poll(WAIT_SECONDS), "a rank hangs"
    result, error = connection.recv()
    assert error is None, error
    return result


def _run(
    rank: int,
    ranks: int,
    meeting_file: Path,
    sender: Connection,
    function: Callable[..., Any],
    arguments: Any,
) -> None:
    import torch  # noqa: PLC0415  preloaded by the fork server
    from torch import distributed as dist  # noqa: PLC0415

    multiprocessing.current_process().daemon = False  # it may have children
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting_file}", rank=rank, world_size=ranks
    )
    try:
        sender.send((function(*arguments), None))
    except BaseException:  # noqa: BLE001  torch's CheckpointException is none of Exception
        sender.send((None, traceback.format_exc()))
    finally:
        dist.destroy_process_group()
