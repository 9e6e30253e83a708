//! The grammar of a turn that offers all tools, and how it reads a text.

use std::collections::BTreeSet;
use std::sync::Arc;

use louver::engine::{Constraint, Engine, EngineOptions};
use louver::ids::TokenId;
use louver::matcher::Tracer;
use louver::spec::json::Json;
use louver::vocab::Vocabulary;
use louver_formats::{LoweredRequest, Reasoning, ToolRequest, Turn, WireFormat};
use serde_json::json;

use super::FamilyTemplate;
use super::random::tools;

/// A family with the tokens of a checkpoint.
pub(super) struct TurnGrammar {
    pub(super) format: WireFormat,
    /// Special tokens, the longest first.
    specials: Vec<(String, TokenId)>,
    /// For turns that begin outside and inside of a reasoning block.
    constraints: Vec<(LoweredRequest, Constraint)>,
}

impl TurnGrammar {
    /// `are_special`: whether the added tokens of the checkpoint are special, too.
    pub(super) fn new(
        format: &WireFormat,
        case: &FamilyTemplate,
        are_special: bool,
    ) -> Result<TurnGrammar, String> {
        let ids = &case.checkpoint;
        let (needed, _) = format.tokens();
        let mut names: BTreeSet<String> = ids.tokens.iter().cloned().collect();
        names.extend(needed.into_iter().chain(ids.eos.clone()));
        names.extend(ids.added.iter().filter(|_| are_special).cloned());
        let mut builder = Vocabulary::builder(256 + names.len());
        for byte in 0..=255u8 {
            builder.token(u32::from(byte), &[byte]);
        }
        for (id, name) in (256..).zip(&names) {
            builder.special(id, name);
            if format.stop_tokens.contains(name) || ids.eos.as_ref() == Some(name) {
                builder.stop(id);
            }
        }
        let vocab = Arc::new(builder.build().map_err(|error| error.to_string())?);
        let format = format.bind(&vocab);
        let mut specials: Vec<(String, TokenId)> =
            (256..).map(TokenId::from_raw).zip(names).map(|(id, name)| (name, id)).collect();
        specials.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        let body = Json::from(&json!({"tools": tools(&format, case), "tool_choice": "auto"}));
        let request = ToolRequest::parse(&body).map_err(|error| error.to_string())?;
        let engine = Engine::new(vocab, EngineOptions::default());
        let openings = match format.reasoning {
            Some(_) => &[Reasoning::Optional, Reasoning::Opened][..],
            None => &[Reasoning::Off],
        };
        let constraints = openings.iter().map(|reasoning| {
            let request = request.clone().with_reasoning(*reasoning);
            request.compile(&engine, &format).map_err(|error| error.to_string())
        });
        let constraints = constraints.collect::<Result<_, _>>()?;
        Ok(TurnGrammar { format, specials, constraints })
    }

    /// The turn that a text is read as. `is_opened`: the prompt has opened a block of reasoning.
    pub(super) fn read(&self, text: &str, is_opened: bool) -> Result<Turn, String> {
        let (lowered, constraint) = &self.constraints[usize::from(is_opened)];
        let (mut matcher, mut tracer) = (constraint.matcher(), Tracer::new());
        let mut extractor = lowered.extractor(0);
        let mut at = 0;
        while at < text.len() {
            let rest = &text.as_bytes()[at..];
            let special = self.specials.iter().find(|(name, _)| rest.starts_with(name.as_bytes()));
            let (token, len) = match special {
                Some((name, token)) => (*token, name.len()),
                None => (TokenId::from_raw(u32::from(rest[0])), 1),
            };
            if matcher.advance_traced(token, &mut tracer).is_err() {
                return Err(format!("is refused at {:?}", String::from_utf8_lossy(rest)));
            }
            at += len;
        }
        if !matcher.is_complete() {
            return Err("is not complete".to_owned());
        }
        let mut events = extractor.push(tracer.finish());
        events.extend(extractor.finish(true));
        let mut turn = Turn::collect(&events);
        // Ids have their own tests.
        turn.calls.iter_mut().for_each(|call| call.id.clear());
        Ok(turn)
    }
}
