//! Read step: one schema object becomes [`ParsedKeywords`](keywords::ParsedKeywords): its own
//! assertions as [`Facets`], and the locations of the schemas that apply to the same value.
//!
//! This file has the [`SchemaReader`], with what is shared by all later steps: the document, the
//! options and limits, the errors found so far, and the parsed patterns.

pub(super) mod doc;
pub(super) mod facets;
pub(super) mod keywords;
mod metaschemas;
pub(super) mod registry;
pub(super) mod relaxations;
mod resolve;
mod resources;
pub(super) mod shared_facets;
mod vocabulary;

use std::sync::Arc;

use super::error::{SchemaError, SchemaErrorReason as Reason};
use super::format;
use super::keyword::is_annotation;
use super::options::{Dialect, Policy, SchemaOptions};
use crate::front::diagnostic::{MAX_ERRORS, MAX_POINTER_BYTES};
use crate::front::regex::{CachedPattern, CountedDfa, RegexError, cached_pattern};
use crate::fsm::Dfa;
use crate::fuel;
use crate::hash::HashMap;
use crate::limits::Limits;
use crate::spec::json::{Json, Object};
use doc::{Doc, LocId};
use facets::{Facets, JsonTypes, PatternUse};
use registry::Registry;
use relaxations::{Attempt, KeywordTreatment, Relaxations, WorkLog};

/// Fuel for parsing one byte of a pattern.
const FUEL_PER_PATTERN_BYTE: usize = 10;
/// Fuel for a byte of a text that an automaton reads.
const FUEL_PER_TEXT_BYTE: usize = 2;
/// The largest number of contradictions in a report.
const MAX_CONTRADICTIONS: usize = 16;

/// A schema to lower, and how.
#[derive(Clone, Copy, Debug)]
pub struct SchemaSource<'s> {
    /// The schema.
    pub schema: &'s Json,
    /// Other documents that its references may lead to.
    pub registry: &'s Registry,
    /// Spelling, defaults and policy.
    pub options: SchemaOptions,
    /// Bounds on the schema and on its automata.
    pub limits: &'s Limits,
}

/// Rare features that make lowering of the whole schema costlier. Lowering starts without them;
/// when it first meets one, it starts again with the feature enabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Features {
    /// `unevaluatedProperties` and `unevaluatedItems`: parts keep what they evaluate, and every
    /// combination of `anyOf` branches is an alternative of its own.
    pub(super) evaluation: bool,
    /// `$dynamicRef` and `$recursiveRef`: locations have a dynamic scope.
    pub(super) dynamic: bool,
    /// `uniqueItems` over objects: additional names of an object differ, so that every text has one
    /// value.
    pub(super) distinct_names: bool,
}

/// Whether no more errors are added to a list.
fn is_full(errors: &[SchemaError]) -> bool {
    let pointer_bytes = || errors.iter().map(|error| error.pointer.len()).sum::<usize>();
    errors.len() >= MAX_ERRORS || pointer_bytes() >= MAX_POINTER_BYTES
}

/// The reader of one schema: its locations, options, limits, errors and patterns.
pub(super) struct SchemaReader<'a> {
    /// The locations of the document.
    pub(super) doc: Doc<'a>,
    /// The options.
    pub(super) options: SchemaOptions,
    /// The limits.
    pub(super) limits: &'a Limits,
    /// Features that the schema needs, as far as it has been read.
    pub(super) features: Features,
    /// [`Features::evaluation`] is enabled.
    pub(super) tracks_evaluation: bool,
    /// Errors that have been found.
    pub(super) errors: Vec<SchemaError>,
    /// Keywords that are not enforced, with [`Policy::Validate`] or [`Policy::BestEffort`].
    pub(super) relaxed: Vec<SchemaError>,
    /// Contradictions that have been found. They are reported only if no value satisfies the
    /// schema.
    pub(super) contradictions: Vec<SchemaError>,
    /// The location that is being read, for errors of no other location.
    pub(super) current: LocId,
    /// The patterns.
    pub(super) patterns: Patterns<'a>,
    /// What is relaxed because of limits.
    pub(super) relaxations: Relaxations,
    /// Where work was done, and where limits were reached.
    work: WorkLog,
}

/// The patterns of a schema.
#[derive(Default)]
pub(super) struct Patterns<'a> {
    /// By source; `None` if they cannot be used.
    parsed: HashMap<&'a str, Option<Arc<CachedPattern>>>,
    /// Whether formats are read by patterns that describe all of their texts; see
    /// [`SchemaReader::set_all_texts`].
    pub(super) has_all_texts: bool,
    /// Whether there may be a format whose pattern leaves out some of its texts.
    pub(super) has_narrow_formats: bool,
}

impl<'a> SchemaReader<'a> {
    /// A reader of the document `root`, with the features and relaxations of `attempt`.
    pub(super) fn new(
        SchemaSource { schema, registry, options, limits }: SchemaSource<'a>,
        Attempt { features, relaxations }: Attempt,
    ) -> Self {
        let has_narrow_formats = !registry.is_empty() || format::may_be_narrow(schema);
        SchemaReader {
            doc: Doc::new(schema, registry, options.dialect, features.dynamic),
            options,
            limits,
            features,
            tracks_evaluation: features.evaluation,
            errors: Vec::new(),
            relaxed: Vec::new(),
            contradictions: Vec::new(),
            current: LocId::ROOT,
            patterns: Patterns { has_narrow_formats, ..Patterns::default() },
            relaxations,
            work: WorkLog::begin(),
        }
    }

    /// Spends fuel; `false` if there is none left, which is reported.
    pub(super) fn spend(&mut self, units: usize) -> bool {
        if !self.work.halted
            && let Err(out) = fuel::spend(units)
        {
            self.halt(out.to_string());
        }
        !self.work.halted
    }

    /// Whether a text is in the language of an automaton over code points. `false` without fuel.
    pub(super) fn matches(&mut self, dfa: &Dfa, text: &str) -> bool {
        self.spend(1 + FUEL_PER_TEXT_BYTE * text.len()) && dfa.accepts_text(text)
    }

    /// Ends the work because the schema has too many nodes.
    pub(super) fn halt_at_nodes(&mut self) {
        self.halt(format!("more than {} schema nodes (`Limits::nodes`)", self.limits.nodes));
    }

    /// Ends the work because of a limit on the whole schema. Reports it where most of the work was
    /// done.
    pub(super) fn halt(&mut self, what: String) {
        if !std::mem::replace(&mut self.work.halted, true) {
            self.work.charge(self.current);
            let loc = self.work.costliest().first().copied().unwrap_or(self.current);
            let what = format!("{what}, and this schema takes most of them");
            self.add_error(loc, "", Reason::Limit(what));
        }
    }

    /// Whether the fuel is spent or the request cancelled.
    pub(super) fn is_exhausted(&self) -> bool {
        self.work.halted
    }

    /// Reports an error of a keyword of a location; an empty keyword stands for the location.
    pub(super) fn report(&mut self, loc: LocId, keyword: &str, reason: Reason) {
        let is_limit = matches!(reason, Reason::Limit(_));
        if is_limit && self.work.halted {
            return;
        }
        match fuel::check() {
            Err(out) if is_limit => self.halt(out.to_string()),
            _ => self.add_error(loc, keyword, reason),
        }
    }

    /// An error of a keyword of a location; an empty keyword stands for the location.
    fn error(&self, loc: LocId, keyword: &str, reason: Reason) -> SchemaError {
        let pointer = self.doc.keyword_pointer(loc, keyword);
        SchemaError { pointer, keyword: keyword.to_owned(), reason }
    }

    /// Adds an error to the report.
    fn add_error(&mut self, loc: LocId, keyword: &str, reason: Reason) {
        if is_full(&self.errors) {
            return;
        }
        let error = self.error(loc, keyword, reason);
        // An unsupported keyword is reported once, and not next to a worse error.
        let minor = matches!(error.reason, Reason::Unsupported(_));
        let is_reported = |e: &SchemaError| *e == error || (minor && e.pointer == error.pointer);
        if !self.errors.iter().any(is_reported) {
            if matches!(error.reason, Reason::Limit(_)) && !self.work.halted {
                self.work.add_limit(loc, keyword);
            }
            self.errors.push(error);
        }
    }

    /// Reports that a keyword is not enforced: as an error, or as a relaxation if the policy allows
    /// it. The caller continues with weaker facets.
    pub(super) fn unsupported(&mut self, loc: LocId, keyword: &str, what: String) {
        self.relax(loc, keyword, Reason::Unsupported(what));
    }

    /// As [`SchemaReader::unsupported`], for another reason.
    pub(super) fn relax(&mut self, loc: LocId, keyword: &str, reason: Reason) {
        if self.options.policy == Policy::Strict {
            return self.report(loc, keyword, reason);
        }
        if is_full(&self.relaxed) {
            return;
        }
        let error = self.error(loc, keyword, reason);
        if !self.relaxed.iter().any(|other| other.pointer == error.pointer) {
            self.relaxed.push(error);
        }
    }

    /// Notes a contradiction by which a subschema allows no value.
    pub(super) fn note_contradiction(&mut self, loc: LocId, keyword: &str, what: &str) {
        if self.contradictions.len() < MAX_CONTRADICTIONS {
            let reason = Reason::Unsatisfiable(what.to_owned());
            self.contradictions.push(self.error(loc, keyword, reason));
        }
    }

    /// Notes that the keywords of a schema object contradict each other, unless a contradiction of
    /// one of them is noted already.
    pub(super) fn note_contradictory_keywords(&mut self, loc: LocId) {
        if self.contradictions.len() >= MAX_CONTRADICTIONS {
            return;
        }
        let parent = self.doc.pointer(loc) + "/";
        let is_of_keyword =
            |error: &SchemaError| error.pointer.strip_suffix(&*error.keyword) == Some(&*parent);
        if self.contradictions.iter().any(is_of_keyword) {
            return;
        }
        let names = self.doc.object(loc).into_iter().flat_map(Object::iter).map(|(name, _)| name);
        let names = names.filter(|name| !is_annotation(name)).take(8);
        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        let what = format!("its keywords contradict each other: {}", names.join(", "));
        self.note_contradiction(loc, "", &what);
    }

    /// Follows schemas that consist of a reference only.
    pub(super) fn follow_references(&mut self, mut loc: LocId) -> LocId {
        for _ in 0..64 {
            let Some(object) = self.doc.object(loc).filter(|_| !loc.is_negated()) else {
                return loc;
            };
            let Some(reference) = object.get("$ref").and_then(Json::as_str) else { return loc };
            let has_others = self.doc.dialect(loc) > Dialect::Draft7 && object.len() > 1;
            if has_others || self.treatment(loc, object, "$ref") != KeywordTreatment::Enforced {
                return loc;
            }
            match self.doc.resolve(loc, reference) {
                Ok(target) if target != loc => loc = target,
                _ => return loc,
            }
        }
        loc
    }

    /// Whether formats and their negations have all of their texts from now on, also those that
    /// their patterns leave out, as when schemas are compared: two branches of `oneOf` are not
    /// disjoint if these are in both. Returns the earlier setting.
    pub(super) fn set_all_texts(&mut self, has_all_texts: bool) -> bool {
        let has_all_texts = has_all_texts && self.patterns.has_narrow_formats;
        std::mem::replace(&mut self.patterns.has_all_texts, has_all_texts)
    }

    /// The parsed pattern, memoized; `None` if it is malformed or unsupported (reported).
    pub(super) fn pattern(&mut self, used: &PatternUse<'a>) -> Option<Arc<CachedPattern>> {
        let source = if self.patterns.has_all_texts { used.opposite } else { used.source };
        if let Some(pattern) = self.patterns.parsed.get(source) {
            return pattern.clone();
        }
        if !self.spend(FUEL_PER_PATTERN_BYTE * source.len()) {
            return None;
        }
        let pattern = match cached_pattern(source, self.limits) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                let text = match used.keyword {
                    "patternProperties" => format!("{error}, in {source:?}"),
                    _ => error.to_string(),
                };
                let reason = match error {
                    RegexError::Syntax { .. } => Reason::Malformed(text),
                    RegexError::Unsupported { .. } => Reason::Unsupported(text),
                    RegexError::TooLarge(_) => Reason::Limit(text),
                };
                match reason {
                    Reason::Limit(_) => self.report(used.loc, used.keyword, reason),
                    // Other engines read more than ECMA-262 defines.
                    reason => self.relax(used.loc, used.keyword, reason),
                }
                None
            }
        };
        self.patterns.parsed.insert(source, pattern.clone());
        pattern
    }

    /// The automaton of the strings that contain a match; `None` if there is none or it is too
    /// large (reported).
    pub(super) fn pattern_dfa(&mut self, used: &PatternUse<'a>) -> Option<Arc<Dfa>> {
        let built = self.pattern(used)?.search_dfa(self.limits.automaton_states);
        self.or_report(used, built.map_err(|error| format!("{error} (`Limits::automaton_states`)")))
    }

    /// The strings that contain a match, as a union of automata with bounds on the length; as
    /// [`SchemaReader::pattern_dfa`].
    pub(super) fn counted_dfas(&mut self, used: &PatternUse<'a>) -> Option<Vec<CountedDfa>> {
        let built = self.pattern(used)?.counted_dfas(self.limits.automaton_states);
        self.or_report(used, built.map_err(|error| error.to_string()))
    }

    /// The automaton of the strings that contain no match; as [`SchemaReader::pattern_dfa`].
    pub(super) fn pattern_complement(&mut self, used: &PatternUse<'a>) -> Option<Arc<Dfa>> {
        let built = self.pattern(used)?.complement(self.limits.automaton_states);
        let what = |error| format!("the negation: {error} (`Limits::automaton_states`)");
        self.or_report(used, built.map_err(what))
    }

    /// An automaton of a pattern; an error is reported as a limit.
    fn or_report<T>(&mut self, used: &PatternUse<'a>, built: Result<T, String>) -> Option<T> {
        built.map_err(|what| self.report(used.loc, used.keyword, Reason::Limit(what))).ok()
    }

    /// Reports the keywords that are not enforced and that constrain values of these types.
    pub(super) fn report_unenforced(&mut self, facets: &Facets<'a>, types: JsonTypes) {
        for item in &facets.unenforced {
            if item.types.meets(types) {
                self.relax(item.loc, item.keyword, item.reason.clone());
            }
        }
    }
}
