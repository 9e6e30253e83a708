//! Groups of bytes that lead to one configuration, and how likely each is: the estimates after
//! [`super::likely_paths`].

use crate::compile::MemberLikelihood;
use crate::fsm::ByteSet;
use crate::ids::SpecialId;
use crate::ir::SpecialToken;
use crate::matcher::{ConfigId, Parser, ParserLimit};

/// Factor for a byte with which the spelling of a special token begins that may follow itself.
const SPELLED_SPECIAL: f64 = 0.02;
/// Factor for the beginning of a trigger with [`unlikely`](crate::ir::Attributes::unlikely) bodies.
const UNUSUAL_TRIGGER: f64 = 0.02;

/// Bytes that lead to one configuration.
#[derive(Clone, Debug)]
pub(super) struct ByteGroup {
    pub(super) to: ConfigId,
    pub(super) bytes: ByteSet,
    /// How likely the target is among the declared and undeclared members that may follow.
    pub(super) likelihood: f64,
    /// Whether its bytes continue a trigger of free text.
    pub(super) advances_trigger: bool,
    /// The weight classes of its bytes, one bit each; see [`CLASSES`].
    pub(super) classes: u16,
}

/// The bytes that may follow a configuration, grouped by where they lead, and the number of items
/// of the configurations they lead to. `pending` is that of the configuration, see
/// [`Parser::pending_trigger_bytes`].
pub(super) fn group_bytes(
    parser: &mut Parser,
    config: ConfigId,
    pending: u32,
) -> Result<(Vec<ByteGroup>, usize), ParserLimit> {
    let (mut groups, mut items): (Vec<ByteGroup>, usize) = (Vec::new(), 0);
    let reads = parser.allowed(config);
    let sets = if reads.len() == 1 { vec![reads] } else { parser.bytes_by_edges(config) };
    // Implausible bytes are not followed, unless no other may follow or a trigger may need
    // them.
    let plausible = ByteSet::range(b' ', b'~')
        .intersect(&ByteSet::from_bytes(b"\\").complement())
        .union(&ByteSet::from_bytes(b"\n"));
    let is_plausible = |bytes: &ByteSet| bytes.meets(&plausible);
    let is_dispatch =
        parser.store().items(config).iter().any(|item| parser.program().is_dispatch(item.state));
    let all = is_dispatch || !sets.iter().any(is_plausible);
    for bytes in sets.iter().filter(|bytes| all || is_plausible(bytes)) {
        let Some(byte) = bytes.iter().next() else { continue };
        let to = parser.step(config, byte)?;
        items += parser.store().items(to).len();
        match groups.iter_mut().find(|group| group.to == to) {
            _ if to == ConfigId::DEAD => {}
            Some(group) => group.bytes = group.bytes.union(bytes),
            None => {
                let advances_trigger = parser.pending_trigger_bytes(to) > pending;
                groups.push(ByteGroup {
                    to,
                    bytes: *bytes,
                    likelihood: 1.0,
                    advances_trigger,
                    classes: 0,
                });
            }
        }
    }
    Ok((groups, items))
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

/// Lowers the likelihood of bytes that begin the name of a special token that may follow itself: a
/// model that has a special token does not spell it by bytes.
pub(super) fn discount_spelled_specials(
    parser: &Parser,
    specials: &[(SpecialId, ConfigId)],
    groups: &mut [ByteGroup],
) {
    let texts = specials.iter().filter_map(|&(special, _)| {
        match &parser.compiled().specials()[special.index()] {
            SpecialToken::Name(name) => name.bytes().next(),
            _ => None,
        }
    });
    let spelled = ByteSet::from_bytes(&texts.collect::<Vec<u8>>());
    for group in
        groups.iter_mut().filter(|group| group.bytes.len() == 1 && group.bytes.meets(&spelled))
    {
        group.likelihood *= SPELLED_SPECIAL;
    }
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

/// The weight classes of bytes, by one byte of each: bytes of a class have the same [`weight`].
pub(super) const CLASSES: [u8; 11] =
    [b' ', b'\n', b'\t', b'\\', 0, b'}', b']', b'-', b'0', b'a', b'"'];
/// The classes of bytes that names are made of.
pub(super) const NAME_CLASSES: u16 = 1 << 8 | LETTER_CLASS;
/// The class of ASCII letters.
pub(super) const LETTER_CLASS: u16 = 1 << 9;

/// By byte: the index of its weight class.
pub(super) static CLASS_OF: [u8; 256] = {
    let (mut out, mut byte) = ([0; 256], 0usize);
    while byte < 256 {
        out[byte] = match byte as u8 {
            b' ' => 0,
            b'\n' => 1,
            b'\t' | b'\r' => 2,
            b'\\' => 3,
            0..0x20 | 0x7F.. => 4,
            b'}' => 5,
            b']' => 6,
            b'-' | b'.' => 7,
            b'0'..=b'9' | b'_' => 8,
            b'a'..=b'z' | b'A'..=b'Z' => 9,
            _ => 10,
        };
        byte += 1;
    }
    out
};

/// Whether tokenizers treat the byte as punctuation.
pub(super) fn is_punctuation(byte: &u8) -> bool {
    byte.is_ascii_punctuation()
}

/// Whether names are made of such bytes.
pub(super) fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Likelihood of a byte relative to the others that may follow, given the byte before it.
pub(super) fn weight(byte: u8, last: Option<u8>) -> f64 {
    let last = last.unwrap_or(b'\n');
    match byte {
        b' ' | b'\n' | b'\t' | b'\r' => {
            let kind = match byte {
                b' ' => 1.0,
                b'\n' => 0.02,
                _ => 0.001,
            };
            let context = match last {
                b',' | b':' => 4.0,
                b' ' | b'\n' | b'\t' | b'\r' => 0.01,
                _ if is_key_byte(last) => 0.1,
                _ => 0.02,
            };
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
