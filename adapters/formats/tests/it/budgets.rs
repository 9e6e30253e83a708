//! Reasoning within a budget, in every family with reasoning: at most the budget, then the end of
//! the block.

use louver::ids::TokenId;
use louver_formats::{
    Catalog, Marker, Reasoning, ReasoningBudget, ReasoningFormat, RenderOptions, ToolRequest, Turn,
};

use crate::rig::{BOTH, Rig};

/// The text after reasoning: the end marker, and an answer.
fn after(rig: &Rig, reasoning: &ReasoningFormat) -> String {
    let turn = Turn::default().with_text("Hi");
    let options = RenderOptions::default().with_opened(true);
    let wire = rig.format.render_with(&turn, options).expect("renders");
    wire[reasoning.lead.len() + reasoning.trail.len()..].to_owned()
}

#[test]
fn reasoning_budgets_hold_in_every_family() {
    let mut checked = 0;
    for format in Catalog::shipped().formats() {
        for rig in BOTH.map(|which| Rig::new(format, which)) {
            let Some(reasoning) = &rig.format.reasoning else { continue };
            let after = after(&rig, reasoning);
            let ends = variants(&reasoning.end);
            for budget in [
                ReasoningBudget::Tokens(3),
                ReasoningBudget::Characters(3),
                ReasoningBudget::Tokens(0),
                ReasoningBudget::Characters(0),
            ] {
                let at = format!("{}, {budget:?}", rig.format.name);
                let request = ToolRequest::default()
                    .with_reasoning(Reasoning::Opened)
                    .with_reasoning_budget(budget);
                let lowered = rig.format.lower(&request).unwrap_or_else(|e| panic!("{at}: {e}"));
                let session = rig.session(&lowered, &[], &[]);
                let run = |wire: &str| session.run(&session.tokens(&rig.units(wire), 0), 1);
                let (ReasoningBudget::Tokens(most) | ReasoningBudget::Characters(most)) = budget;
                for (n, text) in ["", "a", "ab", "abc", "abcd", "abcdefghi"].into_iter().enumerate()
                {
                    let whole = run(&format!("{text}{after}"));
                    if n <= most as usize {
                        assert!(whole.complete, "{at}: {text:?} {:?}", whole.taken);
                        assert_eq!(
                            (whole.turn.reasoning.as_str(), whole.turn.text.as_str()),
                            (text, "Hi"),
                            "{at}"
                        );
                    } else {
                        assert_eq!(whole.taken, Err(most as usize), "{at}: {text:?}");
                    }
                    checked += 1;
                }
                let wide = "天地人";
                let whole = run(&format!("{wide}{after}"));
                assert_eq!(whole.complete, budget == ReasoningBudget::Characters(3), "{at}");
                assert!(!whole.complete || whole.turn.reasoning == wide, "{at}: {:?}", whole.turn);
                // When the budget is spent, only an end marker can follow, in any spelling.
                let mut matcher = session.matcher();
                for byte in b"abc".iter().take(most as usize) {
                    matcher
                        .advance(TokenId::from_raw(u32::from(*byte)))
                        .expect("within the budget");
                }
                for token in 0..257 + rig.specials.len() {
                    let token = TokenId::new(token);
                    let first = session.tokens(&rig.units(&after), 0)[0];
                    let ends = ends.iter().any(|end| {
                        let spelled = TokenId::from_raw(u32::from(end.as_bytes()[0]));
                        token == spelled || token == session.tokens(&rig.units(end), 0)[0]
                    });
                    let taken = matcher.clone().advance(token).is_ok();
                    assert!(!taken || ends, "{at}: {token:?}");
                    assert!(taken || token != first, "{at}: {token:?}");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 20_000, "{checked}");
}

/// The texts of a marker.
fn variants(marker: &Marker) -> Vec<String> {
    match marker {
        Marker::Any(markers) => markers.iter().map(Marker::write).collect(),
        marker => vec![marker.write()],
    }
}

/// A block within its budget is read as text between its markers, in each of their variants: also
/// an empty one, whose markers have no label. Without a block, there is no reasoning.
#[test]
fn the_markers_of_budgeted_reasoning_are_no_text() {
    let mut checked = 0;
    for format in Catalog::shipped().formats() {
        for rig in BOTH.map(|which| Rig::new(format, which)) {
            let Some(reasoning) = &rig.format.reasoning else { continue };
            let after = after(&rig, reasoning);
            let rest = after.strip_prefix(&reasoning.end.write()).expect("the end marker");
            let answer = rig.format.render(&Turn::default().with_text("Hi")).expect("renders");
            for most in [0, 2, 5] {
                let budget = ReasoningBudget::Characters(most as u32);
                let request = ToolRequest::default()
                    .with_reasoning(Reasoning::Optional)
                    .with_reasoning_budget(budget);
                let lowered = rig.format.lower(&request).expect("lowers");
                let session = rig.session(&lowered, &[], &[]);
                let mut wires = vec![(answer.clone(), "")];
                for (begin, end) in variants(&reasoning.begin)
                    .iter()
                    .flat_map(|begin| variants(&reasoning.end).into_iter().map(move |e| (begin, e)))
                {
                    let texts = ["", "a", "ab", "abcd"].into_iter();
                    let texts = texts.filter(|text| text.len() <= most);
                    wires.extend(texts.map(|text| (format!("{begin}{text}{end}{rest}"), text)));
                }
                for (wire, text) in wires {
                    let run = session.run(&session.tokens(&rig.units(&wire), 0), 1);
                    let at = format!("{}, {budget:?}: {wire:?}", format.name);
                    assert!(run.complete, "{at}: {:?}", run.taken);
                    let read = (run.turn.reasoning.as_str(), run.turn.text.as_str());
                    assert_eq!(read, (text, "Hi"), "{at}");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 800, "{checked}");
}

/// The markers of an empty preamble are no reasoning.
#[test]
fn empty_preambles_before_budgeted_reasoning_are_no_reasoning() {
    let rig = Rig::new(Catalog::shipped().get("harmony").expect("format"), BOTH[1]);
    let preamble = "<|channel|>commentary<|message|><|end|><|start|>assistant";
    let analysis = "<|channel|>analysis<|message|>one<|end|><|start|>assistant";
    let answer = "<|channel|>final<|message|>Hi<|return|>";
    let request = ToolRequest::default()
        .with_reasoning(Reasoning::Optional)
        .with_reasoning_budget(ReasoningBudget::Tokens(3));
    let lowered = rig.format.lower(&request).expect("lowers");
    let session = rig.session(&lowered, &[], &[]);
    for (blocks, reasoning) in [("", ""), (analysis, "one")] {
        let wire = preamble.repeat(2) + blocks + preamble + answer;
        let run = session.run(&session.tokens(&rig.units(&wire), 0), 1);
        assert!(run.complete, "{wire}: {:?}", run.taken);
        assert_eq!((run.turn.reasoning.as_str(), run.turn.text.as_str()), (reasoning, "Hi"));
    }
}

/// In a turn of messages, the budget is one for the turn: there is one message of reasoning.
#[test]
fn messages_share_a_budget() {
    let rig = Rig::new(Catalog::shipped().get("harmony").expect("format"), BOTH[1]);
    let analysis = "<|channel|>analysis<|message|>one<|end|><|start|>assistant";
    let preamble = "<|channel|>commentary<|message|>So:<|end|><|start|>assistant";
    let answer = "<|channel|>final<|message|>Hi<|return|>";
    for (reasoning, rows) in [
        (Reasoning::Optional, [(0, true), (1, true), (2, false)]),
        (Reasoning::Required, [(0, false), (1, true), (2, false)]),
    ] {
        let request = ToolRequest::default()
            .with_reasoning(reasoning)
            .with_reasoning_budget(ReasoningBudget::Tokens(3));
        let lowered = rig.format.lower(&request).expect("lowers");
        let session = rig.session(&lowered, &[], &[]);
        for (blocks, whole) in rows {
            for wire in [
                analysis.repeat(blocks) + answer,
                analysis.repeat(blocks) + preamble + answer,
                analysis.repeat(blocks.min(1))
                    + preamble
                    + &analysis.repeat(blocks.saturating_sub(1))
                    + answer,
            ] {
                let run = session.run(&session.tokens(&rig.units(&wire), 0), 1);
                assert_eq!(run.complete, whole, "{reasoning:?} {wire:?} {:?}", run.taken);
                assert!(!whole || run.turn.reasoning.len() == 3 * blocks, "{:?}", run.turn);
            }
        }
    }
}

/// With tokens that begin, continue and end code points anywhere, reasoning ends between code
/// points: only the rest of a code point may follow the last token of the budget.
#[test]
fn budgets_end_between_code_points() {
    let pieces: [&[u8]; 9] = [
        b"\xe5\xa4",
        b"\xa9",
        b"\xa9\xe5",
        b"\xa9a",
        b"\xf0\x9f",
        b"\x98\x80",
        b"\x98\x80\xe5\xa4",
        b"\xc3",
        b"a\xc3",
    ];
    let mut checked = 0;
    for name in ["qwen3", "deepseek_v3_1", "mistral_v11", "harmony"] {
        for which in BOTH {
            let rig = Rig::new(Catalog::shipped().get(name).expect("format"), which);
            let end = rig.format.reasoning.as_ref().expect("reasons").end.write();
            for most in 1..4u32 {
                let request = ToolRequest::default()
                    .with_reasoning(Reasoning::Opened)
                    .with_reasoning_budget(ReasoningBudget::Tokens(most));
                let lowered = rig.format.lower(&request).expect("lowers");
                let session = rig.session_of(&lowered, pieces.iter().map(|piece| piece.to_vec()));
                let token = |piece: &[u8]| session.token(piece);
                let end = session.tokens(&rig.units(&end), 0)[0];
                // Every sequence of these tokens that the matcher accepts.
                let mut rows = vec![(session.matcher(), Vec::new(), 0u32)];
                while let Some((mut matcher, text, taken)) = rows.pop() {
                    let rest = text.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
                    let at = format!("{name}, {which:?}, {most} tokens, after {text:02x?}");
                    let mut mask = vec![0; matcher.vocab().mask_words()];
                    matcher.fill_mask(&mut mask);
                    assert_eq!(matcher.allows(end), rest == 0, "{at}: the end");
                    for piece in pieces.iter().copied().chain([&b"a"[..]]) {
                        let mut next = matcher.clone();
                        let allowed = next.advance(token(piece)).is_ok();
                        assert_eq!(
                            allowed,
                            louver::mask::bit(&mask, token(piece)),
                            "{at}: the mask, {piece:02x?}"
                        );
                        let lacks = missing(&text[text.len() - rest..]);
                        let text = [&text, piece].concat();
                        let good = std::str::from_utf8(&text)
                            .map_or_else(|e| e.error_len().is_none(), |_| true);
                        // Within the budget, or the rest of the last code point.
                        let within = taken < most || piece.len() <= lacks;
                        assert_eq!(allowed, good && within, "{at}: {piece:02x?}");
                        checked += 1;
                        if allowed && text.len() < 12 {
                            rows.push((next, text, taken + 1));
                        }
                    }
                }
            }
        }
    }
    assert!(checked > 1_000, "{checked}");
}

/// The number of bytes that complete a code point.
fn missing(begun: &[u8]) -> usize {
    let whole = match begun.first() {
        None => 0,
        Some(0xc0..0xe0) => 2,
        Some(0xe0..0xf0) => 3,
        Some(_) => 4,
    };
    whole - begun.len()
}
