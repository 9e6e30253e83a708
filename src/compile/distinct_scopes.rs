//! Distinct-value constraints: scopes (arrays with `uniqueItems`) and the elements that must differ
//! within them.
//!
//! A rule with either role is split in two: an outer rule that only calls the inner one. The return
//! address of a scope's call is in frames while the scope is open; its count is the register of
//! values so far. The return address of an element's call marks the element's end.

use std::sync::Arc;

use super::{CompileError, Compiled, CompiledRuleId, shared_automata};
use crate::fsm::Dfa;
use crate::fuel;
use crate::hash::{HashMap, HashSet};
use crate::ids::{RuleId, id};
use crate::ir::{Attributes, Expr, Grammar};

id! {
    /// The register of a scope: an index into the registers of one parser. The first ones are
    /// reserved; those that hold no values only count elements.
    pub(crate) RegisterId
}

impl RegisterId {
    /// The values of the scope are unknown: nothing is compared.
    pub(crate) const UNKNOWN: RegisterId = RegisterId::from_raw(0);
    /// The scope has no elements so far. The only reserved register that holds values.
    pub(crate) const EMPTY: RegisterId = RegisterId::from_raw(1);
    /// Counting: one more element may end, a second one may not.
    pub(crate) const MAY_END_ONCE: RegisterId = RegisterId::from_raw(2);
    /// Counting: no element may end. Used to find candidate tokens.
    pub(crate) const MAY_NOT_END: RegisterId = RegisterId::from_raw(3);
    /// Counting: one more element may end, and no element may begin after it.
    pub(crate) const FINAL_ELEMENT: RegisterId = RegisterId::from_raw(4);
    /// Counting: no element may begin.
    pub(crate) const MAY_NOT_BEGIN: RegisterId = RegisterId::from_raw(5);
    /// The first register that is not reserved; all from here on hold values.
    pub(crate) const FIRST_FREE: RegisterId = RegisterId::from_raw(6);

    /// Whether the register holds values (it does not only count).
    pub(crate) fn holds_values(self) -> bool {
        self == RegisterId::EMPTY || self >= RegisterId::FIRST_FREE
    }
}

/// The role of a rule in distinct-value constraints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DistinctRole {
    /// No two elements within an occurrence are equal.
    Scope {
        /// Every unfinished element of the scope can still become infinitely many strings, so it
        /// always has a way to differ.
        inexhaustible: bool,
    },
    /// A value that differs from the earlier elements of its scope.
    Element,
}

/// The role of a state: set on the return address of the call in a split rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReturnRole {
    /// Any other state.
    Nothing,
    /// The scope that was called ends here; frames with this state hold its register.
    Scope,
    /// The element that was called ends here.
    Element,
}

/// The rules with roles; empty in grammars without distinct-value constraints.
#[derive(Clone, Debug, Default)]
pub(crate) struct DistinctScopes {
    /// By rule; the rule is the outer one of a split.
    roles: HashMap<CompiledRuleId, DistinctRole>,
    /// By rule: it may call an element of an enclosing scope.
    calls_outer_element: Vec<bool>,
}

impl DistinctScopes {
    /// Whether the grammar has no distinct-value constraints.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.roles.is_empty()
    }

    /// The role of a rule.
    #[inline]
    pub(crate) fn role(&self, rule: CompiledRuleId) -> Option<DistinctRole> {
        if self.roles.is_empty() { None } else { self.roles.get(&rule).copied() }
    }

    /// Whether a rule may call an element of an enclosing scope.
    pub(crate) fn may_call_outer_element(&self, rule: CompiledRuleId) -> bool {
        self.calls_outer_element
            .get(rule.index())
            .is_some_and(|calls_outer_element| *calls_outer_element)
    }

    /// The role of the return address in a rule.
    pub(super) fn return_role(&self, rule: CompiledRuleId) -> ReturnRole {
        match self.role(rule) {
            None => ReturnRole::Nothing,
            Some(DistinctRole::Scope { .. }) => ReturnRole::Scope,
            Some(DistinctRole::Element) => ReturnRole::Element,
        }
    }
}

/// Splits each rule with a role; returns the rewritten grammar and the roles by rule.
pub(super) fn split_scopes(grammar: Arc<Grammar>) -> (Arc<Grammar>, DistinctScopes) {
    let mut scopes = DistinctScopes::default();
    if grammar.rules.iter().all(|rule| !rule.attributes.scope && !rule.attributes.element) {
        return (grammar, scopes);
    }
    let mut out = (*grammar).clone();
    for mut id in 0..grammar.rules.len() {
        let Attributes { scope, element, .. } = out.rules[id].attributes;
        // A rule may be both: an element of the enclosing scope, and a scope. The inner rule keeps
        // its attributes, so that it is not inlined into the outer one.
        for role in element
            .then_some(DistinctRole::Element)
            .into_iter()
            .chain(scope.then_some(DistinctRole::Scope { inexhaustible: false }))
        {
            scopes.roles.insert(CompiledRuleId::new(id), role);
            id = out.split_rule(id);
        }
    }
    (Arc::new(out), scopes)
}

/// Checks rules with roles, and computes their further properties. `calls` yields the callees of a
/// rule.
pub(super) fn check_scopes<'c>(
    compiled: &mut Compiled,
    calls: &impl Fn(CompiledRuleId) -> &'c [CompiledRuleId],
) -> Result<(), CompileError> {
    if compiled.scopes.is_empty() {
        return Ok(());
    }
    let calls_outer_element = rules_calling_outer_elements(compiled, calls);
    let mut check = StringCheck { compiled: &*compiled, results: HashMap::default(), depth: 0 };
    let mut inexhaustible = Vec::new();
    for (rule, facts) in compiled.rules.iter().enumerate().filter(|(_, facts)| facts.reached) {
        let rule = CompiledRuleId::new(rule);
        let what = match compiled.scopes.role(rule) {
            None => continue,
            Some(_) if facts.left_recursive => "is left-recursive",
            Some(DistinctRole::Element) if facts.nullable => "is nullable",
            Some(DistinctRole::Element) if calls_outer_element[rule.index()] => {
                "contains elements of the same scope"
            }
            Some(DistinctRole::Scope { .. }) => {
                if is_inexhaustible(&mut check, calls, rule) {
                    inexhaustible.push(rule);
                }
                continue;
            }
            Some(_) => continue,
        };
        let name = compiled
            .split_grammar
            .rules
            .get(rule.index())
            .map_or("(repeat)", |rule| &rule.name)
            .to_owned();
        return Err(CompileError::Scope { rule: name, what });
    }
    compiled.scopes.calls_outer_element = calls_outer_element;
    for rule in inexhaustible {
        compiled.scopes.roles.insert(rule, DistinctRole::Scope { inexhaustible: true });
    }
    for rule in compiled.scopes.roles.keys() {
        compiled.rules[rule.index()].tracked = true;
    }
    Ok(())
}

/// By rule: whether it may call an element of an enclosing scope.
fn rules_calling_outer_elements<'c>(
    compiled: &Compiled,
    calls: &impl Fn(CompiledRuleId) -> &'c [CompiledRuleId],
) -> Vec<bool> {
    let rules = || (0..compiled.rules.len()).map(CompiledRuleId::new);
    let mut callers: Vec<Vec<CompiledRuleId>> = vec![Vec::new(); compiled.rules.len()];
    for rule in rules().filter(|rule| compiled.rules[rule.index()].reached) {
        calls(rule).iter().for_each(|callee| callers[callee.index()].push(rule));
    }
    let role = |rule: CompiledRuleId| compiled.scopes.role(rule);
    let mut calls_outer_element = vec![false; compiled.rules.len()];
    let mut queue: Vec<CompiledRuleId> =
        rules().filter(|&rule| role(rule) == Some(DistinctRole::Element)).collect();
    while let Some(rule) = queue.pop() {
        for &caller in &callers[rule.index()] {
            if !std::mem::replace(&mut calls_outer_element[caller.index()], true)
                && !matches!(role(caller), Some(DistinctRole::Scope { .. }))
            {
                queue.push(caller);
            }
        }
    }
    calls_outer_element
}

/// Whether all elements of a scope are strings that always have infinitely many completions.
fn is_inexhaustible<'c>(
    check: &mut StringCheck<'_>,
    calls: &impl Fn(CompiledRuleId) -> &'c [CompiledRuleId],
    scope: CompiledRuleId,
) -> bool {
    let (mut seen, mut queue) = (HashSet::default(), calls(scope).to_vec());
    while let Some(rule) = queue.pop() {
        if !seen.insert(rule) {
            continue;
        }
        match check.compiled.scopes.role(rule) {
            Some(DistinctRole::Scope { .. }) => {}
            Some(DistinctRole::Element) => {
                let Some(element) = check.compiled.split_grammar.rules.get(rule.index()) else {
                    return false;
                };
                if !StringProperty::ALL.iter().all(|&property| check.holds(property, &element.body))
                {
                    return false;
                }
            }
            None => queue.extend_from_slice(calls(rule)),
        }
    }
    true
}

/// A property of all texts of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum StringProperty {
    /// Every text begins with a quote.
    BeginsWithQuote,
    /// Every text that begins with a quote ends with another one.
    EndsWithSecondQuote,
    /// Every text ends with a quote.
    EndsWithQuote,
    /// Every proper prefix of a text has infinitely many completions.
    HasInfiniteResiduals,
}

impl StringProperty {
    /// Those of a string that always has further values.
    const ALL: [StringProperty; 3] = [
        StringProperty::BeginsWithQuote,
        StringProperty::EndsWithSecondQuote,
        StringProperty::HasInfiniteResiduals,
    ];

    /// Whether the words of an automaton have the property.
    fn holds_for_dfa(self, dfa: &Dfa) -> bool {
        let quote = u32::from(b'"');
        match self {
            StringProperty::BeginsWithQuote => {
                !dfa.is_final(0) && dfa.edges(0).iter().all(|e| e.lo == quote && e.hi == quote)
            }
            StringProperty::EndsWithSecondQuote => ends_with_second_quote(dfa),
            StringProperty::EndsWithQuote => ends_with_quote(dfa),
            StringProperty::HasInfiniteResiduals => dfa.has_infinite_residuals(),
        }
    }
}

/// Deepest nesting of rules that is looked through. What is first met deeper counts as without the
/// property, also where it is met again.
const MAX_RULE_DEPTH: usize = 16;

/// Decides properties of expressions through calls of rules that are not recursive. Cost: each rule
/// is looked at once for each property.
struct StringCheck<'c> {
    compiled: &'c Compiled,
    /// Results by rule; `None` while a rule is looked at. All properties are conjunctions over the
    /// rules that are called, so a rule that calls itself has none of them.
    results: HashMap<(RuleId, StringProperty), Option<bool>>,
    /// Rules around the one that is looked at.
    depth: usize,
}

impl StringCheck<'_> {
    /// The property of a rule: of its DFA if it is regular, else of its body.
    fn holds_for_rule(&mut self, property: StringProperty, rule: RuleId) -> bool {
        if let Some(result) = self.results.get(&(rule, property)) {
            return result.unwrap_or(false);
        }
        fuel::charge(1);
        self.results.insert((rule, property), None);
        let compiled = self.compiled;
        let holds = if let Some(dfa) = shared_automata::minimal_automaton(compiled, rule.into()) {
            property.holds_for_dfa(&dfa)
        } else if let Some(callee) = compiled.split_grammar.rules.get(rule.index())
            && self.depth < MAX_RULE_DEPTH
        {
            self.depth += 1;
            let holds = self.holds(property, &callee.body);
            self.depth -= 1;
            holds
        } else {
            false
        };
        self.results.insert((rule, property), Some(holds));
        holds
    }

    /// Whether the texts of an expression have a property.
    fn holds(&mut self, property: StringProperty, expr: &Expr) -> bool {
        use StringProperty::{
            BeginsWithQuote, EndsWithQuote, EndsWithSecondQuote, HasInfiniteResiduals,
        };
        match (expr, property) {
            (Expr::Automaton(dfa), _) => property.holds_for_dfa(dfa),
            (Expr::Ref(rule), _) => self.holds_for_rule(property, *rule),
            (Expr::Alt(parts), _) => parts.iter().all(|part| self.holds(property, part)),
            (Expr::Bytes(bytes), BeginsWithQuote) => bytes.first() == Some(&b'"'),
            (Expr::Bytes(bytes), EndsWithQuote) => bytes.last() == Some(&b'"'),
            (Expr::Bytes(bytes), EndsWithSecondQuote) => {
                bytes.last() == Some(&b'"') && bytes.len() > 1
            }
            (Expr::Seq(parts), BeginsWithQuote) => {
                parts.first().is_some_and(|part| self.holds(property, part))
            }
            (Expr::Seq(parts), EndsWithSecondQuote) => {
                parts.len() > 1 && parts.last().is_some_and(|part| self.holds(EndsWithQuote, part))
            }
            (Expr::Seq(parts), EndsWithQuote | HasInfiniteResiduals) => {
                parts.last().is_some_and(|part| self.holds(property, part))
            }
            (Expr::Except(except), EndsWithQuote | HasInfiniteResiduals) => {
                (property == HasInfiniteResiduals || except.close.last() == Some(&b'"'))
                    && self.holds_for_rule(property, except.tail)
                    && self.holds_for_rule(property, except.other)
            }
            _ => false,
        }
    }
}

/// Whether every word is nonempty and ends with a quote.
fn ends_with_quote(dfa: &Dfa) -> bool {
    let quote = u32::from(b'"');
    let states = 0..dfa.len() as u32;
    let mut edges = states.flat_map(|state| dfa.edges(state));
    !dfa.is_final(0)
        && edges.all(|edge| !dfa.is_final(edge.to) || edge.lo == quote && edge.hi == quote)
}

/// Whether every word has at least two bytes and ends with a quote.
fn ends_with_second_quote(dfa: &Dfa) -> bool {
    ends_with_quote(dfa) && dfa.edges(0).iter().all(|edge| !dfa.is_final(edge.to))
}
