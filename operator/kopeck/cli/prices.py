"""What this machine costs, by the options of a command."""

from decimal import Decimal
from pathlib import Path

from kopeck.api.errors import ConfigError
from kopeck.pricing.book import read_price_book
from kopeck.pricing.price import NodeKey


def dollars_per_hour(price_book: Path | None, instance_type: str | None) -> Decimal | None:
    """None without a price book. Raises ConfigError where it has no price for the machine."""
    if price_book is None:
        if instance_type is not None:
            raise ConfigError("--instance-type", "has no price book to be in", "add --price-book")
        return None
    if instance_type is None:
        raise ConfigError(
            "--price-book", "does not say what this machine is", "add --instance-type"
        )
    price = read_price_book(price_book).price(NodeKey(instance_type, None, None, "on-demand"))
    if price is None:
        wrong = f"has no price for {instance_type} without a region"
        raise ConfigError(str(price_book), wrong, "add a row, or name another --instance-type")
    return price.dollars_per_hour
