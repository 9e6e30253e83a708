#!/usr/bin/env python3
"""Tests the inspector in a headless browser. Standard library only.

  run.py                     tests the page alone, with hand-written traces
  run.py --louver PATH       also makes real requests to `PATH serve --tiny`
  run.py ... --png FILE      with --louver: also writes a screenshot of the real request

Exit code 0: all tests passed. Also without a browser, unless --need-browser is given; a line says so.
"""

import argparse
import json
import pathlib
import sys
import unittest

import devtools
from server import Louver
from static import Static
from traces import BROKEN, HOSTILE, call_trace, hostile_trace, long_trace

OPTIONS = argparse.Namespace(louver=None, png=None)


def text(page, selector):
    return page.run(f"document.querySelector({json.dumps(selector)}).innerText")


def click(page, selector):
    page.run(f"document.querySelector({json.dumps(selector)}).click()")


class PageTests(unittest.TestCase):
    """Tests of the page with hand-written traces."""

    @classmethod
    def setUpClass(cls):
        cls.server = Static([call_trace(), long_trace()])
        cls.page = devtools.Page(devtools.find())

    @classmethod
    def tearDownClass(cls):
        cls.page.close()
        cls.server.close()

    def setUp(self):
        self.page.complaints.clear()
        self.page.size(1280, 900)
        self.page.dark(False)
        self.page.open(f"{self.server.url}/inspect")
        self.page.wait("document.querySelectorAll('#recorded option').length > 1")

    def tearDown(self):
        self.assertEqual(self.page.complaints, [], "the console has messages")
        elsewhere = [url for url in self.page.requested if not url.startswith((self.server.url, "data:"))]
        self.assertEqual(elsewhere, [], "a request went to another server")

    def test_page_says_what_to_do_before_a_trace_is_shown(self):
        shown = "getComputedStyle(document.querySelector('#welcome')).display !== 'none'"
        self.assertTrue(self.page.run(shown))
        self.assertIn("trace", text(self.page, "#welcome"))
        self.assertFalse(self.page.run("document.querySelector('#run-box').open"))
        self.pick("call")
        self.assertFalse(self.page.run(shown))

    def pick(self, name):
        page = self.page
        page.run(f"(s => {{ s.value = {json.dumps(name)}; s.dispatchEvent(new Event('change')); }})(document.querySelector('#recorded'))")
        page.wait("!document.querySelector('#view').hidden")

    def paste(self, trace):
        raw = trace if isinstance(trace, str) else json.dumps(trace)
        self.page.run(f"document.querySelector('#pasted').value = {json.dumps(raw)}")
        click(self.page, "#open")

    def current(self):
        return int(self.page.run("document.querySelector('#slider').value"))

    def test_recorded_request_is_shown(self):
        self.pick("call")
        self.assertEqual(self.current(), 0)
        self.assertIn("tiny", text(self.page, "#about"))
        self.assertIn("full", text(self.page, "#about"))
        self.assertEqual(self.page.run("document.querySelectorAll('#tokens [data-step]').length"), 10)
        self.assertIn("2 of 548", text(self.page, "#step"))
        self.assertIn("40.0 %", text(self.page, "#step"))
        self.assertIn("no output yet", text(self.page, "#turn"))

    def test_stepping_changes_the_view(self):
        self.pick("call")
        for key, at, phase in [("ArrowRight", 1, "reasoning"), ("ArrowRight", 2, "marker"), ("ArrowLeft", 1, "reasoning"), ("End", 9, "marker"), ("Home", 0, "marker")]:
            self.page.key(key)
            self.assertEqual(self.current(), at)
            self.assertIn(phase, text(self.page, "#step"))
        self.page.key("ArrowLeft")
        self.assertEqual(self.current(), 0)
        # Forwards through the start and the end of the call, then back.
        for key, at in [("n", 4), ("n", 8), ("n", 9), ("p", 8), ("p", 4), ("p", 0)]:
            self.page.key(key, key)
            self.assertEqual(self.current(), at, key)
        click(self.page, "#tokens [data-step='6']")
        self.assertEqual(self.current(), 6)
        self.page.run("(s => { s.value = 3; s.dispatchEvent(new Event('input')); })(document.querySelector('#slider'))")
        self.assertEqual(self.current(), 3)
        self.assertIn("forced", text(self.page, "#step"))
        self.assertIn("its byte 0 (H) is not allowed; expected [<]", text(self.page, "#refused"))
        self.assertEqual(self.page.run("document.querySelectorAll('#tokens .later').length"), 6)

    def test_turn_grows_with_steps(self):
        self.pick("call")
        seen = []
        for i in range(10):
            seen.append(text(self.page, "#turn"))
            self.page.key("ArrowRight")
        self.assertNotIn("get_weather", seen[3])
        self.assertIn("get_weather", seen[4])
        self.assertIn("call …", seen[4])
        self.assertIn('{"city": "Oslo', seen[6])
        self.assertIn('"city": "Oslo"\n}', seen[8])
        self.assertNotIn("call …", seen[8])
        self.assertIn("end of turn", seen[9])
        self.assertNotIn("end of turn", seen[8])

    def test_play_stops_at_the_last_step(self):
        self.pick("call")
        self.page.run("(s => { s.value = '40'; s.dispatchEvent(new Event('change')); })(document.querySelector('#speed'))")
        self.page.key(" ", " ")
        self.page.wait("document.querySelector('#slider').value === '9'")
        self.page.wait("document.querySelector('#play').getAttribute('aria-pressed') === 'false'")
        click(self.page, "#play")
        self.assertLess(self.current(), 9, "playing at the end starts from the beginning")
        click(self.page, "#play")
        self.assertEqual(text(self.page, "#play"), "Play")

    def test_keys_in_input_fields_do_not_step(self):
        self.pick("call")
        self.page.run("document.querySelector('#paste-box').open = true; document.querySelector('#pasted').focus()")
        for key in ("n", "ArrowRight", "End"):
            self.page.key(key)
        self.assertEqual(self.current(), 0)

    def test_markup_in_traces_stays_text(self):
        self.paste(hostile_trace())
        self.page.wait("!document.querySelector('#view').hidden")
        for i, said in enumerate(HOSTILE):
            chip = self.page.run(f"document.querySelector('#tokens [data-step=\"{i}\"]').textContent")
            for unseen in "\u202e\u202c\u0000\u001b\u200b\u200d":
                self.assertNotIn(unseen, chip)
            if has_no_invisible_characters(said):
                self.assertEqual(chip, said)
            turn = self.page.run("document.querySelector('#turn').textContent")
            self.assertIn(plain(said), turn)
            reason = self.page.run("document.querySelector('#refused tbody td:last-child').textContent")
            self.assertEqual(reason, plain(said))
            self.page.key("ArrowRight")
        self.assertIsNone(self.page.run("window.hacked ?? null"))
        self.assertEqual(self.page.run("document.querySelectorAll('main script, main img, main b').length"), 0)
        chip = self.page.run("document.querySelector('#tokens [data-step=\"2\"]').textContent")
        self.assertTrue(chip.startswith("‹U+202E›"), chip)
        # Right-to-left or long text does not widen the page.
        self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), 1280)

    def test_invalid_traces_are_rejected(self):
        for wrong, said in BROKEN:
            self.paste(wrong)
            self.page.wait(f"document.querySelector('#status').textContent.includes({json.dumps(said)})", 5)
            self.assertTrue(self.page.run("document.querySelector('#view').hidden"), wrong)
        self.paste(call_trace())
        self.page.wait("!document.querySelector('#view').hidden")
        self.paste("{}")
        self.page.wait("document.querySelector('#status').classList.contains('bad')")
        self.assertFalse(self.page.run("document.querySelector('#view').hidden"), "the last valid trace stays")

    def test_long_trace_steps_take_under_500_ms(self):
        self.pick("long")
        self.page.wait("document.querySelectorAll('#tokens [data-step]').length === 6000")
        took = self.page.run("(() => { const t = performance.now(); for (const i of [10, 3000, 5999, 4000, 20]) { const s = document.querySelector('#slider'); s.value = i; s.dispatchEvent(new Event('input')); } return (performance.now() - t) / 5; })()")
        self.assertLess(took, 500, "milliseconds a step")
        self.assertEqual(self.current(), 20)

    def test_layout_and_contrast_when_narrow_and_dark(self):
        for width, dark in [(1280, False), (1280, True), (700, False), (700, True)]:
            self.page.size(width, 900)
            self.page.dark(dark)
            self.pick("call")
            self.page.key("End")
            self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), width)
            low = self.page.run(CONTRAST)
            self.assertEqual(low, [], f"too little contrast at {width}, dark {dark}")

    def test_controls_are_focusable_and_labelled(self):
        self.pick("call")
        nameless = self.page.run(
            "[...document.querySelectorAll('button, input, select, textarea')].filter(e => !e.closest('details:not([open])'))"
            ".filter(e => !(e.labels?.length || e.textContent.trim() || e.title)).map(e => e.id)"
        )
        self.assertEqual(nameless, [])
        unreachable = self.page.run("[...document.querySelectorAll('button, input, select, textarea, #tokens')].filter(e => e.tabIndex < 0).map(e => e.id)")
        self.assertEqual(unreachable, [])
        self.page.key("End")
        self.assertIn("Step 10 of 10", self.page.run("document.querySelector('#chart').getAttribute('aria-label')"))

    def test_chart_is_drawn_and_clickable(self):
        self.pick("call")
        inked = self.page.run("(c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; })(document.querySelector('#chart'))")
        self.assertGreater(inked, 1000)
        self.page.run("(c => { const b = c.getBoundingClientRect(); c.dispatchEvent(new MouseEvent('click', { clientX: b.left + b.width * 0.75, clientY: b.top + 5, bubbles: true })); })(document.querySelector('#chart'))")
        self.assertEqual(self.current(), 7)

    def test_url_fragment_opens_a_trace(self):
        self.page.ask("Page.navigate", url="about:blank")
        self.page.open(f"{self.server.url}/inspect#trace=call")
        self.page.wait("!document.querySelector('#view').hidden")
        self.assertIn("call", text(self.page, "#about"))


def documented():
    """The members of traces and of steps listed in docs/INSPECTOR.md."""
    guide = (pathlib.Path(__file__).parents[3] / "docs/INSPECTOR.md").read_text()
    tables = guide.split("| member | meaning |")[1:]
    return [{line.split("`")[1] for line in table.split("\n\n")[0].splitlines() if line.startswith("| `")} for table in tables]


def plain(text):
    """The expected display of text: control and direction characters become names."""
    return "".join(f"‹U+{ord(c):04X}›" if c in "\u0000\u001b\u202e\u202c" else c for c in text)


def has_no_invisible_characters(text):
    return text.isprintable() and "\u200d" not in text and not text.startswith(" ")


# Lists the texts with a contrast ratio below 4.5 (WCAG AA) to their background.
# Tokens after the current step are faint on purpose and are not checked.
CONTRAST = """
(() => {
  const rgb = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => { const f = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const after = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  const out = [];
  for (const e of document.querySelectorAll('main *, header *, footer *')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || e.classList.contains('later') || e.offsetParent === null || e.matches('option')) continue;
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(after(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) out.push(`${e.tagName}.${e.className} ${e.textContent.slice(0, 20)} ${ratio.toFixed(2)}`);
  }
  return out;
})()
"""


class ServerTests(unittest.TestCase):
    """Requests of the page to the server with the embedded model."""

    @classmethod
    def setUpClass(cls):
        if not OPTIONS.louver:
            raise unittest.SkipTest("no --louver: no real request is made")
        cls.server = Louver(OPTIONS.louver)
        cls.page = devtools.Page(devtools.find())

    @classmethod
    def tearDownClass(cls):
        cls.page.close()
        cls.server.close()

    def test_request_is_run_recorded_and_shown(self):
        page = self.page
        page.complaints.clear()
        page.open(f"{self.server.url}/inspect")
        self.assertIn("default-src 'none'", self.server.headers("/inspect")["content-security-policy"])
        page.run("document.querySelector('#run').click()")
        page.wait("!document.querySelector('#view').hidden", 60)
        count = int(page.run("document.querySelector('#slider').max")) + 1
        self.assertGreater(count, 5)
        listed = self.server.get("/v1/louver/traces")["data"]
        self.assertEqual(listed[0]["calls"], ["get_weather"])
        trace = self.server.get(f"/v1/louver/traces/{listed[0]['id']}")
        self.assertEqual(len(trace["steps"]), count)
        self.check(trace)
        page.key("End")
        self.assertIn("get_weather", text(page, "#turn"))
        self.assertIn("end of turn", text(page, "#turn"))
        self.assertIn("full", text(page, "#about"))
        first = text(page, "#step")
        page.key("Home")
        self.assertNotEqual(first, text(page, "#step"))
        # A step with a refused candidate shows the reason.
        at = next(i for i, s in enumerate(trace["steps"]) if s["refused"])
        page.run(f"(s => {{ s.value = {at}; s.dispatchEvent(new Event('input')); }})(document.querySelector('#slider'))")
        self.assertIn("expected", text(page, "#refused"))
        self.assertEqual(page.complaints, [])
        if OPTIONS.png:
            # The step within the arguments that has the most refused candidates with a reason.
            explained = lambda s: s["phase"] == "arguments" and sum("after" in c["reason"] or c["text"].isprintable() and "expected" in c["reason"] for c in s["refused"])
            picked = max(range(count), key=lambda i: (explained(trace["steps"][i]), i))
            page.run("document.querySelector('#slider').focus()")
            page.key("Home")
            for _ in range(picked):
                page.key("ArrowRight")
            page.size(1100, 1180)
            pathlib.Path(OPTIONS.png).write_bytes(page.screenshot())

    def check(self, trace):
        """Checks the invariants of every trace."""
        trace_members, step_members = documented()
        self.assertEqual(set(trace), trace_members)
        self.assertEqual([s["position"] for s in trace["steps"]], list(range(len(trace["steps"]))))
        for s in trace["steps"]:
            self.assertLessEqual(set(s), step_members)
            self.assertLessEqual(step_members - {"bytes"}, set(s))
            self.assertTrue(1 <= s["allowed"] <= trace["vocabulary"], s)
            self.assertTrue(-1e-6 <= s["removed_mass"] <= 1 + 1e-6, s)
            self.assertTrue(all(c["reason"] for c in s["refused"]), s)
            refused = {c["token"] for c in s["refused"]}
            self.assertNotIn(s["token"], refused)
            self.assertFalse(refused & {c["token"] for c in s["top"]}, s)
        tokens = [event["tokens"] for event in trace["events"]]
        self.assertEqual(tokens, sorted(tokens))
        self.assertLessEqual(tokens[-1], len(trace["steps"]))
        arguments = "".join(e["event"]["delta"] for e in trace["events"] if e["event"]["type"] == "arguments_delta")
        self.assertEqual(set(json.loads(arguments)), {"city", "days"})

    def test_choices_and_streams_are_recorded(self):
        body = {
            "messages": [{"role": "user", "content": "</script>"}],
            "n": 2,
            "seed": 3,
            "max_tokens": 40,
            "response_format": {"type": "json_schema", "json_schema": {"name": "a", "strict": True, "schema": {"type": "boolean"}}},
            "louver": {"trace": True},
        }
        answer = self.server.post("/v1/chat/completions", body)
        ids = [choice["trace"] for choice in answer["louver"]["choices"]]
        self.assertEqual(ids, [answer["id"], answer["id"] + "-1"])
        for choice, expected in zip(ids, answer["choices"]):
            trace = self.server.get(f"/v1/louver/traces/{choice}")
            self.assertEqual(trace["request"]["body"], body)
            text = "".join(e["event"]["delta"] for e in trace["events"] if e["event"]["type"] == "text_delta")
            self.assertEqual(text, expected["message"]["content"])
            self.assertIn("".join(s["text"] for s in trace["steps"] if s["phase"] == "response").strip(), text.strip())
        chunks = self.server.post("/v1/chat/completions", body | {"stream": True, "n": 1})
        (name,) = [chunk["louver"]["trace"] for chunk in chunks if chunk.get("louver")]
        streamed = self.server.get(f"/v1/louver/traces/{name}")
        # Logits computed in a batch differ in their last bits, so probabilities are not compared.
        decisions = lambda trace: [(s["token"], s["phase"], s["allowed"], s["forced"]) for s in trace["steps"]]
        self.assertEqual(decisions(streamed), decisions(self.server.get(f"/v1/louver/traces/{ids[0]}")))
        # A request without `trace` is not recorded.
        before = self.server.get("/v1/louver/traces")["data"]
        self.server.post("/v1/chat/completions", body | {"louver": {}})
        self.assertEqual(self.server.get("/v1/louver/traces")["data"], before)

    def test_responses_and_custom_tools(self):
        page = self.page
        page.complaints.clear()
        page.open(f"{self.server.url}/inspect")
        grammar = {"type": "grammar", "syntax": "regex", "definition": r"\{\"a\": [0-9]{3}\}"}
        body = {
            "input": "Say a number.",
            "tools": [{"type": "custom", "name": "numbers", "format": grammar}],
            "tool_choice": "required",
            "parallel_tool_calls": False,
            "max_output_tokens": 300,
            "reasoning": {"effort": "none"},
        }
        page.run(f"document.querySelector('#body').value = {json.dumps(json.dumps(body))}; document.querySelector('#run').click()")
        page.wait("!document.querySelector('#view').hidden || document.querySelector('#status').classList.contains('bad')", 60)
        self.assertNotIn("bad", page.run("document.querySelector('#status').className"), text(page, "#status"))
        page.key("End")
        self.assertIn("/v1/responses", text(page, "#about"))
        self.assertRegex(text(page, "#turn"), r'numbers(.|\n)*input\s*\{"a": [0-9]{3}\}')
        self.assertEqual(page.complaints, [])

    def test_page_sends_the_api_key(self):
        server = Louver(OPTIONS.louver, "--api-key", "secret")
        self.addCleanup(server.close)
        page = self.page
        page.open(f"{server.url}/inspect")
        page.wait("document.querySelector('#status').classList.contains('bad')")
        self.assertIn("401", text(page, "#status"))
        page.run("document.querySelector('#key').value = 'secret'; document.querySelector('#run').click()")
        page.wait("!document.querySelector('#view').hidden", 60)

    def test_server_errors_are_shown(self):
        page = self.page
        page.open(f"{self.server.url}/inspect")
        page.run("document.querySelector('#body').value = '{\"messages\": 5}'; document.querySelector('#run').click()")
        page.wait("document.querySelector('#status').classList.contains('bad')")
        self.assertIn("400", text(page, "#status"))
        self.assertIn("/messages", text(page, "#status"))
        self.assertTrue(page.run("document.querySelector('#view').hidden"))


def main():
    parser = argparse.ArgumentParser(description="Tests the inspector in a headless browser.")
    parser.add_argument("--louver", help="path of the louver binary, for real requests")
    parser.add_argument("--png", help="path of the screenshot to write")
    parser.add_argument("--need-browser", action="store_true", help="fail if there is no browser")
    parser.parse_args(namespace=OPTIONS)
    if devtools.find() is None:
        print("SKIPPED: no chromium found; the inspector was not tested in a browser")
        return 1 if OPTIONS.need_browser else 0
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    passed = result.testsRun - len(result.failures) - len(result.errors)
    print(f"inspector: {passed} passed, {len(result.failures) + len(result.errors)} failed, {len(result.skipped)} skipped")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
