//! Arguments between tags that have their names, at any depth: a streaming reader and the writer.

use louver::front::json_schema::{JsonTypes, LazyTypes, NestedStyle, ValueTypes};
use louver::spec::json::{Json, Object};

use super::scalar::ScalarPrefix;
use super::tagged::looks_like;
use crate::channel::{SearchBuffer, decode, leading_spaces, partial_match_len};
use crate::format::{NestedTags, escape_json};

#[derive(Clone, Debug, PartialEq)]
enum NestedState {
    /// Between tags.
    Tags,
    /// After the tag that opens the value of this node of the types.
    Value(usize),
    /// In a string.
    Text,
}

/// An open object or array.
#[derive(Clone, Debug)]
struct Container {
    node: usize,
    is_array: bool,
    /// The number of values so far.
    values: usize,
}

/// Reads arguments in chunks, and writes them as JSON text. The grammar must allow what it reads;
/// after anything else it writes nothing.
#[derive(Clone, Debug)]
pub(crate) struct NestedReader {
    mark: Vec<u8>,
    item: String,
    types: LazyTypes,
    /// The open containers, the arguments first.
    open: Vec<Container>,
    state: NestedState,
    buffer: SearchBuffer,
    /// The scalars that the open value may be.
    scalar: ScalarPrefix,
    out: String,
}

impl NestedReader {
    pub(crate) fn new(tags: &NestedTags, types: LazyTypes) -> Self {
        NestedReader {
            mark: tags.mark.write().into_bytes(),
            item: tags.item.clone(),
            types,
            open: vec![Container { node: ValueTypes::ROOT, is_array: false, values: 0 }],
            state: NestedState::Tags,
            buffer: SearchBuffer::default(),
            scalar: ScalarPrefix::default(),
            out: String::new(),
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.buffer.push(bytes);
        while self.step().is_some() {}
        std::mem::take(&mut self.out)
    }

    pub(crate) fn close(&mut self) -> String {
        let begin = if self.open[0].values == 0 { "{" } else { "" };
        let ends = self.open.iter().rev().map(|open| if open.is_array { ']' } else { '}' });
        let out = ends.fold(begin.to_owned(), |mut out, end| {
            out.push(end);
            out
        });
        self.open.truncate(1);
        self.open[0].values = 0;
        self.state = NestedState::Tags;
        self.buffer.take();
        out
    }

    pub(crate) fn cut(&mut self) -> String {
        let begun = if self.open[0].values == 0 { "{" } else { "" };
        let rest = self.buffer.take();
        match self.state {
            NestedState::Text => begun.to_owned() + &escape_json(&String::from_utf8_lossy(&rest)),
            _ => begun.to_owned(),
        }
    }

    /// Takes one step on the buffer. `None` if more bytes are needed.
    fn step(&mut self) -> Option<()> {
        match self.state {
            NestedState::Tags => self.tag(),
            NestedState::Value(node) => self.value(node),
            NestedState::Text => self.text(),
        }
    }

    /// The tag at an offset of the buffer, after its mark, without its brackets; and its end.
    fn tag_at(&mut self, at: usize) -> Option<(String, usize)> {
        self.buffer.get(at..)?.strip_prefix(&self.mark[..])?.strip_prefix(b"<")?;
        let begin = at + self.mark.len() + 1;
        let end = self.buffer.find(b">", begin)?;
        let name = String::from_utf8_lossy(&self.buffer[begin..end]).into_owned();
        Some((name, end + 1))
    }

    /// Reads a tag between values.
    fn tag(&mut self) -> Option<()> {
        let spaces = leading_spaces(&self.buffer);
        let (name, end) = self.tag_at(spaces)?;
        let is_outermost = self.open.len() == 1;
        let open = self.open.last_mut()?;
        if name.starts_with('/') {
            // The end of the call is not a part of its arguments.
            let is_array = open.is_array;
            self.open.pop().filter(|_| !is_outermost)?;
            self.out.push(if is_array { ']' } else { '}' });
        } else {
            let is_first = open.values == 0;
            open.values += 1;
            let node = match open.is_array {
                true => self.types.element(open.node, open.values - 1),
                false => self.types.member(open.node, &name),
            };
            self.out.push_str(match (is_first, is_outermost) {
                (true, true) => "{",
                (true, false) => "",
                (false, _) => ", ",
            });
            if !open.is_array {
                self.out.push_str(&format!("\"{}\": ", escape_json(&name)));
            }
            self.state = NestedState::Value(node);
            self.scalar = ScalarPrefix::default();
        }
        self.buffer.drop_front(end);
        Some(())
    }

    /// Reads a value, or the beginning of an array, an object or a string.
    fn value(&mut self, node: usize) -> Option<()> {
        let types = self.types.types(node);
        let Some(at) = self.buffer.find(&self.mark, 0) else {
            let held = partial_match_len(&self.buffer, &[&self.mark[..]]);
            let text = &self.buffer[..self.buffer.len() - held];
            self.scalar.read_to(text);
            let is_text = !text.is_empty() && !self.scalar.may_be(types);
            (is_text && types.meets(JsonTypes::STRING)).then_some(())?;
            self.out.push('"');
            self.state = NestedState::Text;
            return Some(());
        };
        let (name, end) = self.tag_at(at)?;
        if name.starts_with('/') {
            let text = String::from_utf8_lossy(&self.buffer[..at]).into_owned();
            self.out.push_str(&leaf(&text, types));
            self.buffer.drop_front(end);
            self.state = NestedState::Tags;
            return Some(());
        }
        let is_array = name == self.item && types.meets(JsonTypes::ARRAY);
        self.out.push(if is_array { '[' } else { '{' });
        self.open.push(Container { node, is_array, values: 0 });
        self.buffer.drop_front(at);
        self.state = NestedState::Tags;
        Some(())
    }

    fn text(&mut self) -> Option<()> {
        let at = self.buffer.find(&self.mark, 0);
        let held = partial_match_len(&self.buffer, &[&self.mark[..]]);
        let len = at.unwrap_or(self.buffer.len() - held);
        let (text, rest) = decode(&self.buffer[..len]);
        self.out.push_str(&escape_json(&text));
        self.buffer.drop_front(len - if at.is_some() { 0 } else { rest });
        let (_, end) = self.tag_at(0)?;
        self.buffer.drop_front(end);
        self.out.push('"');
        self.state = NestedState::Tags;
        Some(())
    }
}

/// The value between two tags without tags inside, as JSON text. See [`ValueTypes`].
fn leaf(text: &str, types: JsonTypes) -> String {
    let scalars = JsonTypes::NULL.union(JsonTypes::BOOLEAN).union(JsonTypes::NUMBER);
    if looks_like(text, types.intersect(scalars)) {
        return text.to_owned();
    }
    match text {
        "" if types.meets(JsonTypes::STRING) => "\"\"".to_owned(),
        "" if types.meets(JsonTypes::ARRAY) => "[]".to_owned(),
        "" if types.meets(JsonTypes::OBJECT) => "{}".to_owned(),
        text => format!("\"{}\"", escape_json(text)),
    }
}

/// Writes members between tags. Fails with a name or string that cannot stand there.
pub(super) fn write_members(
    out: &mut String,
    members: &Object,
    tags: &NestedTags,
) -> Result<(), String> {
    for (name, value) in members.iter() {
        if !NestedStyle::can_write_name(name) {
            return Err(name.to_owned());
        }
        write_value(out, name, value, tags)?;
    }
    Ok(())
}

fn write_value(
    out: &mut String,
    name: &str,
    value: &Json,
    tags: &NestedTags,
) -> Result<(), String> {
    let mark = tags.mark.write();
    out.push_str(&format!("{mark}<{name}>"));
    match value {
        Json::String(text) if text.contains(&mark) => return Err(text.clone()),
        Json::String(text) => out.push_str(text),
        Json::Array(items) => {
            items.iter().try_for_each(|item| write_value(out, &tags.item, item, tags))?;
        }
        Json::Object(members) => write_members(out, members, tags)?,
        Json::Null | Json::Bool(_) | Json::Number(_) => out.push_str(&value.to_string()),
    }
    out.push_str(&format!("{mark}</{name}>"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use louver::front::json_schema::{
        Registry, SchemaOptions, SchemaSource, ValueStyle, ValueSyntax, lower_into,
    };
    use louver::ir::{GrammarBuilder, Trigger};
    use louver::limits::Limits;

    use super::super::known_types;
    use super::*;
    use crate::format::Marker;

    fn types(schema: &str) -> ValueTypes {
        let schema = Json::parse(schema, &Limits::default()).expect("JSON");
        let style = NestedStyle { mark: vec![Trigger::Text(b"%".to_vec())], item: "item".into() };
        let (options, limits) = (SchemaOptions::default(), Limits::default());
        let (schema, registry) = (&schema, &Registry::default());
        let source = SchemaSource { schema, registry, options, limits: &limits };
        let style = ValueStyle::Syntax(ValueSyntax::Nested(Box::new(style)));
        lower_into(&mut GrammarBuilder::new(), source, &style).expect("lowers").types
    }

    #[test]
    fn values_are_read_by_their_types_in_chunks_of_any_size() {
        let types = types(
            r##"{"type": "object", "properties": {
                "s": {"type": "string"}, "n": {"type": ["number", "null"]}, "any": {},
                "a": {"type": "array", "items": {"type": ["string", "integer"]}},
                "o": {"type": "object", "properties": {"item": {"type": "string"}, "x": {"$ref": "#"}}},
                "b": {"type": ["array", "boolean"], "prefixItems": [{"type": "integer"}], "items": {"type": "string"}}}}"##,
        );
        let cases = [
            ("", "{}"),
            ("%<s>1%</s>", r#"{"s": "1"}"#),
            ("%<s>%</s>%<n>1%</n>", r#"{"s": "", "n": 1}"#),
            ("%<s>a\n\"<b>é%</s>%<n>null%</n>", r#"{"s": "a\n\"<b>é", "n": null}"#),
            ("%<a>%</a>%<b>%</b>%<o>%</o>", r#"{"a": [], "b": [], "o": {}}"#),
            ("%<a>%<item>1%</item>%<item>x%</item>%</a>", r#"{"a": [1, "x"]}"#),
            ("%<b>%<item>1%</item>%<item>1%</item>%</b>", r#"{"b": [1, "1"]}"#),
            ("%<b>true%</b>", r#"{"b": true}"#),
            ("%<o>%<item>1%</item>%</o>", r#"{"o": {"item": "1"}}"#),
            (
                "%<o>%<x>%<o>%<x>%<s>2%</s>%</x>%</o>%</x>%</o>%<s>3%</s>",
                r#"{"o": {"x": {"o": {"x": {"s": "2"}}}}, "s": "3"}"#,
            ),
            ("%<any>%<item>%<y>-1.5%</y>%</item>%</any>", r#"{"any": [{"y": -1.5}]}"#),
            ("%<any>%<y>%</y>%</any>%<z>0x%</z>", r#"{"any": {"y": ""}, "z": "0x"}"#),
        ];
        let tags = NestedTags { mark: Marker::Text("%".into()), item: "item".into() };
        for (wire, want) in cases {
            for size in 1..=wire.len().max(1) {
                let mut reader = NestedReader::new(&tags, known_types(types.clone()));
                let read: String =
                    wire.as_bytes().chunks(size).map(|chunk| reader.push(chunk)).collect();
                assert_eq!(read + &reader.close(), want, "{wire} by {size}");
            }
            let Ok(Json::Object(members)) = Json::parse(want, &Limits::default()) else {
                panic!("{want}");
            };
            let mut written = String::new();
            assert!(write_members(&mut written, &members, &tags).is_ok(), "{want}");
            assert_eq!(written, wire);
        }
        let mut reader = NestedReader::new(&tags, known_types(types));
        assert_eq!(reader.push(b"%<a>%<item>x%</item>%</a>%<s>ab\xc3"), r#"{"a": ["x"], "s": "ab"#);
        assert_eq!(reader.cut(), "\u{fffd}");
    }
}
