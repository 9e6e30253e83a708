//! Masks of classes of code points with Unicode properties, over a vocabulary of several scripts.

use super::super::*;
use crate::front::json_schema::{NonAscii, SchemaOptions};
use crate::fuel;
use crate::mask::PoolScope;

/// First and last letters of scripts.
const SCRIPTS: [(char, char); 14] = [
    ('a', 'z'),
    ('A', 'Z'),
    ('ß', 'ö'),
    ('Ā', 'ſ'),
    ('α', 'ω'),
    ('а', 'я'),
    ('א', 'ת'),
    ('ا', 'ي'),
    ('अ', 'ह'),
    ('ก', 'ฮ'),
    ('ぁ', 'ゖ'),
    ('ァ', 'ヺ'),
    ('一', '鿿'),
    ('가', '힣'),
];

/// A vocabulary of a thousand words of one to four letters of each script, with spaces and marks,
/// and of their beginnings within a letter.
fn vocabulary() -> Arc<Vocabulary> {
    let mut seed = 1u32;
    let mut draw = |n: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 12) % n
    };
    let mut words: Vec<Vec<u8>> = Vec::new();
    for (first, last) in SCRIPTS {
        for _ in 0..1_000 {
            let before = [" ", "", "", "", "-", "(", "\u{3000}"][draw(7) as usize];
            let mut word = before.to_owned();
            for _ in 0..=draw(4) {
                let letters = u32::from(last) - u32::from(first) + 1;
                word.extend(char::from_u32(u32::from(first) + draw(letters)));
            }
            words.push(word.as_bytes().to_vec());
            words.push(word.as_bytes()[..word.len() - draw(2) as usize].to_vec());
        }
    }
    words.retain(|word| word.len() > 1);
    words.sort();
    words.dedup();
    let words: Vec<&[u8]> = words.iter().map(|word| &word[..]).collect();
    Arc::new(Vocabulary::toy(&words))
}

/// Units of fuel for one mask: far below [`Limits::mask_fuel`](crate::limits::Limits::mask_fuel),
/// as real vocabularies are ten times as large.
const MAX_FUEL: u64 = 150_000;

#[test]
fn masks_of_unicode_classes_take_little_fuel() {
    let vocab = vocabulary();
    for pattern in [
        r"^\p{L}+$",
        r"^[\p{L}\p{N}]+$",
        r"^\p{Alphabetic}+$",
        r"^[\p{L}\p{M}\p{N} ]+$",
        r"^[^\p{C}]+$",
        r"^\p{ID_Start}\p{ID_Continue}*$",
        r"^\p{Lu}\p{Ll}*(?: \p{Lu}\p{Ll}*)*$",
        r"\p{L}",
    ] {
        let string = serde_json::json!({"type": "string", "pattern": pattern});
        let member = serde_json::json!({
            "type": "object", "properties": {"name": string}, "required": ["name"]
        });
        let name = serde_json::json!({
            "type": "object", "patternProperties": {pattern: {}}, "additionalProperties": false
        });
        let schemas =
            [(&string, "\"", "Äpfel"), (&member, "{\"name\": \"", "日本"), (&name, "{\"", "Éa")];
        for non_ascii in [NonAscii::Either, NonAscii::Raw, NonAscii::Escaped] {
            for (schema, before, text) in schemas {
                // An engine of its own: nothing is pooled.
                let options =
                    EngineOptions { pool_scope: PoolScope::Engine, ..EngineOptions::default() };
                let engine = Engine::new(vocab.clone(), options);
                let options = SchemaOptions { non_ascii, ..SchemaOptions::default() };
                let constraint =
                    engine.compile_json_schema(&schema.to_string(), &options).expect("compiles");
                let mut matcher = constraint.matcher();
                let mut row = vec![0; vocab.mask_words()];
                let mut fuels = Vec::new();
                let text = if non_ascii == NonAscii::Escaped { "Hans" } else { text };
                for byte in [before, text].concat().bytes() {
                    fuels.push(fuel::measure(|| matcher.fill_mask(&mut row)).1);
                    let token = TokenId::from_raw(u32::from(byte));
                    if matcher.advance(token).is_err() {
                        break;
                    }
                }
                assert!(fuels.iter().all(|&fuel| fuel < MAX_FUEL), "{pattern}: {fuels:?}");
            }
        }
    }
}
