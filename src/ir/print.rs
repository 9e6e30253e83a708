//! Printing of grammars as EBNF, one line per rule, as read by [`crate::front::ebnf`].

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::counted_graph::MAX_UNROLLED;
use super::{
    AfterTag, Attributes, BudgetPolicy, Counted, Dispatch, DispatchEnd, Expr, Grammar, Graph,
    Member, Members, SpecialToken, Trigger,
};
use crate::fsm::{ByteSet, Dfa};
use crate::ids::{RuleId, SpecialId};

/// Names with a meaning of their own in front of a parenthesis.
pub(crate) const MACROS: [&str; 9] = [
    "Automaton",
    "ExcludeToken",
    "Graph",
    "Members",
    "Regex",
    "Substring",
    "TagDispatch",
    "Token",
    "TokenTagDispatch",
];

/// Prints EBNF. Reading it back gives the same grammar, with these exceptions:
///
/// * rule names are made unique;
/// * special tokens are numbered in order of use, without unused ones;
/// * a sequence or alternation of one operand is that operand; empty ones, empty literals, classes
///   and repeats are [`Expr::Empty`] or [`Expr::Never`];
/// * deferred bodies are built and included;
/// * a budget without bounds and a NaN temperature are dropped, and a list of one special token is
///   that token;
/// * counted graphs whose unrolled form is very large are abbreviated, and cannot be read back.
///
/// `{:#}` abbreviates automata to their size; that form cannot be read back.
impl fmt::Display for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Ok(Cow::Owned(whole)) = self.with_deferred_bodies() {
            return whole.fmt(f);
        }
        let printer = Printer { grammar: self, names: names(self), brief: f.alternate() };
        let named_root = printer.names.get(self.start.index()).is_some_and(|name| name == "root");
        for (i, rule) in self.rules.iter().enumerate() {
            f.write_str(&printer.names[i])?;
            let start = i == self.start.index() && !named_root;
            write_attributes(f, start, &rule.attributes)?;
            f.write_str(" ::= ")?;
            printer.expr(f, &rule.body, Level::Alt)?;
            writeln!(f)?;
        }
        Ok(())
    }
}

/// The rule names as printed: unique, and quoted unless they are identifiers. Linear.
fn names(grammar: &Grammar) -> Vec<String> {
    let name_of = |name: &str| if name.is_empty() { "rule".to_owned() } else { name.to_owned() };
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    grammar.rules.iter().for_each(|rule| *times.entry(name_of(&rule.name)).or_default() += 1);
    let mut taken: BTreeSet<String> = times.keys().cloned().collect();
    let unique = |(i, rule): (usize, &super::Rule)| {
        let mut name = name_of(&rule.name);
        if times[&name] > 1 {
            name = format!("{name}-{i}");
            while !taken.insert(name.clone()) {
                name.push('-');
            }
        }
        let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let is_word = name.starts_with(word)
            && !name.ends_with('.')
            && name.chars().all(|c| word(c) || c == '.')
            && name.chars().any(|c| c != '-');
        if is_word && !MACROS.contains(&&*name) { name } else { quoted(&name, '`') }
    };
    grammar.rules.iter().enumerate().map(unique).collect()
}

/// Prints `[start, label=1, ...]`.
fn write_attributes(
    f: &mut fmt::Formatter<'_>,
    start: bool,
    attributes: &Attributes,
) -> fmt::Result {
    let Attributes {
        label,
        capture,
        hidden,
        temperature,
        budget,
        scope,
        element,
        unique_key,
        unlikely,
    } = attributes;
    let mut out = Vec::new();
    if start {
        out.push("start".to_owned());
    }
    if let Some(label) = label {
        out.push(format!("label={}", label.raw()));
    }
    if let Some(capture) = capture {
        out.push(format!("capture={}", quoted(capture, '"')));
    }
    if *hidden {
        out.push("hidden".to_owned());
    }
    if let Some(temperature) = temperature.filter(|t| t.is_finite() && *t >= 0.0) {
        out.push(format!("temperature={temperature}"));
    }
    if let Some(budget) = budget.filter(|b| b.tokens.is_some() || b.chars.is_some()) {
        out.extend(budget.tokens.map(|n| format!("max_tokens={n}")));
        out.extend(budget.chars.map(|n| format!("max_chars={n}")));
        if budget.on_exhausted == BudgetPolicy::Cut {
            out.push("on_exhausted=cut".to_owned());
        }
    }
    for (word, is_set) in
        [("scope", scope), ("element", element), ("unique_key", unique_key), ("unlikely", unlikely)]
    {
        if *is_set {
            out.push(word.to_owned());
        }
    }
    if out.is_empty() { Ok(()) } else { write!(f, "[{}]", out.join(", ")) }
}

/// Operator precedence of the context.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Alt,
    Seq,
    Atom,
    /// Operand of a repeat.
    Body,
}

/// The state of printing.
struct Printer<'g> {
    grammar: &'g Grammar,
    names: Vec<String>,
    brief: bool,
}

impl Printer<'_> {
    /// The printed name of a rule.
    fn name(&self, id: RuleId) -> &str {
        self.names.get(id.index()).map_or("(unknown)", String::as_str)
    }

    /// The printed form of a special token.
    fn special(&self, special: SpecialId) -> String {
        self.grammar.specials.get(special.index()).map_or_else(|| "(unknown)".to_owned(), token)
    }

    /// Prints an expression, in parentheses if `level` requires them.
    fn expr(&self, f: &mut fmt::Formatter<'_>, expr: &Expr, level: Level) -> fmt::Result {
        match expr {
            Expr::Empty => f.write_str("\"\""),
            Expr::Never => f.write_str("[]"),
            Expr::Bytes(text) => f.write_str(&bytes(text)),
            Expr::Class(set) => f.write_str(&class(set)),
            Expr::Special(s) => f.write_str(&self.special(*s)),
            Expr::Ref(r) => f.write_str(self.name(*r)),
            Expr::Seq(parts) if parts.is_empty() => f.write_str("\"\""),
            Expr::Alt(parts) if parts.is_empty() => f.write_str("[]"),
            Expr::Seq(parts) | Expr::Alt(parts) if parts.len() == 1 => {
                self.expr(f, &parts[0], level)
            }
            Expr::Seq(parts) => self.list(f, parts, " ", Level::Atom, level > Level::Seq),
            Expr::Alt(parts) => self.list(f, parts, " | ", Level::Seq, level > Level::Alt),
            Expr::Repeat { min, max: Some(max), .. } if min > max => f.write_str("[]"),
            Expr::Repeat { body, min, max } => {
                let parens = level == Level::Body;
                f.write_str(if parens { "(" } else { "" })?;
                self.expr(f, body, Level::Body)?;
                match (min, max) {
                    (0, None) => f.write_str("*"),
                    (1, None) => f.write_str("+"),
                    (0, Some(1)) => f.write_str("?"),
                    (min, None) => write!(f, "{{{min},}}"),
                    (min, Some(max)) if min == max => write!(f, "{{{min}}}"),
                    (min, Some(max)) => write!(f, "{{{min},{max}}}"),
                }?;
                f.write_str(if parens { ")" } else { "" })
            }
            Expr::Automaton(dfa) if self.brief => {
                write!(f, "Automaton({} states, {} edges)", dfa.len(), dfa.edge_count())
            }
            Expr::Automaton(dfa) => automaton(f, dfa),
            Expr::Graph(graph) => self.graph(f, graph),
            Expr::Members(members) => self.members(f, members),
            Expr::Counted(counted) if self.brief || counted.unrolled_size() > MAX_UNROLLED => {
                let Counted { graph, min, max } = &**counted;
                let max = max.map_or(String::new(), |max| max.to_string());
                write!(
                    f,
                    "Counted({} nodes, {} edges){{{min},{max}}}",
                    graph.nodes,
                    graph.edges.len()
                )
            }
            Expr::Counted(counted) => self.expr(f, &counted.to_graph(), level),
            Expr::Except(except) => self.expr(f, &except.to_graph(), level),
            Expr::Dispatch(dispatch) => self.dispatch(f, dispatch),
            // A deferred body that cannot be built derives nothing.
            Expr::Deferred(_) => f.write_str("[]"),
        }
    }

    /// Prints operands with a separator.
    fn list(
        &self,
        f: &mut fmt::Formatter<'_>,
        parts: &[Expr],
        separator: &str,
        inner: Level,
        parens: bool,
    ) -> fmt::Result {
        f.write_str(if parens { "(" } else { "" })?;
        for (i, part) in parts.iter().enumerate() {
            f.write_str(if i > 0 { separator } else { "" })?;
            // A nested list of the same kind keeps its parentheses, as nesting is part of the
            // grammar.
            self.expr(f, part, inner)?;
        }
        f.write_str(if parens { ")" } else { "" })
    }

    /// Prints `Graph(...)`.
    fn graph(&self, f: &mut fmt::Formatter<'_>, graph: &Graph) -> fmt::Result {
        let ends: Vec<String> = graph.ends.iter().map(u32::to_string).collect();
        write!(f, "Graph({}, {}, ({})", graph.nodes, graph.start, ends.join(", "))?;
        for (from, expr, to) in &graph.edges {
            write!(f, ", ({from}, ")?;
            self.expr(f, expr, Level::Alt)?;
            write!(f, ", {to})")?;
        }
        f.write_str(")")
    }

    /// Prints `Members(...)`.
    fn members(&self, f: &mut fmt::Formatter<'_>, members: &Members) -> fmt::Result {
        f.write_str("Members(")?;
        self.expr(f, &members.separator, Level::Alt)?;
        let kind = |member: &Member| if member.required { "required" } else { "optional" };
        let unique = members.unique.iter().map(|member| (kind(member), &member.body));
        for (kind, body) in unique.chain(members.repeatable.iter().map(|body| ("repeated", body))) {
            write!(f, ", {kind}(")?;
            self.expr(f, body, Level::Alt)?;
            f.write_str(")")?;
        }
        for clause in &members.clauses {
            let [present, absent] = [&clause.present, &clause.absent]
                .map(|list| list.iter().map(usize::to_string).collect::<Vec<_>>().join(", "));
            write!(f, ", clause(({present}), ({absent}))")?;
        }
        if members.min > 0 {
            write!(f, ", min={}", members.min)?;
        }
        if let Some(max) = members.max {
            write!(f, ", max={max}")?;
        }
        if members.count_repeatable {
            f.write_str(", count_repeated=true")?;
        }
        f.write_str(")")
    }

    /// Prints `TagDispatch(...)`.
    fn dispatch(&self, f: &mut fmt::Formatter<'_>, dispatch: &Dispatch) -> fmt::Result {
        let trigger = |t: &Trigger| match t {
            Trigger::Text(text) => bytes(text),
            Trigger::Special(s) => self.special(*s),
            Trigger::TextThenSpecial(text, s) => format!("({}, {})", bytes(text), self.special(*s)),
        };
        let mut parts: Vec<String> = dispatch
            .tags
            .iter()
            .map(|(t, body)| format!("({}, {})", trigger(t), self.name(*body)))
            .collect();
        if !dispatch.stops.is_empty() {
            let stops: Vec<String> = dispatch.stops.iter().map(trigger).collect();
            parts.push(format!("stops=({})", stops.join(", ")));
        }
        if !dispatch.excludes.is_empty() {
            let excludes: Vec<String> = dispatch.excludes.iter().map(|e| bytes(e)).collect();
            parts.push(format!("excludes=({})", excludes.join(", ")));
        }
        if dispatch.after == AfterTag::End {
            parts.push("loop_after_dispatch=false".to_owned());
        }
        match dispatch.end {
            DispatchEnd::Anywhere => {}
            DispatchEnd::AfterOneTag => parts.push("ends=after_one_tag".to_owned()),
            DispatchEnd::AtStop => parts.push("ends=at_stop".to_owned()),
        }
        write!(f, "TagDispatch({})", parts.join(", "))
    }
}

/// Prints `Automaton(...)`.
fn automaton(f: &mut fmt::Formatter<'_>, dfa: &Dfa) -> fmt::Result {
    f.write_str("Automaton(")?;
    for state in 0..dfa.len() as u32 {
        write!(f, "{}({}", if state > 0 { ", " } else { "" }, dfa.is_final(state))?;
        for edge in dfa.edges(state) {
            write!(f, ", ({}, {}, {})", edge.lo, edge.hi, edge.to)?;
        }
        f.write_str(")")?;
    }
    f.write_str(")")
}

/// `<text>`, `<[id]>`, `Token(...)`, `ExcludeToken(...)`.
fn token(token: &SpecialToken) -> String {
    let list =
        |tokens: &[SpecialToken]| tokens.iter().map(self::token).collect::<Vec<_>>().join(", ");
    match token {
        SpecialToken::Id(id) => format!("<[{id}]>"),
        SpecialToken::Name(name) => {
            let inner =
                name.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')).unwrap_or_default();
            let is_id = inner.starts_with('[') && inner.ends_with(']');
            let plain = !(inner.is_empty() || inner.contains(['>', '\n']) || is_id);
            if plain { name.clone() } else { format!("Token({})", quoted(name, '"')) }
        }
        SpecialToken::AnyOf(tokens) if tokens.len() == 1 => self::token(&tokens[0]),
        SpecialToken::AnyOf(tokens) => format!("Token({})", list(tokens)),
        SpecialToken::AnyBut(tokens) => format!("ExcludeToken({})", list(tokens)),
    }
}

/// A literal; bytes that are not UTF-8 as escapes.
fn bytes(bytes: &[u8]) -> String {
    let shown = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    match std::str::from_utf8(bytes) {
        Ok(text) if text.chars().all(shown) => quoted(text, '"'),
        _ => {
            let inner: String = bytes.iter().map(|&b| byte(b, b"\"\\")).collect();
            format!("@\"{inner}\"")
        }
    }
}

/// A quoted string.
fn quoted(text: &str, quote: char) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

/// A class of ASCII characters, or of bytes.
fn class(set: &ByteSet) -> String {
    let is_text = set.iter().all(|b| matches!(b, b'\n' | b'\r' | b'\t' | 0x20..=0x7e));
    let mut out = String::from(if is_text { "[" } else { "@[" });
    for (lo, hi) in set.ranges() {
        out.push_str(&byte(lo, b"[]-\\^\""));
        if hi > lo {
            out.push_str(if hi > lo + 1 { "-" } else { "" });
            out.push_str(&byte(hi, b"[]-\\^\""));
        }
    }
    out.push(']');
    out
}

/// A byte; as an escape if it is in `escaped` or not printable.
fn byte(byte: u8, escaped: &[u8]) -> String {
    match byte {
        b'\n' => "\\n".into(),
        b'\r' => "\\r".into(),
        b'\t' => "\\t".into(),
        b if escaped.contains(&b) => format!("\\{}", char::from(b)),
        0x20..=0x7e => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::fsm::ByteSet;
    use crate::ir::{Expr, GrammarBuilder};

    #[test]
    fn rules_are_printed_one_per_line() {
        let mut b = GrammarBuilder::new();
        let list = b.declare("list");
        let item =
            b.rule("item", Expr::repeat(Expr::class(ByteSet::range(b'a', b'z')), 1, Some(3)));
        let tail = Expr::star(Expr::seq([
            Expr::text(", "),
            Expr::alt([Expr::Ref(item), Expr::Ref(list)]),
        ]));
        b.define(list, Expr::seq([Expr::text("[\""), Expr::Ref(item), tail, Expr::text("]")]));
        let grammar = b.finish(list).unwrap();
        assert_eq!(
            grammar.to_string(),
            "list[start] ::= \"[\\\"\" item (\", \" (item | list))* \"]\"\nitem ::= [a-z]{1,3}\n"
        );
    }
}
