//! Lower step: facets become grammar rules.
//!
//! Objects and arrays become rules of their own, whose bodies are lowered from a queue. So nesting
//! costs no stack, and a recursive schema becomes a rule that refers to itself. All other values
//! are lowered where they are needed. Memo tables share rules between equal conjunctions of
//! schemas, equal numbers and strings, and containers of uniform content.
//!
//! This file has the driver. `object`, `array`, `string` and `number` lower the facets of their
//! type, `constants` listed values.

mod array;
pub(super) mod attempts;
mod builtin_pattern;
mod comparison;
mod constants;
mod containers;
mod exponent;
mod interned_graph;
mod listed;
mod member_graph;
mod memo;
mod multiples;
mod name_classes;
mod names;
mod number;
mod number_text;
mod object;
mod punctuation;
mod spelling;
mod string;
mod unconstrained;
mod unique;
pub(super) mod value_syntax;
pub(super) mod value_types;

use std::borrow::Cow;
use std::rc::Rc;

use smallvec::smallvec;

use super::error::{SchemaError, SchemaErrorReason as Reason, SchemaErrors};
use super::normalize::Normalizer;
use super::options::{Policy, SchemaOptions, Undeclared};
use super::read::SchemaReader;
use super::read::doc::{LocId, Locs};
use super::read::facets::{Facets, JsonTypes};
use super::read::relaxations::Attempt;
use crate::fuel::{self, OutOfFuel};
use crate::hash::HashMap;
use crate::ids::RuleId;
use crate::ir::{Expr, GrammarBuilder, Literal, ProductiveRules};
use attempts::{LoweringError, WithErrors};
use containers::ContainerRules;
use memo::{CommonRule, ValueMemo};
use names::NameMemo;
use number::NumberMemo;
use punctuation::Punctuation;
use spelling::Spelling;
use string::StringMemo;
use value_syntax::{ValueStyle, ValueSyntax};
use value_types::ValueTypes;

/// The state of lowering one schema into a grammar builder.
pub(super) struct SchemaLowering<'a, 'b> {
    /// The grammar under construction.
    builder: &'b mut GrammarBuilder,
    /// The normalizer of the schema.
    normalizer: Normalizer<'a>,
    /// The syntax of values.
    syntax: ValueSyntax,
    /// The types that a reader expects of the value that is being lowered: all, unless it stands
    /// between nested tags.
    expected: JsonTypes,
    /// The location that is being lowered, for error messages.
    location: LocId,
    /// Memo of lowered values.
    values: ValueMemo,
    /// Rules of objects and arrays.
    containers: ContainerRules<'a>,
    /// Rules that do not depend on the schema.
    common_rules: HashMap<CommonRule, RuleId>,
    /// Delimiters and white space, made on first use.
    punctuation: Option<Rc<Punctuation>>,
    /// Memo of strings and of their characters.
    strings: StringMemo<'a>,
    /// Memo of numbers.
    numbers: NumberMemo,
    /// Memo of rules of names.
    names: NameMemo<'a>,
}

impl<'a, 'b> SchemaLowering<'a, 'b> {
    /// Prepares to lower the normalizer's document, with the features that it has.
    pub(super) fn new(builder: &'b mut GrammarBuilder, normalizer: Normalizer<'a>) -> Self {
        SchemaLowering {
            builder,
            normalizer,
            syntax: ValueSyntax::Json,
            expected: JsonTypes::ALL,
            location: LocId::ROOT,
            values: ValueMemo::default(),
            containers: ContainerRules::default(),
            common_rules: HashMap::default(),
            punctuation: None,
            strings: StringMemo::default(),
            numbers: NumberMemo::default(),
            names: NameMemo::default(),
        }
    }

    /// The spelling of constrained text that the options ask for.
    fn spelling(&self) -> Spelling {
        let SchemaOptions { non_ascii, escapes, .. } = self.normalizer.reader.options;
        Spelling { non_ascii, escapes }
    }

    /// Lowers the root schema. Returns the rule of the value with the types that its reader
    /// expects, and what was relaxed.
    pub(super) fn lower_root(
        mut self,
        style: &ValueStyle,
    ) -> Result<WithErrors<(RuleId, ValueTypes)>, LoweringError> {
        self.syntax = style.syntax().clone();
        // The rules before these belong to the caller.
        let caller_rules = self.builder.len();
        let enabled = self.normalizer.reader.features;
        let (value, types) = self.root_value(style);
        self.lower_containers(enabled);
        let features = self.normalizer.reader.features;
        if features != enabled {
            self.builder.truncate(caller_rules);
            let relaxations = self.normalizer.reader.relaxations;
            return Err(LoweringError::Restart(Attempt { features, relaxations }, Vec::new()));
        }
        // The last automaton may have run out of fuel unnoticed, and then it is not what it should
        // be.
        self.normalizer.reader.spend(1);
        if !self.normalizer.reader.errors.is_empty() {
            self.builder.truncate(caller_rules);
            return Err(self.refuse_or_relax());
        }
        self = self.lower_python_values();
        let productive = ProductiveRules::find(self.builder.rules(), caller_rules);
        if !productive.derives_text(&value) {
            let mut errors = self.normalizer.reader.contradictions;
            if errors.is_empty() {
                let reason = Reason::Unsatisfiable("no value satisfies the schema".into());
                errors.push(SchemaError::of_schema(reason));
            }
            return Err(LoweringError::Refused(SchemaErrors(errors)));
        }
        self.name_rules_by_place(caller_rules);
        let rule = match value {
            Expr::Ref(rule) => rule,
            body => self.builder.rule("value", body),
        };
        Ok(((rule, types), self.normalizer.reader.relaxed))
    }

    /// The value of the root schema, and the types that its reader expects.
    fn root_value(&mut self, style: &ValueStyle) -> (Expr, ValueTypes) {
        match style {
            ValueStyle::Parameters(style) => self.root_parameters(style),
            ValueStyle::Syntax(ValueSyntax::Nested(_)) => {
                let types = self.types_by_node();
                (self.outermost_elements(), types)
            }
            ValueStyle::Syntax(ValueSyntax::Elements(_)) => {
                (self.outermost_elements(), ValueTypes::default())
            }
            ValueStyle::Syntax(_) => {
                (self.lower_value(smallvec![LocId::ROOT]), ValueTypes::default())
            }
        }
    }

    /// Ends an attempt with errors. If all of them are limits that the policy relaxes, the schema
    /// is to be lowered again with more relaxed.
    fn refuse_or_relax(mut self) -> LoweringError {
        let errors = std::mem::take(&mut self.normalizer.reader.errors);
        let is_relaxable = self.normalizer.reader.options.policy != Policy::Strict
            && fuel::check() != Err(OutOfFuel::Cancelled)
            && errors.iter().all(|error| matches!(error.reason, Reason::Limit(_)));
        if !is_relaxable {
            return LoweringError::Refused(SchemaErrors(errors));
        }
        let conjoined = self.values.conjoined();
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

    /// Reports a limit at the first of these keywords that the current location has.
    fn report_limit(&mut self, keywords: &[&'static str], what: String) {
        self.normalizer.reader.report_limit(self.location, keywords, what);
    }

    /// The largest number of states of an automaton.
    fn max_states(&self) -> usize {
        self.normalizer.reader.limits.automaton_states
    }

    /// Adds a rule.
    fn rule(&mut self, name: String, body: Expr) -> RuleId {
        let rule = self.builder.rule(name, body);
        self.containers.places.push((rule, self.location));
        rule
    }

    /// The expression as a rule, unless it is one or derives nothing.
    fn as_rule(&mut self, name: &str, body: Expr) -> Expr {
        match body {
            Expr::Ref(_) | Expr::Never => body,
            body => Expr::Ref(self.rule(name.to_owned(), body)),
        }
    }

    /// Adds JSON pointers to the names of the rules from `first` on, if these are so large that the
    /// compiler may refuse one.
    fn name_rules_by_place(&mut self, first: usize) {
        /// The compiler estimates at most so many states for each unit of size: a smaller grammar
        /// is not refused.
        const MIN_PART: usize = 16;
        /// With fewer locations, names are enough.
        const MIN_LOCATIONS: usize = 100;
        let most = self.normalizer.reader.limits.compiled_states / MIN_PART;
        if self.normalizer.reader.doc.len() < MIN_LOCATIONS || self.builder.size_from(first) <= most
        {
            return;
        }
        for (rule, loc) in std::mem::take(&mut self.containers.places) {
            let pointer = self.normalizer.reader.doc.pointer(loc);
            if !self.normalizer.reader.spend(1 + pointer.len() / 8) {
                return;
            }
            self.builder.extend_name(rule, &format!(" at {pointer:?}"));
        }
    }

    /// The values that satisfy all of the locations.
    fn lower_value(&mut self, mut locs: Locs) -> Expr {
        self.normalizer.canonicalize(&mut locs);
        if let Some(expr) = self.values.by_conjunction.get(&locs) {
            return expr.clone();
        }
        let types = match locs[..] {
            [] => Some(JsonTypes::ALL),
            [only] => self.normalizer.reader.type_only(only),
            _ => None,
        };
        let outer =
            std::mem::replace(&mut self.location, locs.first().copied().unwrap_or(LocId::ROOT));
        let expected = self.expected_types(&locs);
        let outer_expected = std::mem::replace(&mut self.expected, expected);
        let out = match types {
            Some(types) => self.values_of_types(types),
            None => self.lower_conjunction(&locs),
        };
        (self.location, self.expected) = (outer, outer_expected);
        self.values.by_conjunction.insert(locs, out.clone());
        out
    }

    /// The values of these types.
    fn values_of_types(&mut self, types: JsonTypes) -> Expr {
        let key = (types, self.expected);
        if let Some(expr) = self.values.by_types.get(&key) {
            return expr.clone();
        }
        let facets = Facets::of_types(types);
        let (mut parts, mut scalars) = (Vec::new(), Vec::new());
        self.lower_facets(&facets, &mut parts, &mut scalars);
        let out = self.union_rule(parts, scalars, "any");
        self.values.by_types.insert(key, out.clone());
        out
    }

    /// The values of a conjunction without a memo entry.
    fn lower_conjunction(&mut self, locs: &[LocId]) -> Expr {
        let alternatives = self.normalizer.generated_alternatives(locs);
        let mut parts = Vec::with_capacity(alternatives.len());
        let mut scalars = Vec::new();
        for facets in alternatives.iter() {
            self.lower_facets(facets, &mut parts, &mut scalars);
        }
        let name = self.normalizer.reader.doc.rule_name(self.location).to_owned();
        self.union_rule(parts, scalars, &name)
    }

    /// The union of these values, as a rule.
    fn union_rule(&mut self, parts: Vec<Expr>, scalars: Vec<Literal>, name: &str) -> Expr {
        let out = self.union_of(parts, scalars);
        self.as_rule(name, out)
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
            return self.listed_values(values, facets, parts, scalars);
        }
        let closed = self.with_undeclared_option(facets);
        let facets = &*closed;
        let types = facets.types;
        self.normalizer.reader.report_unenforced(facets, types);
        if types == JsonTypes::ALL
            && facets.number.allows_all()
            && facets.string.allows_all()
            && facets.array.allows_all()
            && facets.object.allows_all()
        {
            parts.push(Expr::Ref(self.json_rule()));
            return;
        }
        if types.meets(JsonTypes::NULL) {
            scalars.extend(self.syntax.words()[0].iter().map(|word| Literal::from(*word)));
        }
        if types.meets(JsonTypes::BOOLEAN) {
            let words = self.syntax.words()[1..].concat();
            scalars.extend(words.into_iter().map(Literal::from));
        }
        if types.meets(JsonTypes::NUMBER) {
            let number = self.number(&facets.number, types);
            parts.push(self.scalar(number));
        }
        if types.meets(JsonTypes::STRING) {
            parts.push(self.string(&facets.string));
        }
        if types.meets(JsonTypes::ARRAY) {
            parts.push(self.declare_array(&facets.array));
        }
        if types.meets(JsonTypes::OBJECT) {
            self.refuse_member_of_element_name(&facets.object);
            parts.push(self.declare_object(&facets.object));
        }
        let empty = self.nested_empty(facets);
        parts.extend(empty);
    }

    /// The facets, with undeclared members and elements as the options say.
    fn with_undeclared_option<'f>(&mut self, facets: &'f Facets<'a>) -> Cow<'f, Facets<'a>> {
        match self.normalizer.reader.options.undeclared {
            Undeclared::Allowed => Cow::Borrowed(facets),
            Undeclared::Forbidden => self.normalizer.close_undeclared(facets),
        }
    }
}
