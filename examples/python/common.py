"""The server's address, and helpers for the examples."""

import os

import openai

BASE = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1")
KEY = os.environ.get("OPENAI_API_KEY", "none")

# Options for the embedded model. Its weights are random; without reasoning and with fixed
# whitespace in JSON, its output is short.
QUIET = {"reasoning_effort": "none", "extra_body": {"louver": {"whitespace": "python_like"}}}


def client():
    return openai.OpenAI(base_url=BASE, api_key=KEY)


def asynchronous():
    return openai.AsyncOpenAI(base_url=BASE, api_key=KEY)


def model():
    """The model named by MODEL, or the first one that the server lists."""
    with client() as openai_client:
        return os.environ.get("MODEL") or openai_client.models.list().data[0].id


def closed_object(**properties):
    """The schema of an object with exactly these members."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def function(name, description, **properties):
    """A function tool with strict parameters."""
    tool = {
        "name": name,
        "description": description,
        "parameters": closed_object(**properties),
        "strict": True,
    }
    return {"type": "function", "function": tool}
