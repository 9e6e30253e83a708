//! Upload of masks to a CUDA device: pinned memory, a copy stream, and tracking of what the device
//! has.

use std::sync::Arc;

use candle_core::Result;
use candle_core::cuda_backend::cudarc::driver::result::{event, memcpy_htod_async, stream};
use candle_core::cuda_backend::cudarc::driver::{
    CudaEvent, CudaSlice, CudaStream, CudaView, DevicePtrMut, DeviceRepr, PinnedHostSlice, sys,
};
use candle_core::cuda_backend::{CudaDevice, WrapErr};

use crate::table::MaskTable;

/// A copy stream without implicit synchronisation. It is not one of cudarc's streams, because their
/// existence makes every tensor that candle allocates carry events.
struct CopyStream {
    raw: sys::CUstream,
    compute: Arc<CudaStream>,
    /// Signals the end of the last copy.
    copied: CudaEvent,
    /// Signals the end of the last kernel that reads the masks.
    read: CudaEvent,
}

// SAFETY: any thread may use a stream's handle, one at a time, with its context bound (`bind` does
// that).
#[allow(unsafe_code, reason = "a raw handle")]
unsafe impl Send for CopyStream {}

impl CopyStream {
    fn new(device: &CudaDevice) -> Result<Self> {
        let compute = device.cuda_stream();
        let context = compute.context();
        context.bind_to_thread().w()?;
        let raw = stream::create(stream::StreamKind::NonBlocking).w()?;
        let (copied, read) = (context.new_event(None), context.new_event(None));
        Ok(Self { raw, copied: copied.w()?, read: read.w()?, compute })
    }

    /// Blocks until the last queued copy has ended.
    fn wait_for_copy(&self) -> Result<()> {
        self.copied.synchronize().w()
    }

    /// Makes later work of the compute stream wait for the copies.
    fn arrive(&self) -> Result<()> {
        self.compute.wait(&self.copied).w()
    }

    /// Makes later copies wait for the work queued on the compute stream so far.
    fn used(&self) -> Result<()> {
        self.read.record(&self.compute).w()
    }

    /// Queues copies of ranges of `from` to the same ranges of `to`.
    fn copy(
        &self,
        from: &[u32],
        to: &mut CudaSlice<u32>,
        parts: impl Iterator<Item = std::ops::Range<usize>>,
    ) -> Result<()> {
        self.compute.context().bind_to_thread().w()?;
        let (begin, _written) = to.device_ptr_mut(&self.compute);
        // SAFETY: the stream and the events live as long as `self`. The ranges lie within both
        // buffers, which have equal length. `from` is pinned memory that `Upload` neither frees nor
        // writes before `wait_for_copy`. The copies wait for `read`, after which no kernel reads
        // `to`.
        #[allow(unsafe_code, reason = "copies on a stream of our own")]
        unsafe {
            stream::wait_event(
                self.raw,
                self.read.cu_event(),
                sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT,
            )
            .w()?;
            for part in parts {
                let at = begin + (part.start * size_of::<u32>()) as u64;
                memcpy_htod_async(at, &from[part], self.raw).w()?;
            }
            event::record(self.copied.cu_event(), self.raw).w()
        }
    }
}

impl Drop for CopyStream {
    fn drop(&mut self) {
        // A failure means that the context and its stream no longer exist.
        let _ = self.compute.context().bind_to_thread();
        // SAFETY: only this object owns the stream, and nothing uses it afterwards.
        #[allow(unsafe_code, reason = "a raw handle")]
        unsafe {
            let _ = stream::synchronize(self.raw);
            let _ = stream::destroy(self.raw);
        }
    }
}

/// A small list on the device, sent only when it changes.
struct Sent<T> {
    host: Vec<T>,
    device: CudaSlice<T>,
}

impl<T: DeviceRepr + PartialEq + Clone> Sent<T> {
    fn set(place: &mut Option<Self>, device: &CudaDevice, list: &[T]) -> Result<()> {
        if place.as_ref().is_none_or(|sent| sent.host != list) {
            *place = Some(Self { host: list.to_vec(), device: device.clone_htod(list)? });
        }
        Ok(())
    }
}

/// The device copy of a batch. Fields are dropped in this order: copies end before their buffers
/// are freed.
pub(crate) struct Upload {
    copies: CopyStream,
    device: CudaDevice,
    /// Pinned host memory with the layout of the device buffer.
    pinned: PinnedHostSlice<u32>,
    /// Device buffer: the index, then the masks.
    buffer: CudaSlice<u32>,
    /// Number of words before the first mask.
    index_room: usize,
    /// Per mask, its version on the device; shorter than the list of masks if some were never sent.
    mask_versions: Vec<u64>,
    index_version: u64,
    named: Option<Sent<u32>>,
    names_rows: bool,
    temperatures: Option<Sent<f32>>,
    /// A key and a counter per row, all 0 between launches.
    scratch: Option<(CudaSlice<u64>, CudaSlice<u32>, usize)>,
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upload")
            .field("device", &self.device)
            .field("words", &self.buffer.len())
            .finish_non_exhaustive()
    }
}

impl Upload {
    /// Returns the device copy of the batch and queues the upload of changes.
    pub(crate) fn of<'u>(
        held: &'u mut Option<Self>,
        device: &CudaDevice,
        masks: &MaskTable,
    ) -> Result<&'u mut Self> {
        let fits = |upload: &Self| {
            upload.device.id() == device.id()
                && masks.len() <= upload.index_room
                && upload.index_room + masks.words().len() <= upload.buffer.len()
        };
        if !held.as_ref().is_some_and(fits) {
            *held = None;
        }
        let upload = match held {
            Some(upload) => upload,
            None => held.insert(Self::new(device, masks)?),
        };
        upload.send(masks)?;
        Ok(upload)
    }

    /// Allocates buffers with 50 % spare capacity.
    fn new(device: &CudaDevice, masks: &MaskTable) -> Result<Self> {
        let index_room = (masks.len() + masks.len() / 2 + 8).next_multiple_of(4);
        let words = masks.words().len();
        let room = index_room + words + (words / 2).next_multiple_of(masks.row_words().max(1));
        let copies = CopyStream::new(device)?;
        let buffer = device.alloc_zeros::<u32>(room)?;
        // SAFETY: the memory is zeroed before it is read.
        #[allow(unsafe_code, reason = "cudarc hands out pinned memory as it is")]
        let mut pinned =
            unsafe { copies.compute.context().alloc_pinned_with_flags::<u32>(room, 0) }.w()?;
        pinned.as_mut_slice().w()?.fill(0);
        // The buffer exists once the compute stream has reached its allocation.
        copies.used()?;
        Ok(Self {
            copies,
            device: device.clone(),
            pinned,
            buffer,
            index_room,
            mask_versions: Vec::new(),
            index_version: 0,
            named: None,
            names_rows: false,
            temperatures: None,
            scratch: None,
        })
    }

    /// Queues copies of the index and of the masks that the device lacks; adjacent ranges are
    /// merged.
    fn send(&mut self, masks: &MaskTable) -> Result<()> {
        let parts = masks.changed_ranges(&self.mask_versions, self.index_version, self.index_room);
        if parts.is_empty() {
            return Ok(());
        }
        // After a failure, everything is sent again.
        self.mask_versions.clear();
        self.index_version = 0;
        self.copies.wait_for_copy()?;
        let pinned = self.pinned.as_mut_slice().w()?;
        for part in &parts {
            let index = part.start.min(self.index_room)..part.end.min(self.index_room);
            if !index.is_empty() {
                pinned[..masks.len()].copy_from_slice(masks.index());
            }
            let words = part.start.max(self.index_room)..part.end.max(self.index_room);
            if !words.is_empty() {
                let source =
                    &masks.words()[words.start - self.index_room..words.end - self.index_room];
                pinned[words].copy_from_slice(source);
            }
        }
        self.copies.copy(pinned, &mut self.buffer, parts.into_iter())?;
        self.mask_versions.extend_from_slice(masks.mask_versions());
        self.index_version = masks.index_version();
        Ok(())
    }

    pub(crate) fn set_rows(&mut self, rows: Option<&[u32]>) -> Result<()> {
        self.names_rows = rows.is_some();
        rows.map_or(Ok(()), |rows| Sent::set(&mut self.named, &self.device, rows))
    }

    pub(crate) fn set_temperatures(&mut self, temperatures: &[f32]) -> Result<()> {
        Sent::set(&mut self.temperatures, &self.device, temperatures)
    }

    pub(crate) fn reserve_scratch(&mut self, rows: usize) -> Result<()> {
        if self.scratch.as_ref().is_none_or(|&(_, _, room)| room < rows) {
            let room = rows.next_power_of_two();
            self.scratch =
                Some((self.device.alloc_zeros(room)?, self.device.alloc_zeros(room)?, room));
        }
        Ok(())
    }

    /// Makes later launches wait for the masks.
    pub(crate) fn arrive(&self) -> Result<()> {
        self.copies.arrive()
    }

    /// Records the launch of a kernel that reads the masks.
    pub(crate) fn used(&self) -> Result<()> {
        self.copies.used()
    }

    pub(crate) fn index(&self) -> CudaView<'_, u32> {
        self.buffer.slice(..self.index_room)
    }

    pub(crate) fn words(&self) -> CudaView<'_, u32> {
        self.buffer.slice(self.index_room..)
    }

    pub(crate) fn rows(&self) -> Option<&CudaSlice<u32>> {
        self.named.as_ref().filter(|_| self.names_rows).map(|sent| &sent.device)
    }

    pub(crate) fn scratch(&self) -> Option<(&CudaSlice<f32>, &CudaSlice<u64>, &CudaSlice<u32>)> {
        let (keys, done, _) = self.scratch.as_ref()?;
        Some((&self.temperatures.as_ref()?.device, keys, done))
    }
}
