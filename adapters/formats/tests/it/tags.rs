//! Structural tags that another engine generates for the same models, if this machine has them:
//! sentences drawn from a tag are turns of our family. Sentences avoid what is known to be wrong or
//! too permissive in a tag:
//!
//! * after a call that is required, free text (a required turn is calls);
//! * turns of Harmony that end in analysis, are empty, or continue with anything but calls after
//!   the last call;
//! * the constant that MiniMax's tag writes if reasoning is off (the prompt writes it), and its
//!   doubled line feeds;
//! * values that Command's tag writes as nested elements.

use louver_formats::{Catalog, Reasoning};
use louver_test_support::text_if_present;
use serde_json::Value;

use crate::harness::request;
use crate::rig::{Rig, Specials};

/// Their names of models, and our families.
const FAMILIES: [(&str, &str); 14] = [
    ("llama", "llama3"),
    ("kimi", "kimi_k2"),
    ("kimi_k3", "kimi_k3"),
    ("deepseek_r1", "deepseek_r1"),
    ("deepseek_v3_1", "deepseek_v3_1"),
    ("deepseek_v3_2", "deepseek_v3_2"),
    ("deepseek_v4", "deepseek_v4"),
    ("qwen_3", "qwen3"),
    ("qwen_3_coder", "qwen3_coder"),
    ("qwen_3_5", "qwen3_coder"),
    ("minimax", "minimax_m2"),
    ("glm_4_7", "glm4_7"),
    ("cohere", "cohere_xml"),
    ("exaone", "exaone"),
];

struct Draw {
    state: u64,
    model: String,
    forced: bool,
}

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % n
    }

    fn one<'v, T>(&mut self, of: &'v [T]) -> &'v T {
        let at = self.below(of.len());
        &of[at]
    }

    fn text(&mut self) -> String {
        let pieces =
            ["", "Hi", "5 < 7 & so", "天 😀", "a\n\nb", "{\"a\": [1]}", "`x`", "</b>", "to=f"];
        (0..self.below(3)).map(|_| *self.one(&pieces)).collect()
    }

    /// A sentence of a format of the tag.
    fn sentence(&mut self, format: &Value) -> String {
        let list = |name: &str| format[name].as_array().cloned().unwrap_or_default();
        match format["type"].as_str().expect("type") {
            "const_string" => format["value"].as_str().expect("value").to_owned(),
            "any_text" => self.text(),
            "regex" => (*self.one(&["0", "1", "12"])).to_owned(),
            "sequence" => {
                let elements = list("elements");
                // Text that the prompt writes, and repeated line feeds.
                let constant =
                    elements.first().is_some_and(|first| first["value"] == "\n</think>\n\n");
                elements
                    .iter()
                    .skip(if constant { 2 } else { 0 })
                    .map(|element| self.sentence(element))
                    .collect()
            }
            "optional" => match self.below(2) {
                0 => String::new(),
                _ => self.sentence(&format["content"]),
            },
            "tag" => self.tag(format),
            "triggered_tags" => {
                let tags = list("tags");
                let mut out =
                    if format["at_least_one"] == true { String::new() } else { self.text() };
                let least = usize::from(format["at_least_one"] == true);
                for k in 0..least + self.below(3) {
                    if k > 0 {
                        // The separator that every family has between calls.
                        out.push_str(match self.model.as_str() {
                            "llama" => "; ",
                            "qwen_3" | "qwen_3_coder" | "qwen_3_5" | "exaone" => "\n",
                            _ => "",
                        });
                    }
                    let tag = self.one(&tags).clone();
                    out.push_str(&self.tag(&tag));
                    if !self.forced {
                        out.push_str(&self.text());
                    }
                }
                out
            }
            "tags_with_separator" if self.model == "harmony" => self.harmony(&list("tags")),
            "tags_with_separator" => {
                let (tags, separator) =
                    (list("tags"), format["separator"].as_str().unwrap_or_default());
                let calls: Vec<String> = (0..1 + self.below(3))
                    .map(|_| {
                        let tag = self.one(&tags).clone();
                        self.tag(&tag)
                    })
                    .collect();
                calls.join(separator)
            }
            "json_schema" => self.instance(format),
            other => panic!("format {other}"),
        }
    }

    fn tag(&mut self, tag: &Value) -> String {
        let begin = tag["begin"].as_str().expect("begin").to_owned();
        let end = match &tag["end"] {
            Value::Array(ends) if begin.contains("final") => {
                self.one(ends).as_str().expect("end").to_owned()
            }
            Value::Array(ends) => ends[0].as_str().expect("end").to_owned(),
            end => end.as_str().expect("end").to_owned(),
        };
        begin + &self.sentence(&tag["content"]) + &end
    }

    fn harmony(&mut self, tags: &[Value]) -> String {
        let has = |tag: &Value, what: &str| {
            tag["begin"].as_str().is_some_and(|begin| begin.contains(what))
        };
        let (analysis, last): (Vec<Value>, Vec<Value>) =
            tags.iter().cloned().partition(|tag| has(tag, "analysis<"));
        let mut out = Vec::new();
        for tag in &analysis {
            for _ in 0..self.below(3) {
                out.push(self.tag(tag));
            }
        }
        let last = self.one(&last).clone();
        out.push(self.tag(&last));
        out.join("<|start|>assistant")
    }

    /// An instance of a schema: two members and an optional one, or none.
    fn instance(&mut self, format: &Value) -> String {
        let schema = &format["json_schema"];
        let mut members: Vec<(&str, Value)> = Vec::new();
        let text = (*self.one(&["Paris", "5", "São <b>", "", "a\nb"])).to_owned();
        for name in ["city", "query"] {
            if schema["properties"].get(name).is_some() {
                members.push((name, Value::from(text.clone())));
            }
        }
        if schema["properties"].get("days").is_some() && self.below(2) == 0 {
            members.push(("days", Value::from(self.below(100))));
        }
        let gap = *self.one(&["", "\n", " "]);
        let style = format["style"].as_str().expect("style");
        if style == "json" {
            let space = *self.one(&["", " "]);
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("\"{name}\":{space}{value}")).collect();
            return format!("{{{}}}", members.join(&format!(",{space}")));
        }
        let mut out = gap.to_owned();
        for (name, value) in &members {
            let (is_text, raw) = match value {
                Value::String(text) => (true, text.clone()),
                other => (false, other.to_string()),
            };
            out.push_str(&match style {
                "qwen_xml" => format!("<parameter={name}>{raw}</parameter>"),
                "minimax_xml" => format!("<parameter name=\"{name}\">{raw}</parameter>"),
                "deepseek_xml" => {
                    format!("<｜DSML｜parameter name=\"{name}\" string=\"{is_text}\">{raw}</｜DSML｜parameter>")
                }
                "glm_xml" => format!("<arg_key>{name}</arg_key>{gap}<arg_value>{raw}</arg_value>"),
                "cohere_xml" => {
                    let kind = if is_text { "raw" } else { "json" };
                    format!("<cofl:value name=\"{name}\" type=\"{kind}\">{raw}</cofl:value>")
                }
                "kimi_k3_xml" => {
                    let kind = if is_text { "string" } else { "number" };
                    let end = "<|close|>argument<|sep|>";
                    format!("<|open|>argument key=\"{name}\" type=\"{kind}\"<|sep|>{raw}{end}")
                }
                other => panic!("style {other}"),
            });
            out.push_str(gap);
        }
        out
    }
}

#[test]
fn sentences_of_structural_tags_are_turns_if_present() {
    let Some(file) = text_if_present("model-format-tags.jsonl") else { return };
    let (mut drawn, mut wrong) = (0, Vec::new());
    for (n, line) in file.lines().enumerate() {
        let document: Value = serde_json::from_str(line).expect("JSON");
        let model = document["model"].as_str().expect("model");
        let reasoning = document["reasoning"] == true;
        let family =
            FAMILIES.iter().find(|(theirs, _)| *theirs == model).map_or(model, |(_, ours)| ours);
        let rig = Rig::new(Catalog::shipped().get(family).expect("family"), Specials::Fewest);
        let choice = &document["tool_choice"];
        let tools = document["tools"].as_array().expect("tools");
        let request = request(&serde_json::to_string(tools).expect("JSON"), choice).with_reasoning(
            match (model, reasoning) {
                ("llama", _) | (_, false) => Reasoning::Off,
                ("harmony", true) => Reasoning::Optional,
                (_, true) => Reasoning::Opened,
            },
        );
        let at = format!("{model}, {choice}, reasoning {reasoning}");
        let lowered = rig.format.lower(&request).unwrap_or_else(|e| panic!("{at}: {e}"));
        let session = rig.session(&lowered, &[], &[]);
        let forced = choice.is_object() || choice == "required";
        let mut draw =
            Draw { state: 0x9e37_79b9_7f4a_7c15 ^ n as u64, model: model.to_owned(), forced };
        for _ in 0..60 {
            let wire = draw.sentence(&document["structural_tag"]["format"]);
            let run = session.run(&session.tokens(&rig.units(&wire), 0), 1_000);
            drawn += 1;
            if run.taken.is_err() || !run.complete {
                wrong.push(format!("{at}: {wire:?} refused at {:?}", run.taken.err()));
            }
        }
    }
    println!("{drawn} sentences of {} tags", file.lines().count());
    wrong.truncate(60);
    assert!(wrong.is_empty(), "{} shown\n{}", wrong.len(), wrong.join("\n"));
    assert!(drawn > 5_000);
}
