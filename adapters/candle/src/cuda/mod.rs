//! CUDA kernel launches. The upload of masks is in `upload`.

pub(crate) mod upload;

use candle_core::cuda_backend::cudarc::driver::{CudaSlice, LaunchConfig, PushKernelArg};
use candle_core::cuda_backend::{CudaDType, CudaDevice, CudaStorageSlice, WrapErr};
use candle_core::{CudaStorage, Result, Shape};
use half::{bf16, f16};

use self::upload::Upload;
use crate::batch::MaskBatch;
use crate::error::ApplyError;
use crate::geometry::Geometry;
use crate::logit::Logit;

/// `cuda/bitmask.cu`, compiled by `cuda/build-ptx`; `just cuda-check` verifies it.
const PTX: &str = include_str!("../../cuda/bitmask.ptx");
const MODULE: &str = "louver-bitmask";

/// Threads of a block.
const THREADS: usize = 256;
/// Number of blocks that fill a device, so that finer splitting is unnecessary.
const ENOUGH_BLOCKS: usize = 2048;
/// The device's limit on the second grid dimension.
const MAX_ROWS: usize = 65_535;
/// Limit that keeps a thread's next id from overflowing.
const MAX_IDS: usize = 1 << 31;

/// Checks the kernels' size limits.
pub(crate) fn check(geometry: &Geometry, masks: &MaskBatch) -> std::result::Result<(), ApplyError> {
    let bounds = [
        ("rows", masks.len(), MAX_ROWS),
        ("ids", geometry.ids, MAX_IDS),
        ("ids of a mask", masks.width(), MAX_IDS),
        ("words of masks", masks.table().words().len(), u32::MAX as usize),
    ];
    match bounds.into_iter().find(|&(_, got, most)| got > most) {
        Some((what, got, _)) => Err(ApplyError::Large { what, got }),
        None => Ok(()),
    }
}

/// Starts the upload of changes.
pub(crate) fn upload(
    device: &CudaDevice,
    masks: &MaskBatch,
) -> std::result::Result<(), ApplyError> {
    let mut held = masks.device.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    Upload::of(&mut held, device, masks.table())?;
    Ok(())
}

/// Applies the masks with one launch.
pub(crate) fn apply(
    storage: &mut CudaStorage,
    geometry: &Geometry,
    masks: &MaskBatch,
    rows: Option<&[u32]>,
) -> Result<()> {
    let device = storage.device.clone();
    match &mut storage.slice {
        CudaStorageSlice::F32(logits) => {
            apply_to::<f32>(&device, logits, "louver_apply_f32", geometry, masks, rows)
        }
        CudaStorageSlice::F16(logits) => {
            apply_to::<f16>(&device, logits, "louver_apply_f16", geometry, masks, rows)
        }
        CudaStorageSlice::BF16(logits) => {
            apply_to::<bf16>(&device, logits, "louver_apply_bf16", geometry, masks, rows)
        }
        _ => candle_core::bail!("logits are f32, f16 or bf16"),
    }
}

/// Number of 16-byte vectors per row.
fn vectors<T>(ids: usize) -> usize {
    ids * size_of::<T>() / 16
}

fn grid(blocks_of_row: usize, rows: usize) -> LaunchConfig {
    LaunchConfig {
        grid_dim: (blocks_of_row.max(1) as u32, rows as u32, 1),
        block_dim: (THREADS as u32, 1, 1),
        shared_mem_bytes: 0,
    }
}

fn apply_to<T: Logit + CudaDType>(
    device: &CudaDevice,
    logits: &mut CudaSlice<T>,
    name: &str,
    geometry: &Geometry,
    masks: &MaskBatch,
    rows: Option<&[u32]>,
) -> Result<()> {
    let mut held = masks.device.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let upload = Upload::of(&mut held, device, masks.table())?;
    upload.set_rows(rows)?;
    upload.arrive()?;
    // With enough blocks, each thread processes four vectors.
    let blocks = vectors::<T>(geometry.ids).div_ceil(THREADS);
    let each = if blocks * masks.len() >= 4 * ENOUGH_BLOCKS { 4 } else { 1 };
    let (stride, ids) = (geometry.stride as u64, geometry.ids as u32);
    let (row_words, width) = (masks.row_words() as u32, masks.width() as u32);
    let function = device.get_or_load_custom_func(name, MODULE, PTX)?;
    let mut logits = logits.slice_mut(geometry.offset..);
    let (index, words) = (upload.index(), upload.words());
    let null = 0u64;
    let mut launch = function.builder();
    launch.arg(&mut logits).arg(&stride).arg(&ids).arg(&index);
    match upload.rows() {
        Some(rows) => launch.arg(rows),
        None => launch.arg(&null),
    };
    launch.arg(&words).arg(&row_words).arg(&width);
    // SAFETY: the arguments match the kernel's in number and type. It writes only logits of rows
    // that `Geometry::check` found within the tensor, and reads the masks that `Upload` laid out
    // for this batch.
    #[allow(unsafe_code, reason = "a kernel launch")]
    unsafe { launch.launch(grid(blocks.div_ceil(each), masks.len())) }.w()?;
    drop(launch);
    upload.used()
}

/// Selects tokens with one launch; returns `[2, rows]` u32.
pub(crate) fn greedy(
    storage: &CudaStorage,
    geometry: &Geometry,
    masks: &MaskBatch,
    rows: Option<&[u32]>,
    temperatures: &[f32],
) -> Result<(CudaStorage, Shape)> {
    let device = &storage.device;
    let launch = GreedyLaunch { device, geometry, masks, rows, temperatures };
    let out = match &storage.slice {
        CudaStorageSlice::F32(logits) => launch.run::<f32>(logits, "louver_greedy_f32"),
        CudaStorageSlice::F16(logits) => launch.run::<f16>(logits, "louver_greedy_f16"),
        CudaStorageSlice::BF16(logits) => launch.run::<bf16>(logits, "louver_greedy_bf16"),
        _ => candle_core::bail!("logits are f32, f16 or bf16"),
    }?;
    Ok((CudaStorage::wrap_cuda_slice(out, device.clone()), Shape::from((2, masks.len()))))
}

/// The arguments of a launch of the greedy kernel.
struct GreedyLaunch<'a> {
    device: &'a CudaDevice,
    geometry: &'a Geometry,
    masks: &'a MaskBatch,
    rows: Option<&'a [u32]>,
    temperatures: &'a [f32],
}

impl GreedyLaunch<'_> {
    fn run<T: Logit + CudaDType>(
        &self,
        logits: &CudaSlice<T>,
        name: &str,
    ) -> Result<CudaSlice<u32>> {
        let Self { device, geometry, masks, .. } = self;
        let mut held = masks.device.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let upload = Upload::of(&mut held, device, masks.table())?;
        upload.set_rows(self.rows)?;
        upload.set_temperatures(self.temperatures)?;
        upload.reserve_scratch(masks.len())?;
        upload.arrive()?;
        // Every block ends with an atomic operation, so a row uses no more blocks than fill the
        // device.
        let blocks =
            vectors::<T>(geometry.ids).div_ceil(THREADS).min(ENOUGH_BLOCKS.div_ceil(masks.len()));
        let (stride, ids) = (geometry.stride as u64, geometry.ids as u32);
        let (row_words, width) = (masks.row_words() as u32, masks.width() as u32);
        let each = u32::from(self.temperatures.len() > 1);
        let mut out = device.alloc_zeros::<u32>(2 * masks.len())?;
        let function = device.get_or_load_custom_func(name, MODULE, PTX)?;
        let logits = logits.slice(geometry.offset..);
        let (index, words) = (upload.index(), upload.words());
        let null = 0u64;
        let Some((temperatures, keys, done)) = upload.scratch() else {
            candle_core::bail!("temperatures and scratch were not made");
        };
        let mut launch = function.builder();
        launch.arg(&logits).arg(&stride).arg(&ids).arg(&index);
        match upload.rows() {
            Some(rows) => launch.arg(rows),
            None => launch.arg(&null),
        };
        launch.arg(&words).arg(&row_words).arg(&width);
        launch.arg(temperatures).arg(&each).arg(keys).arg(done).arg(&mut out);
        // SAFETY: the arguments match the kernel's in number and type. It reads rows that
        // `Geometry::check` found within the tensor, and masks that `Upload` laid out for this
        // batch. It writes two words per row to `out`, which has that many, and to the scratch
        // memory, which has one entry per row and is used by this stream only.
        #[allow(unsafe_code, reason = "a kernel launch")]
        unsafe { launch.launch(grid(blocks, masks.len())) }.w()?;
        drop(launch);
        upload.used()?;
        Ok(out)
    }
}
