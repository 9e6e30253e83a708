"""What the cases share: servers and clients, tools, requests, checks."""

import os
import pathlib
import tempfile

import jsonschema
from anthropic import Anthropic, AsyncAnthropic
from cases import closed
from server import KEY, Server

SEEDS = range(1, 1 + int(os.environ.get("LOUVER_SEEDS", "10")))
CITIES = ["Oslo", "Lima", "Nairobi"]


def tool(name, schema, strict=True):
    return {"name": name, "description": f"Calls {name}.", "input_schema": schema, "strict": strict}


WEATHER = tool(
    "weather", closed(city={"enum": CITIES}, days={"type": "integer", "minimum": 1, "maximum": 7})
)
BOOK = tool(
    "book",
    closed(
        code={"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"}, breakfast={"type": "boolean"}
    ),
)
TOOLS = [WEATHER, BOOK]
QUESTION = [{"role": "user", "content": "What is the weather in Oslo?"}]


class Servers:
    """The server of most cases, and a narrow one that is started when it is first asked for."""

    def __enter__(self):
        self._scratch = tempfile.TemporaryDirectory(prefix="louver-anthropic-")
        self._folder = pathlib.Path(self._scratch.name)
        self._narrow = None
        self.main = Server(self._folder, "main", ["--api-key", KEY])
        self.client = self.of(self.main)
        self.messages = self.client.messages
        return self

    def __exit__(self, *_):
        self.client.close()
        codes = [server.stop() for server in (self.main, self._narrow) if server]
        self._scratch.cleanup()
        print(f"the servers ended with {codes}")

    @staticmethod
    def of(server, kind=Anthropic, **more):
        options = {"api_key": KEY, "base_url": server.root, "max_retries": 0, "timeout": 120} | more
        return kind(**options)

    def asynchronous(self):
        return self.of(self.main, AsyncAnthropic)

    @property
    def narrow(self):
        """One request at a time, none waits; short bodies."""
        if self._narrow is None:
            limits = self._folder / "limits.toml"
            limits.write_text(
                "[http]\nbody_bytes = 20000\n"
                "[requests]\nconcurrent = 1\nqueue = 0\nn = 1\nmax_tokens = 3000\n"
            )
            self._narrow = Server(
                self._folder, "narrow", ["--api-key", KEY, "--limits", str(limits)]
            )
        return self._narrow

    def alive(self):
        return all(server.process.poll() is None for server in (self.main, self._narrow) if server)


def ask(seed=1, **more):
    """A request without reasoning, which a model of random weights would not end."""
    extra = {"seed": seed, "louver": {"whitespace": "python_like"}} | more.pop("extra_body", {})
    request = {
        "model": "tiny",
        "max_tokens": 250,
        "messages": QUESTION,
        "thinking": {"type": "disabled"},
    }
    return request | more | {"extra_body": extra}


def calls_of(message):
    return [block for block in message.content if block.type == "tool_use"]


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def check_calls(message, tools=TOOLS):
    """Whole calls of the tools, with ids of their own and input by the schemas."""
    schemas = {tool["name"]: tool["input_schema"] for tool in tools}
    calls = calls_of(message)
    ids = [call.id for call in calls]
    assert len(set(ids)) == len(ids) and all(id.startswith("toolu_") for id in ids), ids
    for call in calls:
        jsonschema.validate(call.input, schemas[call.name], cls=jsonschema.Draft202012Validator)
    assert calls or message.stop_reason != "tool_use", message
    return calls


def comparable(message):
    """What is the same in two messages of the same seed."""
    content = [
        block.model_dump(exclude={"id", "parsed_output"}, exclude_none=True)
        for block in message.content
    ]
    return (
        content,
        message.stop_reason,
        message.stop_sequence,
        message.usage.model_dump(exclude_none=True),
    )
