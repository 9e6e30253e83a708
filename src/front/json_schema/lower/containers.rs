//! Rules of objects and arrays. Each is declared where its value is lowered; its body is lowered
//! later, from a queue. Containers of uniform content share a rule.

use super::super::read::Features;
use super::super::read::doc::LocId;
use super::super::read::facets::{ArrayFacets, JsonTypes, ObjectFacets};
use super::super::read::shared_facets::SharedFacets;
use super::SchemaLowering;
use super::value_syntax::PythonRules;
use crate::hash::HashMap;
use crate::ids::RuleId;
use crate::ir::Expr;

/// A container whose content is constrained by type only: the key by which equal ones share a rule.
#[derive(PartialEq, Eq, Hash)]
enum UniformContainer {
    Array(JsonTypes, u32, Option<u32>),
    Object(JsonTypes),
}

/// The body of a rule that is still to be lowered.
enum PendingBody<'a> {
    Object(SharedFacets<ObjectFacets<'a>>),
    Array(SharedFacets<ArrayFacets>),
}

/// The rules of containers that are declared, and what is still to be lowered of them.
#[derive(Default)]
pub(super) struct ContainerRules<'a> {
    /// Memo of containers whose content is constrained by type only.
    uniform: HashMap<UniformContainer, RuleId>,
    /// Declared rules whose bodies are still to be lowered.
    queue: Vec<(RuleId, LocId, PendingBody<'a>)>,
    /// The number of lowered bodies.
    lowered: usize,
    /// Declared rules of values that are written as Python literals, lowered after all others.
    pub(super) python: PythonRules<'a>,
    /// Where rules come from, for the names of large grammars.
    pub(super) places: Vec<(RuleId, LocId)>,
    /// Nodes of the graphs that count elements or keep sets of values.
    pub(super) counting_nodes: usize,
}

impl<'a> SchemaLowering<'a, '_> {
    /// Lowers the bodies in the queue, until a feature is missing among those that are enabled, or
    /// a limit is reached.
    pub(super) fn lower_containers(&mut self, enabled: Features) {
        while let Some((rule, loc, pending)) = self.containers.queue.pop() {
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
            self.containers.lowered += 1;
            if !self.normalizer.reader.spend(1) {
                break;
            }
            if self.containers.lowered + self.normalizer.reader.doc.len()
                > self.normalizer.reader.limits.nodes
            {
                self.normalizer.reader.halt_at_nodes();
                break;
            }
        }
    }

    /// Arrays with these facets, as a rule.
    pub(super) fn declare_array(&mut self, facets: &SharedFacets<ArrayFacets>) -> Expr {
        if facets.allows_all() {
            return Expr::Ref(self.any_array_rule());
        }
        let key = self.uniform_array(facets);
        self.declare_container(key, "array ", PendingBody::Array(facets.clone()))
    }

    /// Objects with these facets, as a rule.
    pub(super) fn declare_object(&mut self, facets: &SharedFacets<ObjectFacets<'a>>) -> Expr {
        if facets.allows_all() {
            return Expr::Ref(self.any_object_rule());
        }
        let key = self.uniform_object(facets);
        self.declare_container(key, "object ", PendingBody::Object(facets.clone()))
    }

    /// The key of an array that is constrained by length and element type only. Between nested tags
    /// elements depend on their place, too.
    fn uniform_array(&self, facets: &ArrayFacets) -> Option<UniformContainer> {
        if self.syntax.is_nested() {
            return None;
        }
        let [part] = &facets.parts[..] else { return None };
        let types =
            self.normalizer.reader.type_only(part.rest.filter(|_| part.prefix.is_empty())?)?;
        let ArrayFacets { contains, unique, repeats, .. } = facets;
        let is_uniform = contains.is_empty() && unique.is_none() && repeats.is_none();
        is_uniform.then_some(UniformContainer::Array(types, facets.min, facets.max))
    }

    /// The key of an object whose members are constrained by type only. Between nested tags members
    /// depend on their place, too.
    fn uniform_object(&self, facets: &ObjectFacets<'a>) -> Option<UniformContainer> {
        if self.syntax.is_nested() {
            return None;
        }
        let [part] = &facets.parts[..] else { return None };
        let types = self
            .normalizer
            .reader
            .type_only(part.additional.filter(|_| part.properties.is_empty())?)?;
        let constraints = facets.required.len()
            + facets.forbidden.len()
            + facets.names.len()
            + facets.witnesses.len()
            + facets.clauses.len();
        let is_uniform =
            constraints == 0 && part.patterns.is_empty() && facets.min == 0 && facets.max.is_none();
        is_uniform.then_some(UniformContainer::Object(types))
    }

    /// Declares the rule of a container, and queues its body. Containers with one key have one
    /// rule.
    fn declare_container(
        &mut self,
        key: Option<UniformContainer>,
        kind: &str,
        body: PendingBody<'a>,
    ) -> Expr {
        if let Some(&rule) = key.as_ref().and_then(|key| self.containers.uniform.get(key)) {
            return Expr::Ref(rule);
        }
        let name = [kind, self.normalizer.reader.doc.rule_name(self.location)].concat();
        let rule = self.builder.declare(name);
        self.containers.places.push((rule, self.location));
        self.containers.queue.push((rule, self.location, body));
        self.containers.uniform.extend(key.map(|key| (key, rule)));
        Expr::Ref(rule)
    }
}
