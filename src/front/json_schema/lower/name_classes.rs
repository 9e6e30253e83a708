//! Classes of names: the undeclared names of an object, partitioned by the patterns that they
//! match, and so by the schemas of their values.

use std::sync::Arc;

use super::super::read::doc::{LocId, Locs};
use super::super::read::facets::{Facets, JsonTypes, NameTest, ObjectFacets, PatternUse};
use super::SchemaLowering;
use super::unique::count_words;
use super::value_syntax::CountedNames;
use crate::front::regex::{Lengths, SCALARS};
use crate::fsm::{Combine, Dfa, LanguageClass, TooLarge};

/// The largest number of classes of additional names.
const MAX_NAME_CLASSES: usize = 64;
/// The largest number of tests that partition names.
const MAX_NAME_TESTS: usize = 512;

/// Classes of names, each with the tests that they pass, and bounds on the length of all names.
pub(super) type NameClasses<'a> = (Vec<(NameClass, Vec<NameTest<'a>>)>, Lengths);

/// A class of names: those that pass the same tests.
pub(super) enum NameClass {
    /// The names that match a pattern, or those that do not.
    Automaton(Arc<Dfa>),
    /// A class of a partition by several tests.
    Partition(LanguageClass),
}

impl NameClass {
    /// Whether the class has infinitely many names.
    pub(super) fn is_infinite(&self) -> bool {
        match self {
            NameClass::Automaton(dfa) => dfa.is_infinite(),
            NameClass::Partition(class) => class.is_infinite(),
        }
    }
}

impl<'a> SchemaLowering<'a, '_> {
    /// The schemas of the values of undeclared members, for each class of names.
    pub(super) fn undeclared_schemas(
        &mut self,
        facets: &ObjectFacets<'a>,
        declared: &[&'a str],
    ) -> Vec<Locs> {
        match uniform_undeclared(facets) {
            Some(locs) => vec![locs],
            None => {
                let classes = self.undeclared_classes(facets, declared).into_iter();
                classes.map(|(_, locs)| locs).collect()
            }
        }
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
        let excluded = Dfa::texts(&excluded);
        let located = classes.into_iter().filter_map(|(names, matched)| {
            let names = self.subtract_names(&names, lengths, &excluded)?;
            Some((names, matched_locations(facets, &matched)))
        });
        located.collect()
    }

    /// The classes of names by the tests that they pass; declared names are still in them.
    pub(super) fn name_classes(
        &mut self,
        facets: &ObjectFacets<'a>,
        tests: &[NameTest<'a>],
    ) -> Option<NameClasses<'a>> {
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
            self.report_limit(&["patternProperties"], what);
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
        let classes = self.or_report_limit(universe.split(&others, self.max_states()))?;
        if classes.len() > MAX_NAME_CLASSES {
            let what = format!("patterns divide names into more than {MAX_NAME_CLASSES} classes");
            self.report_limit(&["patternProperties"], what);
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
    pub(super) fn subtract_names(
        &mut self,
        names: &NameClass,
        lengths: Lengths,
        declared: &Dfa,
    ) -> Option<CountedNames> {
        let limit = self.max_states();
        let names = match names {
            NameClass::Automaton(dfa) => dfa.clone(),
            NameClass::Partition(class) => Arc::new(class.automaton()),
        };
        let remaining = self.or_report_limit(names.without(declared, limit))?;
        let (min, max) = lengths;
        if lengths == (0, None) || count_words(&remaining, min, max).is_inexhaustible() {
            return (!remaining.is_empty()).then_some((remaining, lengths));
        }
        let exact = self.or_report_limit(remaining.of_length(min, max, limit))?;
        (!exact.is_empty()).then_some((exact, (0, None)))
    }

    /// The value of a result; an error is reported as a limit.
    pub(super) fn or_report_limit<T>(&mut self, result: Result<T, TooLarge>) -> Option<T> {
        if let Err(error) = &result {
            let what = format!("the names of members: {error}");
            self.report_limit(&["propertyNames", "patternProperties"], what);
        }
        result.ok()
    }

    /// As [`SchemaLowering::allowed_names`], with bounds on the length apart from the automaton.
    fn counted_names(&mut self, names: &[LocId]) -> Option<CountedNames> {
        let alternatives = self.normalizer.alternatives_of(names.iter().copied());
        if let [facets] = &alternatives[..]
            && facets.types.meets(JsonTypes::STRING)
            && facets.values.is_none()
            && !facets.string.allows_all()
        {
            self.normalizer.reader.report_unenforced(facets, JsonTypes::STRING);
            let parts = self.normalizer.text_parts(&facets.string)?;
            if let [(dfa, lengths)] = &parts[..] {
                return Some(((**dfa).clone(), *lengths));
            }
        }
        Some((self.allowed_names(names)?, (0, None)))
    }

    /// The names that satisfy all of the locations (`propertyNames`).
    fn allowed_names(&mut self, names: &[LocId]) -> Option<Dfa> {
        let limit = self.max_states();
        if names.is_empty() {
            return self.or_report_limit(Dfa::counted(&SCALARS, 0, None, limit));
        }
        let mut out = Dfa::empty_language();
        for f in self.normalizer.alternatives_of(names.iter().copied()).iter() {
            let names = self.string_automaton(f)?;
            out = self.or_report_limit(out.combine(&names, Combine::Or, limit))?;
        }
        Some(out)
    }

    /// The strings that satisfy facets, as an automaton over code points.
    fn string_automaton(&mut self, facets: &Facets<'a>) -> Option<Dfa> {
        if !facets.types.meets(JsonTypes::STRING) {
            return Some(Dfa::empty_language());
        }
        self.normalizer.reader.report_unenforced(facets, JsonTypes::STRING);
        if let Some(texts) = self.normalizer.listed_texts(facets) {
            return Some(Dfa::texts(texts));
        }
        self.normalizer.text_dfa(&facets.string).map(|dfa| (*dfa).clone())
    }
}

/// The tests that partition the names of an object.
pub(super) fn name_tests<'a>(facets: &ObjectFacets<'a>) -> Vec<NameTest<'a>> {
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
pub(super) fn matched_locations<'a>(facets: &ObjectFacets<'a>, matched: &[NameTest<'a>]) -> Locs {
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
