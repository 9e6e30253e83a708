//! Values between tags that have their names: the members of an object are tags with the members'
//! names, the elements of an array tags with one name for all. Strings are not escaped.
//!
//! A mark stands before every tag. Each value is lowered with the mark of the tag after it, so a
//! string ends at the mark. As no tag states a type, the types of all values are collected by their
//! nodes ([`ValueTypes`]), and a reader expects the types of the node. The grammar has only texts
//! that such a reader reads as they are meant: it excludes strings that read as another value of an
//! expected type, and empty objects where no text is an empty array or string.
//!
//! Alternatives of a value may differ in the types of a member. A reader does not know which
//! alternative it reads, so it expects the types of all.

use super::super::super::error::SchemaErrorReason as Reason;
use super::super::super::read::doc::{LocId, Locs};
use super::super::super::read::facets::{
    ArrayFacets, Facets, JsonTypes, ObjectFacets, StringFacets,
};
use super::super::super::read::shared_facets::SharedFacets;
use super::super::SchemaLowering;
use super::super::value_types::{ValueNode, ValueTypes};
use super::bare_names::bare_complement;
use super::python_values::PythonValues;
use super::raw_strings::{AmbiguousText, RawStrings};
use super::{CountedNames, ValueSyntax, any_trigger};
use crate::fsm::{Combine, Dfa};
use crate::hash::IndexSet;
use crate::ir::{Dispatch, Expr, Trigger};
use crate::spec::json::Json;

/// The largest number of nodes of a schema whose values have types of their own.
const MAX_VALUE_NODES: usize = 4_096;

/// The types whose values are written as in JSON.
const SCALARS: JsonTypes = JsonTypes::NULL.union(JsonTypes::BOOLEAN).union(JsonTypes::NUMBER);

/// The tags of [`ValueSyntax::Nested`]: `<name>` and `</name>`, each after a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NestedStyle {
    /// Stands before every tag, in any of these spellings. No string contains it.
    pub mark: Vec<Trigger>,
    /// The name of the elements of arrays.
    pub item: String,
}

impl NestedStyle {
    /// The mark.
    pub(in super::super) fn mark(&self) -> Expr {
        any_trigger(&self.mark)
    }

    /// The mark, and the tag that opens a value of this name.
    pub(in super::super) fn open(&self, name: &str) -> Expr {
        Expr::seq([self.mark(), Expr::text(&format!("<{name}>"))])
    }

    /// The tags that open a member, but those of an element and of these names.
    pub(in super::super) fn open_all_but<'a>(&'a self, mut excluded: Vec<&'a str>) -> Expr {
        excluded.push(&self.item);
        Expr::seq([self.mark(), Expr::text("<"), bare_complement(excluded), Expr::text(">")])
    }

    /// The tag that closes a value of this name. The mark before it belongs to the value.
    pub(in super::super) fn close(name: &str) -> Expr {
        Expr::text(&format!("</{name}>"))
    }

    /// Whether a tag can have this name.
    pub fn can_write_name(name: &str) -> bool {
        let is_reserved = |c: char| "<>/&\"".contains(c) || c.is_whitespace() || c.is_control();
        !name.is_empty() && !name.contains(is_reserved)
    }

    /// Strings, as those of parameters.
    fn strings(&self) -> RawStrings {
        RawStrings {
            end: self.mark.iter().map(|mark| (mark.clone(), Expr::Empty)).collect(),
            lead: Vec::new(),
            trail: Vec::new(),
            excludes: Vec::new(),
            spaced: false,
            reading: AmbiguousText::Json,
            python: PythonValues::None,
            quotes: None,
        }
    }
}

/// The nodes of a schema that are found so far: each is a list of conjunctions of locations, one
/// for each alternative of the values around it, which a reader cannot tell apart.
type ValueNodes = IndexSet<Vec<Locs>>;

/// The values of a node.
#[derive(Default)]
struct NodeValues<'a> {
    /// Their types.
    types: JsonTypes,
    /// The objects and arrays that are not listed.
    objects: Vec<SharedFacets<ObjectFacets<'a>>>,
    arrays: Vec<SharedFacets<ArrayFacets>>,
}

impl<'a> SchemaLowering<'a, '_> {
    /// The types that the values of alternatives may have.
    pub(super) fn types_of(alternatives: &[Facets<'a>]) -> JsonTypes {
        alternatives.iter().fold(JsonTypes::default(), |all, f| all.union(allowed_types(f)))
    }

    /// The types of the values of the root schema, by their nodes. Reports values that cannot be
    /// written.
    pub(in super::super) fn types_by_node(&mut self) -> ValueTypes {
        let mut nodes = ValueNodes::default();
        nodes.insert(vec![self.normalizer.conjunction([LocId::ROOT])]);
        let mut out = Vec::new();
        while let Some(conjunctions) = nodes.get_index(out.len()).cloned() {
            if out.len() >= MAX_VALUE_NODES || !self.normalizer.reader.spend(conjunctions.len()) {
                let what = format!("more than {MAX_VALUE_NODES} nodes of values between tags");
                self.normalizer.reader.report_limit(LocId::ROOT, &[], what);
                break;
            }
            let node = self.node(&conjunctions, &mut nodes);
            for conjunction in conjunctions {
                let expected = self.values.expected_types.entry(conjunction).or_default();
                *expected = expected.union(node.types);
            }
            out.push(node);
        }
        ValueTypes { nodes: out }
    }

    /// The types that a reader may expect of the values of a conjunction: those of all nodes that
    /// have it. Expecting more types excludes more texts, so it is all types if no node has it.
    pub(in super::super) fn expected_types(&self, conjunction: &[LocId]) -> JsonTypes {
        let known = self.values.expected_types.get(conjunction);
        known.copied().unwrap_or(JsonTypes::ALL)
    }

    /// The node of values that satisfy any of the conjunctions.
    fn node(&mut self, of: &[Locs], nodes: &mut ValueNodes) -> ValueNode {
        let values = self.node_values(of);
        let mut names: Vec<&'a str> =
            values.objects.iter().flat_map(|object| self.declared_names(object)).collect();
        names.sort_unstable();
        names.dedup();
        if let Some(name) = names.iter().find(|name| !NestedStyle::can_write_name(name)) {
            self.refuse_nested(of, &format!("a tag with the name {name:?}"));
        }
        let NodeValues { types, objects, arrays } = values;
        let is_possible = |locs: &Locs| !locs.contains(&LocId::FALSE);
        let mut members = Vec::with_capacity(names.len());
        for &name in &names {
            let schemas = objects.iter().map(|object| self.normalizer.member_schemas(object, name));
            let schemas: Vec<Locs> = schemas.filter(is_possible).collect();
            members.push((name.to_owned(), self.node_index(schemas, nodes)));
        }
        let mut others = Vec::new();
        for object in &objects {
            let declared = self.declared_names(object);
            others.extend(self.undeclared_schemas(object, &declared));
        }
        let length = arrays.iter().map(|array| array.prefix()).max().unwrap_or(0);
        let mut elements = (0..=length).map(|i| {
            let schemas = arrays.iter().map(|array| array.element(i));
            self.node_index(schemas.filter(is_possible).collect(), nodes)
        });
        let prefix = elements.by_ref().take(length).collect();
        let rest = elements.next().unwrap_or_default();
        let others = self.node_index(others.into_iter().filter(is_possible).collect(), nodes);
        ValueNode { types, members, others, prefix, rest }
    }

    /// The values that satisfy any of the conjunctions. Reports listed containers.
    fn node_values(&mut self, of: &[Locs]) -> NodeValues<'a> {
        let mut values = NodeValues::default();
        for locs in of {
            let alternatives = self.normalizer.alternatives(locs);
            values.types = values.types.union(Self::types_of(&alternatives));
            for facets in alternatives.iter() {
                let facets = self.with_undeclared_option(facets).into_owned();
                let listed = facets.values.as_deref().into_iter().flatten();
                if listed.clone().any(|value| matches!(value, Json::Array(_) | Json::Object(_))) {
                    self.refuse_nested(of, "listed arrays and objects between tags");
                }
                if facets.values.is_none() && facets.types.meets(JsonTypes::OBJECT) {
                    values.objects.push(facets.object.clone());
                }
                if facets.values.is_none() && facets.types.meets(JsonTypes::ARRAY) {
                    values.arrays.push(facets.array.clone());
                }
            }
        }
        values
    }

    fn node_index(&mut self, schemas: Vec<Locs>, nodes: &mut ValueNodes) -> usize {
        let mut conjunctions: Vec<Locs> =
            schemas.into_iter().map(|locs| self.normalizer.conjunction(locs)).collect();
        conjunctions.sort_unstable();
        conjunctions.dedup();
        nodes.insert_full(conjunctions).0
    }

    /// Reports what tags cannot express.
    pub(in super::super) fn refuse_nested(&mut self, of: &[Locs], what: &str) {
        let at = of.iter().flatten().next().copied().unwrap_or(self.location);
        self.normalizer.reader.report(at, "", Reason::Unsupported(what.to_owned()));
    }

    /// Reports a declared member with the name of elements, where a reader may expect an array.
    pub(in super::super) fn refuse_member_of_element_name(&mut self, object: &ObjectFacets<'a>) {
        let ValueSyntax::Nested(style) = &self.syntax else { return };
        let item = style.item.clone();
        if self.expected.meets(JsonTypes::ARRAY) && self.declared_names(object).contains(&&*item) {
            let what = format!("a member {item:?} where arrays are allowed");
            self.refuse_nested(&[], &what);
        }
    }

    /// A string between tags, with the mark after it. Excludes texts that read as a value of
    /// another type.
    pub(super) fn nested_text(&mut self, style: &NestedStyle, facets: &StringFacets<'a>) -> Expr {
        let others = self.expected.intersect(SCALARS);
        if facets.allows_all() && others == JsonTypes::default() {
            return Dispatch::until(style.mark.clone()).into();
        }
        let strings = Facets::strings(facets.clone());
        let text = self.raw_string(&strings, others, &style.strings());
        Expr::seq([text, style.mark()])
    }

    /// A listed string between tags; [`Expr::Never`] if it reads as a value of another type.
    pub(in super::super) fn nested_constant(&self, style: &NestedStyle, text: &str) -> Expr {
        match style.strings().reads_as_string(text, self.expected.intersect(SCALARS)) {
            true => Expr::seq([Expr::text(text), style.mark()]),
            false => Expr::Never,
        }
    }

    /// An empty array or object between tags, which is the mark alone. `None` if facets do not
    /// allow it, or if no text reads as something else.
    pub(in super::super) fn nested_empty(&mut self, facets: &Facets<'a>) -> Option<Expr> {
        let ValueSyntax::Nested(style) = &self.syntax else { return None };
        let mark = style.mark();
        let value = match self.expected {
            types if types.meets(JsonTypes::STRING) => return None,
            types if types.meets(JsonTypes::ARRAY) => Json::Array(Vec::new()),
            _ => Json::Object(crate::spec::json::Object::default()),
        };
        self.normalizer.accepts(facets, &value).then_some(mark)
    }

    /// The tags of members with the names of an automaton, but that of elements. The names need no
    /// escapes.
    pub(super) fn nested_names(&mut self, style: &NestedStyle, names: &CountedNames) -> Expr {
        let item = Dfa::word(style.item.chars().map(u32::from));
        let limit = self.max_states();
        let names = match names.0.combine(&item, Combine::Minus, limit) {
            Ok(others) => self.bare_names(&(others, names.1)),
            Err(error) => self.too_large(&error),
        };
        Expr::seq([style.mark(), Expr::text("<"), names, Expr::text(">")])
    }
}

/// The types of the values that facets allow.
fn allowed_types(facets: &Facets<'_>) -> JsonTypes {
    let values = facets.values.as_ref();
    values.map_or(facets.types, |values| JsonTypes::of_listed(values.iter().copied()))
}
