"""Small vocabularies and tokenizers that tests make for themselves."""

import json
import random

import louver

#: Tokens beside the 256 bytes that cut across the texts of the tests.
TOKENS = [
    b"ab", b"ba", b"abc", b"aa", b"cab", b"12", b"10", b"0,", b"[1", b"]]", b"tru", b"true",
    b"alse",
    b'{"', b'":', b'": ', b'"}', b'", "', b'"a', b'a"', b"a\":", b"{}", b", ", b" ", b"\n", b"  ",
    b"<n>", b"</n", b"</n>", b"n>1", b"yes", b"no", b"es", b"-1", b"on", b"ly", b'ly"', b"zz",
    "é".encode(), "日本".encode(), "本\"".encode(),
]


def vocabulary():
    return louver.toy_vocabulary([token for token in TOKENS if len(token) > 1])


def byte_alphabet():
    """The characters that stand for bytes in byte-level tokenizers, by byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    alphabet = {byte: chr(byte) for byte in plain}
    alphabet.update((byte, chr(256 + k)) for k, byte in enumerate(others))
    return alphabet


def tokenizer_json(merges=(), special=("<|im_start|>", "<|im_end|>")):
    """A byte-level BPE tokenizer: the 256 bytes, one token a merge (a pair of texts), and special
    tokens."""
    alphabet = byte_alphabet()
    written = lambda text: "".join(alphabet[byte] for byte in text.encode())
    vocab = {alphabet[byte]: byte for byte in range(256)}
    pairs = [[written(a), written(b)] for a, b in merges]
    for a, b in pairs:
        vocab.setdefault(a + b, len(vocab))
    added = [
        {"id": len(vocab) + k, "content": name, "single_word": False, "lstrip": False,
         "rstrip": False, "normalized": False, "special": True}
        for k, name in enumerate(special)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                  "use_regex": False}
    return json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": None, "pre_tokenizer": byte_level, "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": vocab, "merges": pairs},
    })


def chat_vocabulary(special=("<|im_start|>", "<|im_end|>"), stop="<|im_end|>", width=None):
    """A vocabulary with a tokenizer and the special tokens of a chat model."""
    merges = [('{', '"'), ("t", "r"), ("u", "e"), ("tr", "ue"), ('"', ":"), ("i", "d"), ("a", "r")]
    return louver.Vocabulary.from_json(tokenizer_json(merges, special), stop_tokens=[stop],
                                       width=width)


def walk(matcher, rng, steps=60, prefer=None):
    """Samples from masks until the text ends: random tokens at first, then a shortest completion.
    Every sampled token must be taken. Returns the tokens, with a stop token."""
    vocabulary = matcher.vocabulary
    for _ in range(steps):
        allowed = matcher.mask().nonzero()[0]
        assert len(allowed) > 0, "a mask is never empty"
        token = int(rng.choice(allowed)) if prefer is None else prefer(allowed)
        matcher.advance(token)
        if matcher.is_terminated():
            return matcher.tokens
    rest = matcher.shortest_completion_tokens()
    assert rest is not None
    for token in rest:
        assert matcher.mask()[token]
        matcher.advance(token)
    assert matcher.is_complete()
    stop = next(token for token in vocabulary.stop_tokens if matcher.allows(token))
    matcher.advance(stop)
    return matcher.tokens


def rng(seed=0):
    return random.Random(seed)
