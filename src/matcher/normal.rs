//! Which configurations are the same where masks are concerned: counters that no token can tell apart.

use super::limit::ParserLimit;
use super::parser::Parser;
use super::store::{ConfigId, Item, changed, normal_runs};
use crate::compile::StandIn;

impl Parser {
    /// The configuration that stands for this one where masks are concerned.
    pub(crate) fn normal(&mut self, config: ConfigId) -> ConfigId {
        if self.is_named(config) {
            self.far_in_all(config)
        } else {
            self.remembered(config, Parser::far_in_all)
        }
    }

    /// The normal configuration that stands for this one, which knows of no names, and for others that have the same mask: nothing is told in it that
    /// no token gets to, such as which members there have been. What comes behind the next token may be another thing.
    pub(crate) fn for_masks(&mut self, config: ConfigId) -> ConfigId {
        let normal = self.normal(config);
        if !self.program().has_members() {
            return normal;
        }
        if let Some(known) = self.store().known_alike(normal) {
            return known;
        }
        let Some(vocab) = self.vocab().cloned() else { return normal };
        let find =
            |parser: &mut Parser, state| Ok(parser.program_mut().alike(state, vocab.triples()));
        let own = self.with_states(normal, find).unwrap_or(normal);
        let alike = self.parts().0.alike_config(own);
        self.parts().0.note_alike(normal, alike);
        alike
    }

    /// The same where frames are to stay as they are, as something is known of them.
    pub(crate) fn normal_in_frames(&mut self, config: ConfigId) -> ConfigId {
        if self.is_named(config) {
            self.remembered(config, Parser::far_in_frames)
        } else {
            self.far_in_frames(config)
        }
    }

    /// What stands for a configuration, looked for once: of those that know of names in their frames, of others in all.
    fn remembered(
        &mut self,
        config: ConfigId,
        find: fn(&mut Parser, ConfigId) -> ConfigId,
    ) -> ConfigId {
        if let Some(known) = self.store().known_normal(config) {
            return known;
        }
        let normal = find(self, config);
        self.parts().0.note_normal(config, normal);
        normal
    }

    fn far_in_all(&mut self, config: ConfigId) -> ConfigId {
        let (store, program, reach) = self.parts();
        let Some(reach) = reach else { return config };
        let normal = store.normal_config(program, config, reach);
        self.far_from_bounds(normal, reach)
    }

    fn far_in_frames(&mut self, config: ConfigId) -> ConfigId {
        let (store, program, reach) = self.parts();
        let Some(reach) = reach else { return config };
        let normal = |item: &Item| Item {
            count: normal_runs(program, item.state, item.count, reach),
            ..*item
        };
        let mut plain = store.plain(config);
        if let Some(items) = changed(store.items(config), normal) {
            plain = store.config(&items, store.done(plain));
        }
        let far = self.far_from_bounds(plain, reach);
        if far == self.store().plain(config) { config } else { self.with_names_of(config, far) }
    }

    /// The same with states of graphs moved to those that stand for them.
    fn far_from_bounds(&mut self, config: ConfigId, reach: u32) -> ConfigId {
        self.with_states(config, |parser, state| parser.stand_in(state, reach)).unwrap_or(config)
    }

    /// The state that stands for another one where masks are concerned.
    fn stand_in(&mut self, state: u32, reach: u32) -> Result<u32, ParserLimit> {
        loop {
            match self.program_mut().stand_in(state, reach) {
                StandIn::State(state) => return Ok(state),
                StandIn::Unmeasured(state) => {
                    let moves = self.moves(state)?;
                    self.program_mut().note_moves(state, moves);
                }
            }
        }
    }

    /// The configuration with other states of graphs, and what follows from them in place of what follows from those before. Of a grammar that keeps
    /// account of anything in frames, what follows is not looked at.
    pub(super) fn with_states(
        &mut self,
        config: ConfigId,
        mut stand_in: impl FnMut(&mut Parser, u32) -> Result<u32, ParserLimit>,
    ) -> Result<ConfigId, ParserLimit> {
        let (mut before, mut after): (Vec<Item>, Vec<Item>) = (Vec::new(), Vec::new());
        for i in 0..self.store().items(config).len() {
            let item = self.store().items(config)[i];
            let state = stand_in(self, item.state)?;
            if state != item.state {
                before.push(item);
                after.push(Item { state, ..item });
            }
        }
        if before.is_empty() {
            return Ok(config);
        }
        let done = self.store().done(config);
        if self.compiled().keeps_no_account() {
            let loose = std::mem::replace(&mut self.loose, done.loose);
            let both = [&before, &after].map(|items| self.close_items(items));
            self.loose = loose;
            let [from, to] = both;
            before = self.store().items(from?).to_vec();
            after = self.store().items(to?).to_vec();
        }
        after.extend(self.store().items(config).iter().filter(|item| !before.contains(item)));
        after.sort_unstable();
        after.dedup();
        Ok(self.parts().0.config(&after, done))
    }
}
