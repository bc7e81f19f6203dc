"""`python -m tests.gpu.nccl_topology`: a captured topology file, with NCCL and with the launcher.

On all GPUs of this machine. NCCL loads the file and finds the same graph, sums as fast as without
it, and says nothing to a file of another machine, which our launcher unsets; a broken file it stops
at in every rank, and our launcher before any.
"""

import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from json import loads
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

import torch

from kopeck.local.port import free_port
from kopeck.topology.machine import Part, Switch
from kopeck.topology.parse import parse_machine
from kopeck_trainer import exit_codes
from kopeck_trainer.nccl.cpu_affinity import numa_node
from kopeck_trainer.nccl.gpus import visible_gpus
from tests.gpu.kept import bar, keep, say
from tests.unit.trainer.local_workers import LocalJob

SIZES = [2**20 * 4**power for power in range(6)]
"""1 MiB to 1 GiB."""
ROUNDS = 4
STUDENT_95 = 3.182
"""Of the t distribution with three degrees of freedom, two-sided."""
NOISE = 0.05
"""Relative: within what the ratio of equals is seen to differ."""
END_SECONDS = 60
RANK = "tests.gpu.all_reduce_rank"

Edge: TypeAlias = tuple[str, str, str, str]
"""Bus id, what it hangs on, its kind and its link."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """Of all ranks; what a rank left is missing where it failed."""

    exit_codes: list[int]
    outputs: list[str]
    ranks: list[dict[str, Any]]

    @property
    def output(self) -> str:
        return "".join(self.outputs)

    @property
    def warnings(self) -> int:
        return self.output.count(" WARN ")


def main() -> int:
    gpus = torch.cuda.device_count()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file, captured = _captured(folder / "topology.xml")
        plain, graph = _dumped(folder / "plain", gpus, None)
        loaded, graph_with_file = _dumped(folder / "loaded", gpus, file)
        foreign = _foreign(folder, gpus, file, plain.warnings)
        broken = _broken(folder, gpus, file)
        placed = _placed(folder, gpus, file)
        sweep = _sweep(folder, gpus, file) if gpus > 1 else None
        said = _lines(loaded.output, folder, "NCCL_TOPO_FILE set by", "Loading topology file")
    bars = {
        "exit code of kopeck topology check": bar(captured["check"], "==", 0),
        "ranks that say that they load the file": bar(
            sum(f"Loading topology file {file}" in output for output in loaded.outputs), "==", gpus
        ),
        "edges that differ": bar(len(graph ^ graph_with_file), "==", 0),
        "GPUs in the graph": bar(sum(edge[2] == "gpu" for edge in graph), "==", gpus),
        **foreign.pop("bars"),
        **broken.pop("bars"),
        **placed.pop("bars"),
    }
    if sweep:
        bars["seconds with the file over without, cautious end"] = bar(
            sweep["ratio"]["high"], "<=", 1 + NOISE
        )
    content = {
        "nccl": loaded.ranks[0]["nccl"],
        "captured": captured,
        "graph": sorted(map(list, graph_with_file)),
        "said of the file": said,
        "foreign file": foreign,
        "broken file": broken,
        "affinity": placed,
        "sweep": sweep or {"ratio": None, "why": "one GPU: its sum moves nothing between GPUs"},
        "bars": bars,
    }
    return keep(f"nccl_topology_{gpus}_gpus", gpus, content)


def _captured(file: Path) -> tuple[Path, dict[str, Any]]:
    """By the commands, as a user would."""
    capture = _kopeck("capture")
    file.write_text(capture.stdout)
    check = _kopeck("check", str(file))
    say(f"captured: {capture.stdout}{capture.stderr}{check.stdout}{check.stderr}")
    return file, {
        "file": capture.stdout.splitlines(),
        "said": capture.stderr.strip(),
        "check": check.returncode,
    }


def _kopeck(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kopeck", "topology", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _dumped(folder: Path, gpus: int, file: Path | None) -> tuple[Run, set[Edge]]:
    """What NCCL makes of the machine, with or without a file."""
    dump = folder.with_suffix(".dump.xml")
    run = _run(folder, gpus, file, NCCL_TOPO_DUMP_FILE=str(dump))
    assert run.exit_codes == [0] * gpus, run.output
    nodes = parse_machine(dump.read_bytes(), "NCCL's dump").numa_nodes
    return run, {edge for node in nodes for edge in _edges(f"NUMA {node.numa_id}", node.below)}


def _edges(above: str, parts: Iterable[Part]) -> Iterator[Edge]:
    for part in parts:
        kind = "switch" if isinstance(part, Switch) else part.kind
        link = f"{part.link.gigatransfers} GT/s × {part.link.lanes}"
        yield part.bus_id, above, kind, link
        if isinstance(part, Switch):
            yield from _edges(part.bus_id, part.below)


def _foreign(folder: Path, gpus: int, file: Path, usual_warnings: int) -> dict[str, Any]:
    other = folder / "foreign.xml"
    other.write_text(file.read_text().replace('busid="', 'busid="7e'))
    nccl = _run(folder / "foreign", gpus, other)
    launched, told = _launched(folder / "foreign-launched", gpus, other)
    sentence = f"NCCL_TOPO_FILE={other} is unset: it does not describe {gpus} of {gpus} GPUs"
    return {
        "NCCL's exit codes": nccl.exit_codes,
        "NCCL's warnings": _lines(nccl.output, folder, " WARN "),
        "launcher": _lines(launched.output, folder, "kopeck: "),
        "bars": {
            "foreign file: ranks that NCCL fails": bar(sum(map(bool, nccl.exit_codes)), "==", 0),
            "foreign file: warnings of NCCL beyond those without a file": bar(
                nccl.warnings - usual_warnings, "<=", 0
            ),
            "foreign file: named by the launcher": bar(launched.output.count(sentence), "==", 1),
            "foreign file: exit code of the launcher": bar(launched.exit_codes[0], "==", 0),
            "foreign file: ranks that still see it": bar(
                sum(rank["NCCL_TOPO_FILE"] is not None for rank in launched.ranks), "==", 0
            ),
            "foreign file: ranks that ran": bar(len(launched.ranks), "==", gpus),
        },
        "message": told["message"],
    }


def _broken(folder: Path, gpus: int, file: Path) -> dict[str, Any]:
    other = folder / "broken.xml"
    other.write_text('<?xml version="1.0"?>\n' + file.read_text())
    nccl = _run(folder / "broken", gpus, other)
    launched, told = _launched(folder / "broken-launched", gpus, other)
    sentence = f"NCCL_TOPO_FILE: NCCL stops at {other}, line 1: a prolog; begin with <system>"
    return {
        "NCCL's exit codes": nccl.exit_codes,
        "NCCL's warnings": _lines(nccl.output, folder, " WARN "),
        "launcher": _lines(launched.output, folder, "kopeck: "),
        "exit class": told["exitClass"],
        "bars": {
            "broken file: ranks that NCCL lets run": bar(len(nccl.ranks), "==", 0),
            "broken file: exit code of the launcher": bar(
                launched.exit_codes[0], "==", exit_codes.CONFIGURATION
            ),
            "broken file: in the termination message": bar(
                int(told["message"] == sentence), "==", 1
            ),
            "broken file: lines of the launcher": bar(len(launched.output.splitlines()), "==", 1),
            "broken file: ranks that it started": bar(len(launched.ranks), "==", 0),
        },
    }


def _placed(folder: Path, gpus: int, file: Path) -> dict[str, Any]:
    """Where the launcher's ranks run; a GPU whose node nobody knows leaves a rank all CPUs."""
    own = frozenset(os.sched_getaffinity(0))
    launched, _ = _launched(folder / "placed", gpus, file)
    addresses = _bus_ids_by_uuid()
    expected = visible_gpus(os.environ, Path("/"))
    nodes = [numa_node(gpu, {}, Path("/")) for gpu in expected]
    cpus = [(node.cpus & own if node else None) or own for node in nodes]
    return {
        "NUMA nodes of the GPUs by /sys": [node.number if node else None for node in nodes],
        "CPUs of the pod": len(own),
        "CPUs of the ranks": [len(rank["cpus"]) for rank in launched.ranks],
        "bars": {
            "ranks on another GPU than the launcher thinks": bar(
                _differing([addresses.get(rank["gpu"]) for rank in launched.ranks], expected),
                "==",
                0,
            ),
            "ranks on other CPUs than beside their GPU": bar(
                _differing([frozenset(rank["cpus"]) for rank in launched.ranks], cpus), "==", 0
            ),
        },
    }


def _bus_ids_by_uuid() -> dict[str, str]:
    """By NVIDIA's own command; it writes eight digits of the domain."""
    command = ["nvidia-smi", "--query-gpu=uuid,pci.bus_id", "--format=csv,noheader"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    pairs = (line.split(", ") for line in said.splitlines())
    return {uuid: bus_id.lower().removeprefix("0000") for uuid, bus_id in pairs}


def _differing(found: list[Any], expected: list[Any]) -> int:
    return sum(a != b for a, b in zip_longest(found, expected))


def _sweep(folder: Path, gpus: int, file: Path) -> dict[str, Any]:
    """Rounds with and without the file, in turn; seconds of the slowest rank."""
    seconds: dict[str, list[list[float]]] = {"with": [], "without": []}
    for number in range(ROUNDS):
        for which in sorted(seconds, reverse=bool(number % 2)):
            used = file if which == "with" else None
            run = _run(folder / f"{which}-{number}", gpus, used, *map(str, SIZES))
            assert run.exit_codes == [0] * gpus, run.output
            seconds[which].append(
                [max(rank["seconds"][str(size)] for rank in run.ranks) for size in SIZES]
            )
        say(f"round {number + 1} of {ROUNDS}")
    logs = [
        statistics.fmean(math.log(a / b) for a, b in zip(with_it, without, strict=True))
        for with_it, without in zip(seconds["with"], seconds["without"], strict=True)
    ]
    middle = statistics.fmean(logs)
    half = STUDENT_95 * statistics.stdev(logs) / math.sqrt(ROUNDS)
    return {
        "bytes": SIZES,
        **{
            f"median microseconds {which} the file": [
                round(statistics.median(of_size) * 1e6, 1) for of_size in zip(*rounds, strict=True)
            ]
            for which, rounds in seconds.items()
        },
        "ratio": {
            "low": round(math.exp(middle - half), 4),
            "middle": round(math.exp(middle), 4),
            "high": round(math.exp(middle + half), 4),
        },
    }


def _run(folder: Path, gpus: int, file: Path | None, *words: str, **environ: str) -> Run:
    """NCCL by itself, one process for each GPU."""
    folder.mkdir()
    port = free_port()
    ranks = [
        _start(folder, words, environ | _variables(rank, gpus, port, file)) for rank in range(gpus)
    ]
    deadline = monotonic() + END_SECONDS
    try:
        ends = [_end(rank, deadline) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    outputs = [(folder / f"output-{rank}").read_text(errors="replace") for rank in range(gpus)]
    return Run(exit_codes=ends, outputs=outputs, ranks=_left(folder))


def _variables(rank: int, gpus: int, port: int, file: Path | None) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(gpus),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        **({"NCCL_TOPO_FILE": str(file)} if file else {}),
    }


def _start(
    folder: Path, words: Iterable[str], variables: dict[str, str]
) -> subprocess.Popen[bytes]:
    told = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,GRAPH"}
    with (folder / f"output-{variables['RANK']}").open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", RANK, str(folder), *words],
            env={**os.environ, **told, **variables},
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def _end(rank: subprocess.Popen[bytes], deadline: float) -> int:
    """Of a rank that waits for ever, that of its end by SIGKILL."""
    try:
        return rank.wait(max(0.0, deadline - monotonic()))
    except subprocess.TimeoutExpired:
        rank.kill()
        return rank.wait()


def _launched(folder: Path, gpus: int, file: Path) -> tuple[Run, dict[str, Any]]:
    """The same ranks by our launcher, and its termination message."""
    folder.mkdir()
    job = LocalJob(folder, {"NCCL_TOPO_FILE": str(file)}, processes_per_worker=gpus)
    try:
        ends = job.run({"command": [sys.executable], "args": ["-m", RANK, str(folder)]})
    finally:
        job.kill_all()
    [worker] = job.workers
    say(worker.output)
    run = Run(exit_codes=ends, outputs=[worker.output], ranks=_left(folder))
    return run, worker.termination()


def _left(folder: Path) -> list[dict[str, Any]]:
    """What ranks wrote, in their order."""
    files = sorted(folder.glob("[0-9]*.json"), key=lambda path: int(path.stem))
    return [loads(file.read_text()) for file in files]


def _lines(output: str, folder: Path, *words: str) -> list[str]:
    """Different ones with any of the words, without what is another's each time or machine's."""
    found = [line for line in output.splitlines() if any(word in line for word in words)]
    told = [line.partition("NCCL ")[2] or line for line in found]
    return sorted({line.replace(f"{folder}/", "") for line in told})


if __name__ == "__main__":
    sys.exit(main())
