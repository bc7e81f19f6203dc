"""The real operator as a process of its own, as it runs in a cluster."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests
import yaml

from tests.waiting import eventually

PRICES = {
    "id": "test-book",
    "prices": [{"instanceType": "kopeck.local", "dollarsPerHour": "3.60"}],
}


class OperatorProcess:
    """`kopeck operator` on a cluster, from entering the context until leaving it."""

    def __init__(
        self,
        kubeconfig: Path,
        folder: Path,
        *,
        prices: dict[str, Any] | None = PRICES,
        refresh_seconds: int = 1,
        namespace: str = "kopeck-system",
    ) -> None:
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._log = folder / "operator.log"
        self._process: subprocess.Popen[bytes] | None = None
        settings = {
            "exporterImage": "localhost/kopeck:dev",
            "refreshSeconds": refresh_seconds,
            "port": 0,
            "namespace": namespace,
        }
        if prices is not None:
            (folder / "prices.yaml").write_text(yaml.safe_dump(prices))
            settings["priceBook"] = "prices.yaml"
        (folder / "operator.yaml").write_text(yaml.safe_dump(settings))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        arguments = ["operator", "--config", str(self._folder / "operator.yaml")]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "kopeck", *arguments],
                stdout=log,
                stderr=log,
                env=os.environ | {"KUBECONFIG": str(self._kubeconfig)},
            )

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """Ask it to end; its exit code. One that does not end in time is killed, and raises."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def wait_until_ended(self, seconds: float) -> int:
        assert self._process is not None
        return self._process.wait(timeout=seconds)

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def url(self) -> str:
        """Of its HTTP server."""

        def port() -> str:
            found = re.findall(r"/healthz on port (\d+)", self.log)
            assert found, self.log
            return str(found[-1])

        return f"http://127.0.0.1:{eventually(port)}"

    def metrics(self) -> str:
        return requests.get(f"{self.url}/metrics", timeout=10).text

    def wait_until_in_sync(self) -> None:
        def in_sync() -> None:
            assert self.is_running, self.log
            assert "in sync" in self.log, self.log

        eventually(in_sync)
