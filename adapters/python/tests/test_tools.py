"""Tool calls in wire formats of three families: masks, extraction, and reading of texts."""

import json
import re

import jsonschema
import louver
import pytest
import toys

WEATHER = {"type": "object", "required": ["city"], "additionalProperties": False, "properties": {
    "city": {"type": "string", "maxLength": 12},
    "days": {"type": "integer", "minimum": 1, "maximum": 7}}}
ZONE = {"type": "object", "required": ["zone"], "additionalProperties": False,
        "properties": {"zone": {"enum": ["UTC", "CET"]}}}
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}},
    {"type": "function", "function": {"name": "get_time", "parameters": ZONE}},
]
SCHEMAS = {"get_weather": WEATHER, "get_time": ZONE}

#: Family, special tokens (the first ends a turn), and a text with two calls.
FAMILIES = {
    "qwen3": (["<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>"],
              '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}\n'
              '</tool_call>\n<tool_call>\n{"name": "get_time", "arguments": {"zone": "CET"}}\n'
              '</tool_call>'),
    "mistral_v7": (["</s>", "[TOOL_CALLS]"],
                   '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}},'
                   ' {"name": "get_time", "arguments": {"zone": "CET"}}]'),
    "llama3": (["<|eot_id|>", "<|eom_id|>", "<|python_tag|>"],
               '{"name": "get_weather", "parameters": {"city": "Oslo", "days": 3}}; '
               '{"name": "get_time", "parameters": {"zone": "CET"}}'),
}


def rig(family):
    special, text = FAMILIES[family]
    vocabulary = toys.chat_vocabulary(special, special[0])
    return louver.Engine(vocabulary), vocabulary, text


def expected_calls():
    return [("get_weather", {"city": "Oslo", "days": 3}), ("get_time", {"zone": "CET"})]


def calls(turn):
    return [(call.name, call.parsed()) for call in turn.calls]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_is_extracted_and_read(family):
    engine, vocabulary, text = rig(family)
    constraint = engine.compile_tools(TOOLS, format=family, reasoning="off")
    tokens = [*vocabulary.encode(text), vocabulary.stop_tokens[0]]
    turn = constraint.extract(tokens)
    assert calls(turn) == expected_calls() and turn.incomplete is None
    assert len({call.id for call in turn.calls}) == 2
    read = louver.formats.read(text, TOOLS, format=family, reasoning="off")
    assert calls(read) == expected_calls() and read.differences == []
    # The same in pieces, one token at a time.
    extractor = constraint.extractor()
    events = [event for token in tokens for event in extractor.push(token)] + extractor.finish()
    kinds = [event["type"] for event in events]
    assert kinds.count("call_start") == kinds.count("call_end") == 2 and kinds[-1] == "end"
    arguments = "".join(event["delta"] for event in events
                        if event["type"] == "arguments_delta" and event["index"] == 0)
    assert json.loads(arguments) == {"city": "Oslo", "days": 3}
    assert calls(extractor.turn) == expected_calls() and extractor.finish() == []


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("choice", ["required", {"type": "function",
                                                 "function": {"name": "get_time"}}], ids=str)
def test_walks_are_valid_calls(family, choice):
    engine, vocabulary, _ = rig(family)
    constraint = engine.compile_tools(TOOLS, format=family, tool_choice=choice, reasoning="off",
                                      parallel=2)
    for seed in range(15):
        tokens = toys.walk(constraint.matcher(), toys.rng(seed), steps=80)
        turn = constraint.extract(tokens)
        assert 1 <= len(turn.calls) <= 2 and turn.incomplete is None
        for call in turn.calls:
            jsonschema.validate(call.parsed(), SCHEMAS[call.name])
            assert choice == "required" or call.name == "get_time"
        # What was extracted from tokens is what is read from the text.
        text = vocabulary.decode(tokens[:-1], special=True).decode()
        read = louver.formats.read(text, TOOLS, format=family, tool_choice=choice,
                                   reasoning="off", parallel=2)
        assert calls(read) == calls(turn), text


@pytest.mark.parametrize("family", FAMILIES)
def test_wrong_arguments_cannot_be_written(family):
    engine, vocabulary, text = rig(family)
    matcher = engine.compile_tools(TOOLS, format=family, reasoning="off").matcher()
    for right, wrong in (("days\": 3", "days\": 8"), ("CET", "PST"), ("Oslo", "O" * 13)):
        tokens = vocabulary.encode(text.replace(right, wrong))
        assert matcher.allowed_prefix(tokens) < len(tokens)
    tokens = vocabulary.encode(text)
    assert matcher.allowed_prefix(tokens) == len(tokens)


def test_reasoning_and_content():
    engine, vocabulary, call = rig("qwen3")
    constraint = engine.compile_tools(TOOLS, format="qwen3", reasoning="required")
    tokens = vocabulary.encode(f"<think>\nHm.\n</think>\n\nSo:\n{call}") + vocabulary.stop_tokens
    turn = constraint.extract(tokens)
    assert (turn.reasoning, turn.content) == ("Hm.", "So:") and calls(turn) == expected_calls()
    with pytest.raises(louver.AdvanceError):
        constraint.extract(vocabulary.encode("So:"))
    cut = constraint.extract(tokens[: len(tokens) // 2])
    assert cut.incomplete is not None and len(cut.calls) < 2
    bounded = engine.compile_tools(TOOLS, format="qwen3", reasoning="required", reasoning_tokens=3)
    assert bounded.matcher().allowed_prefix(tokens) < len(tokens)


def test_differences_of_an_unconstrained_text():
    text = 'Sure.\n<tool_call>{"name": "get_weather", "arguments": {"days": 9}}</tool_call>'
    turn = louver.formats.read(text, TOOLS, format="qwen3")
    assert turn.content == "Sure." and calls(turn) == [("get_weather", {"days": 9})]
    assert "arguments" in {difference["type"] for difference in turn.differences}
    cut = louver.formats.read('<tool_call>\n{"name": "get_time", "argu', TOOLS, format="qwen3")
    assert cut.calls == [] and cut.differences


def test_the_answer_has_a_schema():
    engine, vocabulary, _ = rig("qwen3")
    answer = {"type": "json_schema", "json_schema": {"name": "a", "schema": ZONE}}
    constraint = engine.compile_tools(TOOLS, format="qwen3", response_format=answer,
                                      tool_choice="none", reasoning="off")
    for seed in range(5):
        turn = constraint.extract(toys.walk(constraint.matcher(), toys.rng(seed), steps=40))
        jsonschema.validate(json.loads(turn.content), ZONE)


def test_strictness_is_reported():
    engine, _, _ = rig("qwen3")
    constraint = engine.compile_tools(TOOLS, format="qwen3", strict=False)
    pointers = [fault.pointer for fault in constraint.relaxed]
    assert pointers == ["/tools/0/function/parameters", "/tools/1/function/parameters"]
    assert engine.compile_tools(TOOLS, format="qwen3").relaxed == ()


def test_families_and_detection():
    names = dict(louver.formats.families())
    assert len(names) >= 50 and all(names.values()) and {"qwen3", "llama3", "harmony"} <= set(names)
    template = "{{- '<tool_call>\\n{\"name\": \"' }}{{ '</think>' }}"
    assert louver.formats.detect(template)[0] == "qwen3"
    with pytest.raises(louver.FormatError, match="unknown"):
        louver.formats.detect("{{ messages }}")


def test_every_family_compiles():
    """Families whose markers must be special tokens say which one is missing."""
    special, compiled = ["<|im_end|>"], set()
    names = [name for name, _ in louver.formats.families()]
    while len(compiled) < len(names):
        engine = louver.Engine(toys.chat_vocabulary(special))
        missing = set()
        for name in names:
            try:
                engine.compile_tools(TOOLS, format=name, tool_choice="required").matcher().mask()
                compiled.add(name)
            except louver.CompileError as error:
                missing.update(re.findall("no special token `(.*)`", str(error)))
        assert compiled.issuperset(names) or not missing.issubset(special)
        special += sorted(missing)
    assert len(special) < 20


def test_a_format_of_ones_own(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text("name = 1")
    engine, _, _ = rig("qwen3")
    with pytest.raises(louver.FormatError):
        engine.compile_tools(TOOLS, format=file)
