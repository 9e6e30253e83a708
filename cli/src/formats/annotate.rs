//! A wire format as TOML, with comments that say where its parts came from.

use anyhow::Result;
use louver_formats::WireFormat;
use louver_templates::{Confirmation, FIELD_SOURCES, FormatSource, Resolved};
use serde_json::{Map, Value};

/// The description of a resolved format. Comments at the top say what is known of it; a comment
/// before a field says where the field came from, if that is not the whole description's source.
pub(super) fn annotated(found: &Resolved) -> Result<String> {
    let mut head: Vec<String> = Vec::new();
    let mut sources: &[(&str, &str)] = &[];
    match &found.source {
        FormatSource::Operator => head.push("Every line: the operator.".to_owned()),
        FormatSource::Family(reason) => {
            head.push(format!("Every line: Louver's family {}, as {reason}.", found.format.name));
        }
        FormatSource::ResponseTemplate(warnings) => {
            head.push("Every line: the checkpoint's response_template.".to_owned());
            head.extend(warnings.iter().map(|warning| format!("Not enforced: {warning}")));
        }
        FormatSource::ChatTemplate => {
            head.push("Every line: the chat template, by rendering; see each part.".to_owned());
            sources = FIELD_SOURCES;
        }
    }
    head.push(match &found.confirmation {
        Err(error) => format!("Not confirmed: {error}."),
        Ok(confirmation) if confirmation.is_full() => {
            "Confirmed: turns that the chat template writes are accepted and read back.".to_owned()
        }
        Ok(_) => "Not confirmed by the chat template:".to_owned(),
    });
    for line in found.confirmation.iter().flat_map(Confirmation::lines) {
        head.push(format!("  {line}"));
    }
    head.extend(found.notes.iter().map(|note| format!("Note: {note}")));
    let head = head.iter().map(|line| format!("# {}\n", line.replace('\n', "\n# ")));
    Ok(head.collect::<String>() + &description(&found.format, sources)?)
}

/// The description as it stands in a file, with the sources of fields by JSON pointer.
pub(super) fn description(format: &WireFormat, sources: &[(&str, &str)]) -> Result<String> {
    let mut out = String::new();
    if let Value::Object(table) = serde_json::to_value(format)? {
        write_table(&table, "", sources, &mut out);
    }
    Ok(out)
}

/// Writes the fields of a table, and its tables after them. `path` is the table's own.
fn write_table(table: &Map<String, Value>, path: &str, sources: &[(&str, &str)], out: &mut String) {
    let comment = |key: &str, out: &mut String| {
        let pointer = format!("{path}.{key}").replace('.', "/");
        let pointer = if path.is_empty() { format!("/{key}") } else { format!("/{pointer}") };
        if let Some((_, source)) = sources.iter().find(|(known, _)| *known == pointer) {
            *out += &format!("# from {source}\n");
        }
    };
    let is_below = |value: &Value| match value {
        Value::Object(table) => !is_short(table),
        Value::Array(items) => path.is_empty() && items.iter().any(Value::is_object),
        _ => false,
    };
    let is_empty = |value: &Value| matches!(value, Value::Array(items) if items.is_empty());
    for (key, value) in table.iter().filter(|(_, value)| !is_below(value) && !is_empty(value)) {
        comment(key, out);
        *out += &format!("{} = {}\n", quoted(key), inline(value));
    }
    for (key, value) in table.iter().filter(|(_, value)| is_below(value)) {
        let name = quoted(key);
        let path = if path.is_empty() { name } else { format!("{path}.{name}") };
        let (tables, brackets) = match value {
            Value::Array(items) => (&items[..], ["[[", "]]"]),
            table => (std::slice::from_ref(table), ["[", "]"]),
        };
        for table in tables.iter().filter_map(Value::as_object) {
            let only_table = table.len() == 1 && table.values().all(is_below);
            if !only_table {
                out.push('\n');
                comment(key, out);
                *out += &format!("{}{path}{}\n", brackets[0], brackets[1]);
            }
            write_table(table, &path, sources, out);
        }
    }
}

/// Whether a table is written in one line: a marker or a part of a header.
fn is_short(table: &Map<String, Value>) -> bool {
    table.len() == 1 && table.values().all(|value| value.as_object().is_none_or(is_short))
}

/// A key, in quotes if it needs them.
fn quoted(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if key.chars().all(is_bare) { key.to_owned() } else { string(key) }
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => string(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(table) => {
            let members: Vec<String> = (table.iter())
                .map(|(key, value)| format!("{} = {}", quoted(key), inline(value)))
                .collect();
            format!("{{ {} }}", members.join(", "))
        }
        other => other.to_string(),
    }
}

/// A basic string in one line. Its escapes are those of JSON.
fn string(text: &str) -> String {
    match text.contains('"') && !text.contains(|c: char| c == '\'' || c.is_control()) {
        true => format!("'{text}'"),
        false => serde_json::Value::from(text).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use louver_formats::Catalog;

    use super::*;

    #[test]
    fn every_family_is_written_and_read_again() {
        for format in Catalog::shipped().formats() {
            let written = description(format, &[]).unwrap();
            let read = WireFormat::from_toml(&written).unwrap_or_else(|e| panic!("{e}\n{written}"));
            assert_eq!(read, *format, "{written}");
        }
    }

    #[test]
    fn sources_stand_before_their_fields() {
        let format = Catalog::shipped().get("qwen3").unwrap().clone();
        let sources = [("/text/place", "a"), ("/call", "b"), ("/stop_tokens", "c")];
        let written = description(&format, &sources).unwrap();
        for line in ["# from a\nplace = ", "\n\n# from b\n[call]", "# from c\nstop_tokens = ["] {
            assert!(written.contains(line), "{written}");
        }
    }
}
