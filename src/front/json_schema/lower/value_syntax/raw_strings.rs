//! Raw strings: string values that are written without quotes and escapes, up to a text that ends
//! them.
//!
//! Such a text can look like a value of another type, which [`AmbiguousText`] resolves.

use std::sync::Arc;

use super::super::super::read::facets::{Facets, JsonTypes, StringFacets};
use super::super::SchemaLowering;
use super::TextSpelling;
use super::lookalikes::lookalike_dfa;
use super::python_values::{PythonValues, python_words};
use crate::cache::ProcessCache;
use crate::front::regex::{CountedDfa, Lengths, SCALARS, spell_dfa, spell_utf8};
use crate::front::text_search::contains;
use crate::fsm::{Combine, Dfa, TooLarge, WordSearch};
use crate::ir::{Dispatch, Expr, Trigger, regular};

/// Strings written without quotes and escapes.
#[derive(Clone, Debug, PartialEq)]
pub struct RawStrings {
    /// Triggers that end a value of any type, each with the expression that must follow it. A
    /// string contains none of them.
    pub end: Vec<(Trigger, Expr)>,
    /// Optional text before a value, not part of it.
    pub lead: Vec<u8>,
    /// Optional text after a value, not part of it.
    pub trail: Vec<u8>,
    /// Further texts that a string does not contain.
    pub excludes: Vec<Vec<u8>>,
    /// Whether white space may surround values that are not strings, as between JSON tokens.
    pub spaced: bool,
    /// Treatment of strings that look like values of another type.
    pub reading: AmbiguousText,
    /// Which values may be Python literals.
    pub python: PythonValues,
    /// Quotes between which a string may also stand. Without them, it does not begin like one.
    pub quotes: Option<RawQuotes>,
}

/// Texts around a string that is written as it is, and need not differ from values of other types.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RawQuotes {
    /// Before the string.
    pub begin: Vec<u8>,
    /// After the string, which does not contain it.
    pub end: Vec<u8>,
}

impl RawQuotes {
    /// A string between the quotes.
    fn enclose(&self, texts: Expr) -> Expr {
        Expr::seq([Expr::bytes(&self.begin), texts, Expr::bytes(&self.end)])
    }
}

/// Meaning of a raw text that is a string, but would be another value as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmbiguousText {
    /// The other value. Where the schema allows a value of that type, the grammar excludes the
    /// string.
    Json,
    /// The reader of the output decides. The grammar excludes no strings.
    Either,
}

impl RawStrings {
    /// The texts that end a value.
    fn terminator(&self) -> Expr {
        let end = |(trigger, rest): &(Trigger, Expr)| Expr::seq([trigger.expr(), rest.clone()]);
        Expr::alt(self.end.iter().map(end))
    }

    /// Whether a text is a string, and not another value of these types.
    pub(super) fn reads_as_string(&self, text: &str, types: JsonTypes) -> bool {
        let is_ambiguous = |others: &Dfa| others.accepts_text(text);
        let is_quoted = |quotes: &RawQuotes| text.as_bytes().starts_with(&quotes.begin);
        !self.forbidden().iter().any(|forbidden| contains(text, forbidden))
            && !self.quotes.as_ref().is_some_and(is_quoted)
            && !lookalike_dfa(types).is_some_and(is_ambiguous)
    }

    /// The texts that a string must not contain.
    pub(crate) fn forbidden(&self) -> Vec<&[u8]> {
        let ends = self.end.iter().filter_map(|(trigger, _)| trigger.text());
        ends.chain(self.excludes.iter().map(Vec::as_slice)).collect()
    }
}

/// Where a word contains a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordPosition {
    Begin,
    End,
    Anywhere,
}

/// The language without the words that contain one of the texts at a position. `None` if it has no
/// such word.
fn without_texts(
    dfa: &Dfa,
    texts: &[&[u8]],
    position: WordPosition,
    limit: usize,
) -> Result<Option<Dfa>, TooLarge> {
    let texts = texts.iter().map(|text| String::from_utf8_lossy(text));
    // Often a character of the text occurs in no word.
    let occurs =
        |c: char| (0..dfa.len() as u32).any(|state| dfa.next(state, u32::from(c)).is_some());
    let texts: Vec<_> = texts.filter(|text| text.chars().all(occurs)).collect();
    if texts.is_empty() {
        return Ok(None);
    }
    let without = match position {
        WordPosition::Begin => dfa.without_prefix(&Dfa::texts(&texts), &SCALARS, limit),
        WordPosition::End => {
            let any = Dfa::counted(&SCALARS, 0, None, limit)?;
            dfa.combine(&any.concat(&Dfa::texts(&texts), limit)?, Combine::Minus, limit)
        }
        WordPosition::Anywhere => {
            let search = WordSearch::new(texts.iter().map(|text| text.chars()));
            dfa.combine(&search.without(&SCALARS, |_| true), Combine::And, limit)
        }
    };
    without.map(Some)
}

impl<'a> SchemaLowering<'a, '_> {
    /// The values of alternatives, with the text that ends them. Strings are raw. `present`: the
    /// types that a reader expects.
    pub(super) fn raw_values(
        &mut self,
        alternatives: &[Facets<'a>],
        present: JsonTypes,
        raw: &RawStrings,
    ) -> Expr {
        let present = match raw.reading {
            AmbiguousText::Either => JsonTypes::STRING,
            AmbiguousText::Json => present,
        };
        let (mut parts, mut any_text) = (Vec::new(), false);
        for facets in alternatives {
            if let Some(others) = restrict(facets, JsonTypes::ALL.minus(JsonTypes::STRING)) {
                parts.push(self.values_beside_strings(&others, present, raw));
            }
            if let Some(text) = restrict(facets, JsonTypes::STRING) {
                self.normalizer.reader.report_unenforced(&text, JsonTypes::STRING);
                let allows_all = text.values.is_none() && text.string.allows_all();
                if present == JsonTypes::STRING && allows_all && raw.quotes.is_none() {
                    any_text = true;
                } else {
                    parts.push(self.raw_string(&text, present, raw));
                }
            }
        }
        if any_text {
            // Includes all other values.
            return self.any_raw_text(raw);
        }
        match self.as_rule("value", Expr::alt(parts)) {
            Expr::Never => Expr::Never,
            value => Expr::seq([value, raw.terminator()]),
        }
    }

    /// Values of other types than strings.
    fn values_beside_strings(
        &mut self,
        facets: &Facets<'a>,
        present: JsonTypes,
        raw: &RawStrings,
    ) -> Expr {
        let mut values = Vec::new();
        self.syntax_values(facets, &mut values);
        if raw.python != PythonValues::None && !present.meets(JsonTypes::STRING) {
            values.extend(python_words(&values));
        }
        if raw.python == PythonValues::All {
            let containers = restrict(facets, JsonTypes::ARRAY.union(JsonTypes::OBJECT));
            values.extend(containers.map(|facets| self.python_containers(facets)));
        }
        let gap = if raw.spaced { self.gap() } else { Expr::Empty };
        let (lead, trail) = (optional(&raw.lead), optional(&raw.trail));
        Expr::seq([lead, gap.clone(), Expr::alt(values), gap, trail])
    }

    /// Any text, with what ends it.
    fn any_raw_text(&mut self, raw: &RawStrings) -> Expr {
        let (ends, excludes) = (raw.end.iter().cloned(), raw.excludes.clone());
        let text = Dispatch::until_ends(ends, excludes, |rest| self.rule("end".into(), rest));
        Expr::Ref(self.rule("text".into(), text.into()))
    }

    /// Lowers a raw string, except texts that a reader would take for another value.
    pub(super) fn raw_string(
        &mut self,
        facets: &Facets<'a>,
        types: JsonTypes,
        raw: &RawStrings,
    ) -> Expr {
        let bare = self.bare_string(facets, types, raw);
        match &raw.quotes {
            Some(quotes) => Expr::alt([bare, self.quoted_string(facets, quotes, raw)]),
            None => bare,
        }
    }

    /// Lowers a raw string between quotes.
    fn quoted_string(&mut self, facets: &Facets<'a>, quotes: &RawQuotes, raw: &RawStrings) -> Expr {
        let texts = match self.normalizer.listed_texts(facets) {
            Some(mut texts) => {
                texts.retain(|text| !contains(text, &quotes.end));
                Expr::alt(texts.into_iter().map(Expr::text))
            }
            None => self.raw_text(&facets.string, &[&quotes.end]),
        };
        let value = quotes.enclose(texts);
        Expr::seq([optional(&raw.lead), value, optional(&raw.trail)])
    }

    /// Lowers a raw string without quotes.
    fn bare_string(&mut self, facets: &Facets<'a>, types: JsonTypes, raw: &RawStrings) -> Expr {
        if let Some(texts) = self.normalizer.listed_texts(facets) {
            let unambiguous = texts.into_iter().filter(|text| raw.reads_as_string(text, types));
            return Expr::alt(unambiguous.flat_map(|text| framed_word(text, raw)));
        }
        if !facets.string.allows_all() {
            return self.raw_string_expr(&facets.string, types, raw);
        }
        match self.any_text_automaton(types, raw) {
            Some(dfa) => Expr::Automaton(dfa),
            None => self.raw_string_expr(&StringFacets::default(), types, raw),
        }
    }

    /// The automaton of a string without facets; `None` if it is empty or too large. Most strings
    /// of a request are of this form: an expression would be copied, compared and walked for each.
    fn any_text_automaton(&mut self, types: JsonTypes, raw: &RawStrings) -> Option<Arc<Dfa>> {
        let (texts, _) = self.normalizer.text_parts(&StringFacets::default())?.pop()?;
        let key = self.framed_key(texts.clone(), types, raw);
        if let Some(cached) = FREE_TEXTS.lock().get(&key) {
            return Some(cached);
        }
        let framed = self.framed_texts(texts, types, raw).ok()?;
        // Without rules, which would stay in the grammar.
        let spelled = framed.iter().map(|FramedTexts { lead, texts, trail }| {
            let texts = spell_dfa(texts, &mut spell_utf8).ok()?;
            Some(Expr::seq([lead.clone(), texts, trail.clone()]))
        });
        let expr = Expr::alt(spelled.collect::<Option<Vec<_>>>()?);
        let dfa = regular::automaton(&expr, &[], key.limit).ok().filter(|dfa| !dfa.is_empty())?;
        let dfa = Arc::new(dfa);
        FREE_TEXTS.insert(key, dfa.clone(), dfa.bytes());
        Some(dfa)
    }

    /// The cache key of texts that are written raw.
    fn framed_key(&self, texts: Arc<Dfa>, types: JsonTypes, raw: &RawStrings) -> FramedKey {
        FramedKey {
            texts,
            types,
            forbidden: raw.forbidden().iter().map(|text| text.to_vec()).collect(),
            frame: [raw.lead.clone(), raw.trail.clone()],
            quotes: raw.quotes.clone(),
            limit: self.max_states(),
        }
    }

    /// Lowers a raw string with the given facets.
    fn raw_string_expr(
        &mut self,
        string: &StringFacets<'a>,
        types: JsonTypes,
        raw: &RawStrings,
    ) -> Expr {
        let parts = self.normalizer.text_parts(string).unwrap_or_default().into_iter();
        let spelled = parts.map(|(texts, lengths)| {
            let framed = self.framed_texts(texts, types, raw);
            let spelled = framed.and_then(|framed| self.spell_framed(&framed, lengths));
            spelled.unwrap_or_else(|error| self.too_large(&error))
        });
        Expr::alt(spelled.collect::<Vec<_>>())
    }

    /// Spells framed texts with a length within the bounds.
    fn spell_framed(&mut self, framed: &[FramedTexts], lengths: Lengths) -> Result<Expr, TooLarge> {
        let mut out = Vec::new();
        for FramedTexts { lead, texts, trail } in framed {
            let spelled = self.spell_of_length(texts, lengths, TextSpelling::Utf8)?;
            out.push(Expr::seq([lead.clone(), spelled, trail.clone()]));
        }
        Ok(Expr::alt(out))
    }

    /// The texts that satisfy the facets and contain none of the forbidden texts, as UTF-8.
    pub(super) fn raw_text(&mut self, facets: &StringFacets<'a>, forbidden: &[&[u8]]) -> Expr {
        let parts = self.raw_text_parts(facets, forbidden);
        self.spell_parts(&parts, TextSpelling::Utf8)
    }

    /// The automata over code points of the texts that satisfy the facets and contain none of the
    /// forbidden texts, each with bounds on the length. None if a limit is reached (reported).
    fn raw_text_parts(
        &mut self,
        facets: &StringFacets<'a>,
        forbidden: &[&[u8]],
    ) -> Vec<CountedDfa> {
        let limit = self.max_states();
        let parts = self.normalizer.text_parts(facets).unwrap_or_default();
        let without = |(dfa, lengths): CountedDfa| {
            let without = without_texts(&dfa, forbidden, WordPosition::Anywhere, limit)?;
            Ok((without.map_or(dfa, Arc::new), lengths))
        };
        let parts: Result<Vec<CountedDfa>, TooLarge> = parts.into_iter().map(without).collect();
        parts.unwrap_or_else(|error| {
            self.too_large(&error);
            Vec::new()
        })
    }

    /// The texts of an automaton over code points that can be written raw: those that contain no
    /// forbidden text and read as strings, with the optional lead and trail. Kept for the process,
    /// because the texts of a format are the same in all schemas.
    fn framed_texts(
        &self,
        texts: Arc<Dfa>,
        types: JsonTypes,
        raw: &RawStrings,
    ) -> Result<Arc<[FramedTexts]>, TooLarge> {
        let key = self.framed_key(texts, types, raw);
        if let Some(cached) = FRAMED_TEXTS.lock().get(&key) {
            return Ok(cached);
        }
        let limit = key.limit;
        let without = without_texts(&key.texts, &raw.forbidden(), WordPosition::Anywhere, limit)?;
        let mut texts = without.unwrap_or_else(|| (*key.texts).clone());
        if let Some(others) = lookalike_dfa(types) {
            texts = texts.combine(others, Combine::Minus, limit)?;
        }
        if let Some(quotes) = &raw.quotes {
            let bare = without_texts(&texts, &[&quotes.begin], WordPosition::Begin, limit)?;
            texts = bare.unwrap_or(texts);
        }
        let mut framed = Vec::new();
        for (trail, texts) in optional_frame(texts, &raw.trail, WordPosition::End, limit)? {
            for (lead, texts) in optional_frame(texts, &raw.lead, WordPosition::Begin, limit)? {
                framed.push(FramedTexts { lead, texts, trail: trail.clone() });
            }
        }
        let framed: Arc<[FramedTexts]> = framed.into();
        let automata = framed.iter().map(|framed| &framed.texts).chain([&*key.texts]);
        let bytes = automata.map(Dfa::bytes).sum();
        FRAMED_TEXTS.insert(key, framed.clone(), bytes);
        Ok(framed)
    }
}

/// Texts between a lead and a trail.
struct FramedTexts {
    lead: Expr,
    /// Automaton over code points.
    texts: Dfa,
    trail: Expr,
}

/// Texts with an optional lead or trail. Without it, a text must not begin or end like one that has
/// it.
fn optional_frame(
    texts: Dfa,
    written: &[u8],
    position: WordPosition,
    limit: usize,
) -> Result<Vec<(Expr, Dfa)>, TooLarge> {
    if written.is_empty() {
        return Ok(vec![(Expr::Empty, texts)]);
    }
    Ok(match without_texts(&texts, &[written], position, limit)? {
        None => vec![(optional(written), texts)],
        Some(bare) => vec![(Expr::bytes(written), texts), (Expr::Empty, bare)],
    })
}

/// Cache key of texts that are written raw.
#[derive(PartialEq, Eq, Hash)]
struct FramedKey {
    texts: Arc<Dfa>,
    types: JsonTypes,
    forbidden: Vec<Vec<u8>>,
    /// Lead and trail.
    frame: [Vec<u8>; 2],
    quotes: Option<RawQuotes>,
    limit: usize,
}

/// Approximate maximum size of each cache, in bytes.
const MAX_CACHED_BYTES: usize = 4 << 20;

/// The raw strings without facets built in this process.
static FREE_TEXTS: ProcessCache<FramedKey, Arc<Dfa>> = ProcessCache::new(MAX_CACHED_BYTES);

/// The framed texts built in this process.
static FRAMED_TEXTS: ProcessCache<FramedKey, Arc<[FramedTexts]>> =
    ProcessCache::new(MAX_CACHED_BYTES);

/// One text with and without the lead and the trail. Without them, it must not begin or end like a
/// text that has them.
fn framed_word(text: &str, raw: &RawStrings) -> impl Iterator<Item = Expr> {
    let word = |lead: &[u8], trail: &[u8]| Expr::bytes(&[lead, text.as_bytes(), trail].concat());
    let bare_lead = !raw.lead.is_empty() && !text.as_bytes().starts_with(&raw.lead);
    let bare_trail = !raw.trail.is_empty() && !text.as_bytes().ends_with(&raw.trail);
    let frames = [
        Some(word(&raw.lead, &raw.trail)),
        bare_trail.then(|| word(&raw.lead, b"")),
        bare_lead.then(|| word(b"", &raw.trail)),
        (bare_lead && bare_trail).then(|| word(b"", b"")),
    ];
    frames.into_iter().flatten()
}

/// The text or nothing.
fn optional(text: &[u8]) -> Expr {
    Expr::optional(Expr::bytes(text))
}

/// Restricts facets to values of the given types; `None` if no value remains.
pub(super) fn restrict<'a>(facets: &Facets<'a>, types: JsonTypes) -> Option<Facets<'a>> {
    let mut out = facets.clone();
    out.types = out.types.intersect(types);
    out.drop_contradictory_types();
    (!out.types.is_empty()).then_some(out)
}
