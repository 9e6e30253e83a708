//! Constants: the spellings of listed values (`enum`, `const`).

use std::sync::Arc;

use super::super::read::facets::{Facets, JsonTypes};
use super::SchemaLowering;
use super::punctuation::Delimiters;
use super::spelling::single;
use super::value_syntax::ValueSyntax;
use crate::decimal::Decimal;
use crate::fsm::Dfa;
use crate::ir::{Expr, Graph, Literal, Member, Members};
use crate::spec::json::{Json, Object};

/// Constants of at most so many members list their members in all orders, as a graph. Larger ones
/// use a member set. Graphs of several constants that begin alike are merged.
const MAX_WRITTEN_OUT: usize = 4;
/// Fuel for an element or a member of a constant, which is an expression of its own.
const FUEL_PER_CONSTANT: usize = 40;

impl<'a> SchemaLowering<'a, '_> {
    /// The listed values that satisfy facets: adds their expressions to `parts`, and fixed
    /// spellings to `scalars`.
    pub(super) fn listed_values(
        &mut self,
        values: &[&'a Json],
        facets: &Facets<'a>,
        parts: &mut Vec<Expr>,
        scalars: &mut Vec<Literal>,
    ) {
        let values = values.iter().copied();
        let accepted: Vec<&Json> =
            values.filter(|value| self.normalizer.accepts(facets, value)).collect();
        self.constants(&accepted, facets.types, parts, scalars);
        if accepted.is_empty() {
            let what = "none of the listed values satisfies the other constraints";
            self.normalizer.reader.note_contradiction(self.location, "", what);
        }
    }

    /// The spellings of constants. Strings become one automaton, numbers another.
    fn constants(
        &mut self,
        values: &[&Json],
        types: JsonTypes,
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
            match spelling.words(&Dfa::texts(texts), self.normalizer.reader.limits.compiled_states)
            {
                Ok(spelled) => parts.push(Expr::Automaton(Arc::new(spelled))),
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
        let mut word = |k: usize| {
            scalars.extend(self.syntax.words()[k].iter().map(|word| Literal::from(*word)));
        };
        match value {
            Json::Null => word(0),
            Json::Bool(true) => word(1),
            Json::Bool(false) => word(2),
            Json::String(text) if !self.syntax.is_json() => parts.push(match &self.syntax {
                ValueSyntax::Nested(tags) => self.nested_constant(tags, text),
                syntax => syntax.constant(text, self.spelling()),
            }),
            Json::String(_) | Json::Number(_) => {}
            // Refused where the types of values are collected.
            Json::Array(_) | Json::Object(_) if self.syntax.is_nested() => {}
            Json::Array(items) => parts.push(self.constant_array(items)),
            Json::Object(object) => parts.push(self.constant_object(object)),
        }
    }

    /// A constant array.
    fn constant_array(&mut self, items: &[Json]) -> Expr {
        let punctuation = self.punctuation();
        let Delimiters { open, close, comma, empty } = &punctuation.brackets;
        if items.is_empty() {
            return empty.clone();
        }
        let mut body = vec![open.clone()];
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                body.push(comma.clone());
            }
            body.push(self.lower_constant(item));
        }
        body.push(close.clone());
        Expr::seq(body)
    }

    /// A constant object.
    fn constant_object(&mut self, object: &Object) -> Expr {
        let punctuation = self.punctuation();
        let Delimiters { open, close, comma, empty } = &punctuation.braces;
        if object.is_empty() {
            return empty.clone();
        }
        let mut members = Vec::new();
        for (name, item) in object.iter() {
            let name = self.syntax.name(name, self.spelling());
            let value = self.lower_constant(item);
            members.push(Expr::seq([name, punctuation.colon.clone(), value]));
        }
        let members = Self::constant_members(members, comma.clone());
        Expr::seq([open.clone(), members, close.clone()])
    }

    /// The members of a constant, in any order.
    fn constant_members(members: Vec<Expr>, comma: Expr) -> Expr {
        let n = members.len();
        if n > MAX_WRITTEN_OUT {
            let unique = members.into_iter().map(|body| Member { body, required: true }).collect();
            let set = Members {
                unique,
                repeatable: Vec::new(),
                separator: comma,
                min: 0,
                count_repeatable: false,
                max: None,
                clauses: Vec::new(),
            };
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
    pub(super) fn lower_constant(&mut self, value: &Json) -> Expr {
        // Whether an integer is asked for is not known here, and `1.0` may be none.
        let types = if self.is_draft_4() { JsonTypes::of(value) } else { JsonTypes::ALL };
        if !self.normalizer.reader.spend(FUEL_PER_CONSTANT) {
            return Expr::Empty;
        }
        let (mut parts, mut scalars) = (Vec::new(), Vec::new());
        self.constants(&[value], types, &mut parts, &mut scalars);
        self.union_of(parts, scalars)
    }

    /// The union of values: expressions, and the fixed spellings of scalars.
    pub(super) fn union_of(&mut self, mut parts: Vec<Expr>, scalars: Vec<Literal>) -> Expr {
        if !scalars.is_empty() {
            let scalars = self.scalar(word_set(scalars));
            parts.push(scalars);
        }
        Expr::alt(parts)
    }
}

/// A finite set of byte strings: an alternation if it is small, else an automaton.
pub(super) fn word_set(mut words: Vec<Literal>) -> Expr {
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
