"""Events of a call while it is generated."""

import louver

engine = louver.Engine(louver.toy_vocabulary())
tool = {"type": "function", "function": {"name": "say", "parameters": {
    "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}}
extractor = engine.compile_tools([tool], format="hermes").extractor(id_seed=7)
text = b'Well.\n<tool_call>\n{"name": "say", "arguments": {"text": "hi"}}\n</tool_call>'
kinds, arguments = [], ""
for token in [*text, *engine.vocabulary.stop_tokens]:
    for event in extractor.push(token):
        kinds.append(event["type"])
        arguments += event["delta"] if event["type"] == "arguments_delta" else ""
kinds += [event["type"] for event in extractor.finish()]
print(kinds, arguments)
assert kinds[0] == "text_delta" and "call_start" in kinds and kinds[-1] == "end"
assert arguments == '{"text": "hi"}' and extractor.turn.content == "Well."
