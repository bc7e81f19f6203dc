"""Python packages for the image's Python, which need not be the one that runs here."""

import shutil
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

from tests.cluster.cache import cached, key_of
from tests.cluster.commands import run
from tests.cluster.errors import MissingError
from tests.cluster.progress import step

PYTHON_VERSION = "3.11"
PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def requirements(extra: str) -> tuple[str, ...]:
    """What an extra of the project asks for; the operator also needs what kopeck itself does."""
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    shared = project["dependencies"] if extra == "operator" else []
    return (*shared, *project["optional-dependencies"][extra])


def site_packages(extra: str) -> Path:
    """A folder with the packages of an extra; torch's has several GB and takes minutes once."""
    wanted = requirements(extra)
    command = [*_installer(), "--python-version", PYTHON_VERSION]
    entry = f"site/{key_of(*command[1:], *wanted)}"

    def install(path: Path) -> None:
        with step(f"Installing {', '.join(wanted)} for the pods"):
            run([*command, "--target", path, *wanted])
        path.chmod(0o755)

    return cached(entry, install)


def _installer() -> list[str]:
    """With bytecode: pods read the folder only, and would compile torch at each start."""
    uv_options = ["pip", "install", "--quiet", "--compile-bytecode"]
    if find_spec("uv"):
        return [sys.executable, "-m", "uv", *uv_options]
    if uv := shutil.which("uv"):
        return [uv, *uv_options]
    if find_spec("pip"):  # which compiles by itself
        return [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    raise MissingError("`uv` is missing; install it with the project's extra `dev`")
