"""`kopeck operator`: run the operator against a cluster."""

import asyncio
import logging
import signal
from pathlib import Path
from typing import Annotated

import typer


def operator(
    config: Annotated[Path, typer.Option(help="The operator's configuration, YAML.")],
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Default: KUBECONFIG, or the pod's service account.")
    ] = None,
) -> None:
    """Run the operator until it is ended by SIGTERM."""
    # As process 1 of a container it would not hear the signal before the loop listens to it.
    signal.signal(signal.SIGTERM, _leave)
    # Heavy libraries are loaded by the command that needs them.
    from kopeck.control.operator import run_operator  # noqa: PLC0415
    from kopeck.control.settings import read_settings  # noqa: PLC0415
    from kopeck.kube.connection import connection  # noqa: PLC0415

    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    # kopf tells each event and each end of a watch; what is worth telling we say once.
    logging.getLogger("kopf").setLevel(logging.CRITICAL)
    logging.getLogger("kubernetes").setLevel(logging.ERROR)
    settings = read_settings(config)

    async def run() -> None:
        await run_operator(await connection(kubeconfig), settings)

    asyncio.run(run())


def _leave(*_: object) -> None:
    raise SystemExit(0)
