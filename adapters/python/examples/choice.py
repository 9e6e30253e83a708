"""One of some texts."""

import louver

engine = louver.Engine(louver.toy_vocabulary([b"posi", b"nega", b"neutral"]))
matcher = engine.compile_choice(["positive", "negative", "neutral"]).matcher()
matcher.advance(engine.vocabulary.find(b"nega"))
assert matcher.forced_bytes() == b"tive"
