"""A vocabulary of given tokens, for a model whose tokenizer is no tokenizer.json."""

import louver

tokens = [b"a", b"ab", "é", None, b"b"]
vocabulary = louver.Vocabulary.from_tokens(
    tokens, special={"<|end|>": 3}, stop_tokens=[3], width=64)
matcher = louver.Engine(vocabulary).compile_regex("a?b?é?").matcher()
assert matcher.mask().nonzero()[0].tolist() == [0, 1, 2, 3, 4]
assert vocabulary.width == 64 and vocabulary.mask_words == 2
