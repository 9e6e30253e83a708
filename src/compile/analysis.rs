//! Analysis of a whole grammar in one pass over its expressions, before any automaton is built.
//!
//! It finds the reachable, productive and nullable rules, the call graph with its components, the
//! order of calls, and the byte classes. Of automata, only those of dispatches and of auxiliary
//! rules are built here.

mod call_order;
mod derivability;
mod empty_calls;
mod scan;

use std::sync::OnceLock;

use self::scan::Scan;
use super::dispatch::UnresolvedDispatch;
use super::rule_facts::RuleFacts;
use super::{ByteClasses, CompileError, Compiled, CompiledRuleId, thompson};
use crate::fsm::{Components, Csr};
use crate::hash::HashMap;
use crate::ir::{Expr, Grammar, GrammarError, Members};
use crate::limits::Limits;

/// The bodies of all rules.
struct RuleBodies<'g> {
    grammar: &'g Grammar,
    /// Of auxiliary rules, which follow the rules of the grammar.
    auxiliary: Vec<&'g Expr>,
    /// By rule: its tag dispatch.
    dispatches: HashMap<CompiledRuleId, UnresolvedDispatch>,
}

impl<'g> RuleBodies<'g> {
    /// Whether a rule is auxiliary.
    fn is_auxiliary(&self, rule: CompiledRuleId) -> bool {
        rule.index() >= self.grammar.rules.len()
    }

    /// The body of a rule.
    fn body(&self, rule: CompiledRuleId) -> &'g Expr {
        match self.grammar.rules.get(rule.index()) {
            Some(rule) => &rule.body,
            None => self.auxiliary[rule.index() - self.grammar.rules.len()],
        }
    }
}

/// Fills in the analysis results of a compiled grammar.
pub(super) fn analyze(compiled: &mut Compiled, limits: &Limits) -> Result<(), CompileError> {
    let grammar = compiled.split_grammar.clone();
    let mut scan = Scan::new(&grammar, limits);
    scan.scan_from(compiled.start)?;
    if !compiled.budgets.is_empty() {
        // Budgets of code points tell these UTF-8 byte ranges apart.
        [(0x80, 0xBF), (0xC0, 0xDF), (0xE0, 0xEF), (0xF0, 0xFF)]
            .into_iter()
            .for_each(|(lo, hi)| scan.add_boundary(lo, hi));
    }
    // Deferred bodies are JSON, which has such white space.
    compiled.has_bounded_white_space =
        (scan.has_bounded_white_space || !scan.deferred.is_empty()) && compiled.budgets.is_empty();
    compiled.deferred = scan.deferred.iter().map(|&rule| (rule, OnceLock::new())).collect();
    let Scan { bodies, rules, calls, auxiliary, boundaries, member_sets, .. } = scan;
    (compiled.rules, compiled.auxiliary) = (rules, auxiliary);
    compiled.classes = ByteClasses::new(&boundaries).into();
    let calls = |rule| calls.of(rule);
    let callees = |rule| calls(CompiledRuleId::new(rule));
    let components = Components::find(compiled.rules.len(), callees);
    compiled.find_productive_and_nullable(&bodies, &components);
    if !compiled.rules[compiled.start.index()].productive {
        return Err(CompileError::Empty {
            rule: grammar.rules[compiled.start.index()].name.clone(),
        });
    }
    check_members(compiled, &member_sets)?;
    compiled.check_empty_calls(&bodies, |rule| calls(rule).len())?;
    compiled.assign_ranks(&bodies, &components);
    compiled.budgets.keys().for_each(|&rule| compiled.rules[rule.index()].tracked = true);
    find_interdependence(compiled, &calls);
    super::distinct_scopes::check_scopes(compiled, &calls)?;
    find_unique_keys(&mut compiled.rules, grammar.rules.len(), &calls);
    let resolved = |(&rule, pending): (&CompiledRuleId, &UnresolvedDispatch)| {
        (rule, pending.resolve(&compiled.rules).into())
    };
    compiled.dispatches = bodies.dispatches.iter().map(resolved).collect();
    build_auxiliary(compiled, &bodies.auxiliary)
}

/// Rejects member sets with nullable members.
fn check_members(
    compiled: &Compiled,
    member_sets: &[(CompiledRuleId, &Members)],
) -> Result<(), CompileError> {
    for (rule, set) in member_sets {
        let mut bodies = set.unique.iter().map(|member| &member.body).chain(&set.repeatable);
        if bodies.any(|body| compiled.nullable(body)) {
            let rule = compiled.split_grammar.rules.get(rule.index());
            let rule = rule.map_or("(members)", |rule| &rule.name).to_owned();
            return Err(CompileError::EmptyMember { rule });
        }
    }
    Ok(())
}

/// Builds the automata of auxiliary rules, those of dispatches excepted.
fn build_auxiliary(compiled: &mut Compiled, bodies: &[&Expr]) -> Result<(), CompileError> {
    for (i, body) in bodies.iter().enumerate() {
        let rule = CompiledRuleId::new(compiled.split_grammar.rules.len() + i);
        if compiled.dispatches.contains_key(&rule) {
            continue;
        }
        let rule_nfa = match body {
            Expr::Counted(counted) => {
                let passes = |e: &Expr| compiled.productive(e) && !compiled.nullable(e);
                if !counted.graph.edges.iter().all(|(_, e, _)| passes(e)) {
                    let what = "a step of a counted graph is unproductive or nullable";
                    let rule = "(counted)".to_owned();
                    return Err(GrammarError::Malformed { rule, what }.into());
                }
                let levels = compiled.auxiliary.path_lengths(body).clone();
                thompson::counted_rule_nfa(compiled, counted, levels)
            }
            body => thompson::rule_nfa(compiled, body),
        };
        compiled.auxiliary.nfas.insert(rule, rule_nfa.into());
    }
    Ok(())
}

/// Finds the rules that may begin a budget that makes items interdependent.
fn find_interdependence<'c>(
    compiled: &mut Compiled,
    calls: &impl Fn(CompiledRuleId) -> &'c [CompiledRuleId],
) {
    let budgets = compiled.budgets.iter().filter(|(_, meter)| meter.makes_items_interdependent());
    let budgets: Vec<u32> = budgets.map(|(&rule, _)| rule.into()).collect();
    if budgets.is_empty() {
        return;
    }
    let callers = Csr::new(compiled.rules.len(), || {
        let rules = (0..compiled.rules.len()).map(CompiledRuleId::new);
        rules.flat_map(|rule| calls(rule).iter().map(move |&callee| (callee.into(), rule.into())))
    });
    for (facts, begins) in compiled.rules.iter_mut().zip(callers.reached(budgets)) {
        facts.may_begin_interdependence = begins;
    }
}

/// Finds the rules that call unique keys, also through auxiliary rules. Those have the largest
/// ids, callers before callees.
fn find_unique_keys<'c>(
    rules: &mut [RuleFacts],
    own: usize,
    calls: &impl Fn(CompiledRuleId) -> &'c [CompiledRuleId],
) {
    if !rules.iter().any(|facts| facts.unique_key) {
        return;
    }
    for rule in (0..rules.len()).rev() {
        let names = |callee: &CompiledRuleId| {
            let facts = &rules[callee.index()];
            facts.unique_key || callee.index() >= own && facts.has_unique_keys
        };
        let callees = calls(CompiledRuleId::new(rule));
        rules[rule].has_unique_keys = rules[rule].reached && callees.iter().any(names);
    }
}
