//! Which configurations are the same where masks are concerned: counters that no token can tell apart.

use super::parser::Parser;
use super::store::{ConfigId, Item, normal_runs};

impl Parser {
    /// The configuration that stands for this one where masks are concerned.
    pub(crate) fn normal(&mut self, config: ConfigId) -> ConfigId {
        if self.is_named(config) { self.far_in_all(config) } else { self.remembered(config, Parser::far_in_all) }
    }

    /// The same where frames are to stay as they are, as something is known of them.
    pub(crate) fn normal_in_frames(&mut self, config: ConfigId) -> ConfigId {
        if self.is_named(config) { self.remembered(config, Parser::far_in_frames) } else { self.far_in_frames(config) }
    }

    /// What stands for a configuration, looked for once: of those that know of names in their frames, of others in all.
    fn remembered(&mut self, config: ConfigId, find: fn(&mut Parser, ConfigId) -> ConfigId) -> ConfigId {
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
        let items = store.items(config);
        let normal = |item: &Item| Item { count: normal_runs(program, item.state, item.count, reach), ..*item };
        if items.iter().all(|item| normal(item) == *item) {
            return config;
        }
        let mut items: Vec<Item> = items.iter().map(normal).collect();
        items.sort_unstable();
        items.dedup();
        let plain = store.config(&items, store.done(store.plain(config)));
        self.with_names_of(config, plain)
    }

    /// The same with states of graphs whose steps are counted moved away from their bounds.
    fn far_from_bounds(&mut self, config: ConfigId, reach: u32) -> ConfigId {
        let items = self.store().items(config);
        if !items.iter().any(|item| self.program().is_counted(item.state)) {
            return config;
        }
        let mut far = items.to_vec();
        far.iter_mut().for_each(|item| item.state = self.program_mut().far_from_bounds(item.state, reach));
        far.sort_unstable();
        far.dedup();
        let (store, ..) = self.parts();
        store.config(&far, store.done(config))
    }
}
