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
    match &found.confirmation {
        Err(error) => head.push(format!("Not confirmed: {error}.")),
        Ok(confirmation) => head.extend(confirmed(confirmation)),
    }
    head.extend(found.notes.iter().map(|note| format!("Note: {note}")));
    let head: String = head.iter().map(|line| comment(line)).collect();
    Ok(head + &description(&found.format, sources)?)
}

/// What a chat template confirms, one turn a line; what stands against the format first.
fn confirmed(confirmation: &Confirmation) -> Vec<String> {
    let indented = |lines: Vec<String>| lines.into_iter().map(|line| format!("  {line}"));
    let mut out = Vec::new();
    if confirmation.is_full() {
        let what = "Confirmed: turns that the chat template writes are accepted and read back.";
        out.push(what.to_owned());
        out.extend(indented(confirmation.lines()));
        return out;
    }
    let [against, others] = confirmation.lines_by_result();
    out.push("Not confirmed by the chat template. Turns against the format:".to_owned());
    out.extend(indented(against));
    out.push("Other turns:".to_owned());
    out.extend(indented(others));
    out
}

/// A comment. It has none of the control characters that TOML forbids in comments.
fn comment(text: &str) -> String {
    let mut out = "# ".to_owned();
    for c in text.chars() {
        match c {
            '\n' => out += "\n# ",
            c if c.is_control() && c != '\t' => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out + "\n"
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

/// A string in one line: a literal one if it has quotation marks. The escapes of the others are
/// those of JSON, which leaves one character as it is that TOML does not.
fn string(text: &str) -> String {
    match text.contains('"') && !text.contains(|c: char| c == '\'' || c.is_control()) {
        true => format!("'{text}'"),
        false => serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f"),
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

    /// What the encoder writes is TOML, whatever a template has around calls.
    #[test]
    fn any_text_is_written_and_read_again() {
        let control = (0..0xa0).filter_map(char::from_u32);
        let texts = control.flat_map(|c| ["", "\"", "'", "\"'", "\\"].map(|q| format!("a{c}{q}b")));
        for text in texts.chain(["\u{2028}天\u{e000}\u{10ffff}".to_owned()]) {
            let mut format = Catalog::shipped().get("hermes").unwrap().clone();
            format.call.begin = Some(louver_formats::Marker::Text(text.clone()));
            format.call.trailer = vec![louver_formats::Part::Text(text.clone())];
            format.stop_tokens = vec![text.clone()];
            let written = comment(&text) + &description(&format, &[]).unwrap();
            let read = WireFormat::from_toml(&written).unwrap_or_else(|e| panic!("{e}\n{written}"));
            assert_eq!(read, format, "{written}");
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
