"""Where the cluster is and who we are there: kubeconfig, or the pod's service account."""

import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic

import kopf
import yaml
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config.config_exception import ConfigException

from kopeck.api.errors import ConfigError

_log = logging.getLogger("kopeck.connection")

_CONNECTIONS = 32
_TOKEN_SECONDS = 60.0
_UNREADABLE = (ConfigException, OSError, ValueError, TypeError, AttributeError, yaml.YAMLError)
"""What the client raises of a kubeconfig that is missing, broken, or half written."""


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
        async with ApiClient(configuration):
            pass  # it reads the certificates
    except _UNREADABLE as error:
        where = str(kubeconfig or os.environ.get("KUBECONFIG", "~/.kube/config"))
        instead = "set KUBECONFIG or --kubeconfig to one that names a cluster"
        raise ConfigError(where, _said(error), instead) from None
    configuration.connection_pool_maxsize = _CONNECTIONS
    return configuration


def _said(error: Exception) -> str:
    """As a part of a sentence. Of other errors the client's own words tell no user anything."""
    if isinstance(error, (ConfigException, OSError, yaml.YAMLError)):
        return f"cannot be used ({' '.join(str(error).split())})"
    return "is no kubeconfig"


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
        except _UNREADABLE as error:
            _log.warning("kubeconfig %s; the old token stays", _said(error))
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
