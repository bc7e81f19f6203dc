"""Where the cluster is and who we are there: kubeconfig, or the pod's service account."""

import os
from pathlib import Path

import kopf
from kubernetes.aio import config
from kubernetes.aio.client import Configuration
from kubernetes.aio.config.config_exception import ConfigException

from kopeck.api.errors import ConfigError

_CONNECTIONS = 32


async def connection(kubeconfig: Path | None) -> Configuration:
    """The client configuration. Raises ConfigError where no cluster is configured."""
    configuration = Configuration()
    try:
        if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            config.load_incluster_config(client_configuration=configuration)
        else:
            file = str(kubeconfig) if kubeconfig else None
            await config.load_kube_config(config_file=file, client_configuration=configuration)
    except (ConfigException, OSError) as error:
        where = str(kubeconfig or os.environ.get("KUBECONFIG", "~/.kube/config"))
        raise ConfigError(
            where, f"names no cluster ({error})", "set KUBECONFIG or --kubeconfig to one that does"
        ) from None
    configuration.connection_pool_maxsize = _CONNECTIONS
    return configuration


def kopf_connection(configuration: Configuration) -> kopf.ConnectionInfo:
    """The same connection for kopf's own watches."""
    token = configuration.api_key.get("BearerToken") or configuration.api_key.get("authorization")
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
