"""The client itself: asynchronous use, timeouts, cancellation, headers, models."""

import asyncio
import time

import openai

from cases import ANSWER, TOOLS, Collected, case, chat, check_answer, check_calls, json_schema

LONG = json_schema({"type": "string", "minLength": 6000, "maxLength": 6000})


def quiet(servers, seconds=20):
    """Waits until nothing runs."""
    end = time.monotonic() + seconds
    while (running := servers.main.metric("louver_running_generations")) > 0:
        assert time.monotonic() < end, f"{running} generations still run"
        time.sleep(0.05)


@case
def models_are_listed(servers):
    models = servers.client.models.list().data
    assert models and models[0].object == "model" and models[0].id == servers.model
    assert servers.client.models.retrieve(servers.model).id == servers.model


@case
def an_unknown_model_is_not_found(servers):
    try:
        servers.client.models.retrieve("nope")
    except openai.NotFoundError:
        return
    raise AssertionError("found")


@case
async def asynchronous_calls(servers):
    async with servers.asynchronous() as client:
        answer = await client.chat.completions.create(**chat(tools=TOOLS, tool_choice="required"))
    check_calls(answer.choices[0].message.tool_calls)


@case
async def many_asynchronous_calls_at_once(servers):
    """All are as their schema says. Not what they would be alone: mistral.rs 0.8.1 mixes up the sequences of a batch."""
    async with servers.asynchronous() as client:
        ask = lambda seed: client.chat.completions.create(**chat(response_format=json_schema(ANSWER), seed=seed))
        answers = await asyncio.gather(*(ask(seed) for seed in range(12)))
    for answer in answers:
        check_answer(answer.choices[0].message.content)


@case
async def an_asynchronous_stream(servers):
    async with servers.asynchronous() as client:
        chunks = [chunk async for chunk in await client.chat.completions.create(**chat(
            response_format=json_schema(ANSWER), stream=True))]
    check_answer(Collected(chunks).content)


@case
async def the_asynchronous_streaming_helper(servers):
    async with servers.asynchronous() as client:
        async with client.chat.completions.stream(**chat(tools=TOOLS, tool_choice="required")) as stream:
            final = await stream.get_final_completion()
    check_calls(final.choices[0].message.tool_calls)


@case
def a_timeout_of_the_client(servers):
    try:
        servers.of(servers.main, timeout=0.3).chat.completions.create(**chat(
            response_format=LONG, max_completion_tokens=8000))
    except openai.APITimeoutError:
        quiet(servers)
        return
    raise AssertionError("it was faster than that")


@case
def leaving_a_stream_ends_the_generation(servers):
    stream = servers.client.chat.completions.create(**chat(
        response_format=LONG, max_completion_tokens=8000, stream=True))
    for number, _ in enumerate(stream):
        if number == 3:
            break
    assert servers.main.metric("louver_running_generations") >= 1
    stream.close()
    quiet(servers)


@case
async def cancelling_a_task_ends_the_generation(servers):
    async with servers.asynchronous() as client:
        task = asyncio.create_task(client.chat.completions.create(**chat(
            response_format=LONG, max_completion_tokens=8000)))
        await asyncio.sleep(0.3)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            quiet(servers)
            return
    raise AssertionError("not cancelled")


@case
def a_raw_response_has_headers(servers):
    raw = servers.client.chat.completions.with_raw_response.create(**chat(max_completion_tokens=5))
    assert raw.headers["content-type"].startswith("application/json") and raw.headers["x-request-id"]
    assert raw.parse().choices[0].message.content
    assert raw.parse()._request_id == raw.headers["x-request-id"]


@case
def a_request_id_is_kept(servers):
    raw = servers.client.chat.completions.with_raw_response.create(
        **chat(max_completion_tokens=5), extra_headers={"x-request-id": "mine-123"})
    assert raw.headers["x-request-id"] == "mine-123"


@case
def errors_have_request_ids(servers):
    try:
        servers.client.chat.completions.create(**chat(temperature=-1))
    except openai.BadRequestError as error:
        assert error.request_id
        return
    raise AssertionError("taken")


@case
def a_streaming_response_is_server_sent_events(servers):
    request = chat(max_completion_tokens=5, stream=True)
    with servers.client.chat.completions.with_streaming_response.create(**request) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in response.iter_lines() if line]
    assert all(line.startswith(("data: ", ":")) for line in lines) and lines[-1] == "data: [DONE]", lines[-3:]


@case
def what_was_enforced_is_reported(servers):
    answer = servers.client.chat.completions.create(**chat(tools=TOOLS, tool_choice="required", extra_body={
        "louver": {"report": True, "whitespace": "python_like"}}))
    report = answer.model_dump()["louver"]["report"]
    assert report["level"] in ("full", "Full") and report["completion"].lower() in ("complete", "truncated"), report


@case
def health_and_metrics(servers):
    assert servers.main.get("/healthz")[0] == 200
    assert servers.main.metric("louver_requests_total") > 0
