//! The masks of a step: one row for each token that is drawn.

use anyhow::Result;
use candle_core::Device;
use louver::{DraftTree, Engine, Matcher, TokenId};
use louver_candle::MaskBatch;

/// A sequence's rows of the logits: one for its next token, then one for each token of its draft.
pub(crate) struct DrawnRows<'s> {
    /// `None` if the sequence is unconstrained.
    pub(crate) matcher: Option<&'s mut Matcher>,
    pub(crate) draft: &'s [u32],
    /// The number of the first row.
    pub(crate) first: usize,
}

/// Fills the masks of all rows and starts their upload. Needs the tokens of the last step only, so
/// that it runs beside the forward pass.
pub(crate) fn fill(
    masks: &mut MaskBatch,
    engine: &Engine,
    sequences: &mut [DrawnRows<'_>],
    device: &Device,
) -> Result<()> {
    masks.resize(0);
    masks.resize(sequences.iter().map(|sequence| 1 + sequence.draft.len()).sum());
    let firsts: Vec<usize> = sequences.iter().map(|sequence| sequence.first).collect();
    masks.refill(engine, &firsts, sequences.iter_mut().map(|s| s.matcher.as_deref_mut()))?;
    for sequence in sequences.iter_mut().filter(|sequence| !sequence.draft.is_empty()) {
        fill_draft(masks, sequence)?;
    }
    Ok(masks.upload(device)?)
}

/// Row `first + 1 + i` is the mask after the draft's token `i`. After a token that is refused it
/// is free: no draw chooses that token, so the row is never used.
fn fill_draft(masks: &mut MaskBatch, sequence: &mut DrawnRows<'_>) -> Result<()> {
    let rows = sequence.first + 1..sequence.first + 1 + sequence.draft.len();
    rows.clone().try_for_each(|row| masks.set_free(row))?;
    let Some(matcher) = &mut sequence.matcher else { return Ok(()) };
    let tree = DraftTree::chain(sequence.draft.iter().map(|&id| TokenId::from_raw(id)).collect());
    let mut words = vec![0; tree.len() * masks.row_words()];
    let nodes = matcher.fill_draft_masks(&tree, &mut words)?;
    let filled = rows.zip(words.chunks(masks.row_words())).zip(nodes);
    for ((row, mask), _) in filled.filter(|(_, node)| node.is_accepted()) {
        masks.set(row, mask)?;
    }
    Ok(())
}
