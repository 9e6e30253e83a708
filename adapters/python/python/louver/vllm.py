"""A structured-output backend for vLLM: its interface over Louver's engine.

The methods are those that vLLM documents for `StructuredOutputBackend` and
`StructuredOutputGrammar`; the classes are plain ones, so that this module imports without vLLM.
docs/PYTHON.md says where vLLM chooses a backend. Not run against vLLM itself: the tests drive the
interface as its scheduler does.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any, List, Optional

from ._louver import Constraint, Engine, Matcher, Vocabulary
from .errors import LouverError
from .masks import allocate_masks

__all__ = ["LouverBackend", "LouverGrammar"]

#: The definition of `start` in Lark, perhaps with attributes or a priority. In EBNF the colon after
#: a name is followed by another one. The server has the same rule (`is_lark_grammar`).
LARK_START = re.compile(
    r"^\s*[?!]*start[^\S\n]*(?:\[[^\]\n]*\][^\S\n]*)?(?:\.[-0-9]*[^\S\n]*)?:(?![:=])", re.MULTILINE
)


class LouverGrammar:
    """The grammar state of one request: `StructuredOutputGrammar`."""

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher

    def accept_tokens(self, request_id: str, tokens: List[int]) -> bool:
        """Takes sampled tokens. Returns whether all of them may follow; otherwise takes none.
        Tokens after a stop token are ignored: the request has ended."""
        matcher = self.matcher
        if matcher.is_terminated():
            return True
        before = len(matcher.tokens)
        for token in tokens:
            if not matcher.try_advance(token):
                if matcher.is_terminated():
                    return True
                matcher.rollback(len(matcher.tokens) - before)
                return False
        return True

    def validate_tokens(self, tokens: List[int]) -> List[int]:
        """The longest prefix of draft tokens that may follow. The state does not move."""
        return list(tokens[: self.matcher.allowed_prefix(tokens)])

    def rollback(self, num_tokens: int) -> None:
        """Takes back tokens of a draft that was not accepted."""
        self.matcher.rollback(num_tokens)

    def fill_bitmask(self, bitmask: Any, batch_index: int) -> None:
        """Writes the mask of the next token into row `batch_index` of a CPU tensor of `int32`."""
        self.matcher.fill_mask(bitmask, batch_index)

    def is_terminated(self) -> bool:
        """Whether a stop token has been taken."""
        return self.matcher.is_terminated()

    def reset(self) -> None:
        """Takes back all tokens."""
        self.matcher.reset()


class LouverBackend:
    """The engine of one model: `StructuredOutputBackend`.

    `vocab_size`: the width of the model's logits. `vllm_config`: the stop tokens of its generation
    configuration are used if it has any. Options of JSON Schemas are class attributes.
    """

    #: Options of `Engine.compile_json_schema`.
    schema_options: dict = {}

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        self.vllm_config = vllm_config
        self.tokenizer = tokenizer
        self.vocab_size = vocab_size
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise LouverError("a fast tokenizer is needed: this one has no `backend_tokenizer`")
        text = backend.to_str()
        self.vocabulary = Vocabulary.from_json(
            text, width=vocab_size, stop_tokens=_stop_tokens(vllm_config, tokenizer)
        )
        self.engine = Engine(self.vocabulary)

    def compile_grammar(self, request_type: Any, grammar_spec: str) -> LouverGrammar:
        """Compiles the specification of a request. `request_type`: a `StructuredOutputOptions`, or
        its name. Errors: `LouverError`, a `ValueError` for a type that is unknown."""
        return LouverGrammar(self._compile(request_type, grammar_spec).matcher())

    def _compile(self, request_type: Any, spec: str) -> Constraint:
        name = getattr(request_type, "name", request_type)
        kind = str(name).upper()
        engine = self.engine
        if kind == "JSON":
            return engine.compile_json_schema(spec, **self.schema_options)
        if kind == "JSON_OBJECT":
            return engine.compile_json_schema({"type": "object"}, **self.schema_options)
        if kind == "REGEX":
            return engine.compile_regex(spec)
        if kind == "GRAMMAR":
            return compile_grammar_text(engine, spec)
        if kind == "CHOICE":
            return engine.compile_choice(read_choices(spec))
        if kind == "STRUCTURAL_TAG":
            return engine.compile_structural_tag(spec)
        raise ValueError(f"Louver has no structured output of type {name}")

    def allocate_token_bitmask(self, max_num_seqs: int) -> Any:
        """A CPU tensor of masks that allow everything, `(max_num_seqs, words)`. Without torch, an
        array of NumPy."""
        try:
            import torch
        except ImportError:
            return allocate_masks(max_num_seqs, self.vocabulary)
        return torch.full((max_num_seqs, self.vocabulary.mask_words), -1, dtype=torch.int32)

    def destroy(self) -> None:
        """Drops the engine with its caches."""
        del self.engine


def compile_grammar_text(engine: Engine, text: str) -> Constraint:
    """Compiles a grammar in Lark, if it defines the rule `start` with a colon, or else in EBNF."""
    is_lark = LARK_START.search(text) is not None
    return engine.compile_lark(text) if is_lark else engine.compile_ebnf(text)


def read_choices(spec: str) -> List[str]:
    """The texts of a choice: a JSON array, or a list as Python writes it."""
    try:
        return json.loads(spec)
    except json.JSONDecodeError:
        pass
    try:
        return list(ast.literal_eval(spec))
    except (SyntaxError, TypeError):
        raise ValueError("a choice is a list of texts") from None


def _stop_tokens(vllm_config: Any, tokenizer: Any) -> Optional[List[int]]:
    model = getattr(vllm_config, "model_config", None)
    read = getattr(model, "try_get_generation_config", None)
    stops = (read() or {}).get("eos_token_id") if read is not None else None
    if stops is None:
        stops = getattr(tokenizer, "eos_token_id", None)
    stops = [stops] if isinstance(stops, int) else list(stops or [])
    own = getattr(tokenizer, "eos_token_id", None)
    if own is not None and own not in stops:
        stops.append(own)
    return stops or None
