//! Objects: the names and values of their members.
//!
//! Members are declared (named by `properties` or `required`) or additional. Additional names are
//! partitioned into classes that match the same patterns and so have the same value schema; the
//! declared names are subtracted from each class. `member_graph` then arranges the members.
//!
//! A [`Witness`] may be any of several members. Each member has one variant for each set of
//! witnesses that it serves as, with the value schemas conjoined; the graph tracks which witnesses
//! are still missing.

use super::super::error::SchemaErrorReason as Reason;
use super::super::normalize::Normalizer;
use super::super::options::{AdditionalNames, MemberOrder};
use super::super::read::doc::{LocId, Locs};
use super::super::read::facets::{MemberCells, ObjectFacets, Witness, cells_of, clauses_of_cells};
use super::SchemaLowering;
use super::array::subsets;
use super::member_graph::{ObjectMember, ObjectMembers, UnwritableName};
use super::name_classes::{matched_locations, name_tests, uniform_undeclared};
use super::names::NameSet;
use super::punctuation::Delimiters;
use super::value_syntax::{PythonDialect, ValueSyntax};
use crate::fsm::Dfa;
use crate::hash::{HashMap, IndexSet};
use crate::ir::Expr;

/// Additional names are declared one by one if there are at most so many.
const MAX_FINITE_NAMES: usize = 64;
/// The same where `minProperties` counts them.
const MAX_COUNTED_NAMES: usize = 1_000;
/// The largest number of schemas that divide the values of one member.
const MAX_TESTS: usize = 8;
/// The largest number of witnesses of one object.
const MAX_WITNESSES: usize = 8;

/// How many additional names an object can have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NameSupply {
    /// Finitely many.
    Finite,
    /// Infinitely many, but perhaps not under every prefix.
    Infinite,
    /// Infinitely many under every prefix of an additional name. So comparing names can never leave
    /// the parser without a continuation.
    InfiniteUnderPrefixes,
}

impl<'a> SchemaLowering<'a, '_> {
    /// An object with these facets, with its braces.
    pub(super) fn object(&mut self, facets: &ObjectFacets<'a>) -> Expr {
        self.framed_object(facets, None)
    }

    /// As [`SchemaLowering::object`], with other delimiters than braces.
    pub(super) fn framed_object(
        &mut self,
        facets: &ObjectFacets<'a>,
        frame: Option<&Delimiters>,
    ) -> Expr {
        if self.refuse_witnesses(facets) {
            return Expr::Never;
        }
        let declared = self.declared_names(facets);
        let (mut additional, others) = self.additional_members(facets, &declared);
        if self.syntax == ValueSyntax::Python(PythonDialect::Declared) && self.names_are_distinct()
        {
            additional.clear();
        }
        let is_json = self.syntax.is_json();
        let mut finite = Vec::new();
        // With infinitely many names, `minProperties` can always be satisfied.
        let mut distinct_names = is_json && !additional.is_empty();
        if others == NameSupply::Finite && !additional.is_empty() {
            match self.finite_names(facets, &declared) {
                Some(names) => {
                    finite = names;
                    distinct_names &= finite.is_empty();
                    additional.retain(|_| finite.is_empty());
                }
                None => distinct_names &= facets.min as usize <= facets.required.len().max(1),
            }
            if is_json && !distinct_names && finite.is_empty() && self.names_are_distinct() {
                let what = "a lower bound above the number of required members, with additional names \
                            that are finitely many but too many to enumerate";
                self.normalizer.reader.unsupported(self.location, "minProperties", what.into());
            }
        }
        let names: Vec<&str> =
            declared.iter().copied().chain(finite.iter().map(String::as_str)).collect();
        let Some(members) = self.object_members(facets, &names) else {
            return Expr::Never;
        };
        let most = members.declared.len();
        if additional.is_empty() && facets.min as usize > most {
            let what = format!("no object has more than {most} members");
            self.normalizer.reader.note_contradiction(self.location, "minProperties", &what);
        }
        distinct_names &= self.names_are_distinct() || facets.min as usize > most + 1;
        let always_infinite = others == NameSupply::InfiniteUnderPrefixes;
        if distinct_names {
            additional
                .iter_mut()
                .for_each(|member| self.make_name_distinct(member, always_infinite));
        }
        let punctuation = self.punctuation();
        let frame = frame.unwrap_or(&punctuation.braces);
        let members = ObjectMembers { additional, distinct_names, ..members };
        let object = self.object_graph(facets, members, frame);
        if !distinct_names || always_infinite {
            return object;
        }
        let rule = self.rule("object".into(), object);
        self.builder.attributes(rule).scope = true;
        Expr::Ref(rule)
    }

    /// Reports witnesses that cannot be tracked: too many, or between tags. Returns whether there
    /// are any.
    fn refuse_witnesses(&mut self, facets: &ObjectFacets<'a>) -> bool {
        if !facets.witnesses.is_empty() && self.syntax.is_nested() {
            self.refuse_nested(&[], "negated members between tags");
            return true;
        }
        let are_too_many = facets.witnesses.len() > MAX_WITNESSES;
        if are_too_many {
            let what = format!(
                "more than {MAX_WITNESSES} required members of which only a property is known \
                 (from negated `additionalProperties`, `patternProperties` or `propertyNames`): \
                 name them in `required`"
            );
            self.report_limit(&["not", "if", "oneOf"], what);
        }
        are_too_many
    }

    /// Whether additional names of one object are distinct.
    pub(super) fn names_are_distinct(&self) -> bool {
        self.normalizer.reader.features.distinct_names
            || self.normalizer.reader.options.additional_names == AdditionalNames::Differ
    }

    /// Marks the name of a member as compared with the other names of its object.
    /// `always_infinite`: there are infinitely many names under every prefix.
    fn make_name_distinct(&mut self, member: &mut ObjectMember, always_infinite: bool) {
        for (_, body) in &mut member.variants {
            let Expr::Seq(parts) = body else { continue };
            let Some(name) = parts.first_mut() else { continue };
            let Expr::Ref(rule) = *name else { continue };
            *name = Expr::Ref(match always_infinite {
                true => self.distinct_name_rule(rule),
                false => self.distinct_element_rule(rule),
            });
        }
    }

    /// The additional names, if there are so few that each can be a declared member, and if that is
    /// needed (for distinct or counted names).
    fn finite_names(
        &mut self,
        facets: &ObjectFacets<'a>,
        declared: &[&'a str],
    ) -> Option<Vec<String>> {
        let options = &self.normalizer.reader.options;
        let is_counted = facets.min as usize > declared.len() + 1;
        if !(is_counted || self.names_are_distinct())
            || !facets.witnesses.is_empty()
            || options.order == MemberOrder::Fixed
            || !self.syntax.is_json()
        {
            return None;
        }
        let mut out = Vec::new();
        for ((names, lengths), locs) in self.undeclared_classes(facets, declared) {
            if self.lower_value(locs) != Expr::Never {
                if lengths != (0, None) {
                    return None;
                }
                let most = if is_counted { MAX_COUNTED_NAMES } else { MAX_FINITE_NAMES };
                add_words(&names, most, &mut out)?;
            }
        }
        Some(out)
    }

    /// Declared names: properties in order, then required names, then names that a witness
    /// excludes or a clause lists.
    pub(super) fn declared_names(&self, facets: &ObjectFacets<'a>) -> Vec<&'a str> {
        if let ([only], [], []) = (&facets.parts[..], &facets.witnesses[..], &facets.clauses[..]) {
            let required = facets.required.iter().filter(|name| only.property(name).is_none());
            return only
                .properties
                .iter()
                .map(|(name, _)| *name)
                .chain(required.copied())
                .collect();
        }
        let properties =
            facets.parts.iter().flat_map(|part| part.properties.iter().map(|(name, _)| *name));
        let excepted =
            facets.witnesses.iter().flat_map(|witness| witness.not_named.iter().copied());
        let in_clauses =
            facets.clauses.iter().flat_map(|clause| clause.literals().map(|(test, _)| test.name));
        let all = properties.chain(facets.required.iter().copied());
        let names: IndexSet<&'a str> = all.chain(excepted).chain(in_clauses).collect();
        names.into_iter().collect()
    }

    /// The declared members of an object.
    fn object_members(
        &mut self,
        facets: &ObjectFacets<'a>,
        declared: &[&str],
    ) -> Option<ObjectMembers> {
        self.declared_members(facets, declared, |lowering, name, locs, required| {
            let key = lowering.syntax.name(name, lowering.spelling());
            let is_written = key != Expr::Never;
            let after = lowering.syntax.after_member(Some(name));
            let candidates = lowering.witness_candidates(facets, |normalizer, witness| {
                normalizer.can_be_witness(witness, name)
            });
            let member = lowering.member_variants(key, after, locs, &candidates, required);
            if member.is_some() && !is_written { Err(UnwritableName) } else { Ok(member) }
        })
    }

    /// The declared members that can be present. `None`: a required member allows no value. `lower`
    /// lowers the member of a name, given the schemas of its value and whether it is required.
    pub(super) fn declared_members<'n>(
        &mut self,
        facets: &ObjectFacets<'a>,
        declared: &[&'n str],
        mut lower: impl FnMut(
            &mut Self,
            &'n str,
            Locs,
            bool,
        ) -> Result<Option<ObjectMember>, UnwritableName>,
    ) -> Option<ObjectMembers> {
        let ranks: HashMap<&str, usize> =
            facets.required.iter().enumerate().map(|(i, name)| (*name, i)).collect();
        let mut members = Vec::with_capacity(declared.len());
        let mut required: Vec<(usize, usize)> = Vec::new();
        let (mut cells_by_name, mut cells) =
            (cells_of(&facets.clauses, MAX_TESTS), MemberCells::default());
        let schemas = self.normalizer.schemas_of_members(facets, declared);
        'names: for (&name, locs) in declared.iter().zip(schemas) {
            let first = locs.first().copied().filter(|&loc| loc != LocId::FALSE);
            let loc = first.unwrap_or(self.location);
            let (rank, begin) = (ranks.get(name).copied(), members.len());
            let tested = cells_by_name.as_mut().and_then(|cells| cells.swap_remove(name));
            let mut of_name = Vec::new();
            if self.normalizer.accepts_name(facets, name) {
                for cell in tested.clone().unwrap_or_else(|| vec![Locs::new()]) {
                    let all = locs.iter().chain(cell.iter()).copied().collect();
                    let Ok(member) = lower(self, name, all, rank.is_some()) else {
                        let what = format!("the wire format cannot write the name {name:?}");
                        self.normalizer.reader.report(loc, "", Reason::Unsupported(what));
                        continue 'names;
                    };
                    of_name.extend(member.as_ref().map(|_| (cell, members.len())));
                    members.extend(member);
                }
            }
            match (&mut members[begin..], rank) {
                ([], Some(_)) => {
                    let what = format!("required member {name:?} allows no value");
                    self.normalizer.reader.note_contradiction(loc, "", &what);
                    return None;
                }
                ([_], Some(rank)) => required.push((rank, begin)),
                // Clauses require one of several cells.
                (cells, _) => cells.iter_mut().for_each(|cell| cell.required = false),
            }
            if tested.is_some() {
                cells.insert(name, of_name);
            }
        }
        required.sort_unstable();
        let clauses =
            cells_by_name.and_then(|_| clauses_of_cells(&facets.clauses, &cells, &facets.required));
        Some(ObjectMembers {
            declared: members,
            required: required.into_iter().map(|(_, member)| member).collect(),
            additional: Vec::new(),
            distinct_names: false,
            clauses: clauses.or_else(|| self.report_value_tests())?,
        })
    }

    /// Reports that conditions test the values of a member by too many schemas.
    fn report_value_tests<T>(&mut self) -> Option<T> {
        let what = format!(
            "too many conditions on the values of members that depend on each other: test each \
             member by at most {MAX_TESTS} schemas"
        );
        let keywords = ["if", "dependentSchemas", "dependencies", "anyOf", "oneOf", "allOf"];
        self.report_limit(&keywords, what);
        None
    }

    /// The witnesses that a member can serve as: their bits, and the schemas of their values.
    fn witness_candidates(
        &mut self,
        facets: &ObjectFacets<'a>,
        mut is_candidate: impl FnMut(&mut Normalizer<'a>, &Witness<'a>) -> bool,
    ) -> Vec<(u32, LocId)> {
        let witnesses = facets.witnesses.iter().enumerate();
        witnesses
            .filter(|(_, witness)| is_candidate(&mut self.normalizer, witness))
            .map(|(i, witness)| (1 << i, witness.schema))
            .collect()
    }

    /// A member of this name whose value satisfies all of the locations, with its variants by
    /// witness. `None` if it allows no value.
    fn member_variants(
        &mut self,
        name: Expr,
        after: Expr,
        locs: Locs,
        candidates: &[(u32, LocId)],
        required: bool,
    ) -> Option<ObjectMember> {
        if candidates.is_empty() {
            let value = self.lower_value(locs);
            if value == Expr::Never {
                return None;
            }
            let body = member_expr(name, &self.punctuation().colon, value, after);
            return Some(ObjectMember::new(body, required));
        }
        let mut values: Vec<(u32, Expr)> = Vec::new();
        for witnesses in subsets(candidates.iter().map(|(bit, _)| bit).sum()) {
            let chosen = candidates.iter().filter(|(bit, _)| witnesses & bit != 0);
            let schemas = locs.iter().copied().chain(chosen.map(|(_, schema)| *schema));
            let value = self.lower_value(schemas.collect());
            if value != Expr::Never {
                // The same value with fewer witnesses is redundant.
                values.retain(|(bits, other)| bits & !witnesses != 0 || *other != value);
                values.push((witnesses, value));
            }
        }
        values.sort_by_key(|(witnesses, _)| witnesses.count_ones());
        let punctuation = self.punctuation();
        let variants = values.into_iter().map(|(witnesses, value)| {
            (witnesses, member_expr(name.clone(), &punctuation.colon, value, after.clone()))
        });
        let member = ObjectMember { variants: variants.collect(), required };
        (!member.variants.is_empty()).then_some(member)
    }

    /// The additional members, one for each class of names, and how many names there are.
    fn additional_members(
        &mut self,
        facets: &ObjectFacets<'a>,
        declared: &[&'a str],
    ) -> (Vec<ObjectMember>, NameSupply) {
        let excluded: Vec<&'a str> = declared.iter().chain(&facets.forbidden).copied().collect();
        let Some(locs) = uniform_undeclared(facets) else {
            return self.members_by_name_class(facets, &excluded);
        };
        if self.lower_value(locs.clone()) == Expr::Never {
            return (Vec::new(), NameSupply::Finite);
        }
        let names = self.name_expr(NameSet::AllBut(excluded));
        let after = self.syntax.after_member(None);
        let candidates = self.witness_candidates(facets, |_, _| true);
        let member = self.member_variants(names, after, locs, &candidates, false);
        (member.into_iter().collect(), NameSupply::InfiniteUnderPrefixes)
    }

    /// As [`SchemaLowering::additional_members`], where the schema of a member depends on its name.
    fn members_by_name_class(
        &mut self,
        facets: &ObjectFacets<'a>,
        excluded: &[&'a str],
    ) -> (Vec<ObjectMember>, NameSupply) {
        let Some((classes, lengths)) = self.name_classes(facets, &name_tests(facets)) else {
            return (Vec::new(), NameSupply::Finite);
        };
        let excluded = Dfa::texts(excluded);
        let (mut out, mut open, mut infinite) = (Vec::new(), true, false);
        for (names, matched) in classes {
            let locs = matched_locations(facets, &matched);
            // Values of classes without a name are not lowered. A finite class may have none left,
            // so it is subtracted first.
            let subtract =
                |lowering: &mut Self| lowering.subtract_names(&names, lengths, &excluded);
            let is_infinite = lengths.1.is_none() && names.is_infinite();
            let remaining = if is_infinite { None } else { Some(subtract(self)) };
            if remaining == Some(None) || self.lower_value(locs.clone()) == Expr::Never {
                continue;
            }
            if let Some((dfa, lengths)) = remaining.unwrap_or_else(|| subtract(self)) {
                // Counted names are too many to be used up.
                let goes_on = lengths.1.is_none() && dfa.has_infinite_residuals();
                let is_infinite = dfa.is_infinite();
                let names = self.name_expr(NameSet::Automaton((dfa, lengths)));
                let candidates =
                    self.witness_candidates(facets, |_, witness| match &witness.matching {
                        Some(test) => matched.contains(test),
                        None => !witness.not_matching.iter().any(|test| matched.contains(test)),
                    });
                let after = self.syntax.after_member(None);
                let member = self.member_variants(names, after, locs, &candidates, false);
                open &= member.is_none() || goes_on;
                infinite |= member.is_some() && is_infinite;
                out.extend(member);
            }
        }
        let others = match (open, infinite) {
            (true, true) => NameSupply::InfiniteUnderPrefixes,
            (false, true) => NameSupply::Infinite,
            (_, false) => NameSupply::Finite,
        };
        (out, others)
    }
}

/// A member: name, colon and value.
fn member_expr(name: Expr, colon: &Expr, value: Expr, after: Expr) -> Expr {
    let between =
        if let Expr::Seq(parts) = colon { &parts[..] } else { std::slice::from_ref(colon) };
    let mut parts = Vec::with_capacity(between.len() + 2);
    match name {
        Expr::Seq(inner) => parts.extend(inner),
        name => parts.push(name),
    }
    parts.extend_from_slice(between);
    parts.push(value);
    if after != Expr::Empty {
        parts.push(after);
    }
    if parts.iter().any(|part| matches!(part, Expr::Empty | Expr::Never | Expr::Seq(_))) {
        return Expr::seq(parts);
    }
    Expr::Seq(parts)
}

/// Adds the words of an automaton over code points; `None` if there are more than `max_words` in
/// all.
fn add_words(dfa: &Dfa, max_words: usize, out: &mut Vec<String>) -> Option<()> {
    let mut pending = vec![(0, String::new())];
    while let Some((state, word)) = pending.pop() {
        if out.len() + pending.len() > max_words {
            return None;
        }
        for edge in dfa.edges(state).iter().rev() {
            for c in (edge.lo..=edge.hi).rev().filter_map(char::from_u32).take(max_words + 1) {
                pending.push((edge.to, format!("{word}{c}")));
            }
        }
        if dfa.is_final(state) {
            out.push(word);
        }
    }
    (out.len() <= max_words).then_some(())
}
