//! `x-guidance`, the options in a schema, as Louver's options.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow, ensure};
use louver::front::json_schema::{Formats, MemberOrder, NonAscii, Policy, Whitespace};
use louver::front::regex::Pattern;
use louver::fsm::Dfa;
use louver::{Limits, RegexOptions, SchemaOptions};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The member of a schema with its options.
pub(crate) const OPTIONS_KEY: &str = "x-guidance";
/// Most spaces that are tried after a separator.
const MAX_SPACES: u32 = 4;
/// White space of JSON, and the longest run of it: Louver's default.
const WHITE_SPACE: [u32; 4] = [0x20, 0x09, 0x0A, 0x0D];
const MAX_WHITE_SPACE: u32 = 40;

/// How the JSON of a schema is written, and how strictly the schema is taken.
///
/// ```
/// use llguidance::JsonCompileOptions;
///
/// let options = JsonCompileOptions { whitespace_flexible: false, ..Default::default() };
/// let mut schema = serde_json::json!({"type": "null"});
/// options.apply_to(&mut schema);
/// assert_eq!(schema["x-guidance"]["whitespace_flexible"], false);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JsonCompileOptions {
    /// A regular expression: what stands between items. Louver writes a comma and the fewest
    /// spaces that match, and warns if the expression is not just that text.
    pub item_separator: String,
    /// The same between a name and its value.
    pub key_separator: String,
    /// Whether white space may stand between any two parts.
    pub whitespace_flexible: bool,
    /// A regular expression for that white space. Louver writes runs of space, tab, line feed and
    /// carriage return up to the length to which all of them match, and warns if others match.
    pub whitespace_pattern: Option<String>,
    /// Without effect but a warning if there is a `oneOf`: Louver decides every one.
    pub coerce_one_of: bool,
    /// Keywords that cannot be enforced are dropped, with a warning.
    pub lenient: bool,
    /// Refused: Louver allows all escapes of JSON in free text.
    pub json_allowed_escapes: Option<String>,
    /// Without effect: Louver allows escapes in free text.
    pub json_allow_general_unicode_escapes: bool,
}

impl Default for JsonCompileOptions {
    fn default() -> Self {
        JsonCompileOptions {
            item_separator: ",".to_owned(),
            key_separator: ":".to_owned(),
            whitespace_flexible: true,
            whitespace_pattern: None,
            coerce_one_of: false,
            lenient: false,
            json_allowed_escapes: None,
            json_allow_general_unicode_escapes: false,
        }
    }
}

impl JsonCompileOptions {
    /// Writes the options into a schema. Panics if it is not an object.
    pub fn apply_to(&self, schema: &mut Value) {
        let options = serde_json::to_value(self).expect("options are JSON");
        let schema = schema.as_object_mut().expect("a schema with options is an object");
        schema.insert(OPTIONS_KEY.to_owned(), options);
    }

    /// Louver's options for a schema, and warnings of what is narrower than asked for. Errors where
    /// a text that the options ask for cannot be written.
    pub(crate) fn schema_options(&self, schema: &Value) -> Result<(SchemaOptions, Vec<String>)> {
        ensure!(self.json_allowed_escapes.is_none(), "json_allowed_escapes is not supported");
        let mut warnings = Vec::new();
        let policy = if self.lenient { Policy::BestEffort } else { Policy::Strict };
        let options = SchemaOptions::default()
            .with_whitespace(self.whitespace(&mut warnings)?)
            .with_order(MemberOrder::Fixed)
            .with_formats(Formats::Assert)
            .with_non_ascii(NonAscii::Raw)
            .with_policy(policy);
        if self.coerce_one_of && schema.to_string().contains("\"oneOf\"") {
            warnings.push("coerce_one_of: `oneOf` still takes exactly one branch".to_owned());
        }
        Ok((options, warnings))
    }

    /// The white space: flexible by default, otherwise exact numbers of spaces.
    fn whitespace(&self, warnings: &mut Vec<String>) -> Result<Whitespace> {
        let mut spaces = |sign: &str, name: &str, separator: &str| {
            let count = spaces_after(sign, separator)?;
            let text = sign.to_owned() + &" ".repeat(count as usize);
            if text != separator {
                warnings.push(format!("{name}: only {text:?} is written"));
            }
            anyhow::Ok(count)
        };
        let after_comma = spaces(",", "item_separator", &self.item_separator)?;
        let after_colon = spaces(":", "key_separator", &self.key_separator)?;
        let (max, is_all) = match &self.whitespace_pattern {
            Some(pattern) => longest_white_space(pattern)?,
            None if !self.whitespace_flexible => (0, true),
            None => (MAX_WHITE_SPACE, true),
        };
        let is_exact = after_comma + after_colon > 0;
        if is_exact && max > 0 {
            warnings.push("whitespace_flexible: not beside spaces in separators".to_owned());
        } else if !is_all {
            let kinds = "spaces, tabs, line feeds and carriage returns";
            warnings.push(format!("whitespace_pattern: only up to {max} {kinds} are written"));
        }
        Ok(match max {
            _ if is_exact => Whitespace::Exact { after_comma, after_colon },
            0 => Whitespace::Compact,
            max => Whitespace::Flexible { max },
        })
    }
}

/// The length up to which all runs of JSON's white space match a pattern, and whether nothing else
/// does but longer runs than are ever written. That there is none is always possible.
fn longest_white_space(pattern: &str) -> Result<(u32, bool)> {
    let dfa = match_dfa(pattern)?;
    let is_white = |symbol: u32| WHITE_SPACE.contains(&symbol);
    let (mut states, mut is_all) = (BTreeSet::from([0]), true);
    for length in 0..=MAX_WHITE_SPACE {
        let edges = || states.iter().flat_map(|&state| dfa.edges(state));
        is_all &= edges().all(|edge| (edge.lo..=edge.hi).all(is_white));
        let next = |&state| WHITE_SPACE.map(|symbol| dfa.next(state, symbol));
        let next: Option<BTreeSet<u32>> = states.iter().flat_map(next).collect();
        match next.filter(|next| next.iter().all(|&state| dfa.is_final(state))) {
            Some(next) if length < MAX_WHITE_SPACE => states = next,
            Some(_) => break,
            None => return Ok((length, is_all && edges().next().is_none())),
        }
    }
    Ok((MAX_WHITE_SPACE, is_all))
}

/// The fewest spaces after the sign with which a separator matches.
fn spaces_after(sign: &str, separator: &str) -> Result<u32> {
    let dfa = match_dfa(separator)?;
    let matches = |&spaces: &u32| {
        let text = sign.to_owned() + &" ".repeat(spaces as usize);
        dfa.accepts(text.chars().map(u32::from))
    };
    (0..=MAX_SPACES).find(matches).ok_or_else(|| {
        anyhow!("the separator /{separator}/ is not supported: use {sign:?} or spaces")
    })
}

/// The automaton of a regular expression that a whole text matches.
fn match_dfa(pattern: &str) -> Result<Dfa> {
    let pattern = Pattern::with_options(pattern, &RegexOptions::default(), &Limits::default())?;
    Ok(pattern.match_dfa(10_000)?)
}
