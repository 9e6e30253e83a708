//! Early upload of masks, before the logits are available.

use std::ops::Range;

use candle_core::Device;

use crate::batch::MaskBatch;
use crate::error::ApplyError;
use crate::table::RowMask;

impl MaskBatch {
    /// Starts the upload of changed masks to a device and returns without waiting. Call it after
    /// filling the masks, while the forward pass runs. On CUDA the copy runs on its own stream, so
    /// that it does not wait for queued work; applying the batch then only waits for the copy. On
    /// the CPU nothing happens.
    ///
    /// Cost: a copy of the changes into pinned memory. Blocks until the previous step's copy has
    /// ended.
    pub fn upload(&self, device: &Device) -> Result<(), ApplyError> {
        match device {
            Device::Cpu => Ok(()),
            #[cfg(feature = "cuda")]
            Device::Cuda(device) => crate::cuda::upload(device, self),
            device => Err(ApplyError::Device(device.location())),
        }
    }
}

/// A batch's copy in host memory, kept up to date by what a device would be sent: for tests, and to
/// measure that.
#[doc(hidden)]
#[derive(Debug)]
pub struct HostCopy {
    mask_versions: Vec<u64>,
    index_version: u64,
    /// Number of words before the first mask.
    index_capacity: usize,
    /// The index, then the masks.
    buffer: Vec<u32>,
}

impl HostCopy {
    /// An empty copy for batches of at most `rows` rows.
    pub fn new(rows: usize) -> Self {
        let (mask_versions, index_version, buffer) = Default::default();
        Self { mask_versions, index_version, index_capacity: rows, buffer }
    }

    /// Brings the copy up to date. Returns the ranges of words that were sent.
    pub fn update(&mut self, masks: &MaskBatch) -> Vec<Range<usize>> {
        let capacity = self.index_capacity;
        let masks = masks.table();
        let ranges = masks.changed_ranges(&self.mask_versions, self.index_version, capacity);
        self.buffer.resize(capacity + masks.words().len(), 0);
        for range in &ranges {
            for word in range.clone() {
                self.buffer[word] = match word.checked_sub(capacity) {
                    Some(word) => masks.words()[word],
                    None => masks.index().get(word).copied().unwrap_or(0),
                };
            }
        }
        self.mask_versions = masks.mask_versions().to_vec();
        self.index_version = masks.index_version();
        ranges
    }

    /// Whether the copy has the batch's index and each row's mask.
    pub fn equals(&self, masks: &MaskBatch) -> bool {
        let masks = masks.table();
        let (index, words) = self.buffer.split_at(self.index_capacity);
        index.starts_with(masks.index())
            && masks.index().iter().enumerate().all(|(row, &mask)| match masks.row(row) {
                Some(RowMask::Words(expected)) => {
                    words[mask as usize * masks.row_words()..].starts_with(expected)
                }
                _ => true,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Updates the copy, which then equals the batch and has nothing to send.
    fn send(copy: &mut HostCopy, batch: &MaskBatch) -> Vec<(usize, usize)> {
        let ranges = copy.update(batch);
        assert!(copy.equals(batch) && copy.update(batch).is_empty());
        ranges.into_iter().map(|part| (part.start, part.end)).collect()
    }

    #[test]
    fn copying_the_changed_ranges_updates_the_device() {
        let mut batch = MaskBatch::new(64);
        let room = 8;
        let mut copy = HostCopy::new(room);
        batch.resize(4);
        assert_eq!(send(&mut copy, &batch), [(0, 4)]);
        for row in 0..4 {
            batch.set(row, &[row as u32, 7]).expect("set");
        }
        // Everything changed: one copy.
        assert_eq!(send(&mut copy, &batch), [(0, room + 8)]);
        batch.set(2, &[9, 9]).expect("set");
        assert_eq!(send(&mut copy, &batch), [(0, 4), (room + 4, room + 6)]);
        batch.share(1, 0).expect("shared");
        assert_eq!(send(&mut copy, &batch), [(0, 4)]);
        batch.set(3, &[5, 5]).expect("set");
        assert_eq!(send(&mut copy, &batch), [(0, 4), (room + 2, room + 4)]);
    }

    /// Three masks are kept. The one that was left first makes room, and masks in use never do.
    #[test]
    fn masks_that_come_back_are_not_sent_again() {
        let mut batch = MaskBatch::new(64);
        batch.resize(1);
        batch.keep_masks(3 * 8);
        let room = 2;
        let mut copy = HostCopy::new(room);
        let mask = |place: usize| (room + 2 * place, room + 2 * place + 2);
        let mut sent = |batch: &mut MaskBatch, words: u32| {
            batch.set(0, &[words, 0]).expect("set");
            let ranges = send(&mut copy, batch);
            // The index is sent each time, alone or with the first mask after it.
            assert_eq!(ranges[0].0, 0);
            if ranges[0].1 > room { vec![mask(0)] } else { ranges[1..].to_vec() }
        };
        for (words, places) in [(1, Some(0)), (2, Some(1)), (1, None), (3, Some(2)), (2, None)] {
            let places: Vec<_> = places.map(mask).into_iter().collect();
            assert_eq!(sent(&mut batch, words), places, "{words}");
        }
        // 1 was left first, then 3; 2 is in use.
        assert_eq!(sent(&mut batch, 4), [mask(0)]);
        assert_eq!(sent(&mut batch, 1), [mask(2)]);
        assert!(sent(&mut batch, 2).is_empty() && sent(&mut batch, 4).is_empty());
        assert_eq!(batch.masks(), 3);
        // Four masks in use need a fourth place.
        batch.resize(4);
        for row in 0..4 {
            batch.set(row, &[10 + row as u32, 0]).expect("set");
        }
        assert_eq!(batch.masks(), 4);
        let mut copy = HostCopy::new(4);
        copy.update(&batch);
        assert!(copy.equals(&batch));
    }
}
