"""A reasoning block, required and bounded in tokens."""

import louver

engine = louver.Engine(louver.toy_vocabulary())
constraint = engine.compile_tools(None, format="qwen3", reasoning="required", reasoning_tokens=12)
text = b"<think>\nSo it is.\n</think>\n\nIt is."
turn = constraint.extract([*text, *engine.vocabulary.stop_tokens])
print(turn)
assert turn.reasoning == "So it is." and turn.content == "It is."
longer = text.replace(b"So it is", b"So it is, or so I think")
assert constraint.matcher().allowed_prefix(longer) < len(longer)
