"""Masks are exact: `mask[t]` iff the text with token `t` can still become a sentence.

The oracle knows nothing of Louver: it is the list of all sentences of a finite language, made by
Python. Every prefix of a sentence is visited.
"""

import itertools
import json
import re

import jsonschema
import numpy
import pytest


def strings(alphabet, longest):
    for length in range(longest + 1):
        yield from map("".join, itertools.product(alphabet, repeat=length))


def matching(pattern, alphabet="abc", longest=5):
    return {text for text in strings(alphabet, longest) if re.fullmatch(pattern, text)}


def instances(schema, values, **dumps):
    """The texts of those values that are instances."""
    validator = jsonschema.Draft202012Validator(schema)
    return {json.dumps(value, **dumps) for value in values if validator.is_valid(value)}


COMPACT = {"separators": (",", ":"), "ensure_ascii": False}
VALUES = [True, False, None, *range(-3, 130), "a", "ab", "on", "only", "é", [], [1], [1, 10], {},
          {"a": 1}, {"a": 1, "b": True}, {"b": True}, {"a": "x"}]
OBJECT = {"type": "object", "properties": {"a": {"const": 1}, "b": {"type": "boolean"}},
          "required": ["a"], "additionalProperties": False}
TAG = {"type": "structural_tag", "format": {"type": "tag", "begin": "<n>", "end": "</n>",
       "content": {"type": "regex", "pattern": "[12]{1,2}"}}}
LARK = 'start: item ("," item)?\nitem: "a" | B\nB: /b{1,2}/\n'
EBNF = 'root ::= item ("," item)?\nitem ::= "a" | "b" "b"?\n'
ITEMS = {"a", "b", "bb"}
PAIRS = ITEMS | {f"{x},{y}" for x in ITEMS for y in ITEMS}

#: Kind, input, options, and all sentences.
CASES = [
    ("regex", "(ab|ba)c?", {}, matching("(ab|ba)c?")),
    ("regex", "a{2,3}|(?!ab)[abc]{2}", {}, matching("a{2,3}|(?!ab)[abc]{2}")),
    ("regex", "[ab]*", {"dot": "any"}, None),
    ("ebnf", EBNF, {}, PAIRS),
    ("lark", LARK, {}, PAIRS),
    ("choice", ["yes", "no", "only", "on", "日本", "é"], {},
     {"yes", "no", "only", "on", "日本", "é"}),
    ("structural_tag", TAG, {}, {f"<n>{n}</n>" for n in (1, 2, 11, 12, 21, 22)}),
    ("json_schema", {"enum": ["on", "only", "é", None]},
     {"whitespace": "compact", "non_ascii": "raw"},
     instances({"enum": ["on", "only", "é", None]}, VALUES, **COMPACT)),
    ("json_schema", {"type": "integer", "minimum": -2, "maximum": 110}, {"whitespace": "compact"},
     instances({"type": "integer", "minimum": -2, "maximum": 110}, VALUES) | {"-0"}),
    ("json_schema", json.dumps(OBJECT), {"whitespace": "compact", "order": "fixed"},
     instances(OBJECT, VALUES, **COMPACT)
     | {'{"a":1,"b":false}'}),
    ("json_schema", {"type": "array", "items": {"enum": [1, 12]}, "minItems": 1, "maxItems": 2,
                     "uniqueItems": True}, {"whitespace": "python_like"},
     {"[1]", "[12]", "[1, 12]", "[12, 1]"}),
]


def compile_kind(engine, kind, text, options):
    return getattr(engine, f"compile_{kind}")(text, **options)


@pytest.mark.parametrize("kind, text, options, sentences", CASES, ids=lambda value: str(value)[:30])
def test_masks_equal_the_oracle(engine, vocabulary, kind, text, options, sentences):
    if sentences is None:
        # Infinite: sentences are longer than any prefix and token that is visited.
        sentences = matching(text, "ab", 9)
    constraint = compile_kind(engine, kind, text, options)
    sentences = {sentence.encode() for sentence in sentences}
    prefixes = {sentence[:n] for sentence in sentences for n in range(len(sentence) + 1)}
    tokens = {t: vocabulary.bytes(t) for t in range(vocabulary.width) if vocabulary.bytes(t)}
    [stop] = vocabulary.stop_tokens
    bits = numpy.zeros(vocabulary.mask_words, dtype=numpy.int32)
    visited = 0
    for prefix in sorted(prefixes):
        if len(prefix) > 5 and text == "[ab]*":
            continue
        matcher = constraint.matcher()
        matcher.advance_all(prefix)  # The first 256 tokens are the bytes.
        mask = matcher.mask()
        matcher.fill_mask(bits)
        for token, spelled in tokens.items():
            allowed = prefix + spelled in prefixes
            assert mask[token] == allowed, (prefix, spelled)
            assert (bits[token // 32] >> (token % 32)) & 1 == allowed
            assert matcher.allows(token) == allowed
        assert mask[stop] == (prefix in sentences) == matcher.is_complete()
        visited += 1
    assert visited > 3
