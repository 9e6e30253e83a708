//! Masks sent ahead of the logits.

use candle_core::Device;

use crate::batch::MaskBatch;
use crate::error::ApplyError;

impl MaskBatch {
    /// Starts to send what has changed to a device, and returns without waiting for it: call it when the masks are filled,
    /// while the forward pass still runs. On CUDA, the copy runs on a stream of its own, so it passes work that the
    /// device has queued; applying the batch then only waits for the copy. On the CPU there is nothing to do.
    ///
    /// Cost: a copy of what has changed into pinned memory. Waits where the copy of the step before has not ended.
    pub fn upload(&self, device: &Device) -> Result<(), ApplyError> {
        match device {
            Device::Cpu => Ok(()),
            #[cfg(feature = "cuda")]
            Device::Cuda(device) => crate::cuda::upload(device, self),
            device => Err(ApplyError::Device(device.location())),
        }
    }
}

/// Which parts of a device's buffer (the index, then the masks) differ from the batch; neighbours are one part. `written` and
/// `indexed` say which writings the device has.
#[cfg(any(test, feature = "cuda"))]
pub(crate) fn parts(
    masks: &MaskBatch,
    written: &[u64],
    indexed: u64,
    index_room: usize,
) -> Vec<std::ops::Range<usize>> {
    let mut parts: Vec<std::ops::Range<usize>> = Vec::new();
    if indexed != masks.indexed() && !masks.is_empty() {
        let whole = written.first() != masks.written().first();
        // With the first mask right behind it, the index goes with it in one copy.
        parts.push(0..if whole { index_room } else { masks.len() });
    }
    for (mask, at) in masks.written().iter().enumerate() {
        if written.get(mask) != Some(at) {
            let begin = index_room + mask * masks.row_words();
            let end = begin + masks.row_words();
            match parts.last_mut() {
                Some(last) if last.end == begin => last.end = end,
                _ => parts.push(begin..end),
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After the parts are copied, the device has what the batch has, and there is nothing left to copy.
    #[test]
    fn parts_are_what_changed() {
        let mut batch = MaskBatch::new(64);
        let room = 8;
        let mut device = (Vec::new(), 0, vec![0u32; room + 2 * 6]);
        let mut send = |batch: &MaskBatch| {
            let parts = parts(batch, &device.0, device.1, room);
            for part in &parts {
                for at in part.clone() {
                    device.2[at] = match at.checked_sub(room) {
                        Some(word) => batch.words()[word],
                        None => batch.index().get(at).copied().unwrap_or(0),
                    };
                }
            }
            assert_eq!(device.2[..batch.len()], *batch.index());
            assert_eq!(device.2[room..][..batch.words().len()], *batch.words());
            device.0 = batch.written().to_vec();
            device.1 = batch.indexed();
            parts.into_iter().map(|part| (part.start, part.end)).collect::<Vec<_>>()
        };
        batch.resize(4);
        assert_eq!(send(&batch), [(0, 4)]);
        for row in 0..4 {
            batch.set(row, &[row as u32, 7]).expect("set");
        }
        // All at once: one copy.
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
