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
