"""The backend for vLLM, called as its scheduler does. vLLM itself is not needed."""

import numpy

import louver.vllm


class Tokenizer:
    """Of a fast tokenizer of transformers, what the backend reads."""

    eos_token_id = 3

    @property
    def backend_tokenizer(self):
        return self

    def to_str(self):
        byte_level = '{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true}'
        added = ('{"id": 3, "content": "<|end|>", "single_word": false, "lstrip": false, '
                 '"rstrip": false, "normalized": false, "special": true}')
        model = '{"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}'
        return (f'{{"version": "1.0", "added_tokens": [{added}], "pre_tokenizer": {byte_level}, '
                f'"decoder": {byte_level}, "model": {model}}}')


backend = louver.vllm.LouverBackend(None, Tokenizer(), vocab_size=64)
grammar = backend.compile_grammar("REGEX", "(ab){2}")
bitmask = backend.allocate_token_bitmask(1)
grammar.fill_bitmask(bitmask, 0)
assert numpy.asarray(bitmask)[0].tolist() == [0b101, 0]
assert grammar.validate_tokens([2, 0, 0]) == [2, 0]
assert grammar.accept_tokens("request", [2, 2, 3]) and grammar.is_terminated()
backend.destroy()
