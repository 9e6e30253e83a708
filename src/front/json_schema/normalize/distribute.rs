//! Distribution: the conjunction of several disjunctions, by case distinction.
//!
//! Multiplying n conditionals out gives 2^n alternatives, most of which contradict themselves. Two
//! steps, alternated as in the DPLL procedure for satisfiability, avoid making them:
//!
//! * *propagate*: drop alternatives that contradict what holds, and disjunctions that it implies. A
//!   disjunction with one alternative left joins what holds.
//! * *split*: divide the objects by the member that most disjunctions test, into classes that they
//!   treat alike (see `classes`), and go on in each class. Without such a member, the cases are the
//!   alternatives of the smallest disjunction.
//!
//! Conditionals over independent members still multiply.

use std::rc::Rc;

use super::super::options::Undeclared;
use super::super::read::doc::LocId;
use super::super::read::facets::{Evaluates, Facets, JsonTypes, common_item};
use super::classes::Allowed;
use super::{Alternatives, FUEL_PER_CONJUNCTION, MAX_ALTERNATIVES, Normalizer};
use crate::hash::HashMap;

/// Up to so many pairs of alternatives are multiplied out at once.
const MAX_MULTIPLIED_OUT: usize = 24;

/// Fuel for testing an alternative of a choice with what holds, and for copying it.
const FUEL_PER_TEST: usize = 4;

/// How deep cases may nest.
const MAX_NESTED_CASES: usize = 256;

/// A disjunction that is part of a conjunction.
#[derive(Clone)]
pub(super) struct Choice<'a> {
    /// The schema that it comes from, and the keyword, for errors.
    pub(super) source: (LocId, &'static str),
    pub(super) alternatives: Alternatives<'a>,
    /// Each of these implies the disjunction: the consequences of a conditional.
    pub(super) implied_by: Alternatives<'a>,
}

impl<'a> Choice<'a> {
    /// A choice between these alternatives.
    pub(super) fn new(source: (LocId, &'static str), alternatives: Alternatives<'a>) -> Choice<'a> {
        Choice { source, alternatives, implied_by: Rc::default() }
    }

    /// The choice in the class of an atom, given what its facets allow.
    fn restricted_to(&self, atom: usize, tested: &[Tested<'a>]) -> Choice<'a> {
        let (first, second) = tested.split_at(self.alternatives.len());
        let restrict = |list: &Alternatives<'a>, tested: &[Tested<'a>]| -> Alternatives<'a> {
            let tested = list.iter().zip(tested);
            let possible = tested.filter(|(_, test)| test.allowed.possible.contains(atom));
            let facets = possible.map(|(facets, test)| match test.allowed.implied.contains(atom) {
                true => &test.rest,
                false => facets,
            });
            Rc::new(facets.cloned().collect())
        };
        Choice {
            source: self.source,
            alternatives: restrict(&self.alternatives, first),
            implied_by: restrict(&self.implied_by, second),
        }
    }
}

/// What facets say of the member that is split on.
struct Tested<'a> {
    allowed: Allowed,
    /// The facets without the member.
    rest: Facets<'a>,
    /// Nothing is left of them.
    is_decided: bool,
}

/// The state of one distribution.
struct Distribution<'a> {
    /// Where errors point.
    loc: LocId,
    /// The sources of the cases under way, outermost first.
    path: Vec<(LocId, &'static str)>,
    out: Vec<Facets<'a>>,
}

impl<'a> Normalizer<'a> {
    /// The conjunction of alternatives and choices.
    pub(super) fn distribute(
        &mut self,
        loc: LocId,
        mut base: Alternatives<'a>,
        mut choices: Vec<Choice<'a>>,
    ) -> Alternatives<'a> {
        let is_placeholder = |choice: &Choice<'a>| self.is_limit_placeholder(&choice.alternatives);
        if self.is_limit_placeholder(&base) || choices.iter().any(is_placeholder) {
            return self.limit_placeholder.clone();
        }
        let pairs = |base: &Alternatives<'a>, choices: &[Choice<'a>]| {
            let sizes = choices.iter().map(|choice| choice.alternatives.len());
            sizes.fold(base.len(), usize::saturating_mul)
        };
        if pairs(&base, &choices) > MAX_MULTIPLIED_OUT {
            (base, choices) = self.take_clauses(base, choices);
        }
        if pairs(&base, &choices) <= MAX_MULTIPLIED_OUT || choices.len() < 2 {
            for Choice { source: (source, keyword), alternatives, .. } in choices {
                base = self.product(base, alternatives, source, keyword);
                if source.is_negated() {
                    base = self.reduce_all(base);
                }
            }
            return base;
        }
        choices.retain(|choice| !Rc::ptr_eq(&choice.alternatives, &self.always_true));
        let mut run = Distribution { loc, path: Vec::new(), out: Vec::new() };
        for facets in base.iter() {
            if !self.distribute_over(&mut run, facets.clone(), choices.clone(), &[]) {
                return self.limit_placeholder.clone();
            }
        }
        if run.out.is_empty() {
            let keyword = choices.last().map_or("", |choice| choice.source.1);
            self.reader.note_contradiction(
                loc,
                keyword,
                "contradicts the other constraints on this value",
            );
        }
        Rc::new(self.without_subsumed(run.out))
    }

    /// Adds the conjunction of facets and choices. Members that have been split on are `resolved`.
    /// `false`: a limit was reached (reported).
    fn distribute_over(
        &mut self,
        run: &mut Distribution<'a>,
        base: Facets<'a>,
        choices: Vec<Choice<'a>>,
        resolved: &[&'a str],
    ) -> bool {
        let Some((base, mut choices)) = self.propagate(base, choices) else {
            return !self.reader.is_exhausted();
        };
        if run.path.len() > MAX_NESTED_CASES {
            self.report_multiplied(run);
            return false;
        }
        if choices.is_empty() {
            let reduced = self.probe(|normalizer| normalizer.reduce(base.clone()));
            run.out.extend(reduced.unwrap_or(Some(base)));
            return self.check_count(run);
        }
        let Some((name, at)) = self.discriminator(&base, &choices, resolved) else {
            let size = |i: &usize| choices[*i].alternatives.len();
            let smallest = (0..choices.len()).min_by_key(size).unwrap_or_default();
            let cases = choices.remove(smallest);
            return self.distribute_cases(run, &base, &cases, choices, resolved);
        };
        let resolved = [resolved, &[name]].concat();
        let (others, objects) =
            (base.types.minus(JsonTypes::OBJECT), base.types.intersect(JsonTypes::OBJECT));
        run.path.push(choices[at].source);
        if !others.is_empty() {
            let base = Facets { types: others, ..base.clone() };
            if !self.distribute_over(run, base, choices.clone(), &resolved) {
                return false;
            }
        }
        let base = Facets { types: objects, ..base };
        if !self.distribute_classes(run, name, base, choices, &resolved) {
            return false;
        }
        run.path.pop();
        true
    }

    /// As [`Normalizer::distribute_over`], with each alternative of a choice as a case.
    fn distribute_cases(
        &mut self,
        run: &mut Distribution<'a>,
        base: &Facets<'a>,
        cases: &Choice<'a>,
        choices: Vec<Choice<'a>>,
        resolved: &[&'a str],
    ) -> bool {
        run.path.push(cases.source);
        for case in cases.alternatives.iter() {
            if !self.spend_on_conjoin(base, case) {
                return false;
            }
            let both = base.clone().conjoin(case);
            if !both.types.is_empty() && !self.distribute_over(run, both, choices.clone(), resolved)
            {
                return false;
            }
        }
        run.path.pop();
        true
    }

    /// Checks the number of alternatives so far; reports too many.
    fn check_count(&mut self, run: &mut Distribution<'a>) -> bool {
        if run.out.len() <= MAX_ALTERNATIVES {
            return true;
        }
        run.out = self.without_subsumed(std::mem::take(&mut run.out));
        if run.out.len() <= MAX_ALTERNATIVES / 2 {
            return true;
        }
        self.report_multiplied(run);
        false
    }

    /// Reports that the cases under way are too many.
    fn report_multiplied(&mut self, run: &Distribution<'a>) {
        let first = run.path.first().copied().unwrap_or((run.loc, ""));
        let second = run.path.get(1).copied().unwrap_or(first);
        self.report_too_many(run.loc, [first, second]);
    }

    /// Reports that the alternatives of two schemas multiply.
    pub(super) fn report_too_many(&mut self, loc: LocId, [a, b]: [(LocId, &'static str); 2]) {
        let pointer = |(loc, keyword)| self.reader.doc.keyword_pointer(loc, keyword);
        let what = format!(
            "more than {MAX_ALTERNATIVES} alternatives, as {:?} and {:?} multiply; to take fewer, \
             let each test one member, by a `const` that a required member has or by its presence",
            pointer(a),
            pointer(b)
        );
        // All of `allOf` is too much to relax.
        let keywords = [b, a].into_iter().filter(|(at, by)| *at == loc && *by != "allOf");
        let keywords: Vec<&'static str> = keywords.map(|(_, keyword)| keyword).collect();
        self.reader.report_limit(loc, &keywords, what);
    }

    /// Joins choices with one alternative to what holds, and drops choices that it implies. `None`:
    /// contradictory, or the fuel is spent.
    fn propagate(
        &mut self,
        mut base: Facets<'a>,
        mut choices: Vec<Choice<'a>>,
    ) -> Option<(Facets<'a>, Vec<Choice<'a>>)> {
        let mut changed = true;
        while std::mem::take(&mut changed) {
            let mut rest = Vec::with_capacity(choices.len());
            for mut choice in choices {
                if !self.reader.spend(FUEL_PER_TEST * (1 + choice.alternatives.len())) {
                    return None;
                }
                // A single alternative is joined at once, implied or not.
                if choice.alternatives.len() > 1 && self.is_implied(&choice, &base) {
                    continue;
                }
                let possible = |facets: &&Facets<'a>| is_possible(&base, facets);
                let count = choice.alternatives.iter().filter(possible).count();
                match count {
                    0 => return None,
                    1 => {
                        let only = choice.alternatives.iter().find(possible)?;
                        // What holds is not copied.
                        let compared = base.list_entries() / 16;
                        if !self.reader.spend(compared + FUEL_PER_CONJUNCTION + only.list_entries())
                        {
                            return None;
                        }
                        let types = base.types;
                        base = base.conjoin(only);
                        if base.types.is_empty() {
                            return None;
                        }
                        let object = &only.object;
                        changed |= base.types != types
                            || !object.required.is_empty()
                            || !object.forbidden.is_empty();
                    }
                    _ => {
                        if count < choice.alternatives.len() {
                            let possible = choice.alternatives.iter().filter(possible).cloned();
                            choice.alternatives = Rc::new(possible.collect());
                        }
                        rest.push(choice);
                    }
                }
            }
            choices = rest;
        }
        Some((base, choices))
    }

    /// Whether what holds implies a choice, and the choice evaluates nothing more.
    fn is_implied(&self, choice: &Choice<'a>, base: &Facets<'a>) -> bool {
        (!self.declarations_count()
            || choice.alternatives.iter().all(|facets| facets.evaluates_within(base)))
            && choice
                .implied_by
                .iter()
                .chain(choice.alternatives.iter())
                .any(|facets| self.subsumes(facets, base))
    }

    /// The member that most alternatives test, with the first choice that tests it. A choice counts
    /// by the share of its alternatives.
    fn discriminator(
        &mut self,
        base: &Facets<'a>,
        choices: &[Choice<'a>],
        resolved: &[&'a str],
    ) -> Option<(&'a str, usize)> {
        /// The weight of a choice all of whose alternatives test the member.
        const WEIGHT: usize = 1 << 10;
        if !base.types.meets(JsonTypes::OBJECT) {
            return None;
        }
        /// The choices that test a member.
        struct TestCount {
            weight: usize,
            first: usize,
            last: usize,
            choices: usize,
        }
        let mut tested: HashMap<&'a str, TestCount> = HashMap::default();
        let mut names: Vec<&'a str> = Vec::new();
        for (i, choice) in choices.iter().enumerate() {
            let weight = WEIGHT / choice.alternatives.len().max(1);
            for facets in choice.alternatives.iter() {
                self.tested_members(facets, &mut names);
                if !self.reader.spend(1 + facets.object.parts.len() + 2 * names.len()) {
                    return None;
                }
                for name in names.drain(..).filter(|name| !resolved.contains(name)) {
                    let new = TestCount { weight: 0, first: i, last: i, choices: 1 };
                    let count = tested.entry(name).or_insert(new);
                    count.weight += weight;
                    count.choices += usize::from(count.last != i);
                    count.last = i;
                }
            }
        }
        let candidates = tested.into_iter().filter(|(_, count)| count.choices > 1);
        // Names break ties, so that the choice does not depend on hashing.
        let best = candidates
            .max_by_key(|(name, count)| (count.weight, std::cmp::Reverse(count.first), *name));
        best.map(|(name, count)| (name, count.first))
    }

    /// The names of the members whose presence or value an alternative tests, each once.
    fn tested_members(&mut self, facets: &Facets<'a>, names: &mut Vec<&'a str>) {
        let object = &facets.object;
        names.extend(object.required.iter().chain(&object.forbidden));
        for part in &object.parts {
            for &(name, schema) in &part.properties {
                if self.tests_value(schema) {
                    names.push(name);
                }
            }
        }
        if names.len() > 1 {
            names.sort_unstable();
            names.dedup();
        }
    }

    /// As [`Normalizer::distribute_over`], with each class of objects as a case, which the choices
    /// divide by a member. One case is made at a time: each has a copy of the choices.
    fn distribute_classes(
        &mut self,
        run: &mut Distribution<'a>,
        name: &'a str,
        base: Facets<'a>,
        choices: Vec<Choice<'a>>,
        resolved: &[&'a str],
    ) -> bool {
        let all = || choices.iter().flat_map(|c| c.alternatives.iter().chain(c.implied_by.iter()));
        let mut split = self.split(run.loc, name, &base, all());
        let tested = all().zip(std::mem::take(&mut split.tests)).map(|(facets, allowed)| {
            let rest = self.without_member(facets, name);
            let is_decided = self.allows_all_objects(&rest);
            Tested { allowed, rest, is_decided }
        });
        let tested: Vec<Tested<'a>> = tested.collect();
        if let [_] = split.classes[..] {
            return self.distribute_over(run, base, choices, resolved);
        }
        for class in &split.classes {
            let of_class = self.class_facets(&split, class);
            if !self.reader.spend(FUEL_PER_TEST * tested.len())
                || !self.spend_on_conjoin(&base, &of_class)
            {
                return false;
            }
            let rest = choices_in_class(&choices, &tested, class[0]);
            if !self.distribute_over(run, base.clone().conjoin(&of_class), rest, resolved) {
                return false;
            }
        }
        true
    }

    /// Whether it has an effect that a schema declares a member, apart from its constraints.
    pub(super) fn declarations_count(&self) -> bool {
        self.reader.tracks_evaluation || self.reader.options.undeclared != Undeclared::Allowed
    }

    /// Whether facets are certainly satisfied by all objects, which they leave unevaluated.
    fn allows_all_objects(&self, facets: &Facets<'a>) -> bool {
        !self.declarations_count()
            && JsonTypes::OBJECT.minus(facets.types).is_empty()
            && facets.values.is_none()
            && facets.unenforced.is_empty()
            && facets.object.allows_all()
    }
}

/// The choices that are left in the class of an atom. All atoms of a class have the same answers.
fn choices_in_class<'a>(
    choices: &[Choice<'a>],
    tested: &[Tested<'a>],
    atom: usize,
) -> Vec<Choice<'a>> {
    let (mut rest, mut tests) = (Vec::new(), tested);
    for choice in choices {
        let (own, others) = tests.split_at(choice.alternatives.len() + choice.implied_by.len());
        tests = others;
        if !own.iter().any(|test| test.is_decided && test.allowed.implied.contains(atom)) {
            rest.push(choice.restricted_to(atom, own));
        }
    }
    rest
}

/// Whether facets may hold together, judged by types and presence of members.
fn is_possible(base: &Facets<'_>, facets: &Facets<'_>) -> bool {
    let types = base.types.intersect(facets.types);
    let (a, b) = (&base.object, &facets.object);
    types != JsonTypes::OBJECT && !types.is_empty()
        || types == JsonTypes::OBJECT
            && common_item(&b.required, &a.forbidden).is_none()
            && common_item(&b.forbidden, &a.required).is_none()
}

impl<'a> Facets<'a> {
    /// Whether parts of others evaluate all members and elements that these facets evaluate.
    pub(super) fn evaluates_within(&self, other: &Facets<'a>) -> bool {
        let others = || other.object.parts.iter();
        let is_evaluated = |name: &str| {
            others().any(|known| {
                known.evaluates != Evaluates::Nothing && known.property(name).is_some()
            })
        };
        self.object.parts.iter().all(|part| {
            part.evaluates == Evaluates::Nothing
                || others().any(|known| Rc::ptr_eq(known, part))
                || part.has_properties_only()
                    && part.properties.iter().all(|(name, _)| is_evaluated(name))
        }) && self
            .array
            .parts
            .iter()
            .all(|part| part.evaluates == Evaluates::Nothing || other.array.parts.contains(part))
            && self.array.contains.iter().all(|contains| {
                contains.evaluates == Evaluates::Nothing || other.array.contains.contains(contains)
            })
    }
}
