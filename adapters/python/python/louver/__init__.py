"""Louver: structured generation. Grammars in, masks of the tokens that may follow out.

An `Engine` belongs to one `Vocabulary`. It compiles a grammar, a JSON Schema or the tools of a
turn into a `Constraint`, which all sequences of that grammar share. A `Matcher` is one sequence:
it yields the mask of the next token and takes the sampled token.

    >>> import louver
    >>> vocabulary = louver.toy_vocabulary([b"true", b"false"])
    >>> constraint = louver.Engine(vocabulary).compile_json_schema({"type": "boolean"})
    >>> matcher = constraint.matcher()
    >>> [vocabulary.bytes(token) for token in matcher.mask().nonzero()[0]]
    [b'f', b't', b'true', b'false']
    >>> matcher.advance(vocabulary.find(b"true"))
    >>> matcher.is_complete()
    True
"""

from typing import Iterable, Union

from . import errors, formats, masks, reports
from ._louver import Constraint, Engine, Extractor, Matcher, RowStatus, Vocabulary, __version__
from .errors import (
    AdvanceError,
    ArgumentError,
    CompileError,
    FormatError,
    GrammarError,
    InternalError,
    LimitError,
    LouverError,
    RequestError,
    SchemaError,
    VocabularyError,
)
from .masks import allocate_masks, apply_mask

__all__ = [
    "AdvanceError",
    "ArgumentError",
    "CompileError",
    "Constraint",
    "Engine",
    "Extractor",
    "FormatError",
    "GrammarError",
    "InternalError",
    "LimitError",
    "LouverError",
    "Matcher",
    "RequestError",
    "RowStatus",
    "SchemaError",
    "Vocabulary",
    "VocabularyError",
    "__version__",
    "allocate_masks",
    "apply_mask",
    "errors",
    "formats",
    "masks",
    "reports",
    "toy_vocabulary",
]


def toy_vocabulary(extra: Iterable[Union[bytes, str]] = ()) -> Vocabulary:
    """A small vocabulary for tests and for work without a model: the 256 single bytes as ids 0 to
    255, one stop token `<|end|>` with id 256, then the given tokens from id 257 on.
    """
    tokens = [*(bytes([byte]) for byte in range(256)), None, *extra]
    return Vocabulary.from_tokens(tokens, special={"<|end|>": 256}, stop_tokens=[256])
