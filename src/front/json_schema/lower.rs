//! Facets to rules. Objects and arrays become rules of their own, worked off a queue, so depth costs no stack and
//! recursion is a reference.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use super::decimal::Decimal;
use super::doc::LocId;
use super::facets::{ArrayFacets, Facets, NumberFacets, ObjectFacets, StringFacets, Types};
use super::group::Group;
use super::normalize::{Conj, Locs, Needs, Normalizer};
use super::punctuation::{Frame, Punctuation, around};
use super::spelling::{Spelling, single};
use super::syntax::Syntax;
use super::{
    Registry, SchemaError, SchemaErrorReason as Reason, SchemaErrors, SchemaOptions, Undeclared,
};
use crate::fsm::Dfa;
use crate::hash::HashMap;
use crate::ids::RuleId;
use crate::ir::{Expr, GrammarBuilder, Graph, Literal, Member, Members};
use crate::limits::Limits;
use crate::spec::json::Json;

/// Rules that every schema has in common, made on first use.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) space: Option<RuleId>,
    string: Option<RuleId>,
    tail: Option<RuleId>,
    special_tail: Option<RuleId>,
    number: Option<RuleId>,
    integer: Option<RuleId>,
    json: Option<RuleId>,
    object: Option<RuleId>,
    /// Strings that are names.
    pub(super) name: Option<RuleId>,
    array: Option<RuleId>,
}

/// Most members of a constant that are written out in all orders: that way, constants that begin alike are read together.
const WRITTEN_OUT: usize = 4;

/// Rules that are looked at before all are, and how far down, when it is asked whether there is a value at all.
const LOOK: usize = 256;
const NESTED: usize = 32;

/// An array or object that nothing is known of but the types of its parts.
#[derive(PartialEq, Eq, Hash)]
enum Plain {
    Array(Types, u32, Option<u32>),
    Object(Types),
}

/// An object or array still to be lowered.
enum Task<'a> {
    Object(Group<ObjectFacets<'a>>),
    Array(Group<ArrayFacets>),
}

pub(super) struct Lowering<'a, 'b> {
    pub(super) builder: &'b mut GrammarBuilder,
    /// How many rules the builder had before.
    foreign: usize,
    pub(super) norm: Normalizer<'a>,
    /// How values are written.
    pub(super) syntax: Syntax,
    /// The location being lowered, for messages.
    pub(super) at: LocId,
    /// Values by what they satisfy: one location, or several.
    alone: Vec<Option<Expr>>,
    memo: HashMap<Conj, Expr>,
    /// Arrays and objects whose elements or additional members are all values of some types, and how many elements there are.
    plain: HashMap<Plain, Expr>,
    /// All values of some types.
    typed: HashMap<Types, Expr>,
    queue: Vec<(RuleId, LocId, Task<'a>)>,
    pub(super) shared: Shared,
    pub(super) punctuation: Option<Rc<Punctuation>>,
    pub(super) strings: HashMap<String, Expr>,
    pub(super) numbers: HashMap<(NumberFacets, Types), Expr>,
    /// Rules of names that are none of these.
    pub(super) other_names: HashMap<Vec<&'a str>, RuleId>,
    /// Names that are elements of an object's scope, by what they are otherwise.
    pub(super) elements: HashMap<RuleId, RuleId>,
    /// Rules of one code point of these ranges.
    pub(super) classes: HashMap<Vec<(u32, u32)>, RuleId>,
    /// How one code point of these ranges is spelt: plain ASCII, and a rule of the rest.
    pub(super) spelt: HashMap<Box<[(u32, u32)]>, [Expr; 2]>,
    nodes: usize,
    /// How many numbers have been listed.
    pub(super) listed: usize,
}

impl<'a, 'b> Lowering<'a, 'b> {
    pub(super) fn new(
        builder: &'b mut GrammarBuilder,
        source: (&'a Json, &'a Registry),
        options: SchemaOptions,
        limits: &'a Limits,
        needs: Needs,
    ) -> Self {
        Lowering {
            foreign: builder.len(),
            builder,
            norm: Normalizer::new(source, options, limits, needs),
            syntax: Syntax::Json,
            at: LocId::ROOT,
            alone: Vec::new(),
            memo: HashMap::default(),
            plain: HashMap::default(),
            typed: HashMap::default(),
            queue: Vec::new(),
            shared: Shared::default(),
            punctuation: None,
            strings: HashMap::default(),
            numbers: HashMap::default(),
            other_names: HashMap::default(),
            elements: HashMap::default(),
            classes: HashMap::default(),
            spelt: HashMap::default(),
            nodes: 0,
            listed: 0,
        }
    }

    pub(super) fn spelling(&self) -> Spelling {
        let SchemaOptions { non_ascii, escapes, .. } = self.norm.options;
        Spelling { non_ascii, escapes }
    }

    pub(super) fn with_syntax(mut self, syntax: Syntax) -> Self {
        self.syntax = syntax;
        self
    }

    /// The rule of the value, and what was relaxed. `Err(Ok(_))`: the schema must be read again with these needs.
    pub(super) fn run(self) -> Result<(RuleId, Vec<SchemaError>), Result<Needs, SchemaErrors>> {
        self.run_with(|lowering| lowering.value(vec![LocId::ROOT]))
    }

    /// As [`Lowering::run`], of what `root` lowers.
    pub(super) fn run_with(
        mut self,
        root: impl FnOnce(&mut Self) -> Expr,
    ) -> Result<(RuleId, Vec<SchemaError>), Result<Needs, SchemaErrors>> {
        let served = self.norm.needs;
        let value = root(&mut self);
        while let Some((rule, at, task)) = self.queue.pop() {
            if self.norm.needs != served {
                break;
            }
            self.at = at;
            let body = match task {
                Task::Object(facets) => self.object(&facets),
                Task::Array(facets) => self.array(&facets),
            };
            self.builder.define(rule, body);
            self.nodes += 1;
            if !self.norm.spend(1) {
                break;
            }
            if self.nodes + self.norm.doc.len() > self.norm.limits.nodes {
                self.norm.report(LocId::ROOT, "", Reason::Limit("schema nodes".into()));
                break;
            }
        }
        if self.norm.needs != served {
            self.builder.truncate(self.foreign);
            return Err(Ok(self.norm.needs));
        }
        if !self.norm.errors.is_empty() {
            return Err(Err(SchemaErrors(self.norm.errors)));
        }
        if !self.productive(&value) {
            let mut errors = self.norm.conflicts;
            if errors.is_empty() {
                errors.push(SchemaError {
                    pointer: String::new(),
                    keyword: String::new(),
                    reason: Reason::Unsatisfiable("no value satisfies the schema".into()),
                });
            }
            return Err(Err(SchemaErrors(errors)));
        }
        let rule = match value {
            Expr::Ref(rule) => rule,
            body => self.builder.rule("value", body),
        };
        Ok((rule, self.norm.relaxed))
    }

    /// Whether anything can be derived, by fixpoint over the rules.
    fn productive(&self, value: &Expr) -> bool {
        let mut known = vec![false; self.builder.len()];
        // What the caller has put around members derives something.
        known[..self.foreign].fill(true);
        if self.soon(value, &mut known, &mut LOOK.clone(), NESTED) {
            return true;
        }
        loop {
            let mut changed = false;
            // Rules refer mostly to later ones.
            for (rule, known_rule) in
                self.builder.rules().iter().enumerate().skip(self.foreign).rev()
            {
                if !known[rule] && derives(&known_rule.body, &mut |rule| known[rule.index()]) {
                    known[rule] = true;
                    changed = true;
                }
            }
            if derives(value, &mut |rule| known[rule.index()]) {
                return true;
            }
            if !changed {
                return false;
            }
        }
    }

    /// Whether something is derived, as far as a short look tells.
    fn soon(&self, expr: &Expr, known: &mut [bool], looks: &mut usize, depth: usize) -> bool {
        derives(expr, &mut |rule| {
            if !known[rule.index()] && depth > 0 && *looks > 0 {
                *looks -= 1;
                known[rule.index()] =
                    self.soon(&self.builder.rules()[rule.index()].body, known, looks, depth - 1);
            }
            known[rule.index()]
        })
    }

    pub(super) fn rule(&mut self, name: String, body: Expr) -> RuleId {
        self.builder.rule(name, body)
    }

    /// What satisfies all of the locations.
    pub(super) fn value(&mut self, locs: impl Into<Locs>) -> Expr {
        self.value_of(locs.into())
    }

    fn value_of(&mut self, mut locs: Locs) -> Expr {
        self.norm.settle(&mut locs);
        let known = match locs[..] {
            [only] => self.alone.get(only.number()).and_then(Option::as_ref),
            _ => self.memo.get(&locs[..]),
        };
        if let Some(known) = known {
            return known.clone();
        }
        let types = match locs[..] {
            [] => Some(Types::ALL),
            [only] => self.norm.types_alone(only),
            _ => None,
        };
        let at = std::mem::replace(&mut self.at, locs.first().copied().unwrap_or(LocId::ROOT));
        let out = match types {
            Some(types) => self.any_of_types(types),
            None => self.conjunction(&locs),
        };
        self.at = at;
        if let [only] = locs[..] {
            if self.alone.len() <= only.number() {
                self.alone.resize(2 * self.norm.doc.len(), None);
            }
            self.alone[only.number()] = Some(out.clone());
        } else {
            self.memo.insert(locs, out.clone());
        }
        out
    }

    /// All values of these types.
    fn any_of_types(&mut self, types: Types) -> Expr {
        if let Some(known) = self.typed.get(&types) {
            return known.clone();
        }
        let facets = Facets { types, ..Facets::any() };
        let (mut parts, mut scalars) = (Vec::new(), Vec::new());
        self.facets(&facets, &mut parts, &mut scalars);
        let out = self.alternation(parts, scalars, "any");
        self.typed.insert(types, out.clone());
        out
    }

    fn conjunction(&mut self, locs: &[LocId]) -> Expr {
        let alternatives = self.norm.alternatives(locs);
        let mut parts = Vec::with_capacity(alternatives.len());
        let mut scalars = Vec::new();
        for facets in alternatives.iter() {
            self.facets(facets, &mut parts, &mut scalars);
        }
        let name = self.norm.doc.short(self.at).to_owned();
        self.alternation(parts, scalars, &name)
    }

    /// Any of these values, as a rule.
    fn alternation(&mut self, mut parts: Vec<Expr>, scalars: Vec<Literal>, name: &str) -> Expr {
        if !scalars.is_empty() {
            let scalars = self.scalar(words(scalars));
            parts.push(scalars);
        }
        let out = Expr::alt(parts);
        if matches!(out, Expr::Ref(_) | Expr::Never) {
            return out;
        }
        Expr::Ref(self.rule(name.to_owned(), out))
    }

    pub(super) fn facets(
        &mut self,
        facets: &Facets<'a>,
        parts: &mut Vec<Expr>,
        scalars: &mut Vec<Literal>,
    ) {
        if let Some(values) = &facets.values {
            let kept: Vec<&Json> =
                values.iter().copied().filter(|value| self.norm.accepts(facets, value)).collect();
            self.constants(&kept, facets.types, parts, scalars);
            if kept.is_empty() {
                self.norm.conflict(
                    self.at,
                    "",
                    "none of the listed values satisfies what else holds here",
                );
            }
            return;
        }
        let closed = self.closed(facets);
        let facets = &*closed;
        let types = facets.types;
        self.norm.report_unenforced(facets, types);
        if types == Types::ALL
            && facets.number.is_free()
            && facets.string.is_free()
            && facets.array.is_free()
            && facets.object.is_free()
        {
            parts.push(Expr::Ref(self.json_rule()));
            return;
        }
        if types.meets(Types::NULL) {
            scalars.push(self.syntax.words()[0].into());
        }
        if types.meets(Types::BOOLEAN) {
            scalars.extend(self.syntax.words()[1..].iter().map(|word| Literal::from(*word)));
        }
        if types.meets(Types::NUMBER) {
            let number = self.number(&facets.number, types, self.at);
            parts.push(self.scalar(number));
        }
        if types.meets(Types::STRING) {
            parts.push(self.string(&facets.string));
        }
        if types.meets(Types::ARRAY) {
            parts.push(match self.plain_array(&facets.array) {
                _ if facets.array.is_free() => Expr::Ref(self.any_array_rule()),
                Some(plain) => self.shared(plain, "array ", || Task::Array(facets.array.clone())),
                None => self.later("array ", Task::Array(facets.array.clone())),
            });
        }
        if types.meets(Types::OBJECT) {
            parts.push(match self.plain_object(&facets.object) {
                _ if facets.object.is_free() => Expr::Ref(self.any_object_rule()),
                Some(plain) => {
                    self.shared(plain, "object ", || Task::Object(facets.object.clone()))
                }
                None => self.later("object ", Task::Object(facets.object.clone())),
            });
        }
    }

    /// The facets as [`Undeclared`] has them.
    pub(super) fn closed<'f>(&self, facets: &'f Facets<'a>) -> Cow<'f, Facets<'a>> {
        match self.norm.options.undeclared {
            Undeclared::Allowed => Cow::Borrowed(facets),
            Undeclared::Forbidden => facets.closed(),
        }
    }

    fn plain_array(&self, facets: &ArrayFacets) -> Option<Plain> {
        let [part] = &facets.parts[..] else { return None };
        let types = self.norm.types_alone(part.rest.filter(|_| part.prefix.is_empty())?)?;
        let plain = facets.contains.is_empty() && facets.unique.is_none();
        plain.then_some(Plain::Array(types, facets.min, facets.max))
    }

    fn plain_object(&self, facets: &ObjectFacets<'a>) -> Option<Plain> {
        let [part] = &facets.parts[..] else { return None };
        let types =
            self.norm.types_alone(part.additional.filter(|_| part.properties.is_empty())?)?;
        let said =
            facets.required.len() + facets.forbidden.len() + facets.names.len() + facets.some.len();
        let plain =
            said == 0 && part.patterns.is_empty() && facets.min == 0 && facets.max.is_none();
        plain.then_some(Plain::Object(types))
    }

    /// As [`Lowering::later`], once for all that are alike.
    fn shared(&mut self, plain: Plain, kind: &str, task: impl FnOnce() -> Task<'a>) -> Expr {
        if let Some(known) = self.plain.get(&plain) {
            return known.clone();
        }
        let out = self.later(kind, task());
        self.plain.insert(plain, out.clone());
        out
    }

    fn later(&mut self, kind: &str, task: Task<'a>) -> Expr {
        let rule = self.builder.declare([kind, self.norm.doc.short(self.at)].concat());
        self.queue.push((rule, self.at, task));
        Expr::Ref(rule)
    }

    /// Values of these types: their spellings.
    fn constants(
        &mut self,
        values: &[&Json],
        types: Types,
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
            match spelling.words(&texts, self.norm.limits.compiled_states) {
                Ok(spelt) => parts.push(Expr::Automaton(Arc::new(spelt))),
                Err(error) => parts.push(self.too_large(&error)),
            }
        }
        if !numbers.is_empty() {
            let listed = self.listed_numbers(numbers, types, scalars);
            parts.push(self.scalar(listed));
        }
    }

    /// One value that is neither number nor string of JSON: its spellings.
    fn constant(&mut self, value: &Json, parts: &mut Vec<Expr>, scalars: &mut Vec<Literal>) {
        match value {
            Json::Null => scalars.push(self.syntax.words()[0].into()),
            Json::Bool(true) => scalars.push(self.syntax.words()[1].into()),
            Json::Bool(false) => scalars.push(self.syntax.words()[2].into()),
            Json::String(text) if !self.syntax.is_json() => {
                parts.push(self.syntax.constant(text, self.spelling()));
            }
            Json::String(_) | Json::Number(_) => {}
            Json::Array(items) => {
                let marks = self.punctuation();
                let Frame { open, close, comma, empty } = &marks.brackets;
                if items.is_empty() {
                    return parts.push(empty.clone());
                }
                let mut body = vec![open.clone()];
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        body.push(comma.clone());
                    }
                    body.push(self.whole_constant(item));
                }
                body.push(close.clone());
                parts.push(Expr::seq(body));
            }
            Json::Object(object) => {
                let marks = self.punctuation();
                let Frame { open, close, comma, empty } = &marks.braces;
                if object.is_empty() {
                    return parts.push(empty.clone());
                }
                let mut members = Vec::new();
                for (name, item) in object.iter() {
                    let name = self.syntax.name(name, self.spelling());
                    members.push(Expr::seq([name, marks.colon.clone(), self.whole_constant(item)]));
                }
                let members = Self::constant_members(members, comma.clone());
                parts.push(around(open, members, close));
            }
        }
    }

    /// All members, in any order.
    fn constant_members(members: Vec<Expr>, comma: Expr) -> Expr {
        let n = members.len();
        if n > Members::MOST {
            let first = |i: usize| if i == 0 { Expr::Empty } else { comma.clone() };
            return Expr::seq(
                members.into_iter().enumerate().map(|(i, member)| Expr::seq([first(i), member])),
            );
        }
        if n > WRITTEN_OUT {
            let once = members.into_iter().map(|body| Member { body, required: true }).collect();
            let set = Members { once, often: Vec::new(), separator: comma, min: 0, max: None };
            return Expr::Members(Box::new(set));
        }
        // A node for every subset.
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

    pub(super) fn whole_constant(&mut self, value: &Json) -> Expr {
        let (mut parts, mut scalars) = (Vec::new(), Vec::new());
        self.constants(&[value], Types::ALL, &mut parts, &mut scalars);
        if !scalars.is_empty() {
            let scalars = self.scalar(words(scalars));
            parts.push(scalars);
        }
        Expr::alt(parts)
    }

    /// Any string.
    pub(super) fn string_rule(&mut self) -> RuleId {
        if let Some(rule) = self.shared.string {
            return rule;
        }
        let body = if self.syntax.is_json() {
            Expr::seq([Expr::text("\""), Expr::Ref(self.tail_rule())])
        } else {
            self.foreign_string(&StringFacets::default())
        };
        let rule = self.rule("string".into(), body);
        *self.shared.string.insert(rule)
    }

    /// The rest of a string whose content is free from here on, closing quote included.
    pub(super) fn tail_rule(&mut self) -> RuleId {
        if let Some(rule) = self.shared.tail {
            return rule;
        }
        let rule = self.rule("string-tail".into(), self.spelling().free_tail());
        *self.shared.tail.insert(rule)
    }

    /// A character that is not plain ASCII (escaped only where required), then the rest of a free string.
    pub(super) fn special_tail_rule(&mut self) -> RuleId {
        if let Some(rule) = self.shared.special_tail {
            return rule;
        }
        let rule = self.rule("special-tail".into(), self.spelling().special_tail());
        *self.shared.special_tail.insert(rule)
    }

    /// Any number.
    pub(super) fn number_rule(&mut self) -> RuleId {
        if let Some(rule) = self.shared.number {
            return rule;
        }
        let body = self.bounded(&NumberFacets::default(), Types::NUMBER, self.at);
        let rule = self.rule("number".into(), body);
        *self.shared.number.insert(rule)
    }

    /// Any integer.
    pub(super) fn integer_rule(&mut self) -> RuleId {
        if let Some(rule) = self.shared.integer {
            return rule;
        }
        let body = self.any_integer();
        let rule = self.rule("integer".into(), body);
        *self.shared.integer.insert(rule)
    }

    /// Any value.
    pub(super) fn json_rule(&mut self) -> RuleId {
        if let Some(rule) = self.shared.json {
            return rule;
        }
        let rule = self.builder.declare("json");
        self.shared.json = Some(rule);
        let words = words(self.syntax.words().iter().map(|word| Literal::from(*word)).collect());
        let rules = [self.string_rule(), self.any_array_rule(), self.any_object_rule()];
        let number = Expr::Ref(self.number_rule());
        let scalars = self.scalar(Expr::alt([number, words]));
        self.builder.define(rule, Expr::alt(rules.into_iter().map(Expr::Ref).chain([scalars])));
        rule
    }

    fn any_array_rule(&mut self) -> RuleId {
        if let Some(rule) = self.shared.array {
            return rule;
        }
        let rule = self.builder.declare("json-array");
        self.shared.array = Some(rule);
        let item = Expr::Ref(self.json_rule());
        let body = listed(&self.punctuation().brackets, item);
        self.builder.define(rule, body);
        rule
    }

    fn any_object_rule(&mut self) -> RuleId {
        if let Some(rule) = self.shared.object {
            return rule;
        }
        let rule = self.builder.declare("json-object");
        self.shared.object = Some(rule);
        let marks = self.punctuation();
        let name = match self.syntax {
            Syntax::Json if self.names_differ() => {
                let string = self.string_rule();
                Expr::Ref(self.differing(string))
            }
            Syntax::Json | Syntax::Python => Expr::Ref(self.string_rule()),
            Syntax::Delimited(_) | Syntax::Elements(_) => match self.all_but(&[]) {
                Some(all) => self.foreign_names(&all),
                None => Expr::Never,
            },
        };
        let item = Expr::seq([name, marks.colon.clone(), Expr::Ref(self.json_rule())]);
        let body = listed(&marks.braces, item);
        self.builder.define(rule, body);
        rule
    }
}

/// Any number of items in a frame.
fn listed(Frame { open, close, comma, empty }: &Frame, item: Expr) -> Expr {
    let more = Expr::star(Expr::seq([comma.clone(), item.clone()]));
    Expr::alt([empty.clone(), Expr::seq([open.clone(), item, more, close.clone()])])
}

/// A finite set of byte strings.
fn words(mut words: Vec<Literal>) -> Expr {
    /// So few the compiler merges as well.
    const FEW: usize = 24;
    if words.len() <= FEW {
        words.sort_unstable();
        words.dedup();
        return Expr::alt(words.into_iter().map(Expr::Bytes));
    }
    let symbols =
        words.iter().map(|word| word.iter().map(|&byte| byte.into()).collect::<Vec<u32>>());
    Expr::Automaton(Arc::new(Dfa::words(symbols)))
}

/// Whether an expression derives anything, given the rules that do.
fn derives(expr: &Expr, known: &mut dyn FnMut(RuleId) -> bool) -> bool {
    match expr {
        Expr::Never => false,
        Expr::Empty | Expr::Bytes(_) | Expr::Class(_) | Expr::Special(_) => true,
        Expr::Dispatch(_) | Expr::Deferred(_) => true,
        Expr::Automaton(dfa) => !dfa.is_empty(),
        // Made only where there is a text.
        Expr::Counted(_) => true,
        Expr::Except(except) => except.closes() || derives(&except.written_out(), known),
        Expr::Ref(rule) => known(*rule),
        Expr::Seq(parts) => parts.iter().all(|p| derives(p, known)),
        Expr::Alt(parts) => parts.iter().any(|p| derives(p, known)),
        Expr::Repeat { body, min, max } => *max == Some(0) || *min == 0 || derives(body, known),
        Expr::Members(members) => members.derives(|part| derives(part, known)),
        Expr::Graph(graph) => {
            let mut seen = vec![false; graph.nodes as usize];
            seen[graph.start as usize] = true;
            // Edges lead mostly to later nodes, so few rounds are needed.
            let mut changed = true;
            while std::mem::take(&mut changed) {
                for (from, expr, to) in &graph.edges {
                    if seen[*from as usize] && !seen[*to as usize] && derives(expr, known) {
                        seen[*to as usize] = true;
                        changed = true;
                    }
                }
            }
            graph.ends.iter().any(|&end| seen[end as usize])
        }
    }
}
