"""The price book: a YAML file in which an administrator writes what nodes cost.

```yaml
id: list-2026-11
currency: USD
prices:
  - instanceType: p5.48xlarge
    region: us-east-1          # optional, as zone; a row that says more wins
    capacityType: on-demand    # the default
    dollarsPerHour: "98.32"
```
"""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError

from kopeck.api.errors import ConfigError, first_wrong_field
from kopeck.api.spec import Spec
from kopeck.pricing.price import CapacityType, NodeKey, Price


class ShareWeights(Spec):
    """How a node's price is shared out among its resources; they sum to 1."""

    gpu: Decimal = Field(ge=0, le=1)
    cpu: Decimal = Field(ge=0, le=1)
    memory: Decimal = Field(ge=0, le=1)


GPU_NODE_WEIGHTS = ShareWeights(gpu=Decimal(1), cpu=Decimal(0), memory=Decimal(0))
CPU_NODE_WEIGHTS = ShareWeights(gpu=Decimal(0), cpu=Decimal("0.5"), memory=Decimal("0.5"))


class PriceRow(Spec):
    """One price, and the nodes that it is for."""

    instance_type: str = Field(min_length=1)
    region: str | None = None
    zone: str | None = None
    capacity_type: CapacityType = "on-demand"
    dollars_per_hour: Decimal = Field(gt=0)

    def matches(self, key: NodeKey) -> bool:
        return (
            self.instance_type == key.instance_type
            and self.capacity_type == key.capacity_type
            and self.region in (None, key.region)
            and self.zone in (None, key.zone)
        )

    @property
    def nodes(self) -> NodeKey:
        """What the row is for; None is any."""
        return NodeKey(self.instance_type, self.region, self.zone, self.capacity_type)

    @property
    def specificity(self) -> int:
        """How much the row says about where; more wins."""
        return (self.region is not None) + 2 * (self.zone is not None)


class PriceBook(Spec):
    """All prices that are known, under one id that every ledger entry names."""

    id: str = Field(min_length=1)
    currency: Literal["USD"] = "USD"
    prices: list[PriceRow]

    def price(self, key: NodeKey) -> Price | None:
        """The most specific price of a node; None if no row is for it: unknown, never zero."""
        rows = [row for row in self.prices if row.matches(key)]
        if not rows:
            return None
        best = max(rows, key=lambda row: row.specificity)
        return Price(best.dollars_per_hour, self.id)


NO_PRICES = PriceBook(id="none", prices=[])


def read_price_book(path: Path) -> PriceBook:
    """The price book in a file. Raises ConfigError naming the file and the wrong entry."""
    try:
        content = yaml.load(path.read_text(), Loader=_TextLoader)  # noqa: S506  it is a SafeLoader
    except OSError as error:
        raise ConfigError(
            str(path), f"cannot be read ({error.strerror})", "name a readable price book"
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(str(path), "is no text", "write a price book") from None
    except yaml.YAMLError as error:
        wrong = f"is no YAML ({' '.join(str(error).split())})"
        raise ConfigError(str(path), wrong, "write a price book") from None
    return parse_price_book(content, str(path))


def parse_price_book(content: Any, where: str) -> PriceBook:
    """The price book in parsed YAML. Raises ConfigError naming `where` and the wrong entry."""
    if not isinstance(content, Mapping):
        raise ConfigError(where, "holds no mapping", "write id, currency and prices")
    try:
        book = PriceBook.model_validate(content)
    except ValidationError as error:
        entry, wrong = first_wrong_field(error)
        instead = "see docs/operator.md for a whole one"
        raise ConfigError(where, f"{entry}: {wrong}", instead) from None
    _refuse_two_prices(book, where)
    return book


def _refuse_two_prices(book: PriceBook, where: str) -> None:
    """Raises ConfigError where one row says another price than an earlier one for the same."""
    rows: dict[NodeKey, int] = {}
    for number, row in enumerate(book.prices):
        first = rows.setdefault(row.nodes, number)
        dollars = book.prices[first].dollars_per_hour, row.dollars_per_hour
        if dollars[0] != dollars[1]:
            said = f"are for the same nodes and say {dollars[0]} and {dollars[1]} dollars"
            raise ConfigError(where, f"prices.{first} and prices.{number}: {said}", "keep one")


class _TextLoader(yaml.SafeLoader):
    """Leaves numbers as text, so that a price stays as exact as it was written."""


_TextLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":float", ":int"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
