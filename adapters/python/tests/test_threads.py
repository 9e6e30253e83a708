"""Threads: matchers of one constraint on several threads, and work without the global lock."""

import threading
import time

import louver
import toys


def run(count, work):
    results, errors = [None] * count, []

    def guarded(k):
        try:
            results[k] = work(k)
        except BaseException as error:  # noqa: B036: a panic is no Exception.
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(k,)) for k in range(count)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not errors, errors
    return results


def test_threads_with_their_own_matchers(vocabulary):
    schema = {"type": "array", "items": {"type": "object", "properties": {
        "a": {"type": "number"}, "b": {"type": "string", "pattern": "^[a-c]{1,5}$"}}}}

    def walk(k):
        return toys.walk(shared.matcher(), toys.rng(k), steps=50)

    shared = louver.Engine(vocabulary).compile_json_schema(schema)
    together = run(4, walk)
    shared = louver.Engine(vocabulary, pool_bytes=0).compile_json_schema(schema)
    assert together == [walk(k) for k in range(4)]


def test_batches_on_several_threads(engine, vocabulary):
    constraint = engine.compile_json_schema({"type": "array", "items": {"type": "integer"}})

    def fill(k):
        matchers = [constraint.matcher() for _ in range(20)]
        masks = louver.allocate_masks(20, vocabulary)
        for matcher in matchers:
            matcher.advance_all(b"[1" if k else b"[")
        engine.fill_masks(matchers, masks)
        return masks.tobytes()

    results = run(4, fill)
    assert len(set(results[1:])) == 1 and results[0] != results[1]


def steps_during(call):
    """How often this thread wakes up while another one is in `call`."""
    state = {"inside": False, "done": False}

    def work():
        state["inside"] = True
        call()
        state["inside"], state["done"] = False, True

    thread = threading.Thread(target=work)
    thread.start()
    steps = 0
    while not state["done"]:
        time.sleep(0.0002)
        steps += state["inside"]
    thread.join()
    return steps


def test_compiling_holds_no_lock(vocabulary):
    """While one thread compiles, this one goes on. With a held lock it would step once or twice.
    Another try where the machine gave this thread no time."""
    seen = []
    for k in range(40):
        alternatives = "|".join(f"[a-z]{{{n}}}x[0-9]{{{n}}}" for n in range(k + 1, k + 80))
        schema = {"type": "string", "pattern": f"^({alternatives})$"}
        seen.append(steps_during(lambda: louver.Engine(vocabulary).compile_json_schema(schema)))
        if seen[-1] >= 5:
            return
    raise AssertionError(f"steps during compilations: {seen}")


def test_one_matcher_is_not_shared(engine, vocabulary):
    """Two threads on one matcher: an exception at worst, and a usable matcher afterwards."""
    matcher = engine.compile_regex("(?s:.*)").matcher()

    def work(k):
        refused = 0
        for _ in range(300):
            try:
                matcher.mask()
                matcher.advance(97)
            except RuntimeError:
                refused += 1
        return refused

    run(3, work)
    matcher.reset()
    assert matcher.allows(97)
