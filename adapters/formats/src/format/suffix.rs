//! Markers with a part that each checkpoint chooses, as in `<think:opensource>`.

use louver::ids::TokenId;
use louver::vocab::Vocabulary;
use serde_json::Value;

use super::WireFormat;

impl WireFormat {
    /// The format with the vocabulary's suffix in place of its own. Unchanged if the format has no
    /// suffix, or if no suffix makes a token of each marker that may be a token. Cost: linear in
    /// the vocabulary for formats with a suffix.
    pub(super) fn with_suffix_of(&self, vocab: &Vocabulary) -> WireFormat {
        let Some((own, found)) = self.suffix.as_ref().zip(self.suffix_in(vocab)) else {
            return self.clone();
        };
        let replaced = serde_json::to_value(self)
            .map(|value| replaced(value, own, &found))
            .and_then(serde_json::from_value::<WireFormat>);
        let WireFormat { name, title, sources, detect, .. } = self.clone();
        let Ok(format) = replaced else { return self.clone() };
        WireFormat { name, title, sources, detect, suffix: None, ..format }
    }

    /// The suffix with which the vocabulary has all tokens of the markers.
    fn suffix_in(&self, vocab: &Vocabulary) -> Option<String> {
        let own = self.suffix.as_deref()?;
        let (needed, possible) = self.tokens();
        let tokens = needed.into_iter().chain(possible);
        let tokens: Vec<String> = tokens.filter(|text| text.contains(own)).collect();
        let (before, after) = tokens.first()?.split_once(own)?;
        let has =
            |text: &str| vocab.special(text).is_some() || vocab.find(text.as_bytes()).is_some();
        let ordinary = (0..vocab.width()).filter_map(|id| vocab.bytes(TokenId::new(id)));
        let texts = ordinary.filter_map(|bytes| std::str::from_utf8(bytes).ok());
        let texts = vocab.specials().iter().map(|(_, name)| name.as_str()).chain(texts);
        let mut suffixes = texts.filter_map(|text| text.strip_prefix(before)?.strip_suffix(after));
        suffixes
            .find(|suffix| tokens.iter().all(|text| has(&text.replace(own, suffix))))
            .map(str::to_owned)
    }
}

/// The value with a text in all of its strings replaced.
fn replaced(value: Value, from: &str, to: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(from, to)),
        Value::Array(items) => items.into_iter().map(|item| replaced(item, from, to)).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, member)| (name, replaced(member, from, to))).collect()
        }
        other => other,
    }
}
