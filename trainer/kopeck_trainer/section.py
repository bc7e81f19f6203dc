"""Reading one mapping of the configuration so that every refusal names its field."""

from typing import Any, TypeVar

from kopeck_trainer.errors import ConfigurationError

Word = TypeVar("Word", bound=str)
Value = TypeVar("Value")
Unset = TypeVar("Unset", bool, None)


class Section:
    """The fields under one path of the spec. Absent and null fields are None.

    Every reader raises ConfigurationError where the value has the wrong type or range.
    """

    def __init__(self, path: str, fields: object) -> None:
        if not isinstance(fields, dict):
            raise ConfigurationError(path, f"{fields!r} is no mapping", "write fields and values")
        self._path = path
        self._fields = fields
        self._known: set[str] = set()

    def section(self, name: str) -> "Section | None":
        value = self._value(name)
        return None if value is None else Section(f"{self._path}.{name}", value)

    def mapping(self, name: str) -> dict[str, Any]:
        value = self._value(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._refusal(name, value, "a mapping")
        return value

    def text(self, name: str) -> str | None:
        value = self._value(name)
        if value is not None and (not isinstance(value, str) or not value):
            raise self._refusal(name, value, "text")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._value(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._refusal(name, value, "a list of texts")
        return tuple(value)

    def integer(self, name: str) -> int | None:
        value = self._value(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise self._refusal(name, value, "a whole number")
        return value

    def count(self, name: str) -> int | None:
        """A whole number of at least 1."""
        value = self.integer(name)
        if value is not None and value < 1:
            raise self._refusal(name, value, "1 or more")
        return value

    def natural(self, name: str) -> int | None:
        """A whole number of at least 0."""
        value = self.integer(name)
        if value is not None and value < 0:
            raise self._refusal(name, value, "0 or more")
        return value

    def counts(self, name: str) -> tuple[int, ...]:
        """Whole numbers of at least 1."""
        value = self._value(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(type(item) is int and item > 0 for item in value):
            raise self._refusal(name, value, "a list of whole numbers of 1 or more")
        return tuple(value)

    def flag(self, name: str, *, default: Unset) -> bool | Unset:
        value = self._value(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self._refusal(name, value, "true or false")
        return value

    def positive(self, name: str) -> float | None:
        """A finite number above 0."""
        value = self._value(name)
        if value is None:
            return None
        if not _is_number(value) or not 0 < value < float("inf"):
            raise self._refusal(name, value, "a number above 0")
        return float(value)

    def share(self, name: str) -> float | None:
        """A number from 0 to 1."""
        value = self._value(name)
        if value is None:
            return None
        if not _is_number(value) or not 0 <= value <= 1:
            raise self._refusal(name, value, "a number from 0 to 1")
        return float(value)

    def word(self, name: str, words: tuple[Word, ...], *, default: Word) -> Word:
        value = self._value(name)
        if value is None:
            return default
        for word in words:
            if word == value:
                return word
        raise self._refusal(name, value, " or ".join(words))

    def required(self, name: str, value: Value | None) -> Value:
        if value is None:
            raise ConfigurationError(f"{self._path}.{name}", "it is missing", "write a value")
        return value

    def refuse_unknown(self) -> None:
        """A setting that this trainer would ignore must not look as if it held."""
        for name in sorted(self._fields.keys() - self._known):
            raise ConfigurationError(
                f"{self._path}.{name}",
                "this trainer does not know it",
                "remove it, or use an image with a newer kopeck",
            )

    def _value(self, name: str) -> Any:
        self._known.add(name)
        return self._fields.get(name)

    def _refusal(self, name: str, value: object, instead: str) -> ConfigurationError:
        field = f"{self._path}.{name}"
        return ConfigurationError(field, f"{value!r} cannot be used", f"write {instead}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
