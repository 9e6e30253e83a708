// Vercel's AI SDK: tool loops and structured output, streamed and not, with three kinds of model.

import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import {
  Output, ToolLoopAgent, generateObject, generateText, isStepCount, streamObject, streamText, tool,
} from 'ai';

import {
  KEY, LOUVER, MODEL, QUESTION, SEEDS, STEPS, STRICT_URL, TOKENS, Trip, URL, Weather, check,
  checkCall, run, same, seedsUntil, weather,
} from './shared.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;

const MODELS = {
  chat: (baseURL) => createOpenAI({ baseURL, apiKey: KEY }).chat(MODEL),
  responses: (baseURL) => createOpenAI({ baseURL, apiKey: KEY })(MODEL),
  compatible: (baseURL) =>
    createOpenAICompatible({
      name: 'louver', baseURL, apiKey: KEY, includeUsage: true, supportsStructuredOutputs: true,
    })(MODEL),
};

const providerOptions = { louver: LOUVER };

const settings = (model, seed) => ({
  model, seed, providerOptions, prompt: QUESTION, maxOutputTokens: TOKENS, maxRetries: 0,
});

const tools = (execute, strict) => ({
  weather: tool({ description: 'Tells the weather.', inputSchema: Weather, strict, execute }),
});

/**
 * Checks the calls of all steps: valid, with ids of their own, and run. Of a step that the token
 * limit ended, the SDK runs none.
 */
function checkSteps(steps, calls) {
  const made = steps.flatMap((step) => step.toolCalls);
  for (const call of made) {
    check(!call.invalid, call);
    checkCall(call.toolName, call.input);
  }
  same(new Set(made.map((call) => call.toolCallId)).size, made.length);
  const whole = steps.filter((step) => step.finishReason === 'tool-calls');
  same(calls, whole.flatMap((step) => step.toolCalls.map((call) => call.input)));
  for (const step of steps) check(step.content.every((part) => part.type !== 'tool-error'), step);
  return made.length;
}

/** Runs a body, which returns an object, for each seed. */
async function eachSeed(body) {
  for (const seed of SEEDS) Trip.parse(await body(seed));
}

const cases = {};

for (const [kind, at] of Object.entries(MODELS)) {
  const model = at(URL);
  for (const [title, strict, toolChoice] of [
    ['strict, required', true, 'required'],
    ['not strict, required', undefined, 'required'],
    ['not strict, a name', undefined, { type: 'tool', toolName: 'weather' }],
  ]) {
    cases[`${kind}: calls: ${title}`] = async () => {
      for (const seed of SEEDS) {
        const request = { ...settings(model, seed), tools: tools(undefined, strict), toolChoice };
        const whole = await generateText(request);
        check(whole.toolCalls.length > 0, whole.response.body);
        whole.toolCalls.forEach((call) => checkCall(call.toolName, call.input));
        check(['tool-calls', 'length'].includes(whole.finishReason), whole.finishReason);
      }
    };
  }

  cases[`${kind}: tool loop`] = async () => {
    const seen = { secondCalls: 0 };
    for (const seed of seedsUntil(seen)) {
      const { calls, execute } = weather();
      const result = await generateText({
        ...settings(model, seed), tools: tools(execute, true), stopWhen: isStepCount(STEPS),
        prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber < 2 ? 'required' : 'auto' }),
      });
      seen.secondCalls += checkSteps(result.steps, calls) > 1;
    }
  };

  cases[`${kind}: streamed tool loop, not strict, strict_tools = all`] = async () => {
    const seen = { calls: 0 };
    for (const seed of seedsUntil(seen)) {
      const { calls, execute } = weather();
      const result = streamText({
        ...settings(at(STRICT_URL), seed), tools: tools(execute), stopWhen: isStepCount(2),
        prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber ? 'auto' : 'required' }),
        onError: ({ error }) => { throw error; },
      });
      const kinds = new Set();
      for await (const part of result.fullStream) {
        kinds.add(part.type);
        check(part.type !== 'error' && part.type !== 'tool-error', String(part.error));
      }
      seen.calls += checkSteps(await result.steps, calls);
    }
  };

  cases[`${kind}: output of a schema`] = () =>
    eachSeed(async (seed) => {
      const request = { ...settings(model, seed), output: Output.object({ schema: Trip }) };
      const whole = await generateText(request);
      return whole.output;
    });

  cases[`${kind}: streamed output of a schema`] = () =>
    eachSeed(async (seed) => {
      const request = { ...settings(model, seed), output: Output.object({ schema: Trip }) };
      const stream = streamText(request);
      for await (const part of stream.partialOutputStream) check(typeof part === 'object', part);
      return stream.output;
    });

  cases[`${kind}: generateObject`] = () =>
    eachSeed(async (seed) =>
      (await generateObject({ ...settings(model, seed), schema: Trip })).object);

  cases[`${kind}: streamObject`] = () =>
    eachSeed(async (seed) => {
      const stream = streamObject({ ...settings(model, seed), schema: Trip });
      for await (const part of stream.partialObjectStream) check(typeof part === 'object', part);
      return stream.object;
    });

  cases[`${kind}: agent with an output`] = async () => {
    const seen = { answers: 0 };
    for (const seed of seedsUntil(seen)) {
      const { calls, execute } = weather();
      const { prompt, ...rest } = settings(model, seed);
      const agent = new ToolLoopAgent({
        ...rest, tools: tools(execute, true), stopWhen: isStepCount(2),
        output: Output.object({ schema: Trip }),
        prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber ? 'auto' : 'required' }),
      });
      const result = await agent.generate({ prompt });
      checkSteps(result.steps, calls);
      if (result.finishReason === 'stop') {
        Trip.parse(result.output);
        seen.answers += 1;
      }
    }
  };
}

await run('vercel', cases);
