//! Objects: which members there can be, and with what values.

use std::sync::Arc;

use super::doc::LocId;
use super::facets::{Facets, NameTest, ObjectFacets, PatternUse, SomeMember, StringFacets, Types};
use super::lower::Lowering;
use super::members::Member;
use super::normalize::{Locs, Normalizer};
use super::punctuation::Frame;
use super::spelling::plain_ascii;
use super::{AdditionalNames, Escapes, MemberOrder, SchemaErrorReason as Reason};
use crate::front::regex::SCALARS;
use crate::fsm::{Class, Combine, Dfa};
use crate::hash::HashMap;
use crate::ids::RuleId;
use crate::ir::{Except, Expr, Graph, Members};

/// Most classes of additional names that patterns may cut out.
const MAX_NAME_CLASSES: usize = 64;
/// Most patterns that names are told apart by.
const MAX_NAME_TESTS: usize = 512;
/// Most members an object must have that are known only by what they satisfy.
const MAX_SOME: usize = 4;

/// Names that the same schemas apply to: all but those listed, or those of an automaton over code points.
enum Names<'a> {
    AllBut(Vec<&'a str>),
    Automaton(Dfa),
}

/// How many names there are that are not declared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    /// Finitely many.
    Few,
    /// Infinitely many, though perhaps not with every beginning.
    Many,
    /// Infinitely many with every beginning that one of them has.
    Open,
}

/// Names that pass the same tests.
enum NameClass {
    Known(Arc<Dfa>),
    Part(Class),
}

impl NameClass {
    fn is_infinite(&self) -> bool {
        match self {
            NameClass::Known(dfa) => dfa.is_infinite(),
            NameClass::Part(class) => class.is_infinite(),
        }
    }
}

impl<'a> Lowering<'a, '_> {
    /// An object with these facets, braces included.
    pub(super) fn object(&mut self, facets: &ObjectFacets<'a>) -> Expr {
        self.framed_object(facets, None)
    }

    /// As [`Lowering::object`], in another frame than braces.
    pub(super) fn framed_object(
        &mut self,
        facets: &ObjectFacets<'a>,
        frame: Option<&Frame>,
    ) -> Expr {
        if facets.some.len() > MAX_SOME {
            let what = format!("more than {MAX_SOME} members known only by a property");
            self.norm.report(self.at, "", Reason::Limit(what));
            return Expr::Never;
        }
        let declared = self.declared(facets);
        let (mut additional, others) = self.additional(facets, &declared);
        let is_json = self.syntax.is_json();
        let mut few = Vec::new();
        // Where there always is another name, minProperties asks for nothing that cannot be.
        let mut differ = is_json && !additional.is_empty();
        if others == Others::Few && !additional.is_empty() {
            match self.few_names(facets, &declared) {
                Some(names) => {
                    few = names;
                    differ &= few.is_empty();
                    additional.retain(|_| few.is_empty());
                }
                None => differ &= facets.min as usize <= facets.required.len().max(1),
            }
            if is_json && !differ && few.is_empty() && self.names_differ() {
                let what = "more members than are required, of finitely many names that are too many to be told apart one by one";
                self.norm.unsupported(self.at, "minProperties", what.into());
            }
        }
        let names: Vec<&str> =
            declared.iter().copied().chain(few.iter().map(String::as_str)).collect();
        let Some((members, required)) = self.members(facets, &names) else { return Expr::Never };
        differ &= self.names_differ() || facets.min as usize > members.len() + 1;
        let is_open = others == Others::Open;
        if differ {
            additional.iter_mut().for_each(|member| self.compare_name(member, is_open));
        }
        let marks = self.punctuation();
        let frame = frame.unwrap_or(&marks.braces);
        let object = self.object_graph(facets, (members, &required, additional), (frame, differ));
        if !differ || is_open {
            return object;
        }
        let rule = self.rule("object".into(), object);
        self.builder.attributes(rule).scope = true;
        Expr::Ref(rule)
    }

    /// Whether no additional name is to be there twice.
    pub(super) fn names_differ(&self) -> bool {
        self.norm.needs.differ || self.norm.options.additional_names == AdditionalNames::Differ
    }

    /// Makes the name of a member one that is compared with others. `open`: whatever one begins with, there are infinitely many.
    fn compare_name(&mut self, member: &mut Member, open: bool) {
        for body in member.bodies_mut() {
            let Expr::Seq(parts) = body else { continue };
            let Some(name) = parts.first_mut() else { continue };
            let Expr::Ref(rule) = *name else { continue };
            *name = Expr::Ref(match open {
                true => self.differing(rule),
                false => self.element(rule),
            });
        }
    }

    /// A rule of names that differ from each other in each object.
    pub(super) fn differing(&mut self, name: RuleId) -> RuleId {
        if name != self.string_rule() {
            self.builder.attributes(name).name = true;
            return name;
        }
        match self.shared.name {
            Some(rule) => rule,
            None => {
                let rule = self.rule("name".into(), Expr::Ref(name));
                self.builder.attributes(rule).name = true;
                *self.shared.name.insert(rule)
            }
        }
    }

    /// The same, of which there may be only so many more.
    fn element(&mut self, name: RuleId) -> RuleId {
        if let Some(&known) = self.elements.get(&name) {
            return known;
        }
        let rule = self.rule("name".into(), Expr::Ref(name));
        self.builder.attributes(rule).element = true;
        self.elements.insert(name, rule);
        rule
    }

    /// The other names, where names must differ or are counted and there are so few that each can be a member of its own.
    fn few_names(
        &mut self,
        facets: &ObjectFacets<'a>,
        declared: &[&'a str],
    ) -> Option<Vec<String>> {
        let options = &self.norm.options;
        let needed = self.names_differ() || facets.min as usize > declared.len() + 1;
        if !needed
            || !facets.some.is_empty()
            || options.order == MemberOrder::Fixed
            || !self.syntax.is_json()
        {
            return None;
        }
        let mut out = Vec::new();
        for (names, locs) in self.undeclared(facets, declared) {
            if self.value(locs) != Expr::Never {
                add_words(&names, Members::MOST.checked_sub(declared.len())?, &mut out)?;
            }
        }
        Some(out)
    }

    /// Declared names: properties in order, then required names that no part declares.
    pub(super) fn declared(&self, facets: &ObjectFacets<'a>) -> Vec<&'a str> {
        let mut names: Vec<&'a str> = Vec::new();
        if let ([only], []) = (&facets.parts[..], &facets.some[..]) {
            names.extend(only.properties.iter().map(|(name, _)| *name));
            names.extend(facets.required.iter().filter(|name| only.property(name).is_none()));
            return names;
        }
        let mut seen = crate::hash::HashSet::default();
        let properties =
            facets.parts.iter().flat_map(|part| part.properties.iter().map(|(name, _)| *name));
        let excepted = facets.some.iter().flat_map(|some| some.not_named.iter().copied());
        names.extend(
            properties
                .chain(facets.required.iter().copied())
                .chain(excepted)
                .filter(|n| seen.insert(*n)),
        );
        names
    }

    /// The members that can be present, and which of them are required, in the order of `required`. `None` if a required one
    /// cannot be.
    fn members(
        &mut self,
        facets: &ObjectFacets<'a>,
        declared: &[&str],
    ) -> Option<(Vec<Member>, Vec<usize>)> {
        /// So many are looked through.
        const FEW: usize = 8;
        let ranks: HashMap<&str, usize> = match facets.required.len() {
            0..=FEW => HashMap::default(),
            _ => facets.required.iter().enumerate().map(|(i, name)| (*name, i)).collect(),
        };
        let mut members = Vec::with_capacity(declared.len());
        let mut required: Vec<(usize, usize)> = Vec::new();
        for &name in declared {
            let locs = self.norm.member(facets, name);
            let at = locs.first().copied();
            let rank = match facets.required.len() {
                0..=FEW => facets.required.iter().position(|other| *other == name),
                _ => ranks.get(name).copied(),
            };
            let key = self.syntax.name(name, self.spelling());
            let qualifies = self.candidates(facets, |norm, some| norm.is_candidate(some, name));
            let member = match self.norm.accepts_name(facets, name) && key != Expr::Never {
                true => self.member((key, locs), &qualifies, rank.is_some()),
                false => None,
            };
            if let Some(member) = member {
                required.extend(rank.map(|rank| (rank, members.len())));
                members.push(member);
            } else if rank.is_some() {
                let at = at.filter(|&at| at != LocId::FALSE).unwrap_or(self.at);
                self.norm.conflict(at, "", &format!("required member {name:?} allows no value"));
                return None;
            }
        }
        required.sort_unstable();
        Some((members, required.into_iter().map(|(_, member)| member).collect()))
    }

    /// The members looked for that one member may be: their bits, and what its value must then satisfy.
    fn candidates(
        &mut self,
        facets: &ObjectFacets<'a>,
        mut qualifies: impl FnMut(&mut Normalizer<'a>, &SomeMember<'a>) -> bool,
    ) -> Vec<(u32, LocId)> {
        let some = facets.some.iter().enumerate();
        some.filter(|(_, some)| qualifies(&mut self.norm, some))
            .map(|(i, some)| (1 << i, some.schema))
            .collect()
    }

    /// A member with this name whose value satisfies all of the locations; `None` if nothing does.
    fn member(
        &mut self,
        (name, locs): (Expr, Locs),
        qualifies: &[(u32, LocId)],
        required: bool,
    ) -> Option<Member> {
        if qualifies.is_empty() {
            let value = self.value(locs);
            if value == Expr::Never {
                return None;
            }
            let body = named(name, &self.punctuation().colon, value);
            return Some(Member { first: (0, body), more: Vec::new(), required });
        }
        let mut values: Vec<(u32, Expr)> = Vec::new();
        for choice in 0..1u32 << qualifies.len() {
            let chosen = || {
                qualifies
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| choice >> i & 1 == 1)
                    .map(|(_, some)| some)
            };
            let found: u32 = chosen().map(|(bit, _)| bit).sum();
            let value = self.value(
                locs.iter().copied().chain(chosen().map(|(_, schema)| *schema)).collect::<Locs>(),
            );
            if value != Expr::Never {
                // A value that always is more than it has to be.
                values.retain(|(bits, other)| bits & !found != 0 || *other != value);
                values.push((found, value));
            }
        }
        values.sort_by_key(|(found, _)| found.count_ones());
        let marks = self.punctuation();
        let mut variants = values
            .into_iter()
            .map(|(found, value)| (found, named(name.clone(), &marks.colon, value)));
        Some(Member { first: variants.next()?, more: variants.collect(), required })
    }

    /// Members with other names, and how many of these there are.
    fn additional(
        &mut self,
        facets: &ObjectFacets<'a>,
        declared: &[&'a str],
    ) -> (Vec<Member>, Others) {
        let tests = name_tests(facets);
        let all: Vec<&'a str> = declared.iter().chain(&facets.forbidden).copied().collect();
        if tests.is_empty() && facets.names.is_empty() {
            let locs: Locs = facets.parts.iter().filter_map(|part| part.additional).collect();
            if self.value(locs.clone()) == Expr::Never {
                return (Vec::new(), Others::Few);
            }
            let names = self.names(Names::AllBut(all));
            let qualifies = self.candidates(facets, |_, _| true);
            return (
                self.member((names, locs), &qualifies, false).into_iter().collect(),
                Others::Open,
            );
        }
        let Some(classes) = self.name_classes(facets, &tests) else {
            return (Vec::new(), Others::Few);
        };
        let all = name_words(&all);
        let (mut out, mut open, mut infinite) = (Vec::new(), true, false);
        for (names, matched) in classes {
            let locs = matched_locations(facets, &matched);
            // What no name is left for is not looked at, and finitely many names can leave none.
            let few = if names.is_infinite() { None } else { Some(self.but(&names, &all)) };
            if few == Some(None) || self.value(locs.clone()) == Expr::Never {
                continue;
            }
            if let Some(dfa) = few.unwrap_or_else(|| self.but(&names, &all)) {
                let (goes_on, is_infinite) = (dfa.goes_on(), dfa.is_infinite());
                let names = self.names(Names::Automaton(dfa));
                let qualifies = self.candidates(facets, |_, some| match &some.matching {
                    Some(test) => matched.contains(test),
                    None => !some.not_matching.iter().any(|test| matched.contains(test)),
                });
                let member = self.member((names, locs), &qualifies, false);
                open &= member.is_none() || goes_on;
                infinite |= member.is_some() && is_infinite;
                out.extend(member);
            }
        }
        let others = match (open, infinite) {
            (true, true) => Others::Open,
            (false, true) => Others::Many,
            (_, false) => Others::Few,
        };
        (out, others)
    }

    /// Classes of undeclared names, and what a member of such a name satisfies.
    pub(super) fn undeclared(
        &mut self,
        facets: &ObjectFacets<'a>,
        declared: &[&'a str],
    ) -> Vec<(Dfa, Locs)> {
        let all: Vec<&'a str> = declared.iter().chain(&facets.forbidden).copied().collect();
        let classes = self.name_classes(facets, &name_tests(facets)).unwrap_or_default();
        let all = name_words(&all);
        let located = classes.into_iter().filter_map(|(names, matched)| {
            Some((self.but(&names, &all)?, matched_locations(facets, &matched)))
        });
        located.collect()
    }

    /// Names by the patterns they match, declared ones among them.
    fn name_classes(
        &mut self,
        facets: &ObjectFacets<'a>,
        tests: &[NameTest<'a>],
    ) -> Option<Vec<(NameClass, Vec<NameTest<'a>>)>> {
        let limit = self.norm.limits.automaton_states;
        let at = self.at;
        if let ([NameTest::Pattern(pattern)], []) = (tests, &facets.names[..]) {
            let (inside, outside) =
                (self.norm.pattern_dfa(pattern)?, self.norm.pattern_complement(pattern)?);
            let inside = (NameClass::Known(inside), tests.to_vec());
            return Some(vec![inside, (NameClass::Known(outside), Vec::new())]);
        }
        if tests.len() > MAX_NAME_TESTS {
            let what = format!("more than {MAX_NAME_TESTS} patterns of names together");
            self.norm.report(at, "patternProperties", Reason::Limit(what));
            return None;
        }
        let universe = self.allowed_names(&facets.names)?;
        let mut automata: Vec<Arc<Dfa>> = Vec::with_capacity(tests.len());
        for test in tests {
            automata.push(match test {
                NameTest::Pattern(pattern) => self.norm.pattern_dfa(pattern)?,
                NameTest::Schema(loc) => Arc::new(self.allowed_names(&[*loc])?),
            });
        }
        let others: Vec<&Dfa> = automata.iter().map(|dfa| &**dfa).collect();
        let classes = self.within(at, universe.split(&others, limit))?;
        if classes.len() > MAX_NAME_CLASSES {
            let what = format!("patterns divide names into more than {MAX_NAME_CLASSES} classes");
            self.norm.report(at, "patternProperties", Reason::Limit(what));
            return None;
        }
        let matched = |answers: Vec<bool>| {
            tests.iter().zip(answers).filter(|(_, yes)| *yes).map(|(t, _)| t.clone()).collect()
        };
        Some(
            classes
                .into_iter()
                .map(|(answers, class)| (NameClass::Part(class), matched(answers)))
                .collect(),
        )
    }

    /// The names of a class but these; `None` if there are none.
    fn but(&mut self, names: &NameClass, declared: &Dfa) -> Option<Dfa> {
        let limit = self.norm.limits.automaton_states;
        let names = match names {
            NameClass::Known(dfa) => dfa.clone(),
            NameClass::Part(class) => Arc::new(class.automaton()),
        };
        let left = self.within(self.at, names.without(declared, limit))?;
        (!left.is_empty()).then_some(left)
    }

    fn within<T, E: ToString>(&mut self, at: LocId, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.norm.report(at, "", Reason::Limit(error.to_string()))).ok()
    }

    /// Names that satisfy all of the locations.
    fn allowed_names(&mut self, names: &[LocId]) -> Option<Dfa> {
        let limit = self.norm.limits.automaton_states;
        let at = self.at;
        if names.is_empty() {
            return self.within(at, Dfa::counted(&SCALARS, 0, None, limit));
        }
        let conj = self.norm.conj(names);
        let mut out = Dfa::never();
        for f in self.norm.alternatives(&conj).iter() {
            let names = self.texts(f)?;
            out = self.within(at, out.combine(&names, Combine::Or, limit))?;
        }
        Some(out)
    }

    /// The strings that satisfy facets, as an automaton over code points.
    fn texts(&mut self, facets: &Facets<'a>) -> Option<Dfa> {
        if !facets.types.meets(Types::STRING) {
            return Some(Dfa::never());
        }
        self.norm.report_unenforced(facets, Types::STRING);
        if let Some(values) = &facets.values {
            let texts: Vec<&str> = values.iter().filter_map(|v| v.as_str()).collect();
            let kept =
                texts.into_iter().filter(|text| self.norm.accepts_text(&facets.string, text));
            return Some(Dfa::words(
                kept.map(|text| text.chars().map(u32::from).collect::<Vec<_>>()),
            ));
        }
        let free = StringFacets::default();
        let string = if facets.string.is_free() { &free } else { &facets.string };
        self.norm.text_dfa(string).map(|dfa| (*dfa).clone())
    }

    /// A name in quotes. Spelt with the escapes JSON requires up to where it has left the excluded ones, so that no
    /// spelling of an excluded name slips through.
    fn names(&mut self, names: Names<'a>) -> Expr {
        match names {
            Names::AllBut(excluded) if excluded.is_empty() && !self.syntax.has_bare_names() => {
                Expr::Ref(self.string_rule())
            }
            Names::AllBut(excluded) if !self.syntax.is_json() => match self.all_but(&excluded) {
                Some(dfa) => self.names(Names::Automaton(dfa)),
                None => Expr::Never,
            },
            Names::AllBut(mut excluded) => {
                excluded.sort_unstable();
                excluded.dedup();
                if let Some(&known) = self.other_names.get(&excluded) {
                    return Expr::Ref(known);
                }
                let graph = match excluded.iter().all(|name| self.spelling().is_plain(name)) {
                    true => Expr::Except(Box::new(self.other_name(&excluded))),
                    false => self.name_trie(&excluded),
                };
                let rule = self.rule("name".into(), Expr::seq([Expr::text("\""), graph]));
                self.other_names.insert(excluded, rule);
                Expr::Ref(rule)
            }
            Names::Automaton(dfa) if !self.syntax.is_json() => {
                let names = self.foreign_names(&dfa);
                Expr::Ref(self.rule("name".into(), names))
            }
            Names::Automaton(dfa) => {
                let graph = self.text_graph(&dfa);
                Expr::Ref(self.rule("name".into(), Expr::seq([Expr::text("\""), graph])))
            }
        }
    }

    /// All texts but these (sorted), with the closing quote, where these are spelt as they are.
    fn other_name(&mut self, excluded: &[&str]) -> Except {
        Except {
            words: excluded.iter().map(|name| name.as_bytes().into()).collect(),
            leave: plain_ascii(),
            tail: self.tail_rule(),
            other: self.special_tail_rule(),
            close: b"\""[..].into(),
        }
    }

    /// As [`Lowering::other_name`], whatever the names: the trie of the texts, left for free text at any node.
    fn name_trie(&mut self, excluded: &[&str]) -> Expr {
        let tail = Expr::Ref(self.tail_rule());
        let mut graph = Graph::default();
        let (start, end, free) = (graph.node(), graph.node(), graph.node());
        graph.start = start;
        graph.ends.push(end);
        graph.edge(free, tail, end);
        // (node, texts below it, bytes of them already read)
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
                let same = rest.partition_point(|text| text[read..].starts_with(c));
                let child = graph.node();
                for symbol in
                    self.spell_shared(&[(u32::from(c), u32::from(c))]).into_iter().filter(possible)
                {
                    graph.edge(node, symbol, child);
                }
                stack.push((child, &rest[..same], read + c.len_utf8()));
                children.push(u32::from(c));
                rest = &rest[same..];
            }
            self.leave(&mut graph, (node, free, end), &children);
        }
        Expr::Graph(Box::new(graph))
    }

    /// Edges from a trie node to free text, over every code point that is not a child's.
    fn leave(&mut self, graph: &mut Graph, (node, free, end): (u32, u32, u32), children: &[u32]) {
        let plain = |c: u32| u8::try_from(c).is_ok_and(|c| plain_ascii().contains(c));
        if self.spelling().escapes == Escapes::Required && children.iter().all(|&c| plain(c)) {
            // The common case: what is not plain ASCII has one shared rule.
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
        for symbol in self.spell_shared(&ranges).into_iter().filter(possible) {
            graph.edge(node, symbol, free);
        }
    }
}

/// A name, a colon and a value.
fn named(name: Expr, colon: &Expr, value: Expr) -> Expr {
    let between =
        if let Expr::Seq(parts) = colon { &parts[..] } else { std::slice::from_ref(colon) };
    let mut parts = Vec::with_capacity(between.len() + 2);
    match name {
        Expr::Seq(inner) => parts.extend(inner),
        name => parts.push(name),
    }
    parts.extend_from_slice(between);
    parts.push(value);
    if parts.iter().any(|part| matches!(part, Expr::Empty | Expr::Never | Expr::Seq(_))) {
        return Expr::seq(parts);
    }
    Expr::Seq(parts)
}

/// What names are told apart by.
fn name_tests<'a>(facets: &ObjectFacets<'a>) -> Vec<NameTest<'a>> {
    let mut tests: Vec<NameTest<'a>> = Vec::new();
    let own = facets
        .parts
        .iter()
        .flat_map(|part| part.patterns.iter().map(|(p, _)| NameTest::Pattern(p.clone())));
    let looked_for =
        facets.some.iter().flat_map(|some| some.matching.iter().chain(&some.not_matching).cloned());
    for test in own.chain(looked_for) {
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    tests
}

/// What a member satisfies whose undeclared name passes these tests.
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

/// Adds the words of an automaton over code points, unless there are more than so many in all.
fn add_words(dfa: &Dfa, most: usize, out: &mut Vec<String>) -> Option<()> {
    let mut left = vec![(0, String::new())];
    while let Some((state, word)) = left.pop() {
        if out.len() + left.len() > most {
            return None;
        }
        for edge in dfa.edges(state).iter().rev() {
            for c in (edge.lo..=edge.hi).rev().filter_map(char::from_u32).take(most + 1) {
                left.push((edge.to, format!("{word}{c}")));
            }
        }
        if dfa.is_final(state) {
            out.push(word);
        }
    }
    (out.len() <= most).then_some(())
}

/// These names, as an automaton over code points.
fn name_words(names: &[&str]) -> Dfa {
    Dfa::words(names.iter().map(|name| name.chars().map(u32::from).collect::<Vec<_>>()))
}

/// Whether there is a symbol at all.
fn possible(symbol: &Expr) -> bool {
    *symbol != Expr::Never
}
