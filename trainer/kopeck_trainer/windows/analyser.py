"""`python3 -m kopeck_trainer.windows.analyser TRACE STEPS [KEPT]`: measures one rank's window.

A process of its own, since the trainer's interpreter would stand still meanwhile. It talks with the
rank in lines of JSON: it tells of the rank's collectives, on rank 0 it is handed those of all ranks
and tells how long each took at least, and when it is handed that it tells the window's ratios. Last
it packs the trace into the file KEPT, if there is one, and says whether it could.
"""

import gzip
import json
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from kopeck.api.errors import ConfigError
from kopeck.trace.files import TraceFile
from kopeck.trace.rank_reader import read_rank
from kopeck.trace.window import Collectives, Window, shortest_ns, window_of

NICENESS = 10
"""Behind all that trains. With the most, 19, it would come to no end where all CPUs are busy."""


def main() -> int:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the ranks' group gets it, and ends later
    _yield_to_the_training()
    trace, steps, *kept = sys.argv[1:]
    try:
        window = _window(Path(trace), int(steps))
    except (ConfigError, OSError) as error:
        _tell({"error": str(error)})
        return 1
    _tell(_as_json(window.collectives))
    for line in sys.stdin:
        asked = json.loads(line)
        if "ranks" in asked:
            _tell(shortest_ns([_from_json(each) for each in asked["ranks"]]))
        else:
            _tell(ratios(window, asked["shortest"]))
            break
    if kept:
        _tell(_kept(Path(trace), Path(kept[0])))
    return 0


def _yield_to_the_training() -> None:
    """In time and in memory: where a container has too little, this process is to be killed."""
    os.nice(NICENESS)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def ratios(window: Window, shortest: list[int] | None) -> dict[str, float | None]:
    """Of the window's time, 0-1; the overlap of that of its communication. None is unknown."""
    wait_ns = None if shortest is None else window.wait_ns(shortest)
    return {
        "comm_ratio": window.communication_ns / window.length_ns,
        "exposed_ratio": window.exposed_ns / window.length_ns,
        "wait_ratio": None if wait_ns is None else wait_ns / window.length_ns,
        "overlap_ratio": window.overlap_ratio,
    }


def _window(trace: Path, steps: int) -> Window:
    """Raises ConfigError for one that lacks anything: its figures would be of something else."""
    read = read_rank(TraceFile(trace, trace.name))
    if read.lost:
        raise ConfigError(trace.name, read.lost[0], "leave room on the disk")
    return window_of(read, steps)


def _as_json(collectives: Collectives | None) -> dict[str, Any] | None:
    return None if collectives is None else vars(collectives)


def _from_json(told: dict[str, Any] | None) -> Collectives | None:
    return None if told is None else Collectives(**told)


def _kept(trace: Path, kept: Path) -> dict[str, str] | None:
    """In place of the window before. What is wrong where it could not be written."""
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_name(f"{kept.name}.part")
        with trace.open("rb") as source, gzip.open(part, "wb") as target:
            shutil.copyfileobj(source, target)
        part.replace(kept)
    except OSError as error:
        return {"error": f"{kept} cannot be written ({error.strerror})"}
    return None


def _tell(answer: Any) -> None:
    try:
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(0)  # the rank has ended


if __name__ == "__main__":
    sys.exit(main())
