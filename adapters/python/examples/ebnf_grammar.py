"""A grammar in EBNF, as llama.cpp and xgrammar write it."""

import louver

GRAMMAR = r"""
root  ::= sum
sum   ::= term (("+" | "-") term)*
term  ::= [0-9]+ | "(" sum ")"
"""
engine = louver.Engine(louver.toy_vocabulary())
matcher = engine.compile_ebnf(GRAMMAR).matcher()
matcher.advance_all(b"1+(2-3")
assert not matcher.is_complete() and matcher.allows(ord(")")) and not matcher.allows(ord("*"))
matcher.advance_all(b")")
assert matcher.is_complete()
