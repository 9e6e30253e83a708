"""Errors as the client raises them: class, type, and the JSON pointer in the message."""

import time

import anthropic
from cases import case, table
from common import KEY, TOOLS, WEATHER, ask, text_of, tool
from streams import LONG

OBJECT = {"type": "object"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}


def user(*blocks):
    return [{"role": "user", "content": list(blocks)}]


def refused(client, expected, **more):
    """The error that a request is answered with."""
    try:
        client.messages.create(**ask(**{"max_tokens": 10} | more))
    except expected as error:
        return error
    raise AssertionError("the request was taken")


@table(
    [
        ("no messages", {"messages": []}, "/messages"),
        ("an unknown role", {"messages": [{"role": "wizard", "content": "x"}]}, "/messages/0/role"),
        ("an image", {"messages": user(IMAGE)}, "/messages/0/content/0/type"),
        (
            "a document",
            {"messages": user({"type": "document", "source": {}})},
            "/messages/0/content/0/type",
        ),
        (
            "a message to be continued",
            {"messages": [*user(), {"role": "assistant", "content": "{"}]},
            "/messages/1/role",
        ),
        ("no tokens", {"max_tokens": 0}, "/max_tokens"),
        (
            "web search",
            {"tools": [WEATHER, {"type": "web_search_20250305", "name": "web_search"}]},
            "/tools/1/type",
        ),
        ("a tool without a schema", {"tools": [{"name": "f"}]}, "/tools/0/input_schema"),
        ("two tools of one name", {"tools": [WEATHER, WEATHER]}, "/tools/1/name"),
        ("any without tools", {"tool_choice": {"type": "any"}}, "/tool_choice"),
        (
            "a choice of no tool",
            {"tools": TOOLS, "tool_choice": {"type": "tool", "name": "nope"}},
            "/tool_choice",
        ),
        (
            "a schema with an unknown type",
            {"tools": [tool("f", {"type": "object", "properties": {"a": {"type": "date"}}})]},
            "/tools/0/input_schema/properties/a/type",
        ),
        (
            "a schema that nothing satisfies",
            {
                "output_config": {
                    "format": {
                        "type": "json_schema",
                        "schema": {"type": "integer", "minimum": 2, "maximum": 1},
                    }
                }
            },
            "/output_config/format/schema",
        ),
        (
            "a format of no kind",
            {"output_config": {"format": {"type": "yaml", "schema": {}}}},
            "/output_config/format/type",
        ),
        ("thinking of no kind", {"thinking": {"type": "hard"}}, "/thinking/type"),
        (
            "a member of another API",
            {"extra_body": {"response_format": {"type": "json_object"}}},
            "/response_format",
        ),
        (
            "servers of tools",
            {"extra_body": {"mcp_servers": [{"type": "url", "url": "x", "name": "y"}]}},
            "/mcp_servers",
        ),
    ]
)
def bad_request(servers, more, place):
    error = refused(servers.client, anthropic.BadRequestError, **more)
    assert error.type == "invalid_request_error" and error.body["type"] == "error", error.body
    assert error.api_message.startswith(f"{place}: "), error.api_message
    assert error.request_id == error.body["request_id"], error.body


@case
def codes_are_in_the_details(servers):
    error = refused(
        servers.client, anthropic.BadRequestError, extra_body={"thread": {"type": "create"}}
    )
    assert (
        error.error_code == "thread_unsupported_request" and "messages" in error.api_message
    ), error


@case
def bad_requests_before_a_stream_begins(servers):
    error = refused(
        servers.client, anthropic.BadRequestError, stream=True, tool_choice={"type": "any"}
    )
    assert error.api_message.startswith("/tool_choice: "), error.api_message


@case
def an_unknown_model(servers):
    error = refused(servers.client, anthropic.NotFoundError, model="claude-unknown")
    assert error.type == "not_found_error" and "claude-unknown" in error.api_message, error.body


@table(
    [
        ("another key", "sk-other"),
        ("a prefix of the key", KEY[:-1]),
        ("text that is no key", "x" * 5000),
    ]
)
def unauthorised_with(servers, key):
    error = refused(servers.of(servers.main, api_key=key), anthropic.AuthenticationError)
    assert error.type == "authentication_error" and KEY not in str(error.body), error.body


@case
def batches_are_not_supported(servers):
    try:
        servers.messages.batches.list()
    except anthropic.NotFoundError as error:
        assert "/v1/messages" in error.api_message and error.type == "not_found_error", error.body
        return
    raise AssertionError("taken")


@case
def too_large_a_body(servers):
    long = [{"role": "user", "content": "x" * 50_000}]
    error = refused(servers.of(servers.narrow), anthropic.APIStatusError, messages=long)
    assert error.status_code == 413 and error.type == "request_too_large", error.body


@case
def too_many_at_once(servers):
    """While one request runs, the narrow server takes no other; afterwards it does."""
    client = servers.of(servers.narrow)
    with client.messages.stream(**ask(max_tokens=3000, output_config=LONG)) as stream:
        next(iter(stream))
        error = refused(client, anthropic.RateLimitError)
        assert (
            error.type == "rate_limit_error" and int(error.response.headers["retry-after"]) >= 1
        ), error.body
    end = time.monotonic() + 20
    while True:
        try:
            assert text_of(client.messages.create(**ask(max_tokens=5)))
            return
        except anthropic.RateLimitError:
            assert time.monotonic() < end, "the slot is never free"
            time.sleep(0.05)
