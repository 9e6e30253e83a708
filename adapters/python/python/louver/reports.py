"""What Louver reports: faults and relaxed keywords of an input, and the content of a turn."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional


@dataclass(frozen=True)
class Fault:
    """One place of an input and what is wrong, relaxed or odd there."""

    #: In one line.
    message: str
    #: JSON pointer, of schemas and requests.
    pointer: Optional[str] = None
    #: The keyword, of schemas.
    keyword: Optional[str] = None
    #: Line from 1, of texts.
    line: Optional[int] = None
    #: Column in code points from 1, of texts.
    column: Optional[int] = None

    def __str__(self) -> str:
        if self.line is not None:
            return f"line {self.line}, column {self.column}: {self.message}"
        return f"{self.pointer}: {self.message}" if self.pointer is not None else self.message


@dataclass(frozen=True)
class Call:
    """A call of a tool."""

    id: str
    name: str
    #: JSON text; of a custom tool, its input.
    arguments: str
    #: "function" or "custom".
    kind: str = "function"

    def parsed(self) -> Any:
        """The arguments as a Python value."""
        return json.loads(self.arguments)


@dataclass(frozen=True)
class Incomplete:
    """Where a generation was cut off."""

    #: "turn", "reasoning", "response", "call_header", "call_arguments" or "call_trailer".
    why: str
    #: The call that was cut off. It must not be executed.
    call: Optional[Call] = None
    #: Text that is neither content nor reasoning nor arguments.
    partial: str = ""


@dataclass(frozen=True)
class Turn:
    """The content of one turn."""

    #: Text for the user, or the answer that `response_format` asks for.
    content: str = ""
    reasoning: str = ""
    #: Complete calls.
    calls: List[Call] = field(default_factory=list)
    #: Where the generation was cut off, if it was.
    incomplete: Optional[Incomplete] = None
    #: How a text that was read differs from what the constraint allows: `type` and details.
    differences: List[Dict[str, Any]] = field(default_factory=list)


def turn(members: Dict[str, Any], differences: Any = ()) -> Turn:
    """The turn that the extension describes."""
    cut = members.get("incomplete")
    if cut is not None:
        call = cut.get("call")
        cut = Incomplete(cut["why"], call and Call(**call), cut.get("partial", ""))
    return Turn(
        content=members["text"],
        reasoning=members["reasoning"],
        calls=[Call(**call) for call in members["calls"]],
        incomplete=cut,
        differences=list(differences),
    )


def reading(members: Dict[str, Any]) -> Turn:
    """The turn that was read from a text, with the differences found."""
    return turn(members["turn"], members["differences"])
