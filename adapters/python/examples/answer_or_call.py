"""A turn that is a call of a tool, or else an answer with a schema."""

import json

import louver

engine = louver.Engine(louver.toy_vocabulary())
tool = {"type": "function", "function": {"name": "search", "parameters": {
    "type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}}}
answer = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {
    "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}}
constraint = engine.compile_tools([tool], format="qwen3", response_format=answer)
stop = engine.vocabulary.stop_tokens
turn = constraint.extract([*b'{"n": 42}', *stop])
assert json.loads(turn.content) == {"n": 42} and turn.calls == []
turn = constraint.extract(
    [*b'<tool_call>\n{"name": "search", "arguments": {"query": "n"}}\n</tool_call>', *stop])
assert turn.content == "" and turn.calls[0].parsed() == {"query": "n"}
assert not constraint.matcher().try_advance(ord("H"))  # No free text.
