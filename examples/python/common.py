"""Where to ask."""

import os

import openai

BASE = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1")
KEY = os.environ.get("OPENAI_API_KEY", "none")

# The embedded model has random weights: without reasoning, and in one spelling of JSON, its noise is short.
QUIET = {"reasoning_effort": "none", "extra_body": {"louver": {"whitespace": "python_like"}}}


def client():
    return openai.OpenAI(base_url=BASE, api_key=KEY)


def asynchronous():
    return openai.AsyncOpenAI(base_url=BASE, api_key=KEY)


def model():
    with client() as asked:
        return os.environ.get("MODEL") or asked.models.list().data[0].id


def closed(**properties):
    """The schema of an object with exactly these members."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def function(name, description, **properties):
    """A strict tool."""
    tool = {"name": name, "description": description, "parameters": closed(**properties), "strict": True}
    return {"type": "function", "function": tool}
