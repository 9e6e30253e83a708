"""Time of one call from Python, beside the same call in Rust.

Usage: python adapters/python/bench/overhead.py; the Rust side is
`cargo run --manifest-path adapters/python/Cargo.toml --example overhead`, in the same profile.
The vocabulary is a made-up one of 128,000 tokens, the same on both sides.
"""

import time

import louver
import numpy

SCHEMA = '{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}'
CALLS = 200_000


def vocabulary():
    """The 256 bytes, and numbered words up to 128,000 ids."""
    words = [f" w{k}".encode() for k in range(128_000 - 257)]
    return louver.toy_vocabulary(words)


def measure(name, call):
    call()
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(CALLS // 5):
            call()
        best = min(best, (time.perf_counter() - started) / (CALLS // 5))
    print(f"{name:45} {best * 1e9:9.0f} ns")


def main():
    vocab = vocabulary()
    engine = louver.Engine(vocab)
    constraint = engine.compile_json_schema(SCHEMA)
    matcher = constraint.matcher()
    matcher.advance_all(b'{"a": 1')
    row = louver.allocate_masks(1, vocab)[0]
    batch = louver.allocate_masks(64, vocab)
    matchers = [matcher.fork() for _ in range(64)]
    token = ord("2")

    def step():
        matcher.advance(token)
        matcher.rollback(1)

    measure("fill_mask(out), cached mask, 16 KB", lambda: matcher.fill_mask(row))
    measure("fill_mask(out, row)", lambda: matcher.fill_mask(batch, 3))
    measure("advance(token) and rollback(1)", step)
    measure("is_complete()", matcher.is_complete)
    measure("an empty method of Rust: is_terminated()", matcher.is_terminated)
    small = louver.toy_vocabulary()
    little = louver.Engine(small).compile_json_schema(SCHEMA).matcher()
    words = numpy.zeros(small.mask_words, dtype=numpy.int32)
    measure("fill_mask(out) of 257 ids", lambda: little.fill_mask(words))
    engine.fill_masks(matchers, batch)
    started = time.perf_counter()
    for _ in range(200):
        engine.fill_masks(matchers, batch)
    print(f"fill_masks of 64 rows: {(time.perf_counter() - started) / 200 * 1e6:.0f} us")


main()
