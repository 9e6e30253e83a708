"""A decode loop that reuses one bit mask: nothing is allocated or copied for a step."""

import json

import louver
import numpy

vocabulary = louver.toy_vocabulary([b'"name"', b'": "', b"ann", b"bob"])
schema = {"type": "object", "properties": {"name": {"enum": ["ann", "bob"]}},
          "required": ["name"], "additionalProperties": False}
matcher = louver.Engine(vocabulary).compile_json_schema(schema, whitespace="compact").matcher()
mask = louver.allocate_masks(1, vocabulary)
random = numpy.random.default_rng(1)
while not matcher.is_terminated():
    logits = random.normal(size=(1, vocabulary.width)).astype(numpy.float32)
    matcher.fill_mask(mask, 0)
    matcher.advance(int(louver.apply_mask(logits, mask)[0].argmax()))
text = vocabulary.decode(matcher.tokens).decode()
print(text)
assert json.loads(text)["name"] in ("ann", "bob")
