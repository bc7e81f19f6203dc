"""An exporter and a sampler as in a pod of one GPU, for programs of this machine."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from time import monotonic

from tests.unit.exporter.exporter_process import environment, start
from tests.unit.exporter.reporting import get, samples_of

SCRAPE_SECONDS = 0.25

Values = dict[str, float]


@dataclass
class Observed:
    """The processes, and what was scraped of them: the moment, and values by name.

    Of a name with labels of its own, such as `reason`, the label's value is added.
    """

    port: int
    sampler_pid: int
    scrapes: list[tuple[float, Values]] = field(default_factory=list)

    def values(self) -> Values:
        values = {}
        for (name, labels), value in samples_of(get(self.port, "/metrics").text).items():
            own = [each for label, each in sorted(labels) if label not in {"gpu", "uuid"}]
            values["/".join([name, *own])] = value
        return values

    def gpus(self) -> int:
        """Of which something is told now."""
        page = samples_of(get(self.port, "/metrics").text)
        return len({dict(labels)["uuid"] for _, labels in page if "uuid" in dict(labels)})

    def between(self, began: float, ended: float) -> list[Values]:
        return [values for moment, values in self.scrapes if began <= moment <= ended]


@contextmanager
def observed(folder: Path, sampler: str = "kopeck_exporter.sampler") -> Iterator[Observed]:
    """Both run for the block, in which they are scraped again and again."""
    own = Path(folder, sampler)
    own.mkdir(exist_ok=True)
    variables = environment(own) | {"KOPECK_SOCKET": str(socket_in(folder))}
    origin = "trainer" if sampler == "kopeck_exporter.sampler" else str(socket_in(folder))
    command = [sys.executable, "-m", sampler, origin]
    told = os.environ | {"KOPECK_SOCKET": str(socket_in(folder))}
    with start(variables) as exporter:
        assert exporter.stderr is not None
        port = int(exporter.stderr.readline().split()[3])
        with subprocess.Popen(command, env=told) as sampling:
            seen, ended = Observed(port, sampling.pid), Event()
            scraping = Thread(target=_scrape, args=(seen, ended))
            scraping.start()
            try:
                yield seen
            finally:
                ended.set()
                scraping.join()
                sampling.kill()
                exporter.kill()


def socket_in(folder: Path) -> Path:
    return folder / "s"


def _scrape(seen: Observed, ended: Event) -> None:
    while not ended.wait(SCRAPE_SECONDS):
        seen.scrapes.append((monotonic(), seen.values()))
