//! The explanation as text for people.

use std::fmt;

use louver::compile::MAX_REPORTED_STATES;

use super::prefix::PrefixReport;
use super::report::{DispatchReport, GrammarSummary, Report};

/// A report, with at most `max_lines` lines of each list.
pub(super) struct TextReport<'r> {
    pub(super) report: &'r Report,
    pub(super) max_lines: usize,
}

impl fmt::Display for TextReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { source, warnings_shown, relaxed, grammar, microseconds: costs, .. } =
            self.report;
        writeln!(
            f,
            "source: {} {}, {} bytes, {} lines",
            source.kind, source.name, source.bytes, source.lines
        )?;
        if !warnings_shown.is_empty() {
            writeln!(f, "\n{warnings_shown}")?;
        }
        for relaxed in relaxed {
            writeln!(f, "not enforced: {relaxed}")?;
        }
        self.report.at.as_ref().map_or(Ok(()), |at| write_prefix_report(f, at))?;
        write!(f, "\ngrammar ({:.1} us): ", costs.lower)?;
        self.grammar(f, grammar)?;
        self.simplification(f)?;
        self.automata(f)?;
        self.report.dispatches.iter().try_for_each(|dispatch| self.dispatch(f, dispatch))
    }
}

fn rules_after(report: &Report) -> usize {
    report.simplified.as_ref().unwrap_or(&report.grammar).rules
}

impl TextReport<'_> {
    fn simplification(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { grammar, passes, simplified, microseconds: costs, .. } = self.report;
        if passes.is_empty() {
            return writeln!(f, "\nnot simplified");
        }
        writeln!(
            f,
            "\nsimplification ({:.1} us): rules {} -> {}",
            costs.simplify,
            grammar.rules,
            rules_after(self.report)
        )?;
        for p in passes.iter().filter(|p| (p.rules, p.size) != (p.rules_before, p.size_before)) {
            let head = format!("  round {} {}", p.round + 1, p.pass);
            writeln!(
                f,
                "{head:<20} rules {} -> {}, size {} -> {}",
                p.rules_before, p.rules, p.size_before, p.size
            )?;
        }
        if let Some(simplified) = simplified {
            write!(f, "simplified: ")?;
            self.grammar(f, simplified)?;
        }
        Ok(())
    }

    fn dispatch(&self, f: &mut fmt::Formatter<'_>, d: &DispatchReport) -> fmt::Result {
        writeln!(
            f,
            "\ndispatch in {}: {} text states, {} fired states",
            d.rule, d.text_states, d.fired_states
        )?;
        let tags = d.tags.iter().map(|(trigger, body)| format!("{trigger:?} -> {body}"));
        let stops = d.stops.iter().map(|stop| format!("stop {stop:?}"));
        let excludes = d.excludes.iter().map(|exclude| format!("exclude {exclude:?}"));
        let lines: Vec<String> = tags.chain(stops).chain(excludes).collect();
        for line in lines.iter().take(self.max_lines) {
            writeln!(f, "  {line}")?;
        }
        self.write_omitted(f, lines.len())
    }

    fn automata(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { compiled, automata, microseconds: costs, .. } = self.report;
        writeln!(
            f,
            "\nautomata (compile {:.1} us, all automata {:.1} us): {} rules, {} states, {} edges, \
             {} blocks, {} byte classes",
            costs.compile,
            costs.automata,
            compiled.rules,
            compiled.states,
            compiled.edges,
            compiled.blocks,
            compiled.byte_classes
        )?;
        if compiled.states >= MAX_REPORTED_STATES {
            writeln!(f, "  there are more states, which are not built for a report")?;
        }
        for a in automata.iter().take(self.max_lines) {
            writeln!(
                f,
                "  {:<28} {:>5} states {:>5} edges {}",
                a.rule,
                a.states,
                a.edges,
                a.blocks.join(" ")
            )?;
        }
        self.write_omitted(f, automata.len())
    }

    fn grammar(&self, f: &mut fmt::Formatter<'_>, grammar: &GrammarSummary) -> fmt::Result {
        writeln!(f, "{} rules, size {}", grammar.rules, grammar.size)?;
        for line in grammar.text.lines().take(self.max_lines) {
            writeln!(f, "  {}", truncate_line(line))?;
        }
        self.write_omitted(f, grammar.text.lines().count())?;
        if !grammar.specials.is_empty() {
            writeln!(f, "  special tokens: {}", grammar.specials.join(" "))?;
        }
        Ok(())
    }

    fn write_omitted(&self, f: &mut fmt::Formatter<'_>, total: usize) -> fmt::Result {
        match total.checked_sub(self.max_lines) {
            None | Some(0) => Ok(()),
            Some(more) => writeln!(f, "  ... and {more} more (--all)"),
        }
    }
}

/// Truncates a line; lines of automata can be very long.
fn truncate_line(line: &str) -> String {
    match line.char_indices().nth(300) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

fn write_prefix_report(f: &mut fmt::Formatter<'_>, report: &PrefixReport) -> fmt::Result {
    writeln!(f, "\nafter {:?}:", report.prefix)?;
    if let Some(refused) = &report.refused {
        writeln!(f, "  not allowed: {refused}")?;
        writeln!(f, "  before that:")?;
    }
    writeln!(f, "  bytes: {}", if report.bytes == "[]" { "none" } else { &report.bytes })?;
    if !report.specials.is_empty() {
        writeln!(f, "  special tokens: {}", report.specials.join(" "))?;
    }
    writeln!(f, "  may end: {}", if report.may_end { "yes" } else { "no" })?;
    if let Some(tokens) = &report.tokens {
        writeln!(f, "  tokens taken: {:?}", tokens.prefix)?;
        writeln!(
            f,
            "  tokens: {} of {} ({:.1} us)",
            tokens.allowed, tokens.of, tokens.microseconds
        )?;
        let first: Vec<String> =
            tokens.first.iter().map(|(id, text)| format!("{text:?} ({id})")).collect();
        writeln!(f, "  first: {}", first.join(", "))?;
    }
    if let Some(why) = &report.why {
        match why.id {
            Some(id) => writeln!(f, "token {id} {:?}: {}", why.token, why.why)?,
            None => writeln!(f, "text {:?}: {}", why.token, why.why)?,
        }
    }
    Ok(())
}
