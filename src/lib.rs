//! Louver: structured generation. Grammars and JSON Schemas in; for each step of a language model, the mask of the
//! tokens that may follow out.
//!
//! # The flow
//!
//! ```text
//! tools, JSON Schema, regex, EBNF, Lark, structural tags       what the user has
//!   -> spec       typed request, JSON with exact numbers      stage 0   ParseError, with a place
//!   -> front      lowers it                                   stage 1   Unsupported or unsatisfiable, with a JSON pointer
//!   -> ir         rules over bytes, special tokens, repeats,  stage 2   GrammarError
//!                 graphs, tag dispatch
//!   -> compile    one FSM a rule, built as a parse gets to    stage 3   CompileError (empty, limit)
//!                 it; counted blocks, Aho-Corasick dispatch;
//!                 knows no vocabulary
//!   -> matcher    interned Earley configurations, traces      stage 4   AdvanceError, state unchanged
//!   -> mask       configuration + vocabulary -> bitset        stage 5   never fails
//!   -> engine     the door: Engine, Constraint, Matcher       stage 6
//! leaves used by all: ids, limits, fuel, cache, switches, fsm, vocab
//! ```
//!
//! A stage imports only earlier stages and leaves. [`compile::Compiled`] is immutable and shared; a [`engine::Matcher`] is
//! small; caches belong to the [`engine::Constraint`] (configurations, finished masks) and to all engines with an equal
//! vocabulary (mask entries of all grammars).
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use louver::engine::{Engine, EngineOptions};
//! use louver::front::json_schema::SchemaOptions;
//! use louver::ids::TokenId;
//! use louver::vocab::Vocabulary;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The toy vocabulary: the 256 bytes, one stop token (256), and these two (257, 258).
//! let vocab = Arc::new(Vocabulary::toy(&[b"\"o", b"\"up\""]));
//! let engine = Engine::new(vocab.clone(), EngineOptions::default());
//! let schema = r#"{"enum": ["on", "off"]}"#;
//! let constraint = engine.compile_json_schema(schema, &SchemaOptions::default())?;
//!
//! let mut matcher = constraint.matcher();
//! let mut mask = vec![0u32; vocab.mask_words()];
//! matcher.fill_mask(&mut mask);
//! let allowed = |id: u32| louver::mask::bit(&mask, TokenId::from_raw(id));
//! assert!(allowed(257) && allowed(u32::from(b'"')) && !allowed(258) && !allowed(256));
//!
//! matcher.advance(TokenId::from_raw(257))?;
//! for byte in *b"ff\"" {
//!     matcher.advance(TokenId::from_raw(u32::from(byte)))?;
//! }
//! assert!(matcher.is_complete());
//! # Ok(())
//! # }
//! ```
//!
//! # Glossary
//!
//! * *advance*: take one token; *rollback*: take tokens back; *fork*: an independent copy (`clone`).
//! * *block*: a counted repeat `{m,n}` inside a rule's automaton; items in it carry a counter instead of copies of states.
//! * *configuration*: where a parse can be, as an interned set of items; independent of the position in the text.
//! * *constraint*: a compiled grammar bound to a vocabulary.
//! * *dispatch* (tag dispatch): free text watched for triggers; a trigger hands over to its tag's body.
//! * *entry*: accepted / undecided / rejected tokens of one automaton state, whatever follows its rule.
//! * *frame*: what to go on with when a rule ends: an interned set of items (a node of the graph-structured stack).
//! * *fuel*: counted work; each mask and each compilation has a budget of it, see [`fuel`].
//! * *gate*: the state of a dispatch behind a fired trigger; looked at on its own, the dispatch ends there.
//! * *item*: a state of a rule's automaton, the counter of its block, and a frame.
//! * *label*: a mark on a rule that the engine hands back with the bytes the rule derived; see [`matcher::Tracer`].
//! * *mask*: one bit a token id, 1 = may follow; 32 ids a `u32` word, least significant bit first.
//! * *program*: the automata of a compiled grammar as far as one parser has met them.
//! * *rule*: a nonterminal. *State*: a node of a rule's automaton. *Edge*: over bytes, a special token, a call or a block.
//! * *special token*: a token with a meaning of its own; never spelled by bytes. *Stop token*: ends a generation.
//! * *trigger*: text or a special token that interrupts free text.
//! * *vocabulary*: the model's tokens as bytes, and the width of its logits.

pub mod cache;
pub mod compile;
pub mod engine;
pub mod front;
pub mod fsm;
pub mod fuel;
mod hash;
pub mod ids;
pub mod ir;
pub mod limits;
pub mod mask;
pub mod matcher;
mod numbers;
mod room;
pub mod spec;
pub mod switches;
pub mod vocab;
