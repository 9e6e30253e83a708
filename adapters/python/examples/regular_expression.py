"""A regular expression: the whole text must match."""

import louver

engine = louver.Engine(louver.toy_vocabulary())
matcher = engine.compile_regex(r"[A-Z]{2}-\d{4}", case="insensitive").matcher()
assert matcher.allowed_prefix(b"no-1234") == 7
assert matcher.allowed_prefix(b"no-12x4") == 5
matcher.advance_all(b"ab")
assert matcher.forced_bytes() == b"-"
