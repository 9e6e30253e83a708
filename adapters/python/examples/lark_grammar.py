"""A Lark grammar with a capture."""

import louver

GRAMMAR = r"""
start: "from " place " to " place
place[capture]: /[A-Z][a-z]+/
"""
engine = louver.Engine(louver.toy_vocabulary())
matcher = engine.compile_lark(GRAMMAR).matcher()
matcher.advance_all(b"from Oslo to Rome")
matcher.advance_all(engine.vocabulary.stop_tokens)
print(matcher.captures())
assert [text for _, text, _ in matcher.captures()] == [b"Oslo", b"Rome"]
