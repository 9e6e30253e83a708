//! Confirmation: whether a wire format accepts what a chat template writes, and reads it back.
//!
//! The template renders turns with names and values that no derivation has seen. Each is run
//! through the grammar of a request that offers the tools, byte by byte and with the special tokens
//! of the checkpoint, and extracted again.

mod cases;
mod check;

use std::fmt;
use std::rc::Rc;

use louver_formats::WireFormat;

use self::cases::{
    BEFORE_RESULT, Case, ESSENTIAL, GIVEN_IDS, NULL, ONE_CALL, REPORTED, TYPED_NULL, WITHOUT_TOOLS,
    arguments_end, cases, shown_tools, telling,
};
use self::check::Checker;
use crate::chat_template::ChatTemplate;
use crate::message_style::MessageStyle;
use crate::turns::{Next, RenderedTurn, TAKES_PARTS};
use crate::written::WrittenTurns;

/// The result of [`confirm`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Confirmation {
    /// How the template wants messages.
    pub style: MessageStyle,
    /// The outcome of each turn.
    pub cases: Vec<CaseOutcome>,
}

/// The outcome of one turn.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaseOutcome {
    /// What the turn is, for people.
    pub name: &'static str,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The grammar accepts it, and the extractor reads back what went in.
    Confirmed,
    /// The template does not write all of it.
    NotShown,
    /// It has several calls, and the format has one.
    OneCall,
    /// The template writes a text without escapes between quotes, so that nobody can read it back.
    Unescaped,
    /// It is not tried: the template refuses it, with this message.
    Refused(String),
    /// The format cannot be compiled, for this reason.
    Invalid(String),
    /// The format does not accept it, or reads something else.
    Mismatch {
        /// What the template writes.
        wire: String,
        /// The bytes of `wire` that the grammar accepts.
        accepted: usize,
        /// What is wrong.
        problem: String,
    },
}

impl Confirmation {
    /// Whether text, a call and its values are confirmed and nothing is contradicted.
    pub fn is_full(&self) -> bool {
        !self.cases.is_empty() && self.unconfirmed().next().is_none()
    }

    /// The turns that stand against a full confirmation: those that the format does not accept or
    /// reads otherwise, and essential ones that the template does not write.
    pub fn unconfirmed(&self) -> impl Iterator<Item = &CaseOutcome> {
        self.cases.iter().filter(|case| case.is_unconfirmed())
    }

    /// The outcomes for people, one a line. Why the format cannot be compiled, or why the template
    /// refuses several turns, is said once.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = lines(self.cases.iter());
        lines.extend(self.refuses_tools().then(|| TOOLS_REFUSED.to_owned()));
        lines
    }

    /// The lines of the turns that stand against a full confirmation, and those of the others.
    pub fn lines_by_result(&self) -> [Vec<String>; 2] {
        let refuses_tools = self.refuses_tools();
        let is_against = |case: &&CaseOutcome| {
            case.is_unconfirmed() || refuses_tools && matches!(case.outcome, Outcome::Refused(_))
        };
        let (against, others): (Vec<&CaseOutcome>, Vec<&CaseOutcome>) =
            self.cases.iter().partition(is_against);
        let mut against = lines(against.into_iter());
        against.extend(refuses_tools.then(|| TOOLS_REFUSED.to_owned()));
        [against, lines(others.into_iter())]
    }

    /// Whether the template refuses every turn of a request with tools, and no other.
    fn refuses_tools(&self) -> bool {
        let is_refused = |case: &CaseOutcome| matches!(case.outcome, Outcome::Refused(_));
        let (without, with): (Vec<&CaseOutcome>, Vec<&CaseOutcome>) =
            self.cases.iter().partition(|case| case.name == WITHOUT_TOOLS);
        with.iter().all(|case| is_refused(case)) && without.iter().any(|case| !is_refused(case))
    }

    /// Whether the template writes a call otherwise than the format, before its arguments end.
    pub fn contradicts_calls(&self) -> bool {
        let is_other = |input| {
            self.cases.iter().any(|case| match &case.outcome {
                Outcome::Mismatch { wire, accepted, .. } if case.name == ONE_CALL => {
                    *accepted < arguments_end(input, wire)
                }
                _ => false,
            })
        };
        cases().iter().any(|case| case.name == ONE_CALL && is_other(&case.input))
    }
}

impl CaseOutcome {
    /// Whether it stands against a full confirmation.
    fn is_unconfirmed(&self) -> bool {
        match self.outcome {
            Outcome::Confirmed | Outcome::Unescaped | Outcome::OneCall => false,
            Outcome::Mismatch { .. } => !REPORTED.contains(&self.name),
            Outcome::NotShown | Outcome::Refused(_) | Outcome::Invalid(_) => {
                ESSENTIAL.contains(&self.name)
            }
        }
    }
}

/// What is known of a template that refuses tools.
pub(crate) const TOOLS_REFUSED: &str = "the template refuses all requests with tools: it may \
     want tools of another shape than OpenAI's, \
     {\"type\": \"function\", \"function\": {\"name\": ...}}";

/// The outcomes of turns, one a line. Several turns share the line of a failed compilation or of a
/// refusal.
fn lines<'a>(cases: impl Iterator<Item = &'a CaseOutcome>) -> Vec<String> {
    let mut out: Vec<(Vec<&str>, &Outcome)> = Vec::new();
    for CaseOutcome { name, outcome } in cases {
        let is_shared = matches!(outcome, Outcome::Invalid(_) | Outcome::Refused(_));
        match out.iter_mut().find(|(_, known)| is_shared && *known == outcome) {
            Some((names, _)) => names.push(name),
            None => out.push((vec![name], outcome)),
        }
    }
    let line = |(names, outcome): (Vec<&str>, &Outcome)| match outcome {
        Outcome::Invalid(_) => outcome.to_string(),
        _ => format!("{}: {outcome}", names.join(", ")),
    };
    out.into_iter().map(line).collect()
}

impl fmt::Display for CaseOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.outcome)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Confirmed => write!(f, "confirmed"),
            Outcome::NotShown => write!(f, "the template does not write it"),
            Outcome::Unescaped => write!(f, "the template does not escape the text"),
            Outcome::OneCall => write!(f, "the format has one call"),
            Outcome::Refused(message) => write!(f, "not tried: {message}"),
            Outcome::Invalid(problem) => write!(f, "the format cannot be compiled: {problem}"),
            Outcome::Mismatch { wire, accepted, problem } => {
                let (before, after) = wire.split_at(*accepted);
                write!(f, "{problem}: {before:?} then {after:?}")
            }
        }
    }
}

/// Confirms a format against a chat template. `tokens` are the texts of the checkpoint's special
/// tokens; without any, the format's markers are taken for special tokens.
///
/// Cost: the compilation of two small grammars, six renderings for each message style that has to
/// be tried, and some thirty in one style; milliseconds in all.
pub fn confirm(format: &WireFormat, template: &ChatTemplate, tokens: &[String]) -> Confirmation {
    confirm_written(format, &written_turns(template, tokens))
}

/// The turns of confirmations against a chat template. Several formats can share them.
pub(crate) fn written_turns<'a>(
    template: &'a ChatTemplate,
    tokens: &'a [String],
) -> WrittenTurns<'a> {
    let cases = cases();
    let telling = telling(&cases);
    let inputs = cases.into_iter().map(|case| case.input).collect();
    WrittenTurns::new(template, shown_tools(), tokens, inputs, telling)
}

/// As [`confirm`].
pub(crate) fn confirm_written(format: &WireFormat, written: &WrittenTurns<'_>) -> Confirmation {
    let checker = Checker::new(format, written.template(), written.tokens());
    let has_words = format.call.arguments.has_type_words();
    let mut cases = cases();
    for case in cases.iter_mut().filter(|case| has_words && case.name == NULL) {
        case.name = TYPED_NULL;
    }
    let confirming = Confirming { checker, written, cases };
    let mut best: Option<(MessageStyle, [usize; 2])> = None;
    for style in written.styles() {
        let told: Vec<CaseOutcome> =
            written.telling().iter().map(|&k| confirming.at_the_end(style, k)).collect();
        if !told.iter().any(CaseOutcome::is_unconfirmed) {
            let found = confirming.in_style(style);
            if found.is_full() {
                return found;
            }
        }
        // A turn that is written otherwise is better than one that is not written.
        let confirmed = told.iter().filter(|case| case.outcome == Outcome::Confirmed).count();
        let is_other = |case: &&CaseOutcome| matches!(case.outcome, Outcome::Mismatch { .. });
        let score = [confirmed, told.iter().filter(is_other).count()];
        if best.is_none_or(|(_, most)| score > most) {
            best = Some((style, score));
        }
    }
    confirming.in_style(best.map(|(style, _)| style).unwrap_or_default())
}

/// A confirmation that is being made.
struct Confirming<'a, 't> {
    checker: Result<Checker, String>,
    written: &'a WrittenTurns<'t>,
    cases: Vec<Case>,
}

impl Confirming<'_, '_> {
    fn in_style(&self, style: MessageStyle) -> Confirmation {
        let mut cases: Vec<CaseOutcome> =
            (0..self.cases.len()).map(|k| self.outcome(style, k)).collect();
        let called = cases.iter().position(|case| case.name == BEFORE_RESULT);
        let called = called.filter(|&k| cases[k].outcome == Outcome::Confirmed);
        cases.extend(called.and_then(|k| self.with_given_ids(style, k)));
        Confirmation { style, cases }
    }

    /// The outcome of turn `k`, whose call has the id that the extractor gives it.
    fn with_given_ids(&self, style: MessageStyle, k: usize) -> Option<CaseOutcome> {
        let Case { input, context, .. } = &self.cases[k];
        let turn = self.written.turn(style, k, *context);
        let ids = self.checker.as_ref().ok()?.ids(&self.cases[k], turn.as_ref().as_ref().ok()?);
        let input = input.clone().with_ids(ids);
        let turn = Rc::new(self.written.render(style, &input, *context));
        Some(CaseOutcome { name: GIVEN_IDS, outcome: self.check(k, &turn) })
    }

    /// The outcome of turn `k` in a style. A template may write the last turn of a conversation
    /// otherwise than earlier ones. So a mismatch there does not count if the turn is right before
    /// another question, unless it lacks something there that the last one shows.
    fn outcome(&self, style: MessageStyle, k: usize) -> CaseOutcome {
        let last = self.at_the_end(style, k);
        let case = &self.cases[k];
        if case.name == "text" && last.outcome == Outcome::NotShown && self.written.takes_parts() {
            return CaseOutcome { outcome: Outcome::Refused(TAKES_PARTS.to_owned()), ..last };
        }
        let Outcome::Mismatch { .. } = last.outcome else { return last };
        if case.context.next != Next::Nothing {
            return last;
        }
        let turns = [case.context, case.context.before(Next::Question)];
        let turns = turns.map(|context| self.written.turn(style, k, context));
        let [Ok(at_end), Ok(followed)] = turns.each_ref().map(|turn| turn.as_ref()) else {
            return last;
        };
        let shows = |text: &str| followed.wire.contains(text) || !at_end.wire.contains(text);
        let other = CaseOutcome { outcome: self.check(k, &turns[1]), ..last };
        let is_right = !matches!(other.outcome, Outcome::Mismatch { .. })
            && !other.is_unconfirmed()
            && shows(case.input.text)
            && shows(case.input.reasoning);
        if is_right { other } else { last }
    }

    /// The outcome of turn `k` in its context.
    fn at_the_end(&self, style: MessageStyle, k: usize) -> CaseOutcome {
        let Case { name, context, .. } = self.cases[k];
        let outcome = self.check(k, &self.written.turn(style, k, context));
        CaseOutcome { name, outcome }
    }

    fn check(&self, k: usize, turn: &Rc<Result<RenderedTurn, String>>) -> Outcome {
        match (&self.checker, turn.as_ref()) {
            (Ok(checker), Ok(turn)) => checker.check(&self.cases[k], turn),
            (Err(problem), _) => Outcome::Invalid(problem.clone()),
            (_, Err(problem)) => Outcome::Refused(problem.clone()),
        }
    }
}
