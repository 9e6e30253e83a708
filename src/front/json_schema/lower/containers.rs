//! Rules of objects and arrays. Each is declared where its value is lowered; its body is lowered
//! later, from a queue.

use super::super::read::Features;
use super::super::read::doc::LocId;
use super::super::read::facets::{ArrayFacets, ObjectFacets};
use super::super::read::shared_facets::SharedFacets;
use super::SchemaLowering;
use super::value_syntax::PythonRules;
use crate::ids::RuleId;
use crate::ir::Expr;

/// The body of a rule that is still to be lowered.
enum PendingBody<'a> {
    Object(SharedFacets<ObjectFacets<'a>>),
    Array(SharedFacets<ArrayFacets>),
}

/// The rules of containers that are declared, and what is still to be lowered of them.
#[derive(Default)]
pub(super) struct ContainerRules<'a> {
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
        self.declare_container("array ", PendingBody::Array(facets.clone()))
    }

    /// Objects with these facets, as a rule.
    pub(super) fn declare_object(&mut self, facets: &SharedFacets<ObjectFacets<'a>>) -> Expr {
        if facets.allows_all() {
            return Expr::Ref(self.any_object_rule());
        }
        self.declare_container("object ", PendingBody::Object(facets.clone()))
    }

    /// Declares the rule of a container, and queues its body.
    fn declare_container(&mut self, kind: &str, body: PendingBody<'a>) -> Expr {
        let name = [kind, self.normalizer.reader.doc.rule_name(self.location)].concat();
        let rule = self.builder.declare(name);
        self.containers.places.push((rule, self.location));
        self.containers.queue.push((rule, self.location, body));
        Expr::Ref(rule)
    }
}
