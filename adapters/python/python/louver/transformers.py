"""Louver in `generate` of Hugging Face transformers: a vocabulary of its tokenizers, and a logits
processor.

    vocabulary = louver.transformers.vocabulary(tokenizer, model)
    constraint = louver.Engine(vocabulary).compile_json_schema(schema)
    processor = louver.transformers.LouverLogitsProcessor(constraint)
    model.generate(**inputs, logits_processor=[processor], max_new_tokens=200)
"""

from __future__ import annotations

from typing import Any, Iterable, List, Optional, Sequence, Union

import torch
from transformers import LogitsProcessor

from ._louver import Constraint, Matcher, Vocabulary
from .masks import allocate_masks, apply_mask

__all__ = ["LouverLogitsProcessor", "vocabulary"]


def vocabulary(
    tokenizer: Any,
    model: Any = None,
    *,
    width: Optional[int] = None,
    stop_tokens: Optional[Iterable[Union[int, str]]] = None,
) -> Vocabulary:
    """The vocabulary of a fast tokenizer of transformers, or of a `tokenizers.Tokenizer`.

    `model`: gives the width of the logits (`config.vocab_size`) and the stop tokens
    (`generation_config.eos_token_id`), which are where `generate` ends a sequence. `width` and
    `stop_tokens` override both; without a model, the tokenizer's end-of-sequence token is taken.
    """
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "to_str"):
        raise TypeError("a fast tokenizer is needed: this one has no `backend_tokenizer`")
    if stop_tokens is None:
        generation = getattr(model, "generation_config", None)
        stops = getattr(generation, "eos_token_id", None)
        if stops is None:
            stops = getattr(tokenizer, "eos_token_id", None)
        if stops is not None:
            stop_tokens = [stops] if isinstance(stops, int) else list(stops)
    if width is None and model is not None:
        width = model.config.get_text_config().vocab_size
    return Vocabulary.from_json(backend.to_str(), width=width, stop_tokens=stop_tokens)


class LouverLogitsProcessor(LogitsProcessor):
    """Constrains `generate`: samples and greedy search, any batch, `num_return_sequences`.

    `constraints`: one for all rows, or one for each prompt (`None`: not constrained). Rows that
    have ended allow their stop tokens only, and `generate` pads them. Make a new processor for each
    call of `generate`, or call `reset`. Beam search is refused: it keeps tokens that no mask
    allows.

    `matchers` has the matcher of each row. It lacks the last token, which `generate` samples after
    the last mask; `finish` adds it.
    """

    def __init__(self, constraints: Union[Constraint, Sequence[Optional[Constraint]]]) -> None:
        self.constraints: List[Optional[Constraint]]
        single = isinstance(constraints, Constraint)
        self.constraints = [constraints] if single else list(constraints)
        self.matchers: List[Optional[Matcher]] = []
        # The tokens that the matchers have seen, after the prompts.
        self._seen: Optional[torch.LongTensor] = None
        self._prompt_length = 0

    def reset(self) -> None:
        """Prepares for another call of `generate`."""
        self.matchers = []
        self._seen = None

    def finish(self, sequences: torch.LongTensor) -> List[Optional[Matcher]]:
        """Takes the last tokens of what `generate` returned. A matcher that then is not
        `is_terminated` was cut off by a length limit."""
        if self._seen is not None:
            self._follow(sequences[:, self._prompt_length :])
        return self.matchers

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        if self._seen is None:
            self._start(input_ids)
        elif len(self.matchers) != input_ids.shape[0]:
            raise ValueError("the number of rows changed: call `reset` between calls of `generate`")
        self._follow(input_ids[:, self._prompt_length :])
        vocabularies = [c.vocabulary for c in self.constraints if c is not None]
        if not vocabularies:
            return scores
        masks = allocate_masks(len(self.matchers), vocabularies[0])
        for row, matcher in enumerate(self.matchers):
            if matcher is not None:
                matcher.fill_mask(masks, row)
        # A copy: other processors may keep the scores that they were given.
        return apply_mask(scores.clone(), masks)

    def _start(self, input_ids: torch.LongTensor) -> None:
        prompts, (rows, self._prompt_length) = len(self.constraints), input_ids.shape
        if prompts == 0 or rows % prompts != 0:
            raise ValueError(f"{prompts} constraints for {rows} rows")
        # `generate` repeats each prompt `num_return_sequences` times, one after the other.
        for constraint in self.constraints:
            for _ in range(rows // prompts):
                self.matchers.append(None if constraint is None else constraint.matcher())
        self._seen = input_ids[:, self._prompt_length :]

    def _follow(self, ids: torch.LongTensor) -> None:
        """Takes the tokens that the matchers have not seen. `ids`: all tokens after the prompts."""
        length = self._seen.shape[1]
        ids = ids.to(self._seen.device)
        if not torch.equal(ids[:, :length], self._seen):
            raise ValueError(
                "the rows do not continue their tokens: beam search is not supported, and a "
                "processor serves one call of `generate` (see `reset`)"
            )
        self._seen = ids
        for matcher, tokens in zip(self.matchers, ids[:, length:].tolist()):
            for token in tokens:
                # What follows a stop token is padding.
                if matcher is None or matcher.is_terminated():
                    break
                matcher.advance(token)
