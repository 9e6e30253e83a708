"""The exceptions of Louver. All derive from `LouverError`."""

from __future__ import annotations

from typing import Optional, Sequence

from .reports import Fault


class LouverError(Exception):
    """An error of Louver. `str(error)` names every fault; `faults` lists them."""

    def __init__(self, text: str, faults: Sequence[Fault] = ()) -> None:
        super().__init__(text, faults)
        self.text = text
        self.faults = tuple(faults)

    def __str__(self) -> str:
        return self.text

    @property
    def message(self) -> str:
        """What is wrong at the first place."""
        return self.faults[0].message if self.faults else self.text

    def _first(self, member: str):
        return getattr(self.faults[0], member) if self.faults else None


class _PointerError(LouverError, ValueError):
    @property
    def pointer(self) -> Optional[str]:
        """The JSON pointer of the first fault."""
        return self._first("pointer")

    @property
    def keyword(self) -> Optional[str]:
        """The keyword of the first fault, if it is one of a JSON Schema."""
        return self._first("keyword")


class SchemaError(_PointerError):
    """A JSON Schema is malformed, unsatisfiable, or cannot be enforced."""

    @property
    def line(self) -> Optional[int]:
        """The line of the first fault, from 1, if the text is no JSON."""
        return self._first("line")

    @property
    def column(self) -> Optional[int]:
        """The column of the first fault, from 1, if the text is no JSON."""
        return self._first("column")


class RequestError(_PointerError):
    """Tools, their options or a structural tag are malformed or do not go together."""


class GrammarError(LouverError, ValueError):
    """The text of a grammar or a pattern is malformed."""

    @property
    def line(self) -> Optional[int]:
        """The line of the first fault, from 1."""
        return self._first("line")

    @property
    def column(self) -> Optional[int]:
        """The column of the first fault in code points, from 1."""
        return self._first("column")


class CompileError(LouverError, ValueError):
    """A grammar cannot be compiled: it derives nothing, or needs a token that is missing."""


class LimitError(LouverError):
    """A grammar or a mask needs more work or memory than a limit of the engine allows."""


class FormatError(LouverError, ValueError):
    """A wire format is unknown, malformed, or cannot be detected."""


class VocabularyError(LouverError, ValueError):
    """A tokenizer cannot be read, or its tokens are no vocabulary."""


class AdvanceError(LouverError, ValueError):
    """A token was not taken. The matcher is unchanged.

    `reason`: "rejected", "unknown_token", "terminated" or "limit". `token`: its id. `offset`: the
    first byte of it that the grammar rejects. `index`: its place among the tokens given.
    """

    def __init__(
        self,
        text: str,
        reason: str = "rejected",
        token: Optional[int] = None,
        offset: Optional[int] = None,
        index: int = 0,
    ) -> None:
        super().__init__(text)
        self.args = (text, reason, token, offset, index)
        self.reason = reason
        self.token = token
        self.offset = offset
        self.index = index


class ArgumentError(LouverError, ValueError):
    """A number is negative or too large, or a text has a lone surrogate. `str(error)` begins with
    the argument's name."""


class InternalError(LouverError, RuntimeError):
    """The engine failed, which is a bug. Please report it."""
