//! Keywords that apply schemas to the same value, and references.

use super::super::super::error::SchemaErrorReason as Reason;
use super::super::SchemaReader;
use super::super::doc::{LocId, PointerStep};
use super::super::facets::JsonTypes;
use super::super::relaxations::KeywordTreatment;
use super::super::resolve::ResolveError;
use super::{Conditional, ParsedKeywords};
use crate::front::diagnostic::suggestion;
use crate::spec::json::{Json, Object};

impl<'a> SchemaReader<'a> {
    /// Parses a keyword that applies other schemas to the same value.
    pub(super) fn parse_applicator(
        &mut self,
        loc: LocId,
        object: &'a Object,
        name: &'static str,
        value: &'a Json,
        parsed: &mut ParsedKeywords<'a>,
    ) {
        match name {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                self.parse_reference(loc, name, value, parsed)
            }
            "allOf" => parsed.all_of.extend(self.parse_schema_list(loc, name, value)),
            "anyOf" => parsed.any_of.push((name, self.parse_schema_list(loc, name, value))),
            "oneOf" => {
                let list = self.parse_schema_list(loc, name, value);
                if self.treatment(loc, object, name) == KeywordTreatment::Enforced {
                    return parsed.one_of.push(list);
                }
                parsed.any_of.push((name, list));
                self.drop_keyword(loc, name, value, &mut parsed.facets);
            }
            "not" => parsed.all_of.push(self.child(loc, name, value).negated()),
            "if" => self.parse_conditional(loc, object, value, parsed),
            "dependentRequired" | "dependentSchemas" | "dependencies" => {
                self.parse_dependencies(loc, name, value, parsed)
            }
            "unevaluatedProperties" => {
                self.features.evaluation = true;
                parsed.unevaluated_properties = Some(self.child(loc, name, value));
            }
            "unevaluatedItems" => {
                self.features.evaluation = true;
                parsed.unevaluated_items = Some(self.child(loc, name, value));
            }
            // Annotations, and keywords that `parse_members` and `parse_elements` parse together.
            _ => {}
        }
    }

    /// Parses a non-empty array of schemas.
    fn parse_schema_list(
        &mut self,
        loc: LocId,
        keyword: &'static str,
        value: &'a Json,
    ) -> Vec<LocId> {
        match value.as_array() {
            Some(items) if !items.is_empty() => self.children(loc, keyword, items),
            _ => {
                self.malformed(loc, keyword, "must be a non-empty array of schemas");
                Vec::new()
            }
        }
    }

    /// Parses `if`, `then` and `else`.
    fn parse_conditional(
        &mut self,
        loc: LocId,
        object: &'a Object,
        value: &'a Json,
        parsed: &mut ParsedKeywords<'a>,
    ) {
        let (then, otherwise) = (object.get("then"), object.get("else"));
        if then.is_none() && otherwise.is_none() && !self.tracks_evaluation {
            return;
        }
        let condition = self.child(loc, "if", value);
        let then = then.map(|schema| self.child(loc, "then", schema));
        let otherwise = otherwise.map(|schema| self.child(loc, "else", schema));
        parsed.conditionals.push(Conditional::IfThenElse { condition, then, otherwise });
    }

    /// Parses `dependentRequired`, `dependentSchemas` and `dependencies`.
    fn parse_dependencies(
        &mut self,
        loc: LocId,
        keyword: &'static str,
        value: &'a Json,
        parsed: &mut ParsedKeywords<'a>,
    ) {
        let Some(map) = value.as_object() else {
            return self.malformed(loc, keyword, "must be an object, by name");
        };
        for (trigger, brings) in map.iter() {
            let mut names = Vec::new();
            let mut schema = None;
            match brings {
                Json::Array(_) | Json::String(_) if keyword != "dependentSchemas" => {
                    let listed = match brings.as_str() {
                        Some(name) => Some(vec![name]),
                        None => self.parse_names(brings),
                    };
                    match listed {
                        Some(listed) => names.extend(listed.into_iter().filter(|n| *n != trigger)),
                        None => self.malformed(loc, keyword, "must be arrays of strings"),
                    }
                }
                _ => {
                    schema =
                        Some(self.doc.child(loc, PointerStep::Member(keyword, trigger), brings))
                }
            }
            parsed.conditionals.push(Conditional::Dependency { keyword, trigger, names, schema });
        }
    }

    /// Parses a reference: adds its target, or reports why there is none.
    pub(super) fn parse_reference(
        &mut self,
        loc: LocId,
        keyword: &'static str,
        value: &'a Json,
        parsed: &mut ParsedKeywords<'a>,
    ) {
        self.features.dynamic |= keyword != "$ref";
        let Some(reference) = value.as_str() else {
            return self.malformed(loc, keyword, "must be a string");
        };
        let target = match keyword {
            "$ref" => self.doc.resolve(loc, reference),
            "$dynamicRef" => self.doc.resolve_dynamic(loc, reference),
            _ => self.doc.resolve_recursive(loc),
        };
        let meant = || suggestion(self.doc.similar_reference(reference).as_deref());
        match target {
            Ok(target) => parsed.all_of.push(target),
            Err(ResolveError::NotFound) => {
                let what = format!("{reference:?} points to nothing in this document{}", meant());
                self.report(loc, keyword, Reason::Malformed(what));
            }
            Err(ResolveError::NotInRegistry) => {
                let what = format!(
                    "{reference:?} is neither in this document nor in the registry{}",
                    meant()
                );
                self.unsupported(loc, keyword, what.clone());
                let reason = Reason::Unsupported(what);
                self.push_unenforced(&mut parsed.facets, JsonTypes::ALL, loc, keyword, reason);
            }
        }
    }
}
