"""The list of cases, and what they share: tools, requests, checks."""

import json
import os
import re
from dataclasses import dataclass
from typing import Any, Callable

CASES: list["Case"] = []
# Of cases that repeat a request.
SEEDS = range(1, 1 + int(os.environ.get("LOUVER_SEEDS", "10")))


@dataclass
class Case:
    group: str
    name: str
    body: Callable[[Any], Any]


class Skipped(Exception):
    """The case needs something that is not here."""


def case(function):
    """A function of the servers, as a case."""
    group = function.__module__
    CASES.append(Case(group, f"{group}: {function.__name__.replace('_', ' ')}", function))
    return function


def table(rows):
    """One case for each row: the row's first value is its name, the rest are the function's arguments."""

    def register(function):
        group = function.__module__
        for name, *arguments in rows:
            body = lambda servers, arguments=arguments: function(servers, *arguments)
            CASES.append(Case(group, f"{group}: {function.__name__.replace('_', ' ')}: {name}", body))
        return function

    return register


def closed(**properties):
    """The schema of an object with exactly these members."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def function(name, parameters, strict=True):
    return {"type": "function", "function": {"name": name, "parameters": parameters, "strict": strict}}


CITIES = ["Oslo", "Lima", "Nairobi"]
WEATHER = function("weather", closed(city={"enum": CITIES}, days={"type": "integer", "minimum": 1, "maximum": 7}))
BOOK = function("book", closed(code={"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"}, breakfast={"type": "boolean"}))
TOOLS = [WEATHER, BOOK]
QUESTION = [{"role": "user", "content": "What is the weather in Oslo?"}]
ANSWER = closed(
    city={"enum": CITIES},
    degrees={"type": "integer", "minimum": -50, "maximum": 50},
    words={"type": "array", "items": {"enum": ["dry", "wet", "windy"]}, "minItems": 1, "maxItems": 2},
)


def chat(**more):
    """A request to the chat route. Without reasoning, which a model of random weights would not end."""
    request = {
        "messages": QUESTION,
        "model": "tiny",
        "seed": 1,
        "max_completion_tokens": 400,
        "reasoning_effort": "none",
    }
    extra = {"louver": {"whitespace": "python_like"}} | more.pop("extra_body", {})
    request |= more
    return {name: value for name, value in request.items() if value is not None} | {"extra_body": extra}


def json_schema(schema, name="answer", strict=True):
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": strict}}


def is_whole(value):
    return not isinstance(value, bool) and float(value) == int(value)


def check_arguments(name, text):
    """Arguments of the tools above are as their schemas say."""
    value = json.loads(text)
    if name == "weather":
        assert set(value) == {"city", "days"}, value
        assert value["city"] in CITIES and is_whole(value["days"]) and 1 <= value["days"] <= 7, value
    elif name == "book":
        assert set(value) == {"code", "breakfast"}, value
        assert re.fullmatch(r"[A-Z]{2}-[0-9]{3}", value["code"]) and isinstance(value["breakfast"], bool), value
    else:
        raise AssertionError(f"there is no tool {name}")


def check_answer(text):
    value = json.loads(text)
    assert set(value) == {"city", "degrees", "words"}, value
    assert value["city"] in CITIES and is_whole(value["degrees"]) and -50 <= value["degrees"] <= 50, value
    assert 1 <= len(value["words"]) <= 2 and set(value["words"]) <= {"dry", "wet", "windy"}, value


def check_calls(calls):
    """Whole calls with ids of their own and arguments by their schemas."""
    ids = [call.id for call in calls]
    assert len(set(ids)) == len(ids) and all(ids), ids
    for call in calls:
        assert call.type == "function", call
        check_arguments(call.function.name, call.function.arguments)


class Collected:
    """A streamed answer, put together from its chunks."""

    def __init__(self, chunks):
        self.content, self.reasoning, self.calls, self.finish, self.usage = "", "", [], None, None
        self.chunks = list(chunks)
        for chunk in self.chunks:
            self.usage = chunk.usage or self.usage
            for choice in chunk.choices:
                self._take(choice)

    def _take(self, choice):
        assert self.finish is None or choice.finish_reason is None, "two reasons"
        self.content += choice.delta.content or ""
        self.reasoning += getattr(choice.delta, "reasoning_content", None) or ""
        for delta in choice.delta.tool_calls or []:
            if delta.index == len(self.calls):
                assert delta.id and delta.function.name, delta
                self.calls.append({"id": delta.id, "name": delta.function.name, "arguments": ""})
            self.calls[delta.index]["arguments"] += delta.function.arguments or ""
        self.finish = choice.finish_reason or self.finish

    def message(self):
        """The message as an item of the next request."""
        message = {"role": "assistant", "content": self.content or None}
        if self.calls:
            message["tool_calls"] = [
                {"id": call.pop("id"), "type": "function", "function": call}
                for call in map(dict, self.calls)
            ]
        return message
