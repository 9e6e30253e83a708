//! `x-guidance`, the options in a schema, as Louver's options.

use anyhow::{Result, anyhow, ensure};
use louver::front::json_schema::{Formats, MemberOrder, NonAscii, Policy, Whitespace};
use louver::front::regex::Pattern;
use louver::{Limits, RegexOptions, SchemaOptions};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The member of a schema with its options.
pub(crate) const OPTIONS_KEY: &str = "x-guidance";
/// Most spaces that are tried after a separator.
const MAX_SPACES: u32 = 4;

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
    /// spaces that match.
    pub item_separator: String,
    /// The same between a name and its value.
    pub key_separator: String,
    /// Whether white space may stand between any two parts.
    pub whitespace_flexible: bool,
    /// A regular expression for that white space. Louver writes none where it is given.
    pub whitespace_pattern: Option<String>,
    /// Without effect: Louver decides every `oneOf`.
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

    /// Louver's options. Errors where a text that the options ask for cannot be written.
    pub(crate) fn schema_options(&self) -> Result<SchemaOptions> {
        ensure!(self.json_allowed_escapes.is_none(), "json_allowed_escapes is not supported");
        let policy = if self.lenient { Policy::BestEffort } else { Policy::Strict };
        Ok(SchemaOptions::default()
            .with_whitespace(self.whitespace()?)
            .with_order(MemberOrder::Fixed)
            .with_formats(Formats::Assert)
            .with_non_ascii(NonAscii::Raw)
            .with_policy(policy))
    }

    /// The white space: flexible by default, otherwise exact numbers of spaces.
    fn whitespace(&self) -> Result<Whitespace> {
        let after_comma = spaces_after(",", &self.item_separator)?;
        let after_colon = spaces_after(":", &self.key_separator)?;
        let is_flexible = self.whitespace_flexible && self.whitespace_pattern.is_none();
        Ok(match (is_flexible, after_comma, after_colon) {
            (true, 0, 0) => SchemaOptions::default().whitespace,
            (false, 0, 0) => Whitespace::Compact,
            (_, after_comma, after_colon) => Whitespace::Exact { after_comma, after_colon },
        })
    }
}

/// The fewest spaces after the sign with which a separator matches.
fn spaces_after(sign: &str, separator: &str) -> Result<u32> {
    if separator == sign {
        return Ok(0);
    }
    let pattern = Pattern::with_options(separator, &RegexOptions::default(), &Limits::default())?;
    let dfa = pattern.match_dfa(10_000)?;
    let matches = |&spaces: &u32| {
        let text = sign.to_owned() + &" ".repeat(spaces as usize);
        dfa.accepts(text.chars().map(u32::from))
    };
    (0..=MAX_SPACES).find(matches).ok_or_else(|| {
        anyhow!("the separator /{separator}/ is not supported: use {sign:?} or spaces")
    })
}
