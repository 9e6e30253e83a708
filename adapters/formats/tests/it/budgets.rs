//! Reasoning within a budget, in every family that reasons: so much and no more, then the end of the block.

use louver::ids::TokenId;
use louver_formats::{Catalog, Reasoning, ReasoningBudget, ReasoningFormat, RenderOptions, ToolRequest, Turn};

use crate::rig::{BOTH, Rig};

/// What follows the text of reasoning: its end marker, and an answer.
fn behind(rig: &Rig, reasoning: &ReasoningFormat) -> String {
    let turn = Turn { text: "Hi".to_owned(), ..Turn::default() };
    let options = RenderOptions { opened: true, builtins: &[] };
    let wire = rig.format.render_with(&turn, options).expect("renders");
    wire[reasoning.lead.len() + reasoning.trail.len()..].to_owned()
}

#[test]
fn every_family_keeps_a_budget() {
    let mut checked = 0;
    for format in Catalog::builtin().formats() {
        for rig in BOTH.map(|which| Rig::new(format, which)) {
            let Some(reasoning) = &rig.format.reasoning else { continue };
            let behind = behind(&rig, reasoning);
            for budget in [
                ReasoningBudget::Tokens(3),
                ReasoningBudget::Characters(3),
                ReasoningBudget::Tokens(0),
                ReasoningBudget::Characters(0),
            ] {
                let at = format!("{}, {budget:?}", rig.format.name);
                let request = ToolRequest {
                    reasoning: Reasoning::Opened,
                    reasoning_budget: Some(budget),
                    ..ToolRequest::default()
                };
                let plan = rig.format.lower(&request).unwrap_or_else(|e| panic!("{at}: {e}"));
                let session = rig.session(&plan, &[], &[]);
                let run = |wire: &str| session.run(&session.tokens(&rig.units(wire), 0), 1);
                let (ReasoningBudget::Tokens(most) | ReasoningBudget::Characters(most)) = budget;
                for (n, text) in ["", "a", "ab", "abc", "abcd", "abcdefghi"].into_iter().enumerate() {
                    let whole = run(&format!("{text}{behind}"));
                    if n <= most as usize {
                        assert!(whole.complete, "{at}: {text:?} {:?}", whole.taken);
                        assert_eq!((whole.turn.reasoning.as_str(), whole.turn.text.as_str()), (text, "Hi"), "{at}");
                    } else {
                        assert_eq!(whole.taken, Err(most as usize), "{at}: {text:?}");
                    }
                    checked += 1;
                }
                let wide = "天地人";
                let whole = run(&format!("{wide}{behind}"));
                assert_eq!(whole.complete, budget == ReasoningBudget::Characters(3), "{at}");
                assert!(!whole.complete || whole.turn.reasoning == wide, "{at}: {:?}", whole.turn);
                // With nothing left, the end marker is all that can follow.
                let mut matcher = session.matcher();
                for byte in b"abc".iter().take(most as usize) {
                    matcher.advance(TokenId::from_raw(u32::from(*byte))).expect("within the budget");
                }
                for token in 0..257 + rig.specials.len() {
                    let token = TokenId::new(token);
                    let first = session.tokens(&rig.units(&behind), 0)[0];
                    let spelled = reasoning.end.write().as_bytes()[0];
                    let ends = token == first || token == TokenId::from_raw(u32::from(spelled));
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

/// In a turn of messages, the budget is the turn's: there is one message of reasoning.
#[test]
fn messages_share_a_budget() {
    let rig = Rig::new(Catalog::builtin().get("harmony").expect("format"), BOTH[1]);
    let analysis = "<|channel|>analysis<|message|>one<|end|><|start|>assistant";
    let preamble = "<|channel|>commentary<|message|>So:<|end|><|start|>assistant";
    let answer = "<|channel|>final<|message|>Hi<|return|>";
    for (reasoning, rows) in [
        (Reasoning::Optional, [(0, true), (1, true), (2, false)]),
        (Reasoning::Required, [(0, false), (1, true), (2, false)]),
    ] {
        let request =
            ToolRequest { reasoning, reasoning_budget: Some(ReasoningBudget::Tokens(3)), ..ToolRequest::default() };
        let plan = rig.format.lower(&request).expect("lowers");
        let session = rig.session(&plan, &[], &[]);
        for (blocks, whole) in rows {
            for wire in [
                analysis.repeat(blocks) + answer,
                analysis.repeat(blocks) + preamble + answer,
                analysis.repeat(blocks.min(1)) + preamble + &analysis.repeat(blocks.saturating_sub(1)) + answer,
            ] {
                let run = session.run(&session.tokens(&rig.units(&wire), 0), 1);
                assert_eq!(run.complete, whole, "{reasoning:?} {wire:?} {:?}", run.taken);
                assert!(!whole || run.turn.reasoning.len() == 3 * blocks, "{:?}", run.turn);
            }
        }
    }
}
