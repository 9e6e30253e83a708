//! Early upload of masks, before the logits are available.

use candle_core::Device;

use crate::batch::MaskBatch;
use crate::error::ApplyError;

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

/// The ranges of a device buffer (the index, then the masks) that differ from the batch; adjacent
/// ranges are merged. `mask_versions` and `index_version` are those on the device.
#[cfg(any(test, feature = "cuda"))]
pub(crate) fn changed_ranges(
    masks: &MaskBatch,
    mask_versions: &[u64],
    index_version: u64,
    index_capacity: usize,
) -> Vec<std::ops::Range<usize>> {
    let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
    if index_version != masks.index_version() && !masks.is_empty() {
        let first_mask_changed = mask_versions.first() != masks.mask_versions().first();
        // If the first mask changed, the index is copied together with it.
        ranges.push(0..if first_mask_changed { index_capacity } else { masks.len() });
    }
    for (mask, at) in masks.mask_versions().iter().enumerate() {
        if mask_versions.get(mask) != Some(at) {
            let begin = index_capacity + mask * masks.row_words();
            let end = begin + masks.row_words();
            match ranges.last_mut() {
                Some(last) if last.end == begin => last.end = end,
                _ => ranges.push(begin..end),
            }
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After copying the ranges, the device equals the batch and nothing remains to copy.
    #[test]
    fn copying_the_changed_ranges_updates_the_device() {
        let mut batch = MaskBatch::new(64);
        let room = 8;
        let mut device = (Vec::new(), 0, vec![0u32; room + 2 * 6]);
        let mut send = |batch: &MaskBatch| {
            let ranges = changed_ranges(batch, &device.0, device.1, room);
            for part in &ranges {
                for index in part.clone() {
                    device.2[index] = match index.checked_sub(room) {
                        Some(word) => batch.words()[word],
                        None => batch.index().get(index).copied().unwrap_or(0),
                    };
                }
            }
            assert_eq!(device.2[..batch.len()], *batch.index());
            assert_eq!(device.2[room..][..batch.words().len()], *batch.words());
            device.0 = batch.mask_versions().to_vec();
            device.1 = batch.index_version();
            ranges.into_iter().map(|part| (part.start, part.end)).collect::<Vec<_>>()
        };
        batch.resize(4);
        assert_eq!(send(&batch), [(0, 4)]);
        for row in 0..4 {
            batch.set(row, &[row as u32, 7]).expect("set");
        }
        // Everything changed: one copy.
        assert_eq!(send(&batch), [(0, room + 8)]);
        assert!(send(&batch).is_empty());
        batch.set(2, &[9, 9]).expect("set");
        assert_eq!(send(&batch), [(0, 4), (room + 4, room + 6)]);
        batch.share(1, 0).expect("shared");
        assert_eq!(send(&batch), [(0, 4)]);
        batch.set(3, &[5, 5]).expect("set");
        assert_eq!(send(&batch), [(0, 4), (room + 2, room + 4)]);
    }
}
