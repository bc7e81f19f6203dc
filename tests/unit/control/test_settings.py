"""The operator's configuration file."""

from pathlib import Path

import pytest

from kopeck.api.errors import ConfigError
from kopeck.control.settings import OperatorSettings, read_settings


def read(folder: Path, text: str) -> OperatorSettings:
    file = folder / "operator.yaml"
    file.write_text(text)
    return read_settings(file)


def test_all_but_the_sidecars_image_has_a_default(tmp_path: Path) -> None:
    settings = read(tmp_path, "exporterImage: exporter:1")
    assert settings == OperatorSettings(exporter_image="exporter:1")
    assert settings.price_book is None
    assert settings.refresh_seconds == 60


def test_the_price_book_is_found_beside_the_file_that_names_it(tmp_path: Path) -> None:
    settings = read(tmp_path, "{exporterImage: exporter:1, priceBook: prices.yaml}")
    assert settings.price_book == tmp_path / "prices.yaml"


def test_an_absolute_price_book_stays_where_it_is(tmp_path: Path) -> None:
    settings = read(tmp_path, "{exporterImage: exporter:1, priceBook: /etc/prices.yaml}")
    assert settings.price_book == Path("/etc/prices.yaml")


@pytest.mark.parametrize(
    "url",
    [
        "http://$(NODE_IP):9400/metrics",
        "http://[$(NODE_IP)]:9400/metrics",
        "http://dcgm-exporter.gpu-operator.svc:9400/metrics",
        "http://10.0.0.7:9400",
    ],
)
def test_the_dcgm_exporter_is_found_by_the_nodes_address_or_a_name(
    tmp_path: Path, url: str
) -> None:
    settings = read(tmp_path, f"{{exporterImage: exporter:1, dcgmEndpoint: '{url}'}}")
    assert settings.dcgm_endpoint == url


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "holds no mapping; write exporterImage and priceBook"),
        ("- a list", "holds no mapping"),
        ("exporterImage: [", "is no YAML"),
        ("{}", "exporterImage: field required"),
        ("exporterImage: ''", "exporterImage: string should have at least 1 character"),
        ("{exporterImage: e, port: 70000}", "port: input should be less than or equal to 65535"),
        ("{exporterImage: e, dcgmEndpoint: dcgm:9400}", "dcgmEndpoint: is no URL, write http://$("),
        (
            "{exporterImage: e, dcgmEndpoint: 'http://$(HOST_IP):9400/metrics'}",
            "dcgmEndpoint: is no URL, write http://$(NODE_IP):9400/metrics; see docs/operator.md",
        ),
        ("{exporterImage: e, refreshSeconds: 0}", "refreshSeconds: input should be greater than"),
        ("{exporterImage: e, pricebook: p}", "pricebook: extra inputs are not permitted"),
    ],
)
def test_a_wrong_file_is_refused_by_a_sentence_that_names_file_and_field(
    tmp_path: Path, text: str, wrong: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, text)
    assert str(refused.value).startswith(f"{tmp_path / 'operator.yaml'}: {wrong}")
    assert "\n" not in str(refused.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read \(No such file"):
        read_settings(tmp_path / "none.yaml")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "operator.yaml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="is no text"):
        read_settings(file)
