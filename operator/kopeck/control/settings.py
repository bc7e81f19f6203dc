"""The operator's configuration file."""

import re
from collections.abc import Mapping
from pathlib import Path

import yaml
from pydantic import Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from kopeck.api.errors import ConfigError, first_wrong_field
from kopeck.api.spec import Spec

_URL_ON_NODE = re.compile(r"http://([^/\s$]|\$\(NODE_IP\))+(/[^\s$]*)?")


class OperatorSettings(Spec):
    """What an administrator sets; everything else is a constant with its reason beside it."""

    exporter_image: str = Field(min_length=1, description="The image of the sidecar.")
    dcgm_endpoint: str | None = Field(
        None, description="Metrics of the DCGM exporter of a node, which is $(NODE_IP) in it."
    )
    price_book: Path | None = Field(None, description="A file; relative to this one.")
    namespace: str = Field("kopeck-system", description="Where the ledgers are kept.")
    port: int = Field(9402, ge=0, le=65_535, description="Of /metrics and /healthz; 0 picks one.")
    refresh_seconds: int = Field(60, ge=1, description="Between live figures in a job's status.")

    @field_validator("dcgm_endpoint")
    @classmethod
    def _is_url(cls, url: str | None) -> str | None:
        """Kubernetes fills in one variable; all others would be asked for by their names."""
        if url is not None and not _URL_ON_NODE.fullmatch(url):
            raise PydanticCustomError("url", "is no URL, write http://$(NODE_IP):9400/metrics")
        return url


def read_settings(path: Path) -> OperatorSettings:
    """The settings in a file. Raises ConfigError naming the file and the wrong field."""
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        wrong = f"cannot be read ({error.strerror})"
        raise ConfigError(str(path), wrong, "name a readable file with --config") from None
    except UnicodeDecodeError:
        raise ConfigError(str(path), "is no text", "write exporterImage and priceBook") from None
    except yaml.YAMLError as error:
        wrong = f"is no YAML ({' '.join(str(error).split())})"
        raise ConfigError(str(path), wrong, "write exporterImage and priceBook") from None
    if not isinstance(content, Mapping):
        raise ConfigError(str(path), "holds no mapping", "write exporterImage and priceBook")
    try:
        settings = OperatorSettings.model_validate(content)
    except ValidationError as error:
        field, wrong = first_wrong_field(error)
        raise ConfigError(str(path), f"{field}: {wrong}", "see docs/operator.md") from None
    if settings.price_book is None:
        return settings
    return settings.model_copy(update={"price_book": path.parent / settings.price_book})
