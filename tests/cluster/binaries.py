"""The programs of a cluster, built from the Go module beside this file."""

import json
import os
import re
from functools import cache
from pathlib import Path

from tests.cluster.cache import cached, key_of
from tests.cluster.commands import missing, run
from tests.cluster.errors import MissingError
from tests.cluster.progress import step

MODULE = Path(__file__).parent / "go"
KUBERNETES_VERSION = "v1.37.2"
KWOK_VERSION = "v0.8.0"
HELM_VERSION = "v4.3.2"
# Programs whose modules ask for other versions of what they share with Kubernetes.
INSTALLED = {
    "kwok": ("sigs.k8s.io/kwok/cmd/kwok", KWOK_VERSION),
    "helm": ("helm.sh/helm/v4/cmd/helm", HELM_VERSION),
}
# From here on `go` fetches by itself the newer toolchain that go.mod asks for.
OLDEST_GO = (1, 21)
LINKER_FLAGS = {
    "kubernetes": f"-s -w -X k8s.io/component-base/version.gitVersion={KUBERNETES_VERSION}",
    "coredns": "-s -w",
    "pause": "-s -w",
}


@cache
def binary(name: str) -> Path:
    """One of kubernetes, coredns, pause, kwok and helm; built if the cache lacks it.

    The first build of all takes about ten minutes on two cores.
    """
    if name in INSTALLED:
        key = key_of(INSTALLED[name][1], _go_version())
        return cached(f"bin/{key}/{name}", lambda path: _install(name, path))
    return cached(f"bin/{_module_key(name)}/{name}", lambda path: _build(name, path))


def kwok_module() -> Path:
    """The folder of KWOK's sources in the Go module cache."""
    _go_version()
    asked = ["go", "mod", "download", "-json", f"sigs.k8s.io/kwok@{KWOK_VERSION}"]
    return Path(json.loads(run(asked, cwd=MODULE))["Dir"])


def _build(name: str, path: Path) -> None:
    argv = [
        "go",
        "build",
        "-trimpath",
        "-ldflags",
        LINKER_FLAGS[name],
        "-o",
        str(path),
        f"./{name}",
    ]
    with step(f"Building {name}"):
        run(argv, cwd=MODULE, env=os.environ | {"CGO_ENABLED": "0"})


def _install(name: str, path: Path) -> None:
    package, version = INSTALLED[name]
    folder = path.with_name(f".{name}.bin")
    argv = ["go", "install", "-trimpath", "-ldflags", "-s -w", f"{package}@{version}"]
    with step(f"Building {name}"):
        run(argv, env=os.environ | {"CGO_ENABLED": "0", "GOBIN": str(folder)})
    (folder / name).rename(path)
    folder.rmdir()


def _module_key(name: str) -> str:
    sources = [MODULE / "go.mod", MODULE / "go.sum", MODULE / name / "main.go"]
    return key_of(LINKER_FLAGS[name], _go_version(), *(source.read_bytes() for source in sources))


@cache
def _go_version() -> str:
    if missing(["go"]):
        raise MissingError("`go` is missing; install Go 1.26 or newer from https://go.dev/dl")
    found = run(["go", "env", "GOVERSION"], cwd=MODULE).strip()
    numbers = re.match(r"go(\d+)\.(\d+)", found)
    if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST_GO:
        raise MissingError(f"{found} is too old; install Go 1.26 or newer from https://go.dev/dl")
    return found
