//! Objects: the names and values of their members.
//!
//! Members are declared (named by `properties` or `required`) or additional. Additional names are
//! partitioned into classes that match the same patterns and so have the same value schema; the
//! declared names are subtracted from each class. `member_graph` then arranges the members.
//!
//! A [`Witness`] may be any of several members. Each member has one variant for each set of
//! witnesses that it serves as, with the value schemas conjoined; the graph tracks which witnesses
//! are still missing.

use std::sync::Arc;

use super::super::normalize::Normalizer;
use super::super::options::{AdditionalNames, Escapes, MemberOrder};
use super::super::read::doc::{LocId, Locs};
use super::super::read::facets::{
    Facets, NameTest, ObjectFacets, PatternUse, StringFacets, TypeSet, Witness,
};
use super::SchemaLowering;
use super::member_graph::ObjectMember;
use super::punctuation::Delimiters;
use super::spelling::plain_ascii;
use super::syntax::{CountedNames, ValueSyntax, bare_complement};
use super::unique::count_words;
use crate::front::regex::{Lengths, SCALARS};
use crate::fsm::{Combine, Dfa, LanguageClass};
use crate::hash::HashMap;
use crate::ids::RuleId;
use crate::ir::{Except, Expr, Graph};

/// The largest number of classes of additional names.
const MAX_NAME_CLASSES: usize = 64;
/// Additional names are declared one by one if there are at most so many.
const MAX_FINITE_NAMES: usize = 64;
/// The same where `minProperties` counts them.
const MAX_COUNTED_NAMES: usize = 1_000;
/// The largest number of tests that partition names.
const MAX_NAME_TESTS: usize = 512;
/// The largest number of witnesses of one object.
const MAX_WITNESSES: usize = 8;

/// A set of names that have the same value schema.
enum NameSet<'a> {
    /// All names but these.
    AllBut(Vec<&'a str>),
    /// The names of an automaton over code points, within bounds on the length.
    Automaton(CountedNames),
}

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

/// Classes of names, each with the tests that they pass, and bounds on the length of all names.
type NameClasses<'a> = (Vec<(NameClass, Vec<NameTest<'a>>)>, Lengths);

/// A class of names: those that pass the same tests.
enum NameClass {
    /// The names that match a pattern, or those that do not.
    Automaton(Arc<Dfa>),
    /// A class of a partition by several tests.
    Partition(LanguageClass),
}

impl NameClass {
    /// Whether the class has infinitely many names.
    fn is_infinite(&self) -> bool {
        match self {
            NameClass::Automaton(dfa) => dfa.is_infinite(),
            NameClass::Partition(class) => class.is_infinite(),
        }
    }
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
        let has_witnesses = !facets.witnesses.is_empty();
        if self.refuse_untold(has_witnesses, "negated members") {
            return Expr::Never;
        }
        if facets.witnesses.len() > MAX_WITNESSES {
            let what = format!(
                "more than {MAX_WITNESSES} required members of which only a property is known \
                 (from negated `additionalProperties`, `patternProperties` or `propertyNames`): \
                 name them in `required`"
            );
            let keywords = ["not", "if", "oneOf"];
            self.normalizer.reader.report_limit(self.location, &keywords, what);
            return Expr::Never;
        }
        let declared = self.declared_names(facets);
        let (mut additional, others) = self.additional_members(facets, &declared);
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
        let Some((members, required)) = self.declared_members(facets, &names) else {
            return Expr::Never;
        };
        distinct_names &= self.names_are_distinct() || facets.min as usize > members.len() + 1;
        let always_infinite = others == NameSupply::InfiniteUnderPrefixes;
        if distinct_names {
            additional
                .iter_mut()
                .for_each(|member| self.make_name_distinct(member, always_infinite));
        }
        let punctuation = self.punctuation();
        let frame = frame.unwrap_or(&punctuation.braces);
        let object =
            self.object_graph(facets, (members, &required, additional), (frame, distinct_names));
        if !distinct_names || always_infinite {
            return object;
        }
        let rule = self.rule("object".into(), object);
        self.builder.attributes(rule).scope = true;
        Expr::Ref(rule)
    }

    /// Whether additional names of one object are distinct.
    pub(super) fn names_are_distinct(&self) -> bool {
        self.normalizer.reader.features.distinct_names
            || self.normalizer.reader.options.additional_names == AdditionalNames::Differ
    }

    /// Marks the name of a member as compared with the other names of its object.
    /// `always_infinite`: there are infinitely many names under every prefix.
    fn make_name_distinct(&mut self, member: &mut ObjectMember, always_infinite: bool) {
        for body in member.bodies_mut() {
            let Expr::Seq(parts) = body else { continue };
            let Some(name) = parts.first_mut() else { continue };
            let Expr::Ref(rule) = *name else { continue };
            *name = Expr::Ref(match always_infinite {
                true => self.distinct_name_rule(rule),
                false => self.distinct_element_rule(rule),
            });
        }
    }

    /// A rule with these names that are distinct in each object.
    pub(super) fn distinct_name_rule(&mut self, name: RuleId) -> RuleId {
        if name != self.string_rule() {
            self.builder.attributes(name).name = true;
            return name;
        }
        match self.common_rules.name {
            Some(rule) => rule,
            None => {
                let rule = self.rule("name".into(), Expr::Ref(name));
                self.builder.attributes(rule).name = true;
                *self.common_rules.name.insert(rule)
            }
        }
    }

    /// As [`SchemaLowering::distinct_name_rule`], for finitely many names under some prefix: the
    /// object is a scope, so that it ends when no name is left.
    fn distinct_element_rule(&mut self, name: RuleId) -> RuleId {
        if let Some(&rule) = self.distinct_elements.get(&name) {
            return rule;
        }
        let rule = self.rule("name".into(), Expr::Ref(name));
        self.builder.attributes(rule).element = true;
        self.distinct_elements.insert(name, rule);
        rule
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
    /// excludes.
    pub(super) fn declared_names(&self, facets: &ObjectFacets<'a>) -> Vec<&'a str> {
        let mut names: Vec<&'a str> = Vec::new();
        if let ([only], []) = (&facets.parts[..], &facets.witnesses[..]) {
            names.extend(only.properties.iter().map(|(name, _)| *name));
            names.extend(facets.required.iter().filter(|name| only.property(name).is_none()));
            return names;
        }
        let mut seen = crate::hash::HashSet::default();
        let properties =
            facets.parts.iter().flat_map(|part| part.properties.iter().map(|(name, _)| *name));
        let excepted =
            facets.witnesses.iter().flat_map(|witness| witness.not_named.iter().copied());
        names.extend(
            properties
                .chain(facets.required.iter().copied())
                .chain(excepted)
                .filter(|n| seen.insert(*n)),
        );
        names
    }

    /// The declared members that can be present, and the indices of the required ones in the order
    /// of `required`. `None`: a required member allows no value.
    fn declared_members(
        &mut self,
        facets: &ObjectFacets<'a>,
        declared: &[&str],
    ) -> Option<(Vec<ObjectMember>, Vec<usize>)> {
        /// So few are searched linearly.
        const FEW: usize = 8;
        let ranks: HashMap<&str, usize> = match facets.required.len() {
            0..=FEW => HashMap::default(),
            _ => facets.required.iter().enumerate().map(|(i, name)| (*name, i)).collect(),
        };
        let mut members = Vec::with_capacity(declared.len());
        let mut required: Vec<(usize, usize)> = Vec::new();
        for &name in declared {
            let locs = self.normalizer.member_schemas(facets, name);
            let first_loc = locs.first().copied();
            let rank = match facets.required.len() {
                0..=FEW => facets.required.iter().position(|other| *other == name),
                _ => ranks.get(name).copied(),
            };
            let key = self.syntax.name(name, self.spelling());
            let after = self.syntax.after_member(Some(name));
            let candidates = self.witness_candidates(facets, |normalizer, witness| {
                normalizer.can_be_witness(witness, name)
            });
            let member = match self.normalizer.accepts_name(facets, name) && key != Expr::Never {
                true => self.member_variants((key, after, locs), &candidates, rank.is_some()),
                false => None,
            };
            if let Some(member) = member {
                required.extend(rank.map(|rank| (rank, members.len())));
                members.push(member);
            } else if rank.is_some() {
                let loc = first_loc.filter(|&loc| loc != LocId::FALSE).unwrap_or(self.location);
                self.normalizer.reader.conflict(
                    loc,
                    "",
                    &format!("required member {name:?} allows no value"),
                );
                return None;
            }
        }
        required.sort_unstable();
        Some((members, required.into_iter().map(|(_, member)| member).collect()))
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
        (name, after, locs): (Expr, Expr, Locs),
        candidates: &[(u32, LocId)],
        required: bool,
    ) -> Option<ObjectMember> {
        if candidates.is_empty() {
            let value = self.lower_value(locs);
            if value == Expr::Never {
                return None;
            }
            let body = member_expr(name, &self.punctuation().colon, (value, after));
            return Some(ObjectMember { first: (0, body), more: Vec::new(), required });
        }
        let mut values: Vec<(u32, Expr)> = Vec::new();
        for choice in 0..1u32 << candidates.len() {
            let chosen = || {
                candidates
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| choice >> i & 1 == 1)
                    .map(|(_, candidate)| candidate)
            };
            let witnesses: u32 = chosen().map(|(bit, _)| bit).sum();
            let value = self.lower_value(
                locs.iter().copied().chain(chosen().map(|(_, schema)| *schema)).collect::<Locs>(),
            );
            if value != Expr::Never {
                // The same value with fewer witnesses is redundant.
                values.retain(|(bits, other)| bits & !witnesses != 0 || *other != value);
                values.push((witnesses, value));
            }
        }
        values.sort_by_key(|(witnesses, _)| witnesses.count_ones());
        let punctuation = self.punctuation();
        let mut variants = values.into_iter().map(|(witnesses, value)| {
            let value = (value, after.clone());
            (witnesses, member_expr(name.clone(), &punctuation.colon, value))
        });
        Some(ObjectMember { first: variants.next()?, more: variants.collect(), required })
    }

    /// The additional members, one for each class of names, and how many names there are.
    fn additional_members(
        &mut self,
        facets: &ObjectFacets<'a>,
        declared: &[&'a str],
    ) -> (Vec<ObjectMember>, NameSupply) {
        let tests = name_tests(facets);
        let excluded: Vec<&'a str> = declared.iter().chain(&facets.forbidden).copied().collect();
        if let Some(locs) = uniform_undeclared(facets) {
            if self.lower_value(locs.clone()) == Expr::Never {
                return (Vec::new(), NameSupply::Finite);
            }
            let names = self.name_expr(NameSet::AllBut(excluded));
            let after = self.syntax.after_member(None);
            let candidates = self.witness_candidates(facets, |_, _| true);
            return (
                self.member_variants((names, after, locs), &candidates, false)
                    .into_iter()
                    .collect(),
                NameSupply::InfiniteUnderPrefixes,
            );
        }
        let Some((classes, lengths)) = self.name_classes(facets, &tests) else {
            return (Vec::new(), NameSupply::Finite);
        };
        let excluded = name_automaton(&excluded);
        let (mut out, mut open, mut infinite) = (Vec::new(), true, false);
        for (names, matched) in classes {
            let locs = matched_locations(facets, &matched);
            // Values of classes without a name are not lowered. A finite class may have none left,
            // so it is subtracted first.
            let subtract =
                |lowering: &mut Self| lowering.subtract_names((&names, lengths), &excluded);
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
                let member = self.member_variants((names, after, locs), &candidates, false);
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

    /// The classes of undeclared names, and the schemas of the values of each.
    pub(super) fn undeclared_classes(
        &mut self,
        facets: &ObjectFacets<'a>,
        declared: &[&'a str],
    ) -> Vec<(CountedNames, Locs)> {
        let excluded: Vec<&'a str> = declared.iter().chain(&facets.forbidden).copied().collect();
        let classes = self.name_classes(facets, &name_tests(facets));
        let (classes, lengths) = classes.unwrap_or_default();
        let excluded = name_automaton(&excluded);
        let located = classes.into_iter().filter_map(|(names, matched)| {
            let names = self.subtract_names((&names, lengths), &excluded)?;
            Some((names, matched_locations(facets, &matched)))
        });
        located.collect()
    }

    /// The classes of names by the tests that they pass; declared names are still in them.
    fn name_classes(
        &mut self,
        facets: &ObjectFacets<'a>,
        tests: &[NameTest<'a>],
    ) -> Option<NameClasses<'a>> {
        let limit = self.normalizer.reader.limits.automaton_states;
        let loc = self.location;
        if let ([NameTest::Pattern(pattern)], []) = (tests, &facets.names[..]) {
            let (inside, outside) = (
                self.normalizer.reader.pattern_dfa(pattern)?,
                self.normalizer.reader.pattern_complement(pattern)?,
            );
            let inside = (NameClass::Automaton(inside), tests.to_vec());
            let outside = (NameClass::Automaton(outside), Vec::new());
            return Some((vec![inside, outside], (0, None)));
        }
        if tests.len() > MAX_NAME_TESTS {
            let what = format!("more than {MAX_NAME_TESTS} patterns of names together");
            let keywords = ["patternProperties"];
            self.normalizer.reader.report_limit(loc, &keywords, what);
            return None;
        }
        let (universe, lengths) = self.counted_names(&facets.names)?;
        let mut automata: Vec<Arc<Dfa>> = Vec::with_capacity(tests.len());
        for test in tests {
            automata.push(match test {
                NameTest::Pattern(pattern) => self.normalizer.reader.pattern_dfa(pattern)?,
                NameTest::Schema(loc) => Arc::new(self.allowed_names(&[*loc])?),
            });
        }
        let others: Vec<&Dfa> = automata.iter().map(|dfa| &**dfa).collect();
        let classes = self.or_report_limit(loc, universe.split(&others, limit))?;
        if classes.len() > MAX_NAME_CLASSES {
            let what = format!("patterns divide names into more than {MAX_NAME_CLASSES} classes");
            let keywords = ["patternProperties"];
            self.normalizer.reader.report_limit(loc, &keywords, what);
            return None;
        }
        let matched = |answers: Vec<bool>| {
            tests.iter().zip(answers).filter(|(_, yes)| *yes).map(|(t, _)| t.clone()).collect()
        };
        let classes = classes
            .into_iter()
            .map(|(answers, class)| (NameClass::Partition(class), matched(answers)))
            .collect();
        Some((classes, lengths))
    }

    /// The names of a class minus the declared ones; `None` if none is left. Bounds on the length
    /// are states of the automaton, unless more names are within them than can be used up.
    fn subtract_names(
        &mut self,
        (names, lengths): (&NameClass, Lengths),
        declared: &Dfa,
    ) -> Option<CountedNames> {
        let limit = self.normalizer.reader.limits.automaton_states;
        let names = match names {
            NameClass::Automaton(dfa) => dfa.clone(),
            NameClass::Partition(class) => Arc::new(class.automaton()),
        };
        let loc = self.location;
        let remaining = self.or_report_limit(loc, names.without(declared, limit))?;
        let (min, max) = lengths;
        if lengths == (0, None) || count_words(&remaining, min, max).is_inexhaustible() {
            return (!remaining.is_empty()).then_some((remaining, lengths));
        }
        let exact = self.or_report_limit(loc, remaining.of_length(min, max, limit))?;
        (!exact.is_empty()).then_some((exact, (0, None)))
    }

    /// The value of a result; an error is reported as a limit.
    fn or_report_limit<T, E: ToString>(&mut self, loc: LocId, result: Result<T, E>) -> Option<T> {
        result
            .map_err(|error| {
                let what = format!("the names of members: {}", error.to_string());
                let keywords = ["propertyNames", "patternProperties"];
                self.normalizer.reader.report_limit(loc, &keywords, what);
            })
            .ok()
    }

    /// As [`SchemaLowering::allowed_names`], with bounds on the length apart from the automaton.
    fn counted_names(&mut self, names: &[LocId]) -> Option<CountedNames> {
        let conj = self.normalizer.conjunction(names);
        let alternatives = self.normalizer.alternatives(&conj);
        if let [facets] = &alternatives[..]
            && facets.types.meets(TypeSet::STRING)
            && facets.values.is_none()
            && !facets.string.is_free()
        {
            self.normalizer.reader.report_unenforced(facets, TypeSet::STRING);
            let parts = self.normalizer.text_parts(&facets.string)?;
            if let [(dfa, lengths)] = &parts[..] {
                return Some(((**dfa).clone(), *lengths));
            }
        }
        Some((self.allowed_names(names)?, (0, None)))
    }

    /// The names that satisfy all of the locations (`propertyNames`).
    fn allowed_names(&mut self, names: &[LocId]) -> Option<Dfa> {
        let limit = self.normalizer.reader.limits.automaton_states;
        let loc = self.location;
        if names.is_empty() {
            return self.or_report_limit(loc, Dfa::counted(&SCALARS, 0, None, limit));
        }
        let conj = self.normalizer.conjunction(names);
        let mut out = Dfa::empty_language();
        for f in self.normalizer.alternatives(&conj).iter() {
            let names = self.string_automaton(f)?;
            out = self.or_report_limit(loc, out.combine(&names, Combine::Or, limit))?;
        }
        Some(out)
    }

    /// The strings that satisfy facets, as an automaton over code points.
    fn string_automaton(&mut self, facets: &Facets<'a>) -> Option<Dfa> {
        if !facets.types.meets(TypeSet::STRING) {
            return Some(Dfa::empty_language());
        }
        self.normalizer.reader.report_unenforced(facets, TypeSet::STRING);
        if let Some(values) = &facets.values {
            let texts: Vec<&str> = values.iter().filter_map(|v| v.as_str()).collect();
            let accepted =
                texts.into_iter().filter(|text| self.normalizer.accepts_text(&facets.string, text));
            return Some(Dfa::words(
                accepted.map(|text| text.chars().map(u32::from).collect::<Vec<_>>()),
            ));
        }
        let unconstrained = StringFacets::default();
        let string = if facets.string.is_free() { &unconstrained } else { &facets.string };
        self.normalizer.text_dfa(string).map(|dfa| (*dfa).clone())
    }

    /// A name with its quotes. Up to the point where it differs from all excluded names, it is
    /// spelled with the escapes that JSON requires. So no spelling of an excluded name is accepted.
    fn name_expr(&mut self, names: NameSet<'a>) -> Expr {
        match names {
            NameSet::AllBut(excluded) if excluded.is_empty() && !self.syntax.has_bare_names() => {
                Expr::Ref(self.string_rule())
            }
            NameSet::AllBut(excluded) if matches!(self.syntax, ValueSyntax::Delimited(_)) => {
                Expr::Ref(self.rule("name".into(), bare_complement(excluded)))
            }
            NameSet::AllBut(excluded)
                if !self.syntax.is_json() && !self.syntax.is_plain_python(&excluded) =>
            {
                match self.all_but(&excluded) {
                    Some(dfa) => self.name_expr(NameSet::Automaton((dfa, (0, None)))),
                    None => Expr::Never,
                }
            }
            NameSet::AllBut(mut excluded) => {
                excluded.sort_unstable();
                excluded.dedup();
                if let Some(&rule) = self.name_complements.get(&excluded) {
                    return Expr::Ref(rule);
                }
                let names = match excluded.iter().all(|name| self.spelling().is_plain(name)) {
                    _ if !self.syntax.is_json() => self.python_complement(&excluded),
                    true => {
                        let graph = Expr::Except(Box::new(self.plain_name_complement(&excluded)));
                        Expr::seq([Expr::text("\""), graph])
                    }
                    false => Expr::seq([Expr::text("\""), self.name_complement_trie(&excluded)]),
                };
                let rule = self.rule("name".into(), names);
                self.name_complements.insert(excluded, rule);
                Expr::Ref(rule)
            }
            NameSet::Automaton(names) if !self.syntax.is_json() => {
                let names = self.foreign_names(&names);
                Expr::Ref(self.rule("name".into(), names))
            }
            NameSet::Automaton((dfa, lengths)) => {
                let (loc, spelt) = (self.location, self.quoted_text(&dfa, lengths));
                let name = self.or_report_limit(loc, spelt).unwrap_or(Expr::Never);
                Expr::Ref(self.rule("name".into(), name))
            }
        }
    }

    /// All strings but these (sorted), with the closing quote. These are spelled without escapes.
    fn plain_name_complement(&mut self, excluded: &[&str]) -> Except {
        Except {
            words: excluded.iter().map(|name| name.as_bytes().into()).collect(),
            leave: plain_ascii(),
            tail: self.tail_rule(),
            other: self.special_tail_rule(),
            close: b"\""[..].into(),
        }
    }

    /// As [`SchemaLowering::plain_name_complement`], for names with escapes: a trie of the names,
    /// which free text leaves at any node.
    fn name_complement_trie(&mut self, excluded: &[&str]) -> Expr {
        let tail = Expr::Ref(self.tail_rule());
        let mut graph = Graph::default();
        let (start, end, free) = (graph.node(), graph.node(), graph.node());
        graph.start = start;
        graph.ends.push(end);
        graph.edge(free, tail, end);
        // (node, names below it, bytes of them already read)
        let mut stack = vec![(start, excluded, 0usize)];
        while let Some((node, texts, read)) = stack.pop() {
            let (ended, longer) = match texts.split_first() {
                Some((first, rest)) if first.len() == read => (true, rest),
                _ => (false, texts),
            };
            if !ended {
                graph.edge(node, Expr::text("\""), end);
            }
            let mut children: Vec<u32> = Vec::new();
            let mut rest = longer;
            while let Some(first) = rest.first() {
                let Some(c) = first[read..].chars().next() else { break };
                let siblings = rest.partition_point(|text| text[read..].starts_with(c));
                let child = graph.node();
                for symbol in self
                    .spell_shared(&[(u32::from(c), u32::from(c))])
                    .into_iter()
                    .filter(is_possible)
                {
                    graph.edge(node, symbol, child);
                }
                stack.push((child, &rest[..siblings], read + c.len_utf8()));
                children.push(u32::from(c));
                rest = &rest[siblings..];
            }
            self.leave_trie(&mut graph, (node, free, end), &children);
        }
        Expr::Graph(Box::new(graph))
    }

    /// Adds the edges from a trie node to free text, for every code point that no child has.
    fn leave_trie(
        &mut self,
        graph: &mut Graph,
        (node, free, end): (u32, u32, u32),
        children: &[u32],
    ) {
        let plain = |c: u32| u8::try_from(c).is_ok_and(|c| plain_ascii().contains(c));
        if self.spelling().escapes == Escapes::Required && children.iter().all(|&c| plain(c)) {
            // The common case: code points that are not plain ASCII share one rule.
            let mut ascii = plain_ascii();
            for &c in children {
                ascii.remove(c as u8);
            }
            graph.edge(node, Expr::class(ascii), free);
            graph.edge(node, Expr::Ref(self.special_tail_rule()), end);
            return;
        }
        let mut ranges = Vec::new();
        for (lo, hi) in SCALARS {
            let mut from = lo;
            let mut inside: Vec<u32> =
                children.iter().copied().filter(|c| (lo..=hi).contains(c)).collect();
            inside.sort_unstable();
            for c in inside {
                if c > from {
                    ranges.push((from, c - 1));
                }
                from = c + 1;
            }
            if from <= hi {
                ranges.push((from, hi));
            }
        }
        for symbol in self.spell_shared(&ranges).into_iter().filter(is_possible) {
            graph.edge(node, symbol, free);
        }
    }
}

/// A member: name, colon and value.
fn member_expr(name: Expr, colon: &Expr, (value, after): (Expr, Expr)) -> Expr {
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

/// The tests that partition the names of an object.
fn name_tests<'a>(facets: &ObjectFacets<'a>) -> Vec<NameTest<'a>> {
    let mut tests: Vec<NameTest<'a>> = Vec::new();
    let of_parts = facets
        .parts
        .iter()
        .flat_map(|part| part.patterns.iter().map(|(p, _)| NameTest::Pattern(p.clone())));
    let of_witnesses = facets
        .witnesses
        .iter()
        .flat_map(|witness| witness.matching.iter().chain(&witness.not_matching).cloned());
    for test in of_parts.chain(of_witnesses) {
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    tests
}

/// The schemas of the values of undeclared members, if they do not depend on the name.
pub(super) fn uniform_undeclared(facets: &ObjectFacets<'_>) -> Option<Locs> {
    let is_uniform = facets.names.is_empty() && name_tests(facets).is_empty();
    is_uniform.then(|| matched_locations(facets, &[]))
}

/// The schemas of the value of an undeclared member whose name passes these tests.
fn matched_locations<'a>(facets: &ObjectFacets<'a>, matched: &[NameTest<'a>]) -> Locs {
    let mut locs = Locs::new();
    for part in &facets.parts {
        let before = locs.len();
        let matching = |p: &PatternUse<'a>| {
            matched.iter().any(|test| matches!(test, NameTest::Pattern(other) if other == p))
        };
        locs.extend(part.patterns.iter().filter(|(p, _)| matching(p)).map(|(_, schema)| *schema));
        if locs.len() == before {
            locs.extend(part.additional);
        }
    }
    locs
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

/// These names, as an automaton over code points.
fn name_automaton(names: &[&str]) -> Dfa {
    Dfa::words(names.iter().map(|name| name.chars().map(u32::from).collect::<Vec<_>>()))
}

/// Whether a symbol has any spelling.
fn is_possible(symbol: &Expr) -> bool {
    *symbol != Expr::Never
}
