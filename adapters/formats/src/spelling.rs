//! Other spellings of calls than the template's: what the models of a family are known to write
//! beside it.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use louver::front::regex;
use louver::fsm::{ByteSet, Combine, Dfa, DfaBuilder, TooLarge};
use louver::fuel;
use louver::ids::RuleId;
use louver::ir::{Except, Expr, Literal, regular};
use louver::limits::Limits;
use serde::{Deserialize, Serialize};

use crate::arguments::Lowered;
use crate::builtin::written;
use crate::custom::REGEX;
use crate::format::{ArgumentStyle, TagPart, TaggedStyle, WireFormat};
use crate::lower::Lowering;
use crate::marker::{Glue, Marker, NameStyle, Part, Settle};
use crate::plan::Role;
use crate::raw::ends_clean;
use crate::request::LowerError;

/// Another spelling of calls: `begin CALL (separator CALL)* end`, a call being `header ARGUMENTS
/// trailer`. Reading `begin` in free text starts it; where a call is forced, the template's
/// spelling is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallSpelling {
    /// Opens it.
    pub begin: Marker,
    /// From `begin` to the arguments; names the tool exactly once.
    pub header: Vec<Part>,
    /// How arguments are written; as in the template's spelling if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<ArgumentStyle>,
    /// From the arguments to the next call or `end`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trailer: Vec<Part>,
    /// Between two calls, in spellings that have several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separator: Option<Glue>,
    /// Closes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Marker>,
    /// `begin` may be text: it is unless the name of an offered tool follows. A regular expression:
    /// what does not follow another name there, as it would be a call of a tool that is not
    /// offered. `header` begins with the name then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_unless: Option<String>,
}

impl CallSpelling {
    pub(crate) fn bind(&mut self, how: Settle<'_>) {
        self.header.iter_mut().chain(&mut self.trailer).for_each(|part| part.bind(how));
        self.separator.iter_mut().for_each(|glue| glue.bind(how));
        self.arguments.iter_mut().for_each(|style| style.bind(how));
        std::iter::once(&mut self.begin).chain(&mut self.end).for_each(|marker| marker.bind(how));
    }

    /// How its names are written, and the byte behind one; of spellings that may be text.
    fn name(&self) -> Option<(NameStyle, u8)> {
        match &self.header[..] {
            [Part::Name(name), Part::Text(behind), ..] => {
                Some((name.name, *behind.as_bytes().first()?))
            }
            _ => None,
        }
    }

    /// What is wrong with it where it may be text.
    pub(crate) fn text_fault(&self) -> Option<&'static str> {
        let pattern = self.text_unless.as_ref()?;
        if self.name().is_none() {
            return Some("needs a header that begins with the name and a text");
        }
        if !matches!(self.begin, Marker::Text(_) | Marker::Any(_))
            || self.begin.text_heads().is_empty()
        {
            return Some("needs texts as `begin`");
        }
        pattern_dfa(pattern, &Limits::default()).err()
    }
}

/// The texts that a regular expression matches as a whole, over bytes.
fn pattern_dfa(pattern: &str, limits: &Limits) -> Result<Dfa, &'static str> {
    let what = "is not a regular expression, or a large one";
    let work = || {
        let grammar = regex::lower(pattern, &REGEX, limits).map_err(|_| what)?;
        regular::automaton(&Expr::Ref(grammar.start), &grammar.rules, limits.automaton_states)
            .map_err(|_| what)
    };
    fuel::with_default_budget(|| limits.compile_budget(pattern.len()), work)
}

/// Texts that are told from calls.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Text {
    /// Those that depart from what a regular expression matches.
    Departs(String),
    /// Those that depart from what is watched for.
    First,
    /// Those up to the first of this byte.
    Until(u8),
}

/// Most automata that are kept.
const MAX_KEPT: usize = 1024;
/// Most bytes of the texts that an automaton was made of, if it is kept.
const MAX_KEPT_BYTES: usize = 1024;

type Kept = HashMap<(Vec<Vec<u8>>, Text, usize), Arc<Dfa>>;

/// Formats are few, and most requests have nothing else that ends text.
static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);

/// Texts that leave, with their last byte, the beginnings of what an automaton accepts.
fn departures(known: &Dfa) -> Dfa {
    let mut builder = DfaBuilder::new();
    (0..known.len()).for_each(|_| {
        builder.state(false);
    });
    let gone = builder.state(true);
    for state in (0..known.len() as u32).filter(|&state| !known.is_final(state)) {
        let mut from = 0;
        for edge in known.edges(state) {
            if from < edge.lo {
                builder.edge(state, from, edge.lo - 1, gone);
            }
            if !known.is_final(edge.to) {
                builder.edge(state, edge.lo, edge.hi, edge.to);
            }
            from = edge.hi + 1;
        }
        if from <= 255 {
            builder.edge(state, from, 255, gone);
        }
    }
    builder.finish().minimize()
}

/// A spelling lowered.
#[derive(Clone, Default)]
pub(crate) struct Spelled {
    /// Its calls behind `begin`, one a tool.
    pub(crate) calls: Vec<RuleId>,
    /// What may follow `begin` where that is text.
    pub(crate) other: Option<RuleId>,
}

impl WireFormat {
    /// Spellings that cannot be text.
    pub(crate) fn sure_spellings(&self) -> impl Iterator<Item = &CallSpelling> {
        self.spellings.iter().filter(|spelling| spelling.text_unless.is_none())
    }

    /// Beginnings of calls that may be text.
    pub(crate) fn unsure_begins(&self) -> Vec<String> {
        let unsure = self.spellings.iter().filter(|spelling| spelling.text_unless.is_some());
        unsure.flat_map(|spelling| spelling.begin.text_heads()).collect()
    }

    /// What no string of an argument in tags contains: what begins arguments and calls and ends
    /// calls, at which readers of the format split.
    pub(crate) fn excluded_values(&self, style: &TaggedStyle) -> Vec<String> {
        let open = style.open.first().map(|part| match part {
            TagPart::Text(text) => vec![text.clone()],
            TagPart::Marker(marker) => marker.text_heads(),
            TagPart::Key(_) | TagPart::Kind(_) | TagPart::Gap(_) => Vec::new(),
        });
        let trailers =
            std::iter::once(&self.call.trailer).chain(self.spellings.iter().map(|s| &s.trailer));
        let behind = trailers.filter_map(|parts| parts.first()).flat_map(|part| match part {
            Part::Text(text) => vec![text.clone()],
            Part::Marker(marker) => marker.text_heads(),
            _ => Vec::new(),
        });
        let section = self.section.iter().filter_map(|section| section.end.as_ref());
        let ends =
            section.chain(&self.call.end).chain(&self.call.begin).flat_map(Marker::text_heads);
        let all = open.into_iter().flatten().chain(behind).chain(ends).chain(self.sure_begins());
        let close = style.close.write();
        let mut out: Vec<String> = Vec::new();
        for text in all.chain(style.excludes.iter().cloned()) {
            let text = text.trim();
            if text.chars().count() > 1
                && !close.contains(text)
                && !out.iter().any(|other| other == text)
            {
                out.push(text.to_owned());
            }
        }
        out
    }

    /// Texts that always begin a call.
    pub(crate) fn sure_begins(&self) -> Vec<String> {
        let own = self.builtin.as_ref().and_then(|builtin| builtin.begin.as_ref());
        let begin =
            self.section.as_ref().map(|section| &section.begin).or(self.call.begin.as_ref());
        let markers = begin
            .into_iter()
            .chain(own)
            .chain(self.sure_spellings().map(|spelling| &spelling.begin));
        let unsure = self.unsure_begins();
        let mut out: Vec<String> = Vec::new();
        for text in markers.flat_map(Marker::text_heads) {
            if !unsure.iter().any(|begin| text.starts_with(begin)) && !out.contains(&text) {
                out.push(text);
            }
        }
        out
    }
}

impl<'a> Lowering<'a> {
    /// Lowers the other spellings. `styles`: arguments by style, the template's first; those of
    /// another style are added.
    pub(crate) fn spell(
        &mut self,
        styles: &mut Vec<(&'a ArgumentStyle, Vec<Option<Lowered>>)>,
    ) -> Result<(), LowerError> {
        let format = self.format;
        let names: Vec<String> = self.request.kinds().map(|(name, _)| name.to_owned()).collect();
        let watched = self.watched();
        for spelling in &format.spellings {
            let style = spelling.arguments.as_ref().unwrap_or(&format.call.arguments);
            let at = match styles.iter().position(|(known, _)| *known == style) {
                Some(at) => at,
                None => {
                    let lowered = self.functions_in(style, &styles[0].1);
                    styles.push((style, lowered));
                    styles.len() - 1
                }
            };
            let mut spelled = Spelled::default();
            for (k, lowered) in styles[at].1.iter().enumerate().take(self.request.functions()) {
                let Some(Lowered { rule, .. }) = lowered else { continue };
                let rule = *rule;
                let header = self.parts(&spelling.header, &names[k]);
                let trailer = self.parts(&spelling.trailer, &names[k]);
                spelled.calls.push(self.call_of((k, &names[k]), header, rule, trailer));
            }
            spelled.other =
                self.other_names(spelling, &names[..self.request.functions()], &watched)?;
            self.spelled.push(spelled);
        }
        Ok(())
    }

    /// Arguments of functions and custom tools in another style than the template's. Where a schema
    /// cannot be enforced in it, the tool is not called so.
    fn functions_in(
        &mut self,
        style: &'a ArgumentStyle,
        canonical: &[Option<Lowered>],
    ) -> Vec<Option<Lowered>> {
        self.style = style;
        let (request, mut out) = (self.request, Vec::new());
        for (k, canonical) in canonical.iter().enumerate().take(request.functions()) {
            let known = (self.parts.len(), self.relaxed.len(), self.warnings.len());
            let lowered = canonical.as_ref().and_then(|_| match request.tools.get(k) {
                Some(tool) => self.arguments(k, tool),
                None => self.custom_arguments(
                    k - request.tools.len(),
                    &request.customs[k - request.tools.len()],
                ),
            });
            let whole = known.0 == self.parts.len() && known.1 == self.relaxed.len();
            self.parts.truncate(known.0);
            self.relaxed.truncate(known.1);
            self.warnings.truncate(known.2);
            out.push(lowered.filter(|_| whole));
        }
        self.style = &self.format.call.arguments;
        out
    }

    /// What may follow `begin` as text: a name that no tool has, what ends it, and something else
    /// than what goes on as a call. `texts`: what free text is watched for.
    fn other_names(
        &mut self,
        spelling: &CallSpelling,
        names: &[String],
        texts: &[Vec<u8>],
    ) -> Result<Option<RuleId>, LowerError> {
        let (Some(pattern), Some((style, end))) = (&spelling.text_unless, spelling.name()) else {
            return Ok(None);
        };
        let mut words: Vec<Literal> =
            names.iter().map(|name| style.write(name).into_bytes().into()).collect();
        if words.is_empty() || words.iter().any(|word| word.contains(&end)) {
            return Ok(None);
        }
        words.sort_unstable();
        words.dedup();
        let behind = self.clean(texts, Text::Departs(pattern.clone()))?;
        let name = self.clean(texts, Text::Until(end))?;
        let first: Vec<u8> =
            texts.iter().filter_map(|text| text.first().copied()).chain([end]).collect();
        let tail = self.builder.rule("other name", Expr::Automaton(name));
        let other = self.builder.rule("nothing", Expr::Never);
        let leave = ByteSet::of(&first).complement();
        let except = Except { words, leave, tail, other, close: vec![end].into() };
        let body = Expr::seq([Expr::Except(Box::new(except)), Expr::Automaton(behind)]);
        Ok(Some(self.builder.labelled("text behind a marker", Role::Resumed.label(), body)))
    }

    /// Such texts, in which none of these stands and behind which none has begun. Those of a
    /// process are kept.
    pub(crate) fn clean(&self, texts: &[Vec<u8>], of: Text) -> Result<Arc<Dfa>, LowerError> {
        let limit = self.request.limits.automaton_states;
        let large = |cause| LowerError::TooLarge { what: "what free text is told from", cause };
        let key = (texts.to_vec(), of, limit);
        let known = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(dfa) = known().get(&key) {
            return Ok(dfa.clone());
        }
        let too_large = || large(TooLarge::States { limit });
        let dfa = match &key.1 {
            Text::Departs(pattern) => {
                departures(&pattern_dfa(pattern, &self.request.limits).map_err(|_| too_large())?)
            }
            Text::First => {
                let all = Expr::alt(texts.iter().map(|text| Expr::bytes(text)));
                departures(&regular::automaton(&all, &[], limit).map_err(|_| too_large())?)
            }
            Text::Until(end) => {
                let end = ByteSet::of(&[*end]);
                let name = Expr::seq([Expr::star(Expr::Class(end.complement())), Expr::Class(end)]);
                regular::automaton(&name, &[], limit).map_err(|_| too_large())?
            }
        };
        let dfa = Arc::new(dfa.combine(&ends_clean(texts), Combine::And, limit).map_err(large)?);
        if texts.iter().map(Vec::len).sum::<usize>() < MAX_KEPT_BYTES {
            let mut kept = known();
            if kept.len() >= MAX_KEPT {
                kept.clear();
            }
            kept.insert(key, dfa.clone());
        }
        Ok(dfa)
    }

    /// Texts that always begin a call. Without tools, the other spellings are text.
    pub(crate) fn sure_begins(&self) -> Vec<String> {
        let mut begins = self.format.sure_begins();
        if self.request.kinds().next().is_none() {
            let spelled: Vec<String> =
                self.format.sure_spellings().flat_map(|s| s.begin.text_heads()).collect();
            begins.retain(|begin| !spelled.contains(begin));
        }
        begins
    }

    /// Texts that begin a call wherever they stand. A single character does so with the name of an
    /// offered tool behind it.
    pub(crate) fn call_texts(&self) -> Vec<String> {
        let (single, mut out): (Vec<String>, Vec<String>) =
            self.sure_begins().into_iter().partition(|text| text.chars().count() == 1);
        for (name, _) in
            self.request.kinds().take(self.request.functions()).filter(|_| !single.is_empty())
        {
            let header = written(&self.format.call.header, name);
            out.extend(single.iter().map(|begin| format!("{begin}{header}")));
        }
        out
    }

    /// What free text must not miss: beginnings of calls, what it excludes, and what ends it.
    pub(crate) fn watched(&self) -> Vec<Vec<u8>> {
        let begins = self.sure_begins().into_iter().chain(self.format.unsure_begins());
        let excludes = self.format.text.excludes.iter().cloned();
        let demands = self.request.stop.iter().chain(&self.request.bans).cloned();
        begins.chain(excludes).chain(demands).map(String::into_bytes).collect()
    }

    /// The calls of a spelling, behind its `begin`.
    pub(crate) fn spelled_calls(&mut self, spelling: &CallSpelling, calls: &[RuleId]) -> Expr {
        let call = Expr::alt(calls.iter().map(|call| Expr::Ref(*call)));
        let more = match &spelling.separator {
            Some(separator) if self.most_calls() != Some(1) => {
                let next = Expr::seq([self.glue(separator), call.clone()]);
                Expr::repeat(next, 0, self.most_calls().map(|most| most - 1))
            }
            _ => Expr::Empty,
        };
        let end = spelling.end.as_ref().map_or(Expr::Empty, |end| self.marker(end));
        Expr::seq([call, more, end])
    }
}
