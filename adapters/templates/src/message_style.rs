//! How chat templates want messages.

/// How a chat template wants the messages of an assistant that calls tools. Templates differ, and
/// say so only by failing or by writing wrong text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MessageStyle {
    /// Arguments are JSON text instead of an object.
    pub arguments_as_text: bool,
    /// The content of a message without text is null instead of the empty text.
    pub null_content: bool,
    /// Ids are `functions.NAME:INDEX` instead of nine letters and digits.
    pub indexed_ids: bool,
}

impl MessageStyle {
    /// All styles, the usual first.
    pub(crate) fn all() -> impl Iterator<Item = MessageStyle> {
        (0..8u8).map(|bits| MessageStyle {
            arguments_as_text: bits & 1 != 0,
            null_content: bits & 2 != 0,
            indexed_ids: bits & 4 != 0,
        })
    }

    /// The id of call `k`.
    pub(crate) fn id(self, k: usize, name: &str) -> String {
        match self.indexed_ids {
            true => format!("functions.{name}:{k}"),
            false => format!("q7Xw{k}Lp2V"),
        }
    }
}
