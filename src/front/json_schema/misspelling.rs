//! Names in a schema that are probably misspelled keywords.
//!
//! JSON Schema ignores unknown keywords, so that `requried` constrains nothing, without an error.

use std::fmt;

use super::keyword::{Keyword, KeywordVocabulary, SchemaPosition, keywords};
use crate::front::diagnostic::is_same_name;
use crate::spec::json::{Json, push_token};

/// Names that are reported, at most.
const MAX_REPORTED: usize = 20;
/// Unknown names that are compared with the keywords, at most: a schema may have 100,000.
const MAX_COMPARED: usize = 1_000;
/// Longest name that is compared, in bytes.
const MAX_BYTES: usize = 40;

/// A name that is no keyword, and the keyword that is probably meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MisspelledKeyword {
    /// JSON pointer of the member.
    pub pointer: String,
    /// The keyword that is probably meant.
    pub meant: &'static str,
}

impl MisspelledKeyword {
    /// What is wrong, without the pointer.
    pub fn message(&self) -> String {
        format!("no keyword, so it constrains nothing; is `{}` meant?", self.meant)
    }
}

impl fmt::Display for MisspelledKeyword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.pointer, self.message())
    }
}

/// The members of a schema and of its subschemas that differ from a keyword in little: in capitals,
/// underscores and hyphens, or in one letter, two in long names. At most 20 are reported, of the
/// first 1,000 unknown names. Cost: one walk over the schema.
///
/// ```
/// use louver::front::json_schema::misspelled_keywords;
/// use louver::{Json, Limits};
///
/// # fn main() -> Result<(), louver::JsonError> {
/// let schema = r#"{"properties": {"requried": {"min_length": 3}}, "requried": ["requried"]}"#;
/// let found = misspelled_keywords(&Json::parse(schema, &Limits::default())?);
/// let found: Vec<_> = found.iter().map(|m| (m.pointer.as_str(), m.meant)).collect();
/// let expected = [("/requried", "required"), ("/properties/requried/min_length", "minLength")];
/// assert_eq!(found, expected);
/// # Ok(())
/// # }
/// ```
pub fn misspelled_keywords(schema: &Json) -> Vec<MisspelledKeyword> {
    let (steps, found) = (Vec::new(), Vec::new());
    let mut walk = Walk { steps, pending: vec![(schema, None)], compared: 0, found };
    while let Some((schema, at)) = walk.pending.pop() {
        walk.schema(schema, at);
        if walk.found.len() >= MAX_REPORTED || walk.compared >= MAX_COMPARED {
            break;
        }
    }
    walk.found.truncate(MAX_REPORTED);
    walk.found
}

/// A walk over the subschemas of a schema.
struct Walk<'s> {
    /// The step to each place from the one before, whose index it has.
    steps: Vec<(Option<usize>, Step<'s>)>,
    /// Schemas that are not visited yet, with the indices of their places.
    pending: Vec<(&'s Json, Option<usize>)>,
    /// The number of names that were compared with the keywords.
    compared: usize,
    found: Vec<MisspelledKeyword>,
}

#[derive(Clone, Copy)]
enum Step<'s> {
    Member(&'s str),
    Element(usize),
}

impl<'s> Walk<'s> {
    fn schema(&mut self, schema: &'s Json, at: Option<usize>) {
        let Json::Object(members) = schema else { return };
        for (name, value) in members.iter() {
            let place = self.step(at, Step::Member(name));
            let Some(keyword) = Keyword::lookup(name) else {
                self.compared += 1;
                if self.compared > MAX_COMPARED {
                    return;
                }
                self.found.extend(
                    meant(name)
                        .map(|meant| MisspelledKeyword { pointer: self.pointer(place), meant }),
                );
                continue;
            };
            match (keyword.value, value) {
                (SchemaPosition::Schema | SchemaPosition::SchemaOrList, Json::Object(_)) => {
                    self.pending.push((value, Some(place)));
                }
                (SchemaPosition::SchemaList | SchemaPosition::SchemaOrList, Json::Array(items)) => {
                    for (index, item) in items.iter().enumerate() {
                        let place = self.step(Some(place), Step::Element(index));
                        self.pending.push((item, Some(place)));
                    }
                }
                (SchemaPosition::SchemaMap, Json::Object(schemas)) => {
                    for (name, schema) in schemas.iter() {
                        let place = self.step(Some(place), Step::Member(name));
                        self.pending.push((schema, Some(place)));
                    }
                }
                _ => {}
            }
        }
    }

    /// The index of a new place.
    fn step(&mut self, from: Option<usize>, step: Step<'s>) -> usize {
        self.steps.push((from, step));
        self.steps.len() - 1
    }

    fn pointer(&self, place: usize) -> String {
        let to_root = std::iter::successors(Some(place), |&place| self.steps[place].0);
        let places: Vec<usize> = to_root.collect();
        let mut pointer = String::new();
        for place in places.into_iter().rev() {
            match self.steps[place].1 {
                Step::Member(name) => push_token(&mut pointer, name),
                Step::Element(index) => push_token(&mut pointer, &index.to_string()),
            }
        }
        pointer
    }
}

/// The keyword that an unknown name is probably meant to be. Annotations are not: a name that is
/// similar to one constrains as little.
fn meant(name: &str) -> Option<&'static str> {
    /// Shortest keyword of which two letters may differ.
    const LONG: usize = 9;
    /// Shortest keyword of which one letter may differ: names of three letters are often others.
    const SHORT: usize = 4;
    // Names that begin so are taken out on purpose.
    let is_disabled = name.starts_with("x-") || name.starts_with(['_', '@', '#']);
    if name.len() > MAX_BYTES || is_disabled {
        return None;
    }
    let is_meant = |keyword: &&Keyword| {
        let allowed =
            usize::from(keyword.name().len() >= SHORT) + usize::from(keyword.name().len() >= LONG);
        keyword.vocabulary != KeywordVocabulary::Annotation
            && (is_same_name(name, keyword.name())
                || (name.len().abs_diff(keyword.name().len()) <= allowed
                    && strsim::damerau_levenshtein(name, keyword.name()) <= allowed))
    };
    keywords().find(is_meant).map(Keyword::name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn misspellings(schema: &str) -> Vec<(String, &'static str)> {
        let schema = Json::parse(schema, &Limits::default()).unwrap();
        misspelled_keywords(&schema).into_iter().map(|m| (m.pointer, m.meant)).collect()
    }

    #[test]
    fn misspelled_keywords_are_found_in_all_subschemas() {
        for (schema, pointer, meant) in [
            (r#"{"requird": ["a"]}"#, "/requird", "required"),
            (r#"{"propertes": {"a": {"type": "string"}}}"#, "/propertes", "properties"),
            (
                r#"{"items": {"anyOf": [{}, {"max_length": 3}]}}"#,
                "/items/anyOf/1/max_length",
                "maxLength",
            ),
            (r#"{"$defs": {"a/b": {"MinItems": 1}}}"#, "/$defs/a~1b/MinItems", "minItems"),
            (r#"{"additionalproperties": false}"#, "/additionalproperties", "additionalProperties"),
            (r#"{"aditionalPropertes": false}"#, "/aditionalPropertes", "additionalProperties"),
            (r#"{"item": {"type": "string"}}"#, "/item", "items"),
        ] {
            assert_eq!(misspellings(schema), [(pointer.to_owned(), meant)], "{schema}");
        }
    }

    /// Names of members, data, annotations of other tools and short names are no misspellings.
    #[test]
    fn other_names_are_not_reported() {
        for schema in [
            r#"{"properties": {"requird": {}, "item": {}}, "enum": [{"requird": 1}]}"#,
            r#"{"example": 1, "nullable": true, "discriminator": {}, "xml": {}, "deprecated": true}"#,
            r##"{"_format": "date", "@type": "a", "#enum": [], "_$schema": "", "-": 1}"##,
            r#"{"x-requird": 1, "markdownDescription": "", "propertyOrdering": [], "no": 1, "units": 1}"#,
            r#"{"enumNames": [], "label": "", "order": 1, "name": "a", "strict": true, "is": 1}"#,
        ] {
            assert_eq!(misspellings(schema), [], "{schema}");
        }
        let many: String = (0..100).map(|k| format!(r#""p{k}": {{"requird": []}},"#)).collect();
        let all = format!(r#"{{"properties": {{{many} "p": {{}}}}}}"#);
        assert_eq!(misspellings(&all).len(), MAX_REPORTED);
        let unknown: String = (0..MAX_COMPARED).map(|k| format!(r#""zz{k}": 1,"#)).collect();
        assert_eq!(misspellings(&format!(r#"{{{unknown} "requird": []}}"#)), []);
    }
}
