//! Formats over whole tokens.

use super::StructuralTagErrorReason as Reason;
use super::lower::{Around, Lowering};
use super::model::{Begin, Format, Tag, TagCount, Token};
use super::read::below;
use crate::ir::{Expr, SpecialToken};

/// The token, for the grammar.
pub(super) fn special(token: &Token) -> SpecialToken {
    match token {
        Token::Id(id) => SpecialToken::Id(*id),
        Token::Text(text) => SpecialToken::Name(text.clone()),
    }
}

impl Lowering<'_> {
    /// One token that is none of these and does not end the tag around it.
    pub(super) fn free_token(
        &mut self,
        excluded: &[Token],
        more: &[&Token],
        around: &Around,
    ) -> Expr {
        let mut list: Vec<SpecialToken> = Vec::new();
        for token in
            excluded.iter().chain(more.iter().copied()).map(special).chain(around.token.clone())
        {
            if !list.contains(&token) {
                list.push(token);
            }
        }
        self.special(SpecialToken::AnyBut(list))
    }

    pub(super) fn token_triggered_tags(
        &mut self,
        (triggers, tags): (&[Token], &[Tag]),
        excluded: &[Token],
        count: TagCount,
        (pointer, around): (&str, &Around),
    ) -> Option<Expr> {
        let tags =
            self.each_tag(tags, pointer, |this, tag, pointer| {
                let at = below(pointer, "begin");
                match &tag.begin {
                    Begin::Token(token) if triggers.contains(token) => {
                        let begin = this.begin(&tag.begin);
                        this.tag(begin, tag, pointer)
                    }
                    Begin::Token(_) => this
                        .fail(&at, Reason::Contradictory("is none of the trigger tokens".into())),
                    Begin::Text(_) => this
                        .fail(&at, Reason::Malformed("must be one of the trigger tokens".into())),
                }
            });
        let disjoint = self.disjoint(triggers.iter(), excluded, &below(pointer, "trigger_tokens"));
        let tags: Vec<Expr> = tags?;
        disjoint?;
        let tag = self.shared("tag", Expr::alt(tags));
        let free = self.free_token(excluded, &triggers.iter().collect::<Vec<_>>(), around);
        Some(match count {
            TagCount::Any => Expr::star(Expr::alt([free, tag])),
            TagCount::AtLeastOne => Expr::seq([tag.clone(), Expr::star(Expr::alt([free, tag]))]),
            TagCount::AtMostOne => Expr::seq([Expr::star(free), Expr::optional(tag)]),
            TagCount::One => tag,
        })
    }

    pub(super) fn token_dispatch(
        &mut self,
        rules: &[(Token, Format)],
        repeats: bool,
        excluded: &[Token],
        (pointer, around): (&str, &Around),
    ) -> Option<Expr> {
        let mut all = Vec::with_capacity(rules.len());
        for (i, (token, format)) in rules.iter().enumerate() {
            let body = self.format(format, &format!("{pointer}/rules/{i}/1"), around);
            let token = self.special(special(token));
            all.push(body.map(|body| Expr::seq([token, body])));
        }
        let disjoint =
            self.disjoint(rules.iter().map(|(token, _)| token), excluded, &below(pointer, "rules"));
        let bodies = all.into_iter().collect::<Option<Vec<Expr>>>()?;
        disjoint?;
        let body = self.shared("behind-token", Expr::alt(bodies));
        let triggers: Vec<&Token> = rules.iter().map(|(token, _)| token).collect();
        let free = self.free_token(excluded, &triggers, &Around::default());
        Some(match repeats {
            true => Expr::star(Expr::alt([free, body])),
            false => Expr::seq([Expr::star(free), Expr::optional(body)]),
        })
    }

    /// Complains of triggers that are excluded.
    fn disjoint<'t>(
        &mut self,
        triggers: impl Iterator<Item = &'t Token>,
        excluded: &[Token],
        pointer: &str,
    ) -> Option<()> {
        let mut fine = Some(());
        for (i, trigger) in triggers.enumerate().filter(|(_, trigger)| excluded.contains(trigger)) {
            let what = format!("{} is excluded too", special(trigger));
            fine = self.fail(&format!("{pointer}/{i}"), Reason::Contradictory(what));
        }
        fine
    }
}
