//! Reads grammars in the form in which they are printed, for tests: one rule a line, names of letters, digits and `_`. Strict:
//! what it reads prints as it was written. Automata have no text form.

use std::collections::BTreeMap;

use louver::fsm::ByteSet;
use louver::ids::{Label, RuleId, SpecialId};
use louver::ir::{AfterTag, Attributes, Dispatch, DispatchEnd, Expr, Grammar, Graph, Rule, SpecialToken, Trigger};

/// The grammar, or what is wrong and where.
pub(crate) fn grammar(text: &str) -> Result<Grammar, String> {
    let mut lines = Vec::new();
    let mut start = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (head, body) = line.split_once(" ::= ").ok_or_else(|| format!("no `::=` in {line:?}"))?;
        let head = head.strip_prefix("start ").inspect(|_| start = Some(RuleId::new(lines.len()))).unwrap_or(head);
        let (name, label) = match head.split_once(" @") {
            Some((name, label)) => (name, Some(Label::from_raw(label.parse().map_err(|e| format!("{label}: {e}"))?))),
            None => (head, None),
        };
        lines.push((name, label, body));
    }
    let names = lines.iter().enumerate().map(|(i, (name, ..))| (*name, RuleId::new(i))).collect();
    let mut reader = Reader { names, specials: Vec::new(), rest: "" };
    let mut rules = Vec::new();
    for (name, label, body) in &lines {
        reader.rest = body;
        let body = reader.alt()?;
        if !reader.rest.is_empty() {
            return Err(format!("{name}: left over: {:?}", reader.rest));
        }
        rules.push(Rule {
            name: (*name).to_owned(),
            body,
            attributes: Attributes { label: *label, ..Attributes::default() },
        });
    }
    let start = start.ok_or("no rule begins with `start`")?;
    let grammar = Grammar { rules, start, specials: reader.specials };
    let (printed, written) = (grammar.to_string(), text.lines().map(str::trim).collect::<Vec<_>>().join("\n"));
    if printed.trim() != written.trim() {
        return Err(format!("prints differently:\n{printed}"));
    }
    grammar.validate().map_err(|e| e.to_string())?;
    Ok(grammar)
}

struct Reader<'t> {
    names: BTreeMap<&'t str, RuleId>,
    specials: Vec<SpecialToken>,
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn eat(&mut self, text: &str) -> bool {
        self.rest.strip_prefix(text).inspect(|rest| self.rest = rest).is_some()
    }

    fn expect(&mut self, text: &str) -> Result<(), String> {
        if self.eat(text) { Ok(()) } else { Err(format!("{text:?} expected at {:?}", self.rest)) }
    }

    fn word(&mut self) -> &'t str {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn number(&mut self) -> Result<u32, String> {
        let at = self.rest;
        self.word().parse().map_err(|e| format!("{e} at {at:?}"))
    }

    fn alt(&mut self) -> Result<Expr, String> {
        let mut parts = vec![self.seq()?];
        while self.eat(" | ") {
            parts.push(self.seq()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::Alt(parts) })
    }

    fn seq(&mut self) -> Result<Expr, String> {
        let mut parts = vec![self.repeat()?];
        while !self.rest.starts_with(" | ") && self.eat(" ") {
            parts.push(self.repeat()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::Seq(parts) })
    }

    fn repeat(&mut self) -> Result<Expr, String> {
        let mut out = self.atom()?;
        loop {
            let (min, max) = match () {
                () if self.eat("*") => (0, None),
                () if self.eat("+") => (1, None),
                () if self.eat("?") => (0, Some(1)),
                () if self.eat("{") => {
                    let min = self.number()?;
                    let max = match (self.eat(","), self.rest.starts_with('}')) {
                        (false, _) => Some(min),
                        (true, true) => None,
                        (true, false) => Some(self.number()?),
                    };
                    self.expect("}")?;
                    (min, max)
                }
                () => return Ok(out),
            };
            out = Expr::Repeat { body: Box::new(out), min, max };
        }
    }

    fn atom(&mut self) -> Result<Expr, String> {
        match self.rest.chars().next() {
            Some('"') => Ok(Expr::bytes(&self.quoted()?)),
            Some('[') => self.class(),
            Some('<') => Ok(Expr::Special(self.special()?)),
            Some('(') => {
                self.expect("(")?;
                let inner = self.alt()?;
                self.expect(")")?;
                Ok(inner)
            }
            _ if self.eat("graph(") => self.graph(),
            _ if self.eat("dispatch(") => self.dispatch(),
            _ => self.reference().map(Expr::Ref),
        }
    }

    fn reference(&mut self) -> Result<RuleId, String> {
        let name = self.word();
        self.names.get(name).copied().ok_or_else(|| format!("no rule {name:?} (before {:?})", self.rest))
    }

    fn byte(&mut self) -> Result<u8, String> {
        let mut chars = self.rest.chars();
        let (first, escaped) = (chars.next(), chars.next());
        let byte = match (first, escaped) {
            (Some('\\'), Some('x')) => {
                let hex = self.rest.get(2..4).ok_or("two digits expected after \\x")?;
                self.rest = &self.rest[4..];
                return u8::from_str_radix(hex, 16).map_err(|e| e.to_string());
            }
            (Some('\\'), Some(c)) => {
                self.rest = &self.rest[2..];
                *[('n', b'\n'), ('r', b'\r'), ('t', b'\t')]
                    .iter()
                    .find(|(name, _)| *name == c)
                    .map_or(&(c as u8), |(_, b)| b)
            }
            (Some(c), _) if c.is_ascii() => {
                self.rest = &self.rest[1..];
                c as u8
            }
            _ => return Err(format!("a byte expected at {:?}", self.rest)),
        };
        Ok(byte)
    }

    fn quoted(&mut self) -> Result<Vec<u8>, String> {
        self.expect("\"")?;
        let mut out = Vec::new();
        while !self.eat("\"") {
            out.push(self.byte()?);
        }
        Ok(out)
    }

    fn class(&mut self) -> Result<Expr, String> {
        self.expect("[")?;
        let mut set = ByteSet::EMPTY;
        while !self.eat("]") {
            let lo = self.byte()?;
            let hi = if self.eat("-") { self.byte()? } else { lo };
            set.insert_range(lo, hi);
        }
        Ok(Expr::class(set))
    }

    fn special(&mut self) -> Result<SpecialId, String> {
        self.expect("<")?;
        let token = SpecialToken::Name(self.word().to_owned());
        self.expect(">")?;
        let at = self.specials.iter().position(|t| *t == token).unwrap_or_else(|| {
            self.specials.push(token);
            self.specials.len() - 1
        });
        Ok(SpecialId::new(at))
    }

    fn graph(&mut self) -> Result<Expr, String> {
        let mut graph = Graph { start: self.number()?, ..Graph::default() };
        self.expect(" -> [")?;
        while !self.eat("]") {
            graph.ends.push(self.number()?);
            self.eat(", ");
        }
        while self.eat("; ") {
            let from = self.number()?;
            self.expect(" -")?;
            let expr = self.seq()?;
            self.expect("-> ")?;
            graph.edge(from, expr, self.number()?);
        }
        self.expect(")")?;
        let named = graph.edges.iter().flat_map(|(from, _, to)| [*from, *to]).chain(graph.ends.iter().copied());
        graph.nodes = named.chain([graph.start]).max().unwrap_or(0) + 1;
        Ok(Expr::Graph(Box::new(graph)))
    }

    fn trigger(&mut self) -> Result<Trigger, String> {
        if self.rest.starts_with('<') { self.special().map(Trigger::Special) } else { self.quoted().map(Trigger::Text) }
    }

    fn dispatch(&mut self) -> Result<Expr, String> {
        let (mut tags, mut stops, mut excludes) = (Vec::new(), Vec::new(), Vec::new());
        let after = loop {
            match () {
                () if self.eat("stop ") => stops.push(self.trigger()?),
                () if self.eat("exclude ") => excludes.push(self.quoted()?),
                () if self.eat("loop; ") => break AfterTag::Loop,
                () if self.eat("once; ") => break AfterTag::End,
                () => {
                    let trigger = self.trigger()?;
                    self.expect(" => ")?;
                    tags.push((trigger, self.reference()?));
                }
            }
            self.expect("; ")?;
        };
        let end = match () {
            () if self.eat("ends anywhere)") => DispatchEnd::Anywhere,
            () if self.eat("ends after one tag)") => DispatchEnd::AfterOneTag,
            () => {
                self.expect("ends at a stop)")?;
                DispatchEnd::AtStop
            }
        };
        Ok(Expr::Dispatch(Box::new(Dispatch { tags, stops, excludes, after, end })))
    }
}
