//! Louver: structured generation. Compiles grammars and JSON Schemas, and computes the mask of
//! allowed tokens for each decoding step of a language model.
//!
//! # The flow
//!
//! ```text
//! JSON Schema, regex, EBNF, Lark, structural tags       what the user has
//!   -> spec       JSON with exact numbers                     stage 0   ParseError, with a place
//!   -> front      lowers it                                   stage 1   SchemaErrors, Diagnostics
//!   -> ir         rules over bytes, special tokens, repeats,  stage 2   GrammarError
//!                 graphs, tag dispatch
//!   -> compile    one FSM a rule, built as a parse gets to    stage 3   CompileError
//!                 it; counted blocks, Aho-Corasick dispatch;
//!                 knows no vocabulary
//!   -> matcher    interned Earley configurations, traces      stage 4   AdvanceError
//!   -> mask       configuration + vocabulary -> bitset        stage 5   limits, typed
//!   -> engine     the door: Engine, Constraint, Matcher       stage 6
//! leaves used by all: ids, limits, fuel, cache, hash, interner, capacity, decimal, random, utf16,
//!                     setters, switches, fsm, vocab
//! ```
//!
//! A stage imports only earlier stages and leaves. [`compile::Compiled`] is immutable and shared; a
//! [`engine::Matcher`] is small; caches belong to the [`engine::Constraint`] (configurations,
//! finished masks) and to all engines with an equal vocabulary (mask entries of all grammars).
//!
//! # What to import
//!
//! A user of the engine imports from the crate root. The modules hold the same items, and the rest.
//!
//! | to | import |
//! |---|---|
//! | describe the model's tokens | [`Vocabulary`], [`VocabularyBuilder`], [`TokenId`] |
//! | make an engine | [`Engine`], [`EngineOptions`], [`Limits`], [`PoolScope`] |
//! | compile a grammar | [`SchemaOptions`], [`RegexOptions`], [`EbnfOptions`], [`LarkOptions`], [`StructuralTagOptions`]; all engines and threads share the [`Constraint`] |
//! | read JSON with exact numbers | [`Json`] |
//! | build a grammar in code | [`GrammarBuilder`], [`Expr`], [`Grammar`], [`ByteSet`] |
//! | constrain a sequence | [`Matcher`], [`MaskRow`], [`MaskIdentity`] |
//! | constrain a batch | [`RowStatus`], [`UniqueRows`], [`BatchError`] |
//! | check a draft | [`DraftTree`], [`DraftNode`], [`DraftError`] |
//! | prepare masks | [`PrepareBudget`], [`Prepared`] |
//! | complete a text, skip forced text | [`CompletionOptions`], [`Completion`], [`Piece`] |
//! | find out what was generated | [`Capture`], [`Tracer`], [`Span`], [`Label`] |
//! | explain a refusal | [`Refusal`], [`Expected`] |
//! | recognise bytes without a vocabulary | [`Compiled`], [`Recognizer`], [`Rejected`] |
//! | bound and cancel work | [`fuel`], [`CancelToken`], [`OutOfFuel`] |
//! | handle errors | [`AdvanceError`], [`CompileError`], [`SchemaCompileError`], [`RegexCompileError`], [`TextCompileError`], [`StructuralTagCompileError`], [`GrammarError`], [`VocabError`], [`JsonError`], [`ResumeError`] |
//! | watch an engine | [`EngineStats`], [`PoolStats`], [`CacheStats`] |
//!
//! Option types have a default, and a method `with_...` for each field. Module [`internals`] is
//! for the crates of this repository and has no stability guarantee.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use louver::{Engine, EngineOptions, MaskRow, SchemaOptions, TokenId, Vocabulary};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The toy vocabulary: the 256 bytes, one stop token (256), and these two (257, 258).
//! let vocab = Arc::new(Vocabulary::toy(&[b"\"o", b"\"up\""]));
//! let engine = Engine::new(vocab.clone(), EngineOptions::default());
//! let schema = r#"{"enum": ["on", "off"]}"#;
//! let constraint = engine.compile_json_schema(schema, &SchemaOptions::default())?;
//!
//! let mut matcher = constraint.matcher();
//! let mut mask = MaskRow::new(&vocab);
//! matcher.update_mask(&mut mask);
//! let allows = |id: u32| mask.allows(TokenId::from_raw(id));
//! assert!(allows(257) && allows(u32::from(b'"')) && !allows(258) && !allows(256));
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
//! # Terminology
//!
//! One name for one concept, in code, documentation, errors and metrics. The second column is the
//! term of the literature, or of a code base that readers know, where it differs.
//!
//! | term here | term of the field | meaning |
//! |---|---|---|
//! | rule | nonterminal | A named expression of a grammar. |
//! | state, edge | DFA state, transition | A node of a rule's automaton; what leaves it: bytes, a special token, a call or a counted block. |
//! | item | Earley item | A state of a rule's automaton, the counter of its block, and a frame. Items carry no position. |
//! | frame | node of a graph-structured stack (Tomita) | The interned set of items to return to when a rule ends. |
//! | configuration | Earley item set | The interned set of items that a parse is in; independent of the position in the text. |
//! | interning | hash-consing | Equal values get one id, so that equality is equality of ids. |
//! | tail call | Leo's right recursion | A call with nothing after it returns directly to the caller's caller. |
//! | lazy automaton | lazy DFA (subset construction on demand) | A rule's automaton, of which a state is made when a parse first reaches it. |
//! | transition cache | lazy DFA cache | Where the bytes of a configuration lead, memoised. |
//! | counted block | counting automaton | A repeat `{m,n}` whose items carry a counter instead of copies of its states. |
//! | counted graph | counting automaton | A pattern with bounds on its length: a graph plus the number of steps taken. |
//! | member set | interleave, unordered group | Object members in any order, each at most once. |
//! | dispatch | tag dispatch (Aho-Corasick) | Free text that is searched for triggers; a trigger starts the body of its tag. |
//! | trigger | | A text or special token that interrupts free text. |
//! | exit | | A state of a rule that may return to its callers after a token has read a part of its bytes. |
//! | isolated item | | An item whose frame is unknown: a rule by itself, as mask entries describe it. |
//! | kernel | kernel (LR items) | The items after a symbol, before completion and prediction. |
//! | residual language | left quotient, derivative | The texts that can still be read from a state. |
//! | trigger state | | The state of a dispatch after a trigger, which calls the body of its tag. |
//! | counter profile | | Derivation of mask entries for states that count. |
//! | location, conjunction | schema location (JSON Schema core) | A subschema by its place; several that hold for one value. |
//! | witness | | A member or element that shows that a schema like `contains` holds. |
//! | alternative, facets | disjunct; facets (XML Schema) | One way to satisfy a conjunction, as bounds, patterns, members and elements. |
//! | representative | quotient by an equivalence | The configuration or state that stands for all that no token can tell apart. |
//! | lookahead | lookahead | What a configuration reads next; asked without advancing. |
//! | free text | universal language | A state from which (nearly) every text can be read. |
//! | distinct values | `uniqueItems` | The constraint that no two elements of one array are equal. |
//! | duplicate keys | | The constraint that no two members of one object have the same name. A *key* is such a name. |
//! | base configuration | | A configuration without the earlier keys of its objects; it has the mask to which keys add rejections. |
//! | register | register automaton | The interned set of values that an open array or object has had so far. |
//! | scope, element | | An array with `uniqueItems`, and one of its values. A scope is *inexhaustible* if each unfinished element can still become infinitely many values. |
//! | rival | | An earlier value that an unfinished one may still become equal to. |
//! | value cursor | | How far a text agrees with values that a register holds. |
//! | budget (of tokens, of code points) | | How much text one occurrence of a rule may still take. |
//! | white-space bound | | The limit on consecutive white space between JSON tokens. |
//! | relaxed | relaxation | Without such a bound: the mask is made without it, and then restricted. |
//! | label, trace | capture group, captures | A mark on a rule, and the spans of bytes that labelled rules derived. |
//! | deferred body | lazy grammar construction | A rule's body that is made when a parse first calls the rule. |
//! | mask | token mask, logit bitmask | One bit a token id, 1 = may follow; 32 ids a `u32` word, least significant bit first. |
//! | mask entry | adaptive token-mask entry (XGrammar) | The tokens that one automaton state accepts or rejects in any context, and the context-dependent ones. |
//! | context-dependent token | context-dependent token (XGrammar) | A token that leaves its rule on the way, so that the caller decides. |
//! | suffix | | The bytes of a context-dependent token after an exit. |
//! | mask pool | cross-grammar cache | Mask entries of one vocabulary, shared by all grammars, keyed by the automaton they depend on. |
//! | grammar masks, mask state | | A grammar bound to a vocabulary, which makes its masks; and what grows meanwhile, after a lock. |
//! | token trie, walk | prefix trie, trie traversal | The vocabulary by bytes; testing its tokens with the parser, subtree by subtree. |
//! | byte class, shape | alphabet compression | Bytes that an automaton never tells apart; tokens that differ in such bytes only have one shape. The *shape tree* has each shape once. |
//! | candidate | | A token that a comparison with earlier values or keys may reject, so that it is tested by itself. |
//! | preparation, prefetch | speculative precomputation | Masks that are made in the background before they are asked for. |
//! | draft tree | speculative decoding | Tokens proposed by a draft model, checked as a tree. |
//! | forced text, forced tokens | jump-forward, fast-forward tokens | The only continuation that the grammar allows. |
//! | shortest completion | shortest accepted suffix | The fewest bytes or tokens that complete the text (Knuth's generalisation of Dijkstra). |
//! | grammar cache | compilation cache | Compiled grammars by the text they were made from. |
//! | fuel | gas, fuel (Wasmtime) | Counted work: each mask, compilation and preparation has a budget of it; see [`fuel`]. |
//! | constraint | compiled grammar | A grammar bound to a vocabulary. |
//! | matcher | decoder state | One sequence of tokens under a constraint. |
//! | advance, rollback, fork | | Take a token; take tokens back; make an independent copy (`clone`). |
//! | special token | control token | A token with a meaning of its own, never spelled by bytes. A *stop token* ends a generation. |
//! | vocabulary | | The model's tokens as bytes, and the width of its logits. |

mod cache;
mod capacity;
pub mod compile;
mod decimal;
mod disjoint_sets;
pub mod engine;
pub mod front;
#[doc(hidden)]
pub mod fsm;
pub mod fuel;
mod hash;
pub mod ids;
mod interner;
pub mod ir;
pub mod limits;
pub mod mask;
pub mod matcher;
mod random;
mod setters;
pub mod spec;
#[doc(hidden)]
pub mod switches;
mod utf16;
pub mod vocab;

pub use compile::{CompileError, Compiled};
pub use engine::{
    BatchError, CacheStats, Capture, Completion, CompletionOptions, Constraint, DraftError,
    DraftNode, DraftTree, Engine, EngineOptions, EngineStats, Expected, Matcher, Piece,
    PrepareBudget, PrepareReport, Prepared, Refusal, RegexCompileError, ResumeError, RowStatus,
    SchemaCompileError, StructuralTagCompileError, TextCompileError, UniqueRows,
};
pub use front::ebnf::EbnfOptions;
pub use front::json_schema::SchemaOptions;
pub use front::lark::LarkOptions;
pub use front::regex::RegexOptions;
pub use front::structural_tag::StructuralTagOptions;
pub use fsm::ByteSet;
pub use fuel::{CancelToken, OutOfFuel};
pub use ids::{Label, TokenId};
pub use ir::{Expr, Grammar, GrammarBuilder, GrammarError};
pub use limits::Limits;
pub use mask::{MaskIdentity, MaskRow, PoolScope, PoolStats};
pub use matcher::{AdvanceError, Recognizer, Rejected, Span, Tracer};
pub use spec::json::{Json, JsonError};
pub use vocab::{VocabError, Vocabulary, VocabularyBuilder};

/// What the crates, tests and benchmarks of this repository use beyond the public interface: the
/// automata of compiled grammars, operations on automata, and switches for measurements. Unstable:
/// any release may change it.
///
/// ```
/// use louver::internals::{MaskTuning, Switches};
/// use louver::EngineOptions;
///
/// let options = EngineOptions::default()
///     .with_tuning(MaskTuning::with_direct_walk(0))
///     .with_switches(Switches::OFF);
/// assert_eq!(options.tuning.direct_walk, 0);
/// ```
pub mod internals {
    #[doc(inline)]
    pub use crate::compile::{
        AutomatonBlock, AutomatonEdge, AutomatonState, DispatchState, EdgeKind, RuleAutomaton,
    };
    #[doc(inline)]
    pub use crate::engine::MaskTuning;
    #[doc(inline)]
    pub use crate::fsm;
    #[doc(inline)]
    pub use crate::fsm::utf8::partial_char_len;
    #[doc(inline)]
    pub use crate::ir::regular;
    #[doc(inline)]
    pub use crate::random::{SplitMix64, mix};
    #[doc(inline)]
    pub use crate::switches::{Switch, Switches};
}
