"""Where the cluster is and who we are there: kubeconfig, or the pod's service account."""

import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic

import kopf
from kubernetes.aio import config
from kubernetes.aio.client import Configuration
from kubernetes.aio.config.config_exception import ConfigException

from kopeck.api.errors import ConfigError

_log = logging.getLogger("kopeck.connection")

_CONNECTIONS = 32
_TOKEN_SECONDS = 60.0


async def connection(
    kubeconfig: Path | None, clock: Callable[[], float] = monotonic
) -> Configuration:
    """The client configuration, whose bearer token is read again every minute of `clock`.

    Raises ConfigError where no cluster is configured.
    """
    configuration = Configuration()
    try:
        if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            config.load_incluster_config(client_configuration=configuration)
        else:
            await _load(kubeconfig, configuration)
            configuration.refresh_api_key_hook = _refresh(kubeconfig, clock)
    except (ConfigException, OSError) as error:
        where = str(kubeconfig or os.environ.get("KUBECONFIG", "~/.kube/config"))
        raise ConfigError(
            where, f"names no cluster ({error})", "set KUBECONFIG or --kubeconfig to one that does"
        ) from None
    configuration.connection_pool_maxsize = _CONNECTIONS
    return configuration


async def _load(kubeconfig: Path | None, configuration: Configuration) -> None:
    file = str(kubeconfig) if kubeconfig else None
    await config.load_kube_config(config_file=file, client_configuration=configuration)


def _refresh(
    kubeconfig: Path | None, clock: Callable[[], float]
) -> Callable[[Configuration], Awaitable[None]]:
    """Clouds' credential plugins give tokens of some fifteen minutes."""
    read_at = clock()

    async def refresh(configuration: Configuration) -> None:
        nonlocal read_at
        if clock() - read_at < _TOKEN_SECONDS:
            return
        read_at = clock()
        fresh = Configuration()
        try:
            await _load(kubeconfig, fresh)
        except (ConfigException, OSError) as error:
            _log.warning("kubeconfig cannot be read again, the old token stays: %s", error)
        # A credential plugin that fails is logged by the client, and gives none.
        configuration.api_key = fresh.api_key or configuration.api_key

    return refresh


async def kopf_connection(configuration: Configuration) -> kopf.ConnectionInfo:
    """The same connection for kopf's own watches, with the token that is valid now."""
    token = await configuration.get_api_key_with_prefix("BearerToken", "authorization")
    scheme, _, bare = (token or "").rpartition(" ")
    return kopf.ConnectionInfo(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        ca_data=configuration.ca_cert_data,
        insecure=not configuration.verify_ssl,
        scheme=scheme or None,
        token=bare or None,
        username=configuration.username or None,
        password=configuration.password or None,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
    )
