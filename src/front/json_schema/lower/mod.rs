//! Lower step: facets become grammar rules.
//!
//! Objects and arrays become rules of their own, whose bodies are lowered from a queue. So nesting
//! costs no stack, and a recursive schema becomes a rule that refers to itself. All other values
//! are lowered where they are needed. Memo tables share rules between equal conjunctions of
//! schemas, equal numbers and strings, and containers of uniform content.
//!
//! This file has the driver and constants. `object`, `array`, `string` and `number` lower the
//! facets of their type.

mod array;
pub(super) mod attempts;
pub(super) mod elements;
mod exponent;
pub(super) mod json_types;
mod listed;
mod magnitude;
mod member_graph;
mod multiples;
pub(super) mod nested;
mod number;
mod object;
pub(super) mod parameters;
mod punctuation;
mod spelling;
mod string;
pub(super) mod syntax;
mod unconstrained;
mod unique;

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use super::decimal::Decimal;
use super::error::{SchemaError, SchemaErrorReason as Reason, SchemaErrors};
use super::normalize::{Conjunction, Normalizer};
use super::options::{Policy, SchemaOptions, Undeclared};
use super::read::SchemaReader;
use super::read::doc::{LocId, Locs};
use super::read::facets::{ArrayFacets, Facets, NumberFacets, ObjectFacets, TypeSet};
use super::read::registry::Registry;
use super::read::relaxations::Attempt;
use super::read::shared_facets::SharedFacets;
use crate::fsm::Dfa;
use crate::fuel::{self, OutOfFuel};
use crate::hash::HashMap;
use crate::ids::RuleId;
use crate::ir::{Expr, GrammarBuilder, Graph, Literal, Member, Members};
use crate::limits::Limits;
use crate::spec::json::Json;
use attempts::LoweringError;
use json_types::JsonTypes;
use punctuation::{Delimiters, Punctuation, enclosed};
use spelling::{Spelling, single};
use syntax::ValueSyntax;
use unconstrained::CommonRules;

/// Constants of at most so many members list their members in all orders, as a graph. Larger ones
/// use a member set. Graphs of several constants that begin alike are merged.
const MAX_WRITTEN_OUT: usize = 4;

/// Whether the value is productive is first decided by a search of at most [`QUICK_SEARCH_RULES`]
/// rules and [`QUICK_SEARCH_DEPTH`] levels, then by a fixpoint over all rules.
const QUICK_SEARCH_RULES: usize = 256;
/// See [`QUICK_SEARCH_RULES`].
const QUICK_SEARCH_DEPTH: usize = 32;

/// A container whose content is constrained by type only: the key by which equal ones share a rule.
#[derive(PartialEq, Eq, Hash)]
enum UniformContainer {
    Array(TypeSet, u32, Option<u32>),
    Object(TypeSet),
}

/// The body of a rule that is still to be lowered.
enum PendingBody<'a> {
    Object(SharedFacets<ObjectFacets<'a>>),
    Array(SharedFacets<ArrayFacets>),
}

/// The state of lowering one schema into a grammar builder.
pub(super) struct SchemaLowering<'a, 'b> {
    /// The grammar under construction.
    builder: &'b mut GrammarBuilder,
    /// The number of rules that the builder had before; they belong to the caller.
    caller_rules: usize,
    /// The normalizer of the schema.
    normalizer: Normalizer<'a>,
    /// The syntax of values.
    syntax: ValueSyntax,
    /// The types that a reader expects of the value that is being lowered, between nested tags.
    present: JsonTypes,
    /// The location that is being lowered, for error messages.
    location: LocId,
    /// Memo of lowered values, by location.
    by_location: Vec<Option<Expr>>,
    /// Memo of lowered values, by conjunction of several locations.
    by_conjunction: HashMap<Conjunction, Expr>,
    /// Memo of containers whose content is constrained by type only.
    uniform: HashMap<UniformContainer, Expr>,
    /// Memo of values that are constrained by type only.
    by_types: HashMap<TypeSet, Expr>,
    /// Declared rules whose bodies are still to be lowered.
    queue: Vec<(RuleId, LocId, PendingBody<'a>)>,
    /// Rules of unconstrained values.
    common_rules: CommonRules,
    /// Delimiters and white space, made on first use.
    punctuation: Option<Rc<Punctuation>>,
    /// Memo of strings, by their facets.
    strings: HashMap<String, Expr>,
    /// Memo of numbers, by their facets and types.
    numbers: HashMap<(NumberFacets, TypeSet), Expr>,
    /// Memo of rules: all names but these.
    name_complements: HashMap<Vec<&'a str>, RuleId>,
    /// Memo of rules: a name rule, marked as an element that is compared within its object.
    distinct_elements: HashMap<RuleId, RuleId>,
    /// Memo of rules: one code point of these ranges.
    classes: HashMap<Vec<(u32, u32)>, RuleId>,
    /// Memo of spellings of one code point of these ranges: plain ASCII, and a rule for the rest.
    spelled_ranges: HashMap<Box<[(u32, u32)]>, [Expr; 2]>,
    /// The number of lowered bodies.
    lowered_bodies: usize,
    /// The number of listed numbers (`enum`, `const`) so far.
    listed_number_count: usize,
}

impl<'a, 'b> SchemaLowering<'a, 'b> {
    /// Prepares to lower the document of `source` with the features and relaxations of `attempt`.
    pub(super) fn new(
        builder: &'b mut GrammarBuilder,
        source: (&'a Json, &'a Registry),
        options: SchemaOptions,
        limits: &'a Limits,
        attempt: Attempt,
    ) -> Self {
        SchemaLowering {
            caller_rules: builder.len(),
            builder,
            normalizer: Normalizer::new(source, options, limits, attempt),
            syntax: ValueSyntax::Json,
            present: JsonTypes::ALL,
            location: LocId::ROOT,
            by_location: Vec::new(),
            by_conjunction: HashMap::default(),
            uniform: HashMap::default(),
            by_types: HashMap::default(),
            queue: Vec::new(),
            common_rules: CommonRules::default(),
            punctuation: None,
            strings: HashMap::default(),
            numbers: HashMap::default(),
            name_complements: HashMap::default(),
            distinct_elements: HashMap::default(),
            classes: HashMap::default(),
            spelled_ranges: HashMap::default(),
            lowered_bodies: 0,
            listed_number_count: 0,
        }
    }

    /// The spelling of constrained text that the options ask for.
    fn spelling(&self) -> Spelling {
        let SchemaOptions { non_ascii, escapes, .. } = self.normalizer.reader.options;
        Spelling { non_ascii, escapes }
    }

    /// Sets the syntax of values.
    fn with_syntax(mut self, syntax: ValueSyntax) -> Self {
        self.syntax = syntax;
        self
    }

    /// Lowers the root schema. Returns the rule of the value, and what was relaxed.
    pub(super) fn lower_root(self) -> Result<(RuleId, Vec<SchemaError>), LoweringError> {
        self.lower_root_with(|lowering| lowering.lower_value(vec![LocId::ROOT]))
    }

    /// As [`SchemaLowering::lower_root`], with `root` in place of the root schema's value.
    fn lower_root_with(
        mut self,
        root: impl FnOnce(&mut Self) -> Expr,
    ) -> Result<(RuleId, Vec<SchemaError>), LoweringError> {
        let enabled = self.normalizer.reader.features;
        let value = root(&mut self);
        while let Some((rule, loc, pending)) = self.queue.pop() {
            if self.normalizer.reader.features != enabled {
                break;
            }
            self.location = loc;
            self.normalizer.reader.enter(loc);
            let body = match pending {
                PendingBody::Object(facets) => self.object(&facets),
                PendingBody::Array(facets) => self.array(&facets),
            };
            self.builder.define(rule, body);
            self.lowered_bodies += 1;
            if !self.normalizer.reader.spend(1) {
                break;
            }
            if self.lowered_bodies + self.normalizer.reader.doc.len()
                > self.normalizer.reader.limits.nodes
            {
                self.normalizer.reader.halt_at_nodes();
                break;
            }
        }
        let features = self.normalizer.reader.features;
        if features != enabled {
            self.builder.truncate(self.caller_rules);
            let relaxations = self.normalizer.reader.relaxations;
            return Err(LoweringError::Restart(Attempt { features, relaxations }, Vec::new()));
        }
        if !self.normalizer.reader.errors.is_empty() {
            return Err(self.refuse_or_relax());
        }
        if !self.is_productive(&value) {
            let mut errors = self.normalizer.reader.conflicts;
            if errors.is_empty() {
                errors.push(SchemaError {
                    pointer: String::new(),
                    keyword: String::new(),
                    reason: Reason::Unsatisfiable("no value satisfies the schema".into()),
                });
            }
            return Err(LoweringError::Refused(SchemaErrors(errors)));
        }
        let rule = match value {
            Expr::Ref(rule) => rule,
            body => self.builder.rule("value", body),
        };
        Ok((rule, self.normalizer.reader.relaxed))
    }

    /// Ends an attempt with errors. If all of them are limits that the policy relaxes, the schema
    /// is to be lowered again with more relaxed.
    fn refuse_or_relax(mut self) -> LoweringError {
        self.builder.truncate(self.caller_rules);
        let errors = std::mem::take(&mut self.normalizer.reader.errors);
        let is_relaxable = self.normalizer.reader.options.policy != Policy::Strict
            && fuel::check() != Err(OutOfFuel::Cancelled)
            && errors.iter().all(|error| matches!(error.reason, Reason::Limit(_)));
        if !is_relaxable {
            return LoweringError::Refused(SchemaErrors(errors));
        }
        // A conjunction is lowered at its first location.
        let mut conjoined: HashMap<LocId, Vec<LocId>> = HashMap::default();
        for conj in self.by_conjunction.keys() {
            if let Some(&first) = conj.first() {
                conjoined.entry(first).or_default().extend(conj);
            }
        }
        let mut places = self.normalizer.reader.places_of_limits();
        for (locs, _) in &mut places {
            let first = locs[0];
            locs.extend(conjoined.get(&first).into_iter().flatten());
            locs.extend(self.normalizer.overflowed_with(first));
            locs.sort_unstable();
            locs.dedup();
        }
        if !self.normalizer.reader.relax_further(places) {
            return LoweringError::Refused(SchemaErrors(errors));
        }
        let SchemaReader { features, relaxations, .. } = self.normalizer.reader;
        LoweringError::Restart(Attempt { features, relaxations }, errors)
    }

    /// Whether an expression derives any text.
    fn is_productive(&self, value: &Expr) -> bool {
        let mut productive = vec![false; self.builder.len()];
        // The caller's rules count as productive.
        productive[..self.caller_rules].fill(true);
        if self.is_productive_within(
            value,
            &mut productive,
            &mut QUICK_SEARCH_RULES.clone(),
            QUICK_SEARCH_DEPTH,
        ) {
            return true;
        }
        loop {
            let mut changed = false;
            // Rules mostly refer to later ones, so the reverse order needs few rounds.
            for (rule, body_rule) in
                self.builder.rules().iter().enumerate().skip(self.caller_rules).rev()
            {
                if !productive[rule]
                    && derives(&body_rule.body, &mut |rule| productive[rule.index()])
                {
                    productive[rule] = true;
                    changed = true;
                }
            }
            if derives(value, &mut |rule| productive[rule.index()]) {
                return true;
            }
            if !changed {
                return false;
            }
        }
    }

    /// Whether an expression derives any text, as far as a bounded search tells. Marks the rules
    /// that do.
    fn is_productive_within(
        &self,
        expr: &Expr,
        productive: &mut [bool],
        searches: &mut usize,
        depth: usize,
    ) -> bool {
        derives(expr, &mut |rule| {
            if !productive[rule.index()] && depth > 0 && *searches > 0 {
                *searches -= 1;
                productive[rule.index()] = self.is_productive_within(
                    &self.builder.rules()[rule.index()].body,
                    productive,
                    searches,
                    depth - 1,
                );
            }
            productive[rule.index()]
        })
    }

    /// Adds a rule.
    fn rule(&mut self, name: String, body: Expr) -> RuleId {
        self.builder.rule(name, body)
    }

    /// The values that satisfy all of the locations.
    fn lower_value(&mut self, locs: impl Into<Locs>) -> Expr {
        self.lower_locations(locs.into())
    }

    /// As [`SchemaLowering::lower_value`], without generics.
    fn lower_locations(&mut self, mut locs: Locs) -> Expr {
        self.normalizer.canonicalize(&mut locs);
        let memoized = match locs[..] {
            [only] => self.by_location.get(only.table_index()).and_then(Option::as_ref),
            _ => self.by_conjunction.get(&locs[..]),
        };
        if let Some(expr) = memoized {
            return expr.clone();
        }
        let types = match locs[..] {
            [] => Some(TypeSet::ALL),
            [only] => self.normalizer.reader.type_only(only),
            _ => None,
        };
        let outer =
            std::mem::replace(&mut self.location, locs.first().copied().unwrap_or(LocId::ROOT));
        let out = match types {
            Some(types) => self.values_of_types(types),
            None => self.lower_conjunction(&locs),
        };
        self.location = outer;
        if let [only] = locs[..] {
            if self.by_location.len() <= only.table_index() {
                self.by_location.resize(2 * self.normalizer.reader.doc.len(), None);
            }
            self.by_location[only.table_index()] = Some(out.clone());
        } else {
            self.by_conjunction.insert(locs, out.clone());
        }
        out
    }

    /// The values of these types.
    fn values_of_types(&mut self, types: TypeSet) -> Expr {
        if let Some(expr) = self.by_types.get(&types) {
            return expr.clone();
        }
        let facets = Facets { types, ..Facets::any() };
        let (mut parts, mut scalars) = (Vec::new(), Vec::new());
        let outer = std::mem::replace(&mut self.present, JsonTypes::of(types));
        self.lower_facets(&facets, &mut parts, &mut scalars);
        self.present = outer;
        let out = self.union_rule(parts, scalars, "any");
        self.by_types.insert(types, out.clone());
        out
    }

    /// The values of a conjunction without a memo entry.
    fn lower_conjunction(&mut self, locs: &[LocId]) -> Expr {
        let alternatives = self.normalizer.alternatives(locs);
        let outer = self.present;
        if let ValueSyntax::Nested(_) = self.syntax {
            self.present = Self::kinds_of(&alternatives);
        }
        let mut parts = Vec::with_capacity(alternatives.len());
        let mut scalars = Vec::new();
        for facets in alternatives.iter() {
            self.lower_facets(facets, &mut parts, &mut scalars);
        }
        self.present = outer;
        let name = self.normalizer.reader.doc.rule_name(self.location).to_owned();
        self.union_rule(parts, scalars, &name)
    }

    /// The union of these values, as a rule.
    fn union_rule(&mut self, mut parts: Vec<Expr>, scalars: Vec<Literal>, name: &str) -> Expr {
        if !scalars.is_empty() {
            let scalars = self.scalar(word_set(scalars));
            parts.push(scalars);
        }
        let out = Expr::alt(parts);
        if matches!(out, Expr::Ref(_) | Expr::Never) {
            return out;
        }
        Expr::Ref(self.rule(name.to_owned(), out))
    }

    /// Lowers facets: adds the expressions of their values to `parts`, and fixed spellings to
    /// `scalars`.
    fn lower_facets(
        &mut self,
        facets: &Facets<'a>,
        parts: &mut Vec<Expr>,
        scalars: &mut Vec<Literal>,
    ) {
        if let Some(values) = &facets.values {
            let accepted: Vec<&Json> = values
                .iter()
                .copied()
                .filter(|value| self.normalizer.accepts(facets, value))
                .collect();
            self.constants(&accepted, facets.types, parts, scalars);
            if accepted.is_empty() {
                self.normalizer.reader.conflict(
                    self.location,
                    "",
                    "none of the listed values satisfies the other constraints",
                );
            }
            return;
        }
        let closed = self.close_undeclared(facets);
        let facets = &*closed;
        let types = facets.types;
        self.normalizer.reader.report_unenforced(facets, types);
        if types == TypeSet::ALL
            && facets.number.is_free()
            && facets.string.is_free()
            && facets.array.is_free()
            && facets.object.is_free()
        {
            parts.push(Expr::Ref(self.json_rule()));
            return;
        }
        if types.meets(TypeSet::NULL) {
            scalars.push(self.syntax.words()[0].into());
        }
        if types.meets(TypeSet::BOOLEAN) {
            scalars.extend(self.syntax.words()[1..].iter().map(|word| Literal::from(*word)));
        }
        if types.meets(TypeSet::NUMBER) {
            let number = self.number(&facets.number, types, self.location);
            parts.push(self.scalar(number));
        }
        if types.meets(TypeSet::STRING) {
            parts.push(self.string(&facets.string));
        }
        if types.meets(TypeSet::ARRAY) {
            parts.push(match self.uniform_array(&facets.array) {
                _ if facets.array.is_free() => Expr::Ref(self.any_array_rule()),
                Some(key) => {
                    self.declare_uniform(key, "array ", || PendingBody::Array(facets.array.clone()))
                }
                None => self.declare_container("array ", PendingBody::Array(facets.array.clone())),
            });
        }
        if types.meets(TypeSet::OBJECT) {
            parts.push(match self.uniform_object(&facets.object) {
                _ if facets.object.is_free() => Expr::Ref(self.any_object_rule()),
                Some(key) => self
                    .declare_uniform(key, "object ", || PendingBody::Object(facets.object.clone())),
                None => {
                    self.declare_container("object ", PendingBody::Object(facets.object.clone()))
                }
            });
        }
        let empty = self.nested_empty(facets);
        parts.extend(empty);
    }

    /// The facets, with undeclared members and elements as the options say.
    fn close_undeclared<'f>(&self, facets: &'f Facets<'a>) -> Cow<'f, Facets<'a>> {
        match self.normalizer.reader.options.undeclared {
            Undeclared::Allowed => Cow::Borrowed(facets),
            Undeclared::Forbidden => facets.close_undeclared(),
        }
    }

    /// The key of an array that is constrained by length and element type only.
    fn uniform_array(&self, facets: &ArrayFacets) -> Option<UniformContainer> {
        let [part] = &facets.parts[..] else { return None };
        let types =
            self.normalizer.reader.type_only(part.rest.filter(|_| part.prefix.is_empty())?)?;
        let ArrayFacets { contains, unique, repeats, .. } = facets;
        let is_uniform = contains.is_empty() && unique.is_none() && repeats.is_none();
        is_uniform.then_some(UniformContainer::Array(types, facets.min, facets.max))
    }

    /// The key of an object whose members are constrained by type only.
    fn uniform_object(&self, facets: &ObjectFacets<'a>) -> Option<UniformContainer> {
        let [part] = &facets.parts[..] else { return None };
        let types = self
            .normalizer
            .reader
            .type_only(part.additional.filter(|_| part.properties.is_empty())?)?;
        let constraints = facets.required.len()
            + facets.forbidden.len()
            + facets.names.len()
            + facets.witnesses.len();
        let is_uniform =
            constraints == 0 && part.patterns.is_empty() && facets.min == 0 && facets.max.is_none();
        is_uniform.then_some(UniformContainer::Object(types))
    }

    /// As [`SchemaLowering::declare_container`], with one rule for all containers with this key.
    fn declare_uniform(
        &mut self,
        key: UniformContainer,
        kind: &str,
        body: impl FnOnce() -> PendingBody<'a>,
    ) -> Expr {
        if let Some(expr) = self.uniform.get(&key) {
            return expr.clone();
        }
        let out = self.declare_container(kind, body());
        self.uniform.insert(key, out.clone());
        out
    }

    /// Declares the rule of a container, and queues its body.
    fn declare_container(&mut self, kind: &str, body: PendingBody<'a>) -> Expr {
        let rule = self
            .builder
            .declare([kind, self.normalizer.reader.doc.rule_name(self.location)].concat());
        self.queue.push((rule, self.location, body));
        Expr::Ref(rule)
    }

    /// The spellings of constants. Strings become one automaton, numbers another.
    fn constants(
        &mut self,
        values: &[&Json],
        types: TypeSet,
        parts: &mut Vec<Expr>,
        scalars: &mut Vec<Literal>,
    ) {
        let mut numbers: Vec<(Decimal, &str)> = Vec::new();
        let mut texts: Vec<&str> = Vec::new();
        let spelling = self.spelling();
        for value in values {
            match value {
                Json::Number(n) => numbers.push((Decimal::parse(n.as_str()), n.as_str())),
                Json::String(text) if self.syntax.is_json() => {
                    if spelling.is_single(text) {
                        scalars.push(single(text));
                    } else {
                        texts.push(text);
                    }
                }
                other => self.constant(other, parts, scalars),
            }
        }
        if !texts.is_empty() {
            let texts = Dfa::words(
                texts.iter().map(|text| text.chars().map(u32::from).collect::<Vec<_>>()),
            );
            match spelling.words(&texts, self.normalizer.reader.limits.compiled_states) {
                Ok(spelt) => parts.push(Expr::Automaton(Arc::new(spelt))),
                Err(error) => parts.push(self.too_large(&error)),
            }
        }
        if !numbers.is_empty() {
            let spelled = self.listed_numbers(numbers, types, scalars);
            parts.push(self.scalar(spelled));
        }
    }

    /// The spellings of one constant, other than numbers and JSON strings.
    fn constant(&mut self, value: &Json, parts: &mut Vec<Expr>, scalars: &mut Vec<Literal>) {
        match value {
            Json::Null => scalars.push(self.syntax.words()[0].into()),
            Json::Bool(true) => scalars.push(self.syntax.words()[1].into()),
            Json::Bool(false) => scalars.push(self.syntax.words()[2].into()),
            Json::String(text) if !self.syntax.is_json() => parts.push(match &self.syntax {
                ValueSyntax::Nested(tags) => self.nested_constant(tags, text),
                syntax => syntax.constant(text, self.spelling()),
            }),
            Json::String(_) | Json::Number(_) => {}
            // Refused where the types of values are collected.
            Json::Array(_) | Json::Object(_) if matches!(self.syntax, ValueSyntax::Nested(_)) => {}
            Json::Array(items) => {
                let punctuation = self.punctuation();
                let Delimiters { open, close, comma, empty } = &punctuation.brackets;
                if items.is_empty() {
                    return parts.push(empty.clone());
                }
                let mut body = vec![open.clone()];
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        body.push(comma.clone());
                    }
                    body.push(self.lower_constant(item));
                }
                body.push(close.clone());
                parts.push(Expr::seq(body));
            }
            Json::Object(object) => {
                let punctuation = self.punctuation();
                let Delimiters { open, close, comma, empty } = &punctuation.braces;
                if object.is_empty() {
                    return parts.push(empty.clone());
                }
                let mut members = Vec::new();
                for (name, item) in object.iter() {
                    let name = self.syntax.name(name, self.spelling());
                    members.push(Expr::seq([
                        name,
                        punctuation.colon.clone(),
                        self.lower_constant(item),
                    ]));
                }
                let members = Self::constant_members(members, comma.clone());
                parts.push(enclosed(open, members, close));
            }
        }
    }

    /// The members of a constant, in any order.
    fn constant_members(members: Vec<Expr>, comma: Expr) -> Expr {
        let n = members.len();
        if n > MAX_WRITTEN_OUT {
            let once = members.into_iter().map(|body| Member { body, required: true }).collect();
            let set = Members { once, often: Vec::new(), separator: comma, min: 0, max: None };
            return Expr::Members(Box::new(set));
        }
        // A node for each subset of the members.
        let all = (1u32 << n) - 1;
        let mut graph = Graph { nodes: all + 1, start: 0, ends: vec![all], edges: Vec::new() };
        for taken in 0..all {
            for (i, member) in members.iter().enumerate().filter(|(i, _)| taken >> i & 1 == 0) {
                let lead = if taken == 0 { Expr::Empty } else { comma.clone() };
                graph.edge(taken, Expr::seq([lead, member.clone()]), taken | 1 << i);
            }
        }
        Expr::Graph(Box::new(graph))
    }

    /// The spellings of one constant.
    fn lower_constant(&mut self, value: &Json) -> Expr {
        let (mut parts, mut scalars) = (Vec::new(), Vec::new());
        self.constants(&[value], TypeSet::ALL, &mut parts, &mut scalars);
        if !scalars.is_empty() {
            let scalars = self.scalar(word_set(scalars));
            parts.push(scalars);
        }
        Expr::alt(parts)
    }
}

/// A finite set of byte strings: an alternation if it is small, else an automaton.
fn word_set(mut words: Vec<Literal>) -> Expr {
    /// The compiler merges so few words itself.
    const MERGED_BY_COMPILER: usize = 24;
    if words.len() <= MERGED_BY_COMPILER {
        words.sort_unstable();
        words.dedup();
        return Expr::alt(words.into_iter().map(Expr::Bytes));
    }
    let symbols =
        words.iter().map(|word| word.iter().map(|&byte| byte.into()).collect::<Vec<u32>>());
    Expr::Automaton(Arc::new(Dfa::words(symbols)))
}

/// Whether an expression derives any text, given the productive rules.
fn derives(expr: &Expr, is_productive: &mut dyn FnMut(RuleId) -> bool) -> bool {
    match expr {
        Expr::Never => false,
        Expr::Empty | Expr::Bytes(_) | Expr::Class(_) | Expr::Special(_) => true,
        Expr::Dispatch(_) | Expr::Deferred(_) => true,
        Expr::Automaton(dfa) => !dfa.is_empty(),
        // Such a graph is made only if it derives a text.
        Expr::Counted(_) => true,
        Expr::Except(except) => {
            except.is_always_productive() || derives(&except.to_graph(), is_productive)
        }
        Expr::Ref(rule) => is_productive(*rule),
        Expr::Seq(parts) => parts.iter().all(|p| derives(p, is_productive)),
        Expr::Alt(parts) => parts.iter().any(|p| derives(p, is_productive)),
        Expr::Repeat { body, min, max } => {
            *max == Some(0) || *min == 0 || derives(body, is_productive)
        }
        Expr::Members(members) => members.derives(|part| derives(part, is_productive)),
        Expr::Graph(graph) => {
            let mut seen = vec![false; graph.nodes as usize];
            seen[graph.start as usize] = true;
            // Edges mostly lead to later nodes, so few rounds are needed.
            let mut changed = true;
            while std::mem::take(&mut changed) {
                for (from, expr, to) in &graph.edges {
                    if seen[*from as usize] && !seen[*to as usize] && derives(expr, is_productive) {
                        seen[*to as usize] = true;
                        changed = true;
                    }
                }
            }
            graph.ends.iter().any(|&end| seen[end as usize])
        }
    }
}
