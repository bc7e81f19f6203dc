"""What an administrator writes in a price book, right and wrong."""

from decimal import Decimal
from pathlib import Path
from textwrap import dedent

import pytest

from kopeck.api.errors import ConfigError
from kopeck.pricing.book import NO_PRICES, PriceBook, read_price_book
from kopeck.pricing.price import NodeKey

P5 = NodeKey("p5.48xlarge", region="us-east-1", zone="us-east-1a", capacity_type="on-demand")
A_ROW = """\
    id: list
    prices:
      - instanceType: p5.48xlarge
        dollarsPerHour: 98.32
    """


def a_book(folder: Path, text: str = A_ROW) -> Path:
    file = folder / "prices.yaml"
    file.write_text(dedent(text))
    return file


def read(folder: Path, text: str = A_ROW) -> PriceBook:
    return read_price_book(a_book(folder, text))


def price_of(book: PriceBook, key: NodeKey) -> Decimal | None:
    price = book.price(key)
    return price.dollars_per_hour if price else None


@pytest.mark.parametrize(
    ("written", "exact"),
    [
        ("98.32", "98.32"),
        ('"98.32"', "98.32"),
        ("0.1", "0.1"),
        ("12.34567890123456789012", "12.34567890123456789012"),
        ("3", "3"),
        ("1e-3", "0.001"),
    ],
)
def test_a_price_is_as_exact_as_it_is_written_quoted_or_not(
    tmp_path: Path, written: str, exact: str
) -> None:
    book = read(tmp_path, A_ROW.replace("98.32", written))
    assert price_of(book, P5) == Decimal(exact)


def test_a_price_names_the_book_that_says_so(tmp_path: Path) -> None:
    price = read(tmp_path).price(P5)
    assert price is not None
    assert price.book == "list"


def test_an_id_may_look_like_a_number(tmp_path: Path) -> None:
    assert read(tmp_path, A_ROW.replace("list", "202611")).id == "202611"


def test_a_node_that_no_row_is_for_is_unknown_and_never_free(tmp_path: Path) -> None:
    book = read(tmp_path)
    assert book.price(NodeKey("m5.large", None, None, "on-demand")) is None
    assert book.price(NodeKey(None, None, None, "on-demand")) is None
    assert NO_PRICES.price(P5) is None


@pytest.mark.parametrize("capacity_type", ["spot", "reserved", "block", "flex", "unknown"])
def test_a_row_is_for_on_demand_unless_it_says_otherwise(
    tmp_path: Path, capacity_type: str
) -> None:
    book = read(tmp_path)
    other = P5.__class__(P5.instance_type, P5.region, P5.zone, capacity_type)
    assert book.price(other) is None


def test_a_prepaid_node_has_the_price_of_its_own_row(tmp_path: Path) -> None:
    text = A_ROW + "    capacityType: block\n"
    book = read(tmp_path, text)
    assert price_of(book, NodeKey("p5.48xlarge", None, None, "block")) == Decimal("98.32")
    assert price_of(book, P5) is None


def test_zone_wins_over_region_and_region_over_type_in_any_order(tmp_path: Path) -> None:
    rows = [
        "{instanceType: p5.48xlarge, zone: us-east-1a, dollarsPerHour: 3}",
        "{instanceType: p5.48xlarge, dollarsPerHour: 1}",
        "{instanceType: p5.48xlarge, region: us-east-1, dollarsPerHour: 2}",
    ]
    for ordered in (rows, rows[::-1]):
        book = read(tmp_path, f"{{id: list, prices: [{', '.join(ordered)}]}}")
        assert price_of(book, P5) == 3
        assert price_of(book, NodeKey("p5.48xlarge", "us-east-1", "us-east-1b", "on-demand")) == 2
        assert price_of(book, NodeKey("p5.48xlarge", "eu-west-1", "eu-west-1a", "on-demand")) == 1


def test_a_row_of_another_region_is_no_row(tmp_path: Path) -> None:
    book = read(tmp_path, A_ROW + "    region: eu-west-1\n")
    assert book.price(P5) is None
    assert book.price(NodeKey("p5.48xlarge", None, None, "on-demand")) is None


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "holds no mapping; write id, currency and prices"),
        ("- a list", "holds no mapping; write id, currency and prices"),
        ("just words", "holds no mapping; write id, currency and prices"),
        ("prices: [", "is no YAML"),
        ("prices: []", "id: field required"),
        ("id: list", "prices: field required"),
        ("{id: list, prices: {}}", "prices: input should be a valid list"),
        ("{id: list, prices: [], price: []}", "price: extra inputs are not permitted"),
        ("{id: list, currency: EUR, prices: []}", "currency: input should be 'USD'"),
        (A_ROW.replace("98.32", "-1"), "prices.0.dollarsPerHour: input should be greater than 0"),
        (A_ROW.replace("98.32", "0"), "prices.0.dollarsPerHour: input should be greater than 0"),
        (A_ROW.replace("98.32", "NaN"), "prices.0.dollarsPerHour: input should be a finite number"),
        (A_ROW.replace("98.32", ".nan"), "prices.0.dollarsPerHour: input should be a valid"),
        (A_ROW.replace("98.32", "Infinity"), "prices.0.dollarsPerHour: input should be a finite"),
        (A_ROW.replace("98.32", ".inf"), "prices.0.dollarsPerHour: input should be a valid"),
        (A_ROW.replace("98.32", "98.32 USD"), "prices.0.dollarsPerHour: input should be a valid"),
        (A_ROW.replace("98.32", "yes"), "prices.0.dollarsPerHour: decimal input should be"),
        (A_ROW.replace("98.32", ""), "prices.0.dollarsPerHour: decimal input should be"),
        (A_ROW.replace("instanceType", "type"), "prices.0.instanceType: field required"),
        (A_ROW.replace("p5.48xlarge", "''"), "prices.0.instanceType: string should have at least"),
        (A_ROW + "    colour: red\n", "prices.0.colour: extra inputs are not permitted"),
        (A_ROW + "    capacityType: ondemand\n", "prices.0.capacityType: input should be 'on-dem"),
    ],
)
def test_a_wrong_book_is_refused_by_a_sentence_that_names_file_and_entry(
    tmp_path: Path, text: str, wrong: str
) -> None:
    file = a_book(tmp_path, text)
    with pytest.raises(ConfigError) as refused:
        read_price_book(file)
    assert str(refused.value).startswith(f"{file}: {wrong}")
    assert "\n" not in str(refused.value)


THREE_ROWS = """\
    id: list
    prices:
      - instanceType: p5.48xlarge
        dollarsPerHour: 98.32
      - instanceType: m5.large
        dollarsPerHour: 0.096
      - instanceType: p5.48xlarge
        dollarsPerHour: 55
    """


def test_two_prices_for_the_same_nodes_are_refused_with_both_rows(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, THREE_ROWS)
    assert str(refused.value).endswith(
        "prices.0 and prices.2: are for the same nodes and say 98.32 and 55 dollars; keep one"
    )


@pytest.mark.parametrize(
    "difference", ["region: us-east-1", "zone: us-east-1a", "capacityType: spot"]
)
def test_rows_that_differ_in_what_they_are_for_are_two_prices(
    tmp_path: Path, difference: str
) -> None:
    assert len(read(tmp_path, f"{THREE_ROWS}    {difference}\n").prices) == 3


def test_a_row_that_says_the_same_once_more_is_harmless(tmp_path: Path) -> None:
    assert price_of(read(tmp_path, THREE_ROWS.replace("55", "98.320")), P5) == Decimal("98.32")


def test_a_missing_book_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        read_price_book(tmp_path / "none.yaml")
    missing = f"{tmp_path / 'none.yaml'}: cannot be read (No such file or directory)"
    assert str(refused.value) == f"{missing}; name a readable price book"


def test_a_folder_is_no_book(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_price_book(tmp_path)


def test_a_file_that_is_no_text_is_no_book(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="is no text"):
        read_price_book(file)
