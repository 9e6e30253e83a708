//! Groups of bytes that lead to one configuration, and how likely each is: the estimates after
//! [`super::likely_paths`].

use crate::compile::MemberLikelihood;
use crate::fsm::ByteSet;
use crate::ids::SpecialId;
use crate::matcher::{ConfigId, Parser, ParserLimit};

/// Factor for the beginning of a trigger with [`unlikely`](crate::ir::Attributes::unlikely) bodies.
const UNUSUAL_TRIGGER: f64 = 0.02;

/// Bytes that lead to one configuration.
#[derive(Clone, Debug)]
pub(super) struct ByteGroup {
    /// Where values are compared, this is where the first of the bytes leads.
    pub(super) to: ConfigId,
    pub(super) bytes: ByteSet,
    /// How likely the target is among the declared and undeclared members that may follow.
    pub(super) likelihood: f64,
    /// Whether its bytes continue a trigger of free text.
    pub(super) advances_trigger: bool,
}

impl ByteGroup {
    /// Whether some names contain one of the bytes.
    pub(super) fn has_name_bytes(&self) -> bool {
        self.bytes.iter().any(is_name_byte)
    }
}

/// The bytes that may follow a configuration, grouped by where they lead. `pending` is that of the
/// configuration, see [`Parser::pending_trigger_bytes`].
pub(super) fn group_bytes(
    parser: &mut Parser,
    config: ConfigId,
    pending: u32,
) -> Result<Vec<ByteGroup>, ParserLimit> {
    let mut groups: Vec<ByteGroup> = Vec::new();
    for bytes in &parser.bytes_by_edges(config) {
        let Some(byte) = bytes.iter().next() else { continue };
        let to = parser.step(config, byte)?;
        match groups.iter_mut().find(|group| group.to == to) {
            _ if to == ConfigId::DEAD => {}
            Some(group) => group.bytes = group.bytes.union(bytes),
            None => {
                let advances_trigger = parser.pending_trigger_bytes(to) > pending;
                groups.push(ByteGroup { to, bytes: *bytes, likelihood: 1.0, advances_trigger });
            }
        }
    }
    Ok(groups)
}

/// The special tokens that may follow a configuration, with where they lead.
pub(super) fn special_continuations(
    parser: &mut Parser,
    config: ConfigId,
) -> Result<Vec<(SpecialId, ConfigId)>, ParserLimit> {
    let mut specials: Vec<SpecialId> = parser.specials(config).collect();
    specials.sort_unstable();
    specials.dedup();
    let specials =
        specials.into_iter().map(|special| Ok((special, parser.step_special(config, special)?)));
    specials.collect()
}

/// Lowers the likelihood of bytes that begin excludes and unlikely triggers only.
pub(super) fn discount_unlikely_triggers(
    parser: &Parser,
    config: ConfigId,
    groups: &mut [ByteGroup],
) {
    if !parser.is_in_unlikely_trigger(config) {
        let begins = |group: &&mut ByteGroup| {
            group.advances_trigger && parser.is_in_unlikely_trigger(group.to)
        };
        groups.iter_mut().filter(begins).for_each(|group| group.likelihood *= UNUSUAL_TRIGGER);
    }
}

/// Sets the likelihood of groups that lead to members of an object. That of groups after a member
/// is relative to the likeliest of them, if all declared groups are of that kind.
pub(super) fn estimate_members(parser: &mut Parser, groups: &mut [ByteGroup]) {
    let estimates: Vec<Option<MemberLikelihood>> =
        groups.iter().map(|group| parser.likelihood(group.to)).collect();
    let declared =
        estimates.iter().filter(|estimate| estimate.is_none_or(|likely| !likely.is_undeclared()));
    let after_member = |estimate: &Option<MemberLikelihood>| match estimate {
        Some(MemberLikelihood::After(likelihood)) => Some(*likelihood),
        _ => None,
    };
    let members: Option<Vec<f64>> = declared.map(after_member).collect();
    let likeliest = members.map(|members| members.into_iter().fold(f64::MIN_POSITIVE, f64::max));
    for (group, estimate) in groups.iter_mut().zip(estimates) {
        group.likelihood = match (estimate, likeliest) {
            (Some(MemberLikelihood::Among(likelihood)), _) => likelihood,
            (Some(MemberLikelihood::After(likelihood)), Some(likeliest)) => likelihood / likeliest,
            _ => 1.0,
        };
    }
}

/// Kinds of characters between which tokenizers tend to cut: digits, letters, `_`, white space,
/// punctuation.
pub(super) fn character_kind(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => 1,
        b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => 2,
        b'_' => 3,
        b' ' | b'\t' | b'\r' | b'\n' => 4,
        _ => 5,
    }
}

/// Whether tokenizers treat the byte as punctuation.
pub(super) fn is_punctuation(byte: &u8) -> bool {
    byte.is_ascii_punctuation()
}

/// Whether names are made of such bytes.
pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Likelihood of a byte relative to the others that may follow, given the byte before it.
pub(super) fn weight(byte: u8, last: Option<u8>) -> f64 {
    let last = last.unwrap_or(b'\n');
    match byte {
        b' ' | b'\n' => {
            let kind = if byte == b' ' { 1.0 } else { 0.02 };
            let context = if matches!(last, b',' | b':') { 4.0 } else { 0.02 };
            kind * context
        }
        b'\\' => 1e-4,
        0..0x20 | 0x7F.. => 1e-5,
        b'}' if last == b'{' => 0.1,
        b']' if last == b'[' => 0.1,
        b'-' | b'.' => 0.1,
        _ if byte.is_ascii_alphabetic() && last.is_ascii_digit() => 0.02,
        _ => 1.0,
    }
}
