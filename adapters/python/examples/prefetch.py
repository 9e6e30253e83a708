"""Making the next masks in the background, while the model computes."""

import louver

vocabulary = louver.toy_vocabulary()
matcher = louver.Engine(vocabulary).compile_json_schema({"type": "object"}).matcher()
while len(matcher.tokens) < 8:
    likely = matcher.mask().nonzero()[0][:4]
    assert matcher.prefetch(likely)
    # The model computes here.
    matcher.advance(int(likely[0]))
print(vocabulary.decode(matcher.tokens))
