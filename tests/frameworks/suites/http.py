"""What clients send and get, without one: limits, identifiers, null contents, preflights."""

import json
import urllib.error
import urllib.request

from suites.shared import (
    KEY, LOUVER, MODEL, NAMED, QUESTION, SEEDS, STRICT_URL, TOKENS, URL, case, chat_tool,
    check_weather, main, seeds_until, table,
)

ORIGIN = "https://app.example"


def send(url, path, body=None, method="POST", **headers):
    """Status, headers and text of a response."""
    sent = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"} | {
        name.replace("_", "-"): value for name, value in headers.items()}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, sent, method=method)
    try:
        with urllib.request.urlopen(request, timeout=300) as response:
            return response.status, response.headers, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def chat(url=URL, **more):
    """The message of a turn."""
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": QUESTION}],
        "max_tokens": TOKENS,
    } | more
    status, _, text = send(url, "/chat/completions", body)
    assert status == 200, text
    return json.loads(text)["choices"][0]["message"]


@case
def ids_are_unique_with_one_seed():
    """A client may send one seed with every request: ids are no function of it."""
    ids = []
    for text in ("Where is it warm?", "Where is it warm?", "Where is it dry?"):
        message = chat(
            messages=[{"role": "user", "content": text}], tools=[chat_tool(strict=True)],
            tool_choice="required", seed=1)
        ids += [call["id"] for call in message["tool_calls"]]
    assert len(set(ids)) == len(ids) >= 3, ids


@table([("null", {"content": None}), ("absent", {}), ("empty", {"content": ""})])
def the_content_of_a_message_with_calls_is(content):
    messages = [{"role": "user", "content": QUESTION}]
    for seed in SEEDS:
        message = chat(
            messages=messages, tools=[chat_tool(strict=True)], tool_choice=NAMED, seed=seed,
            parallel_tool_calls=False)
        call = message["tool_calls"][0]
        check_weather(call["function"]["arguments"])
        messages = messages[:1] + [
            {"role": "assistant", "tool_calls": [call]} | content,
            {"role": "tool", "tool_call_id": call["id"], "content": "sunny"},
        ]


@table([
    ("absent, required", URL, {}, "required", True),
    ("absent, a name", URL, {}, NAMED, True),
    ("absent, auto, strict_tools = all", STRICT_URL, {}, "auto", False),
    ("false, required", URL, {"strict": False}, "required", True),
])
def strict_is(url, strict, choice, must):
    seen = {"calls": 0}
    for seed in seeds_until(seen):
        message = chat(
            url, tools=[chat_tool(**strict)], tool_choice=choice, seed=seed, **LOUVER)
        calls = message.get("tool_calls") or []
        assert calls or not must, message
        for call in calls:
            check_weather(call["function"]["arguments"])
        seen["calls"] += len(calls)


@case
def safe_truncation_completes_optional_calls_in_a_stream():
    seen = {"calls": 0}
    for seed in seeds_until(seen):
        body = {
            "model": MODEL,
            "messages": [{"role": "user", "content": QUESTION}],
            "tools": [chat_tool(strict=True)],
            "max_tokens": TOKENS,
            "seed": seed,
            "stream": True,
        }
        status, _, text = send(URL, "/chat/completions", body | LOUVER)
        assert status == 200, text
        calls = {}
        for line in text.splitlines():
            if not line.startswith("data: {"):
                continue
            for choice in json.loads(line.removeprefix("data: "))["choices"]:
                for part in choice["delta"].get("tool_calls") or []:
                    piece = part["function"].get("arguments", "")
                    calls[part["index"]] = calls.get(part["index"], "") + piece
        for arguments in calls.values():
            check_weather(arguments)
        seen["calls"] += len(calls)


@table([("max_tokens", "max_tokens"), ("max_completion_tokens", "max_completion_tokens")])
def more_tokens_than_the_context_has(member):
    """Clients send such limits by default. The response format ends the turn."""
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": QUESTION}],
        member: 1_000_000,
        "response_format": {"type": "json_schema", "json_schema": {
            "name": "answer", "strict": True, "schema": {"enum": ["yes", "no"]}}},
    }
    status, _, text = send(URL, "/chat/completions", body)
    assert status == 200, text
    assert json.loads(text)["choices"][0]["message"]["content"] in ('"yes"', '"no"'), text


@table([("chat/completions", "/chat/completions"), ("responses", "/responses")])
def a_preflight_for(path):
    """A browser asks without a key before it sends a page's request."""
    asked = {
        "Origin": ORIGIN,
        "Access_Control_Request_Method": "POST",
        "Access_Control_Request_Headers": "authorization,content-type,x-stainless-os",
        "Authorization": "",
    }
    status, headers, text = send(STRICT_URL, path, method="OPTIONS", **asked)
    assert status in (200, 204), (status, text)
    assert headers["Access-Control-Allow-Origin"] == ORIGIN, headers
    assert "POST" in headers["Access-Control-Allow-Methods"], headers
    allowed = headers["Access-Control-Allow-Headers"].lower()
    assert allowed == "*" or all(
        name in allowed for name in ("authorization", "content-type", "x-stainless-os")), headers
    foreign = asked | {"Origin": "https://other.example"}
    status, _, _ = send(STRICT_URL, path, method="OPTIONS", **foreign)
    assert status == 403, status


@case
def a_page_of_a_known_origin_is_answered():
    body = {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 5}
    status, headers, text = send(STRICT_URL, "/chat/completions", body, Origin=ORIGIN)
    assert status == 200 and headers["Access-Control-Allow-Origin"] == ORIGIN, text


main("http")
