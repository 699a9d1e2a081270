"""Base class of the mappings by name that a table offers."""

from abc import abstractmethod
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import ClassVar, TypeVar

from lancetable.errors import NotFoundError, RefNotFoundError

Info = TypeVar("Info")


class UnknownNameError(NotFoundError, KeyError):
    """There is no such name; mappings are expected to raise a ``KeyError``."""

    __str__ = Exception.__str__


class UnknownReferenceError(RefNotFoundError, UnknownNameError):
    """There is no such tag or branch."""

    __str__ = Exception.__str__


class Named(Mapping[str, Info]):
    """Names and what they stand for, read again at every access."""

    __slots__ = ()

    _unknown: ClassVar[type[NotFoundError]] = UnknownNameError

    @abstractmethod
    def _all(self) -> Mapping[str, Info]:
        """Return all names."""

    def __getitem__(self, name: object) -> Info:
        found = self._all()
        if not isinstance(name, str) or name not in found:
            kind = type(self).__name__.lower()
            known = ", ".join(found) or "none"
            raise self._unknown(f"there is no {name!r} among the {kind}; there are: {known}")
        return found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def items(self) -> ItemsView[str, Info]:
        """Return names and what they stand for."""
        return self._all().items()

    def values(self) -> ValuesView[Info]:
        """Return what the names stand for."""
        return self._all().values()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self._all())!r})"
