//! Memory of this process: an allocator that can count, in processes that ask it to, and what the system says.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use anyhow::{Context, Result};

static COUNTS: AtomicBool = AtomicBool::new(false);
static ALLOCATED_BYTES: AtomicI64 = AtomicI64::new(0);

/// The system's allocator, and a counter beside it. While it does not count, it costs one read of a flag.
pub(crate) struct Counting;

pub(crate) fn start() {
    COUNTS.store(true, Ordering::Relaxed);
}

/// How many bytes were allocated and not freed since counting started.
#[expect(clippy::cast_precision_loss, reason = "bytes are read to three digits")]
pub(crate) fn allocated_bytes() -> f64 {
    ALLOCATED_BYTES.load(Ordering::Relaxed) as f64
}

/// Resident bytes, and those of them that are not backed by files.
pub(crate) fn resident_bytes() -> Result<[f64; 2]> {
    let status = std::fs::read_to_string("/proc/self/status").context("memory is read on Linux only")?;
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_suffix("kB"));
        let line = line.with_context(|| format!("the status has no {name}"))?;
        anyhow::Ok(line.trim().parse::<f64>()? * 1_024.0)
    };
    Ok([bytes("VmRSS:")?, bytes("RssAnon:")?])
}

fn count(bytes: usize, sign: i64) {
    if COUNTS.load(Ordering::Relaxed) {
        ALLOCATED_BYTES.fetch_add(sign * i64::try_from(bytes).unwrap_or(0), Ordering::Relaxed);
    }
}

#[expect(unsafe_code, reason = "an allocator cannot be written without; every call is passed on unchanged")]
// SAFETY: every method passes its arguments on to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(layout.size(), -1);
        count(bytes, 1);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}
