//! Lowers the formats over whole tokens.

use super::StructuralTagErrorReason as Reason;
use super::lower::{EnclosingEnd, TagLowering};
use super::model::{Begin, Format, Tag, TagCount, Token};
use super::read::member_pointer;
use crate::hash::{HashSet, IndexSet};
use crate::ir::{Expr, SpecialToken};

impl TagLowering<'_> {
    /// One token that is not excluded and does not end the enclosing tag.
    pub(super) fn free_token(
        &mut self,
        excluded: &[Token],
        more: &[&Token],
        enclosing: &EnclosingEnd,
    ) -> Expr {
        let tokens = excluded.iter().chain(more.iter().copied()).map(Token::special);
        let tokens: IndexSet<SpecialToken> = tokens.chain(enclosing.token.clone()).collect();
        self.special(SpecialToken::AnyBut(tokens.into_iter().collect()))
    }

    /// Lowers free tokens with tags that begin with a trigger token.
    pub(super) fn token_triggered_tags(
        &mut self,
        triggers: &[Token],
        tags: &[Tag],
        excluded: &[Token],
        count: TagCount,
        pointer: &str,
        enclosing: &EnclosingEnd,
    ) -> Option<Expr> {
        let known: HashSet<&Token> = triggers.iter().collect();
        let tags =
            self.each_tag(tags, pointer, |this, tag, pointer| {
                let at = member_pointer(pointer, "begin");
                match &tag.begin {
                    Begin::Token(token) if known.contains(token) => {
                        let begin = this.begin(&tag.begin);
                        this.tag(begin, tag, pointer)
                    }
                    Begin::Token(_) => this
                        .fail(&at, Reason::Contradictory("is none of the trigger tokens".into())),
                    Begin::Text(_) => this
                        .fail(&at, Reason::Malformed("must be one of the trigger tokens".into())),
                }
            });
        let disjoint = self.check_disjoint(
            triggers.iter(),
            excluded,
            &member_pointer(pointer, "trigger_tokens"),
        );
        let tags: Vec<Expr> = tags?;
        disjoint?;
        let tag = self.as_rule("tag", Expr::alt(tags));
        let free = self.free_token(excluded, &triggers.iter().collect::<Vec<_>>(), enclosing);
        Some(match count {
            TagCount::Any => Expr::star(Expr::alt([free, tag])),
            TagCount::AtLeastOne => Expr::seq([tag.clone(), Expr::star(Expr::alt([free, tag]))]),
            TagCount::AtMostOne => Expr::seq([Expr::star(free), Expr::optional(tag)]),
            TagCount::One => tag,
        })
    }

    /// Lowers free tokens with formats after trigger tokens.
    pub(super) fn token_dispatch(
        &mut self,
        rules: &[(Token, Format)],
        repeats: bool,
        excluded: &[Token],
        pointer: &str,
        enclosing: &EnclosingEnd,
    ) -> Option<Expr> {
        let mut all = Vec::with_capacity(rules.len());
        for (i, (token, format)) in rules.iter().enumerate() {
            let body = self.format(format, &format!("{pointer}/rules/{i}/1"), enclosing);
            let token = self.special(token.special());
            all.push(body.map(|body| Expr::seq([token, body])));
        }
        let disjoint = self.check_disjoint(
            rules.iter().map(|(token, _)| token),
            excluded,
            &member_pointer(pointer, "rules"),
        );
        let bodies = all.into_iter().collect::<Option<Vec<Expr>>>()?;
        disjoint?;
        let body = self.as_rule("after-token", Expr::alt(bodies));
        let triggers: Vec<&Token> = rules.iter().map(|(token, _)| token).collect();
        let free = self.free_token(excluded, &triggers, &EnclosingEnd::default());
        Some(match repeats {
            true => Expr::star(Expr::alt([free, body])),
            false => Expr::seq([Expr::star(free), Expr::optional(body)]),
        })
    }

    /// Reports triggers that are excluded.
    fn check_disjoint<'t>(
        &mut self,
        triggers: impl Iterator<Item = &'t Token>,
        excluded: &[Token],
        pointer: &str,
    ) -> Option<()> {
        let excluded: HashSet<&Token> = excluded.iter().collect();
        let mut result = Some(());
        for (i, trigger) in triggers.enumerate().filter(|(_, trigger)| excluded.contains(trigger)) {
            let what = format!("{} is excluded too", trigger.special());
            result = self.fail(&format!("{pointer}/{i}"), Reason::Contradictory(what));
        }
        result
    }
}
