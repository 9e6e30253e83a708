"""Reading a text that was generated without a constraint: what is there, and what is wrong."""

import louver

tool = {"type": "function", "function": {"name": "add", "parameters": {
    "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}}
text = 'Adding.\n<tool_call>{"name":"add","arguments":{"n":"two"}}</tool_call>'
turn = louver.formats.read(text, [tool], format="qwen3")
print(turn)
assert turn.content == "Adding." and turn.calls[0].parsed() == {"n": "two"}
assert any(difference["type"] == "arguments" for difference in turn.differences)
