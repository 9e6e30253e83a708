//! Short chat templates of the families (`tests/data/families`), written from what the templates of
//! the checkpoints write. Each family is the language of its template: what the template writes is
//! accepted and read back, and what the family renders is what the template writes.

mod grammar;
mod prompts;
mod random;
mod resolved;
mod turns;

use std::collections::BTreeMap;
use std::path::PathBuf;

use louver_templates::{ChatTemplate, Checkpoint};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FamilyTemplates {
    /// Why a template and its family may differ: a difference and its reason.
    differences: BTreeMap<String, String>,
    case: Vec<FamilyTemplate>,
}

/// The chat template of a family: `families/NAME.jinja`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct FamilyTemplate {
    name: String,
    /// The family, if it is not the name.
    #[serde(default)]
    family: String,
    source: TemplateSource,
    /// The checkpoint whose template this one follows, and where it was read.
    of: String,
    checkpoint: Ids,
    /// What the template writes before a turn and the host before a generation. What prompts have
    /// after it belongs to the turn.
    header: String,
    /// What ends a turn, beside what the grammar has.
    ends: Vec<String>,
    /// What a turn without reasoning begins with, which prompts without reasoning have, too.
    #[serde(default)]
    skips: String,
    #[serde(default = "four")]
    most_calls: usize,
    #[serde(default)]
    trims: Trims,
    #[serde(default)]
    differs: Vec<String>,
}

/// Where the facts of a template come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TemplateSource {
    /// A public copy of the checkpoint's template, or of code that writes the same.
    Public,
    /// The example of the family's file, as no public template writes calls so.
    Family,
}

/// What the checkpoint says beside its template.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ids {
    /// Special tokens.
    tokens: Vec<String>,
    /// Added tokens that are special in some checkpoints and not in others.
    #[serde(default)]
    added: Vec<String>,
    bos: Option<String>,
    eos: Option<String>,
    model_type: Option<String>,
}

/// White space at the ends of a text that the template removes, or that nobody can tell from the
/// template's.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Trims {
    text: Trim,
    /// Of text beside calls.
    text_with_calls: Trim,
    reasoning: Trim,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Trim {
    #[default]
    Nothing,
    WhiteSpace,
    TrailingWhiteSpace,
    LineFeeds,
    LeadingLineFeeds,
    LastLineFeed,
    LastSpace,
}

impl Trim {
    fn apply(self, text: &str) -> &str {
        match self {
            Trim::Nothing => text,
            Trim::WhiteSpace => text.trim(),
            Trim::TrailingWhiteSpace => text.trim_end(),
            Trim::LineFeeds => text.trim_matches('\n'),
            Trim::LeadingLineFeeds => text.trim_start_matches('\n'),
            Trim::LastLineFeed => text.strip_suffix('\n').unwrap_or(text),
            Trim::LastSpace => text.strip_suffix(' ').unwrap_or(text),
        }
    }
}

fn four() -> usize {
    4
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn read(file: &str) -> String {
    let path = folder().join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The cases; with `LOUVER_FAMILY`, those of one name.
fn family_templates() -> FamilyTemplates {
    let mut file: FamilyTemplates = toml::from_str(&read("families.toml")).expect("families.toml");
    for case in file.case.iter_mut().filter(|case| case.family.is_empty()) {
        case.family = case.name.clone();
    }
    if let Ok(name) = std::env::var("LOUVER_FAMILY") {
        file.case.retain(|case| case.name == name);
    }
    file
}

impl FamilyTemplate {
    fn differs(&self, difference: &str) -> bool {
        self.differs.iter().any(|known| known == difference)
    }

    fn template(&self) -> ChatTemplate {
        let source = read(&format!("families/{}.jinja", self.name));
        let Ids { bos, eos, .. } = &self.checkpoint;
        let template = ChatTemplate::new(&source, [bos.clone(), eos.clone(), None]);
        template.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The checkpoint, with the type of its model or without.
    fn checkpoint(&self, is_configured: bool) -> Checkpoint {
        let ids = &self.checkpoint;
        Checkpoint::default()
            .with_template(Ok(self.template()))
            .with_tokens(ids.tokens.iter().chain(&ids.added).cloned().collect())
            .with_special_tokens(ids.tokens.clone())
            .with_model_type(ids.model_type.clone().filter(|_| is_configured))
    }
}

/// Runs a check for each case on all cores, and fails with all faults.
fn check_all(check: impl Fn(&FamilyTemplate) -> Result<(), String> + Sync) {
    let cases = family_templates().case;
    let next = std::sync::atomic::AtomicUsize::new(0);
    let run = || {
        let mut faults = Vec::new();
        loop {
            let k = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some(case) = cases.get(k) else { return faults };
            faults.extend(check(case).err().map(|fault| format!("{}: {fault}", case.name)));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let faults: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), cases.len(), faults.join("\n"));
}
