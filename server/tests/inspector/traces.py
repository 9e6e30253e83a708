"""Hand-written traces in the format of `/v1/louver/traces/ID`."""

import math

VOCABULARY = 548


def candidate(token, text, probability, reason=None):
    entry = {"token": token, "text": text, "logprob": math.log(probability)}
    return entry if reason is None else entry | {"reason": reason}


def step(position, text, phase, allowed, removed, top=(), refused=(), forced=False):
    return {
        "position": position,
        "token": 200 + position,
        "text": text,
        "phase": phase,
        "allowed": allowed,
        "removed_mass": removed,
        "logprob": 0.0 if forced else math.log(0.5),
        "top": list(top),
        "refused": list(refused),
        "forced": forced,
    }


def trace(name, steps, events, **more):
    return {
        "object": "louver.trace",
        "version": 1,
        "id": name,
        "created": 1_760_000_000,
        "request": {"route": "/v1/chat/completions", "model": "tiny", "choice": 0, "body": {"messages": []}},
        "prompt_tokens": 40,
        "vocabulary": VOCABULARY,
        "finish": "tool_calls",
        "report": {"level": "full", "relaxed": [], "completion": "complete", "forced_tokens": 2, "refused_tokens": 5},
        "timing": {"mask_mean_us": 11.0, "mask_p99_us": 33.0, "louver_us": 90.0, "steps_us": 900.0, "share": 0.1},
        "steps": steps,
        "events": [{"tokens": tokens, "event": event} for tokens, event in events],
    } | more


def call_trace():
    """A turn with reasoning, one call and the end token."""
    refused = [candidate(17, "Hello", 0.6, 'its byte 0 (H) is not allowed; expected [<]')]
    top = [candidate(201, "Oslo", 0.5), candidate(202, "Bergen", 0.25)]
    steps = [
        step(0, "<think>", "marker", 2, 0.4),
        step(1, "Which city?", "reasoning", 540, 0.01, top),
        step(2, "</think>", "marker", 541, 0.0),
        step(3, "<tool_call>", "marker", 1, 0.99, refused=refused, forced=True),
        step(4, '\n{"name": "get_weather", "arguments": ', "header", 1, 1.0, forced=True),
        step(5, '{"city": "', "arguments", 3, 0.9),
        step(6, "Oslo", "arguments", 500, 0.1, top, [candidate(18, "\n", 0.05, "its byte 0 (\\n) is not allowed; expected [ -~]")]),
        step(7, '"}', "arguments", 20, 0.7),
        step(8, "}\n</tool_call>", "trailer", 1, 1.0, forced=True),
        step(9, "<|im_end|>", "marker", 2, 0.3),
    ]
    events = [
        (2, {"type": "reasoning_delta", "delta": "Which city?"}),
        (5, {"type": "call_start", "index": 0, "id": "call_0", "name": "get_weather"}),
        (6, {"type": "arguments_delta", "index": 0, "delta": '{"city": "'}),
        (7, {"type": "arguments_delta", "index": 0, "delta": "Oslo"}),
        (8, {"type": "arguments_delta", "index": 0, "delta": '"}'}),
        (9, {"type": "call_end", "index": 0}),
        (10, {"type": "end"}),
    ]
    return trace("call", steps, events)


HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror=window.hacked=1>",
    "\u202egnitirw tfel ot thgir\u202c",
    "שלום עולם مرحبا",
    "👩‍👩‍👧‍👦🏳️‍🌈 e\u0301",
    "a\u0000b\u001b[31m\u200b",
    "\\xe2\\x82",
    "x" * 5000,
    "&lt;b&gt;",
    "javascript:window.hacked=1",
]


def hostile_trace():
    """Text that looks like markup in every member that a model or a user controls."""
    steps = [
        step(i, text, "arguments", 7, 0.5, [candidate(1, text, 0.3)], [candidate(2, text, 0.3, text)])
        for i, text in enumerate(HOSTILE)
    ]
    events = [(1, {"type": "call_start", "index": 0, "id": HOSTILE[0], "name": HOSTILE[1]})]
    for i, text in enumerate(HOSTILE):
        events.append((i + 1, {"type": "arguments_delta", "index": 0, "delta": text}))
        events.append((i + 1, {"type": "text_delta", "delta": text}))
        events.append((i + 1, {"type": "reasoning_delta", "delta": text}))
    events.append((len(HOSTILE), {"type": "incomplete", "why": HOSTILE[0], "partial": HOSTILE[1]}))
    events.append((len(HOSTILE), {"type": HOSTILE[0], "delta": HOSTILE[1]}))
    request = {"route": HOSTILE[0], "model": HOSTILE[1], "choice": HOSTILE[0], "body": {"messages": HOSTILE}}
    return trace(HOSTILE[0], steps, events, request=request, finish=HOSTILE[1], report={"level": HOSTILE[0], "relaxed": [{"pointer": HOSTILE[1]}]})


def long_trace(count=6000):
    """A trace of as many steps as a long answer has."""
    steps = [step(i, f" word{i % 97}", "text", 1 + i * 7 % VOCABULARY, i % 100 / 100) for i in range(count)]
    return trace("long", steps, [(i + 1, {"type": "text_delta", "delta": f" word{i % 97}"}) for i in range(count)])


# Texts that are not traces, and the error messages of the page.
BROKEN = [
    ("{", "not JSON"),
    ("[]", "/: expected an object"),
    ("null", "/: expected an object"),
    ("{}", "/steps: expected an array"),
    ('{"steps": []}', "/steps: expected at least one step"),
    ('{"steps": [1]}', "/steps/0: expected an object"),
    ('{"steps": [{"phase": "text", "token": 1, "text": 5, "allowed": 1}]}', "/steps/0/text: expected a string"),
    ('{"steps": [{"phase": "text", "token": 1, "text": "a", "allowed": null}]}', "/steps/0/allowed: expected a number"),
    ('{"steps": [{"phase": "text", "token": 1, "text": "a", "allowed": 1, "top": [{}]}]}', "/steps/0/top/0/token: expected a number"),
    ('{"steps": [{"phase": "text", "token": 1, "text": "a", "allowed": 1}], "events": [{"tokens": 1}]}', "/events/0/event: expected an object"),
]
