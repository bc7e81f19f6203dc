"""What a state folder says of its cluster, so that another command can reach and end it."""

import json
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from secrets import token_hex

from tests.cluster.addresses import Addresses
from tests.cluster.cgroups import remove_cgroups
from tests.cluster.endpoint import Endpoint
from tests.cluster.errors import ClusterError
from tests.cluster.nodes import Node, nodes_of
from tests.cluster.processes import kill_all, recorded
from tests.cluster.sandbox import INIT_NAME, disconnect

FILE = "cluster.json"
UNFINISHED_FILE = f"{FILE}.unfinished"


@dataclass(frozen=True)
class Record:
    """A cluster's identity; `network` is its number among this machine's, None on the host."""

    id: str
    node_count: int
    network: int | None = None
    endpoint: Endpoint | None = None

    @property
    def addresses(self) -> Addresses | None:
        return None if self.network is None else Addresses(self.network)

    @property
    def nodes(self) -> list[Node]:
        return nodes_of(self.id, self.addresses, self.node_count) if self.addresses else []


def new_record(state: Path, node_count: int) -> Record:
    """Take a state folder for a new cluster. Raises ClusterError where one runs in it."""
    if any(process.is_alive() for process in recorded(state)):
        raise ClusterError(f"a cluster runs in {state}; end it with `down`, or use another --state")
    remove(state)
    state.mkdir(parents=True)
    return write(state, Record(token_hex(3), node_count))


def write(state: Path, record: Record) -> Record:
    """Keep the record, whole or not at all."""
    unfinished = state / UNFINISHED_FILE
    unfinished.write_text(json.dumps(asdict(record)))
    unfinished.rename(state / FILE)
    return record


def read(state: Path) -> Record | None:
    """The record in a state folder, None where there is none."""
    try:
        facts = json.loads((state / FILE).read_text())
    except FileNotFoundError:
        return None
    record = Record(**facts)
    return replace(record, endpoint=Endpoint(**facts["endpoint"])) if record.endpoint else record


def remove(state: Path) -> None:
    """End all that the state folder knows of, however far it got, and remove the folder.

    Raises ClusterError for a folder of something else.
    """
    if not state.exists():
        return
    record = read(state)
    if record is None and any(file.name != UNFINISHED_FILE for file in state.iterdir()):
        raise ClusterError(f"{state} holds no cluster and is not empty; use another --state")
    processes = list(recorded(state))
    # Before all else the one that takes the whole sandbox with it: nothing in it restarts then.
    kill_all(sorted(processes, key=lambda process: process.name != INIT_NAME))
    if record and record.addresses:
        disconnect(record.addresses)
        remove_cgroups([node.cgroup for node in record.nodes])
    shutil.rmtree(state)
