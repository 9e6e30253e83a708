"""A strict tool call in the format of Qwen3, with random logits in place of a model."""

import louver
import numpy

vocabulary = louver.toy_vocabulary()
engine = louver.Engine(vocabulary)
schema = {"type": "object", "properties": {"zone": {"enum": ["UTC", "CET"]}}, "required": ["zone"],
          "additionalProperties": False}
tool = {"type": "function", "function": {"name": "get_time", "parameters": schema}}
constraint = engine.compile_tools([tool], format="qwen3", tool_choice="required", parallel=False,
                                  reasoning="off")
matcher, random = constraint.matcher(), numpy.random.default_rng(0)
while not matcher.is_terminated():
    forced = matcher.forced_tokens()
    logits = random.normal(size=vocabulary.width)
    logits[vocabulary.stop_tokens] += 9  # It ends where it may.
    matcher.advance_all(forced or [louver.apply_mask(logits, matcher.mask()).argmax()])
[call] = constraint.extract(matcher.tokens).calls
print(call.name, call.arguments)
assert call.name == "get_time" and call.parsed()["zone"] in ("UTC", "CET")
