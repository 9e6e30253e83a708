"""Errors as the client raises them: class, code and `param`, a JSON pointer into the request."""

import threading
import time

import openai

from cases import QUESTION, TOOLS, WEATHER, case, chat, function, json_schema, table

OBJECT = {"type": "object"}


def refused(client, expected, **more):
    """The error that a request is answered with."""
    try:
        client.chat.completions.create(**chat(max_completion_tokens=10) | more)
    except expected as error:
        return error
    raise AssertionError("the request was taken")


@table(
    [
        ("no messages", {"messages": []}, "/messages"),
        ("an unknown role", {"messages": [{"role": "wizard", "content": "x"}]}, "/messages/0"),
        ("content of another kind", {"messages": [{"role": "user", "content": 5}]}, "/messages/0/content"),
        ("an image", {"messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "data:,"}}]}]}, "/messages/0/content"),
        ("a temperature below 0", {"temperature": -1}, "/temperature"),
        ("a top p above 1", {"top_p": 1.5}, "/top_p"),
        ("n of 0", {"n": 0}, "/n"),
        ("no tokens", {"max_completion_tokens": 0}, "/max_completion_tokens"),
        ("tools that are no list", {"tools": {}}, "/tools"),
        ("a tool without a name", {"tools": [WEATHER, {"type": "function", "function": {}}]}, "/tools/1"),
        ("two tools of one name", {"tools": [WEATHER, WEATHER]}, "/tools/1"),
        ("required without tools", {"tool_choice": "required"}, "/tool_choice"),
        ("a choice that does not exist",
         {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "nope"}}}, "/tool_choice"),
        ("a choice of no kind", {"tools": TOOLS, "tool_choice": "perhaps"}, "/tool_choice"),
        ("a schema with an unknown type",
         {"tools": [WEATHER, function("f", {"type": "object", "properties": {"a": {"type": "date"}}})]},
         "/tools/1/function/parameters/properties/a"),
        ("a schema that nothing satisfies",
         {"response_format": json_schema({"type": "integer", "minimum": 2, "maximum": 1})},
         "/response_format/json_schema/schema"),
        ("a pattern that is none",
         {"response_format": json_schema({"type": "string", "pattern": "("})},
         "/response_format/json_schema/schema/pattern"),
        ("a response format of no kind", {"response_format": {"type": "yaml"}}, "/response_format/type"),
        ("logit bias", {"logit_bias": {"5": 1}}, "/logit_bias"),
        ("functions of the old kind", {"functions": [{"name": "f", "parameters": OBJECT}]}, "/functions"),
        ("too many top logprobs", {"logprobs": True, "top_logprobs": 999}, "/top_logprobs"),
    ]
)
def bad_request(servers, more, place):
    error = refused(servers.client, openai.BadRequestError, **more)
    assert (error.param or "").startswith(place), (error.param, error.body)
    assert error.type == "invalid_request_error" and error.code and error.body["message"], error.body


@case
def bad_requests_before_a_stream_begins(servers):
    error = refused(servers.client, openai.BadRequestError, stream=True, temperature=-1)
    assert error.param == "/temperature"


@case
def an_unknown_model(servers):
    error = refused(servers.client, openai.NotFoundError, model="gpt-unknown")
    assert error.status_code == 404 and "gpt-unknown" in error.message, error.body


@table([("another key", "sk-other"), ("a prefix of the key", "sk-louver"), ("text that is no key", "x" * 5000)])
def unauthorised_with(servers, key):
    error = refused(servers.of(servers.main, api_key=key), openai.AuthenticationError)
    assert error.status_code == 401 and "sk-louver-test" not in str(error.body), error.body


@case
def an_unknown_route(servers):
    try:
        servers.client.embeddings.create(model="tiny", input="x")
    except openai.NotFoundError as error:
        assert error.body["message"]
        return
    raise AssertionError("taken")


@case
def too_large_a_body(servers):
    request = chat(messages=[{"role": "user", "content": "x" * 50_000}])
    try:
        servers.of(servers.narrow).chat.completions.create(**request)
    except openai.APIStatusError as error:
        assert error.status_code == 413, error
        return
    raise AssertionError("taken")


@table(
    [
        ("choices", {"n": 3}, "/n"),
        ("tools", {"tools": [function(f"f{i}", OBJECT) for i in range(4)]}, "/tools"),
    ]
)
def over_a_limit_of(servers, more, place):
    error = refused(servers.of(servers.narrow), openai.BadRequestError, **more)
    assert (error.param or "").startswith(place), error.body


@case
def too_many_at_once(servers):
    """While one request runs, the narrow server takes no other; afterwards it does."""
    client = servers.of(servers.narrow)
    long = json_schema({"type": "string", "minLength": 2500, "maxLength": 2500})
    stream = client.chat.completions.create(**chat(response_format=long, max_completion_tokens=3000, stream=True))
    next(iter(stream))
    error = refused(client, openai.RateLimitError)
    assert error.status_code == 429 and int(error.response.headers["retry-after"]) >= 1, error
    assert servers.narrow.get("/healthz")[0] == 200
    stream.close()
    wait_for(lambda: client.chat.completions.create(**chat(max_completion_tokens=2)).choices)


@case
def retries_get_through(servers):
    """The client's own retries: a busy server is free again soon."""
    client = servers.of(servers.narrow)
    long = json_schema({"type": "string", "minLength": 300, "maxLength": 300})
    stream = client.chat.completions.create(**chat(response_format=long, max_completion_tokens=3000, stream=True))
    next(iter(stream))
    reader = threading.Thread(target=lambda: list(stream))
    reader.start()
    patient = servers.of(servers.narrow, max_retries=20)
    assert patient.chat.completions.create(**chat(max_completion_tokens=2)).choices
    reader.join()


def wait_for(attempt, seconds=20):
    end = time.monotonic() + seconds
    while True:
        try:
            return attempt()
        except openai.RateLimitError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
