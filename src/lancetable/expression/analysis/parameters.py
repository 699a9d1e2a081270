"""Parameters of the analysis of texts, and the text by which index files record them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self

from lancetable.errors import CorruptError, InputError
from lancetable.options import check_options, option

LANGUAGES = (
    *("Arabic", "Danish", "Dutch", "English", "Finnish", "French", "German", "Greek"),
    *("Hungarian", "Italian", "Norwegian", "Portuguese", "Romanian", "Russian", "Spanish"),
    *("Swedish", "Tamil", "Turkish"),
)
TOKENIZERS = ("simple", "whitespace", "raw", "ngram")
_OTHER_PARAMETERS = {
    "block_size": 128,
    "split_identifiers": False,
    "split_on_numerics": False,
    "preserve_original": False,
    "index_operators": False,
}
"""Parameters that this release writes but does not use."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """How texts become words; texts are JSON documents when ``lance_tokenizer`` says so.

    Texts are split, long words are dropped, the others are changed to lower case and stemmed, stop
    words are removed, and at last letters with marks are folded to ASCII.
    """

    base_tokenizer: str = option(
        "simple",
        help="How texts are split: simple (letters and digits), whitespace, raw (not), or ngram.",
    )
    language: str = option("English", help="The language of stems and stop words.")
    with_position: bool = option(
        False,  # noqa: FBT003 - the default
        help="Store the positions of words, which phrase queries need.",
    )
    max_token_length: int | None = option(
        40, minimum=0, help="Words of so many bytes and more are left out; None for no limit."
    )
    lower_case: bool = option(True, help="Change words to lower case.")  # noqa: FBT003
    stem: bool | None = option(
        None, help="Reduce words to their stems; by default with every tokenizer but ngram."
    )
    remove_stop_words: bool | None = option(
        None,
        help="Leave out the most frequent words; by default with every tokenizer but ngram.",
    )
    custom_stop_words: Sequence[str] | None = option(
        None, help="Leave out these words instead of those of the language."
    )
    ascii_folding: bool = option(
        True,  # noqa: FBT003 - the default
        help="Write Latin letters without their marks.",
    )
    min_ngram_length: int = option(3, minimum=1, help="The fewest characters of an n-gram.")
    max_ngram_length: int = option(3, minimum=1, help="The most characters of an n-gram.")
    prefix_only: bool = option(
        False,  # noqa: FBT003 - the default
        help="Take only the n-grams at the beginning of a text.",
    )
    lance_tokenizer: Literal["text", "json"] = field(default="text", kw_only=True)
    """What the values are: texts, or JSON documents."""

    def __post_init__(self) -> None:
        check_options(self)
        for name in ("stem", "remove_stop_words"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, self.base_tokenizer != "ngram")
        if self.language not in LANGUAGES:
            raise InputError(f"language is {self.language!r}; give one of {', '.join(LANGUAGES)}")
        if self.min_ngram_length > self.max_ngram_length:
            raise InputError(
                f"min_ngram_length is {self.min_ngram_length}; give at most max_ngram_length, "
                f"which is {self.max_ngram_length}"
            )

    @property
    def is_supported(self) -> bool:
        """False when an index was made by a tokenizer that this release does not have."""
        return self.base_tokenizer in TOKENIZERS

    @classmethod
    def from_json(cls, text: str, **others: Any) -> Self:  # noqa: ANN401 - of subclasses
        """Return the parameters that a file records, and others; unknown ones are passed over.

        Raises:
            CorruptError: the text is not a JSON object, or a value is not valid.
        """
        names = {one.name for one in fields(Analysis)}
        try:
            found = json.loads(text)
            given = {key: value for key, value in found.items() if key in names}
            return cls(**_without_nulls(given), **others)
        except (ValueError, AttributeError, RecursionError) as error:
            raise CorruptError(f"the parameters of a text analysis are damaged: {error}") from error

    def to_json(self) -> str:
        """Return the text that a file records."""
        own = {one.name: getattr(self, one.name) for one in fields(Analysis)}
        first = {"lance_tokenizer": own.pop("lance_tokenizer")}
        text: str = json.dumps(
            first | own | _OTHER_PARAMETERS, separators=(",", ":"), ensure_ascii=False
        )
        return text

    def of_documents(self, kind: Literal["text", "json"]) -> Self:
        """Return the same parameters for texts or for JSON documents."""
        return replace(self, lance_tokenizer=kind)


def _without_nulls(given: dict[str, Any]) -> dict[str, Any]:
    """Leave out nulls where the default is not null."""
    optional = {"max_token_length", "custom_stop_words"}
    return {key: one for key, one in given.items() if one is not None or key in optional}


def unsupported_tokenizer(analysis: Analysis) -> str:
    """Return why texts cannot be analysed."""
    return (
        f"tokenizer {analysis.base_tokenizer!r} is not in this release; it has "
        f"{', '.join(TOKENIZERS)}"
    )
