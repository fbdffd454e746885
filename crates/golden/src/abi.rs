//! The C interface, which `hw/dv/golden.h` declares. Only this module has `unsafe` code.
//!
//! A call returns 0 on success, 1 for a mismatch, 2 for misuse, and 3 after a panic. After a panic
//! the model can no longer be used. [`golden_error`] returns the text of the last error. A beat is
//! one transfer on the bus. It is passed as 32 words of 32 bits, whatever the width of the bus,
//! least significant word first: byte `i` of a beat is bits `8 i + 7` to `8 i`, as in the RTL.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use crate::commands::{Command, Mix, Operation};
use crate::expected::ResponseBeat;
use crate::golden::Golden;
use crate::image::Image;
use crate::params::{Params, SchemeKind};
use crate::{Problem, misuse};

const OK: c_int = 0;
const MISMATCH: c_int = 1;
const MISUSE: c_int = 2;
const PANIC: c_int = 3;

/// Number of words of a beat on the widest bus.
const BEAT_WORDS: usize = 32;
/// Number of words of a strobe on the widest bus, with one bit per byte of the beat.
const STROBE_WORDS: usize = 4;

/// A model, and the data that it exchanges with its caller over several calls.
pub struct Handle {
    golden: Golden,
    /// The image that the caller fills.
    foreign: Image,
    /// The model's memory, as of the last [`golden_image_begin`].
    own: Image,
    own_addresses: Vec<u64>,
    error: CString,
    is_dead: bool,
}

thread_local! {
    /// The reason why the last creation failed.
    static CREATION_ERROR: RefCell<CString> = RefCell::default();
}

fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "?")).unwrap_or_default()
}

/// Runs `f` on the model. Stores the text of an error for [`golden_error`], and returns the code of
/// the result.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null.
unsafe fn call(handle: *mut Handle, f: impl FnOnce(&mut Handle) -> Result<(), Problem>) -> c_int {
    // SAFETY: the caller passes a live handle or null, and uses it from one thread.
    let Some(handle) = (unsafe { handle.as_mut() }) else {
        return MISUSE;
    };
    if handle.is_dead {
        return PANIC;
    }
    match catch_unwind(AssertUnwindSafe(|| f(handle))) {
        Ok(Ok(())) => OK,
        Ok(Err(problem)) => {
            handle.error = c_string(&problem.to_string());
            match problem {
                Problem::Mismatch(_) => MISMATCH,
                Problem::Misuse(_) => MISUSE,
            }
        }
        Err(_) => {
            handle.is_dead = true;
            handle.error = c_string("the golden model panicked and can no longer be used");
            PANIC
        }
    }
}

/// Converts a beat from words to bytes.
///
/// # Safety
/// `data` points to [`BEAT_WORDS`] words, or is null.
unsafe fn beat_bytes(data: *const u32) -> Result<[u8; 4 * BEAT_WORDS], Problem> {
    // SAFETY: the caller upholds this function's contract.
    let words = unsafe { data.cast::<[u32; BEAT_WORDS]>().as_ref() };
    let words = words.ok_or_else(|| misuse("data is null"))?;
    let mut bytes = [0; 4 * BEAT_WORDS];
    for (to, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *to = word.to_le_bytes();
    }
    Ok(bytes)
}

/// Copies a beat to the caller, padded with zeros to the widest bus.
///
/// # Safety
/// `to` points to [`BEAT_WORDS`] words, or is null.
unsafe fn put_beat(to: *mut u32, beat: &[u8]) -> Result<(), Problem> {
    // SAFETY: the caller upholds this function's contract.
    let words = unsafe { to.cast::<[u32; BEAT_WORDS]>().as_mut() };
    let words = words.ok_or_else(|| misuse("data is null"))?;
    words.fill(0);
    for (word, bytes) in words.iter_mut().zip(beat.as_chunks().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    Ok(())
}

/// Copies a value to the caller.
///
/// # Safety
/// `to` points to a `T`, or is null.
unsafe fn put<T>(to: *mut T, value: T) -> Result<(), Problem> {
    // SAFETY: the caller upholds this function's contract.
    let to = unsafe { to.as_mut() };
    *to.ok_or_else(|| misuse("a result's pointer is null"))? = value;
    Ok(())
}

fn number<T: TryFrom<i64>>(name: &str, value: impl Into<i64>) -> Result<T, Problem> {
    let value = value.into();
    T::try_from(value).map_err(|_| misuse(format!("{name} cannot be {value}")))
}

/// Creates a model. On failure, returns null, and `golden_error(NULL)` has the text.
#[unsafe(no_mangle)]
pub extern "C" fn golden_create(
    scheme: c_int,
    leaf_level: c_int,
    slots: c_int,
    stash_blocks_max: c_int,
    evict_period: c_int,
    capacity: u64,
    block_bytes: c_int,
    bus_bits: c_int,
    subtree_levels: c_int,
    seed: u64,
) -> *mut Handle {
    let create = || -> Result<Handle, Problem> {
        let scheme = match scheme {
            0 => SchemeKind::Path,
            1 => SchemeKind::Raw,
            _ => return Err(misuse(format!("scheme {scheme} is neither 0 (Path) nor 1 (RAW)"))),
        };
        let golden = Golden::new(&Params {
            scheme,
            leaf_level: number("leaf_level", leaf_level)?,
            slots: number("slots", slots)?,
            stash_blocks_max: number("stash_blocks_max", stash_blocks_max)?,
            evict_period: number("evict_period", evict_period)?,
            capacity,
            block_bytes: number("block_bytes", block_bytes)?,
            bus_bits: number("bus_bits", bus_bits)?,
            subtree_levels: number("subtree_levels", subtree_levels)?,
            seed,
        })?;
        Ok(Handle {
            foreign: golden.empty_image(),
            own: golden.empty_image(),
            own_addresses: Vec::new(),
            golden,
            error: CString::default(),
            is_dead: false,
        })
    };
    let problem = match catch_unwind(create) {
        Ok(Ok(handle)) => return Box::into_raw(Box::new(handle)),
        Ok(Err(problem)) => problem,
        Err(_) => misuse("the golden model panicked"),
    };
    CREATION_ERROR.with_borrow_mut(|error| *error = c_string(&problem.to_string()));
    ptr::null_mut()
}

/// Frees a model. Does nothing if `handle` is null.
///
/// # Safety
/// `handle` comes from [`golden_create`] and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_destroy(handle: *mut Handle) {
    if !handle.is_null() {
        // SAFETY: the handle came from `Box::into_raw` and is not used again.
        drop(unsafe { Box::from_raw(handle) });
    }
}

/// Returns the text of the model's last error, valid until the model's next call. If `handle` is
/// null, returns the text of the last failed creation on this thread.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_error(handle: *mut Handle) -> *const c_char {
    // SAFETY: the caller upholds this function's contract.
    match unsafe { handle.as_ref() } {
        Some(handle) => handle.error.as_ptr(),
        None => CREATION_ERROR.with_borrow(|error| error.as_ptr()),
    }
}

/// Sets the weights of random commands, and the percentage of commands that map to a crowded leaf.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_set_mix(
    handle: *mut Handle,
    reads: c_int,
    writes: c_int,
    removes: c_int,
    appends: c_int,
    crowding: c_int,
) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        call(handle, |it| {
            let weight = |value| number("a weight", value);
            it.golden.set_mix(Mix {
                weights: [weight(reads)?, weight(writes)?, weight(removes)?, weight(appends)?],
                crowding: number("crowding", crowding)?,
            })
        })
    }
}

/// Copies the tree's key as 128 bits in four words, the least significant first. Byte 0 of the key
/// is bits 127 to 120, as at the start port.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null. `key` points to four words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_tree_key(handle: *mut Handle, key: *mut u32) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        call(handle, |it| {
            let bits = u128::from_be_bytes(*it.golden.tree_key());
            put(key.cast::<[u32; 4]>(), [0, 1, 2, 3].map(|word| (bits >> (32 * word)) as u32))
        })
    }
}

/// Runs at least `commands` random commands before the controller starts, which fill the memory:
/// see [`Golden::warm_up`].
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_warm_up(handle: *mut Handle, commands: u64) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe { call(handle, |it| it.golden.warm_up(commands)) }
}

/// Copies the numbers of operations and of EO (eviction-only) accesses so far in the tree.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null. The other pointers point to numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_start_counts(
    handle: *mut Handle,
    operations: *mut u64,
    evictions: *mut u64,
) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        call(handle, |it| {
            let counts = it.golden.start_counts();
            put(operations, counts.0)?;
            put(evictions, counts.1)
        })
    }
}

/// Draws and runs the next random command, and copies its fields except the data.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null. The other pointers point to their types.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_next(
    handle: *mut Handle,
    operation: *mut c_int,
    address: *mut u64,
    old_leaf: *mut u64,
    new_leaf: *mut u64,
) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        call(handle, |it| {
            let command = it.golden.next_command()?;
            put(operation, command.operation as c_int)?;
            put(address, command.address)?;
            put(old_leaf, command.old_leaf)?;
            put(new_leaf, command.new_leaf)
        })
    }
}

/// Runs a given command, and copies the leaf of the path that it reads. If `data` is null, the
/// model draws the data.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null. `data` points to the bytes of a block or is
/// null, `old_leaf` to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_command(
    handle: *mut Handle,
    operation: c_int,
    address: u64,
    new_leaf: u64,
    data: *const u8,
    old_leaf: *mut u64,
) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        call(handle, |it| {
            let operation = Operation::from_number(operation)
                .ok_or_else(|| misuse(format!("operation {operation} is not one of 0 to 3")))?;
            let bytes = it.golden.params().block_bytes;
            let data = (!data.is_null()).then(|| std::slice::from_raw_parts(data, bytes).to_vec());
            let command = it.golden.command(operation, address, new_leaf, data.as_deref())?;
            put(old_leaf, command.old_leaf)
        })
    }
}

/// Maps an absent block to a leaf.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_set_leaf(handle: *mut Handle, address: u64, leaf: u64) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe { call(handle, |it| it.golden.set_leaf(address, leaf)) }
}

/// Copies a beat of the latest command's data.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null. `data` points to 32 words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_data_beat(
    handle: *mut Handle,
    beat: c_int,
    data: *mut u32,
) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        call(handle, |it| {
            let beat_bytes = it.golden.params().beat_bytes();
            let Command { data: block, .. } =
                it.golden.latest().ok_or_else(|| misuse("no command has run yet"))?;
            let beat: usize = number("beat", beat)?;
            let bytes = block.chunks(beat_bytes).nth(beat);
            put_beat(data, bytes.ok_or_else(|| misuse(format!("a block has no beat {beat}")))?)
        })
    }
}

/// Checks a memory command of the controller.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_check_memory_command(
    handle: *mut Handle,
    is_write: c_int,
    address: u64,
) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe { call(handle, |it| it.golden.check_memory_command(is_write != 0, address)) }
}

/// Checks a write beat of the controller.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null. `data` points to 32 words, `strobe` to 4.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_check_write_beat(
    handle: *mut Handle,
    data: *const u32,
    strobe: *const u32,
) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        call(handle, |it| {
            let words = strobe.cast::<[u32; STROBE_WORDS]>().as_ref();
            let words = words.ok_or_else(|| misuse("strobe is null"))?;
            let strobe = words.iter().rev().fold(0, |bits, word| bits << 32 | u128::from(*word));
            it.golden.check_write_beat(&beat_bytes(data)?, strobe)
        })
    }
}

/// Checks the next beat that memory returns.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null. `data` points to 32 words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_check_read_beat(handle: *mut Handle, data: *const u32) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe { call(handle, |it| it.golden.check_read_beat(&beat_bytes(data)?)) }
}

/// Checks a response beat of the controller.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null. `data` points to 32 words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_check_response(
    handle: *mut Handle,
    data: *const u32,
    is_last: c_int,
    status: c_int,
    is_found: c_int,
) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        call(handle, |it| {
            it.golden.check_response(ResponseBeat {
                data: &beat_bytes(data)?,
                is_last: is_last != 0,
                status: status as u32,
                is_found: is_found != 0,
            })
        })
    }
}

/// Copies the next leaf for the entropy port.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null. `leaf` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_next_entropy(handle: *mut Handle, leaf: *mut u64) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe { call(handle, |it| put(leaf, it.golden.next_entropy())) }
}

/// Copies the number of blocks in the stash after a command.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null. `blocks` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_stash_blocks(
    handle: *mut Handle,
    command: u64,
    blocks: *mut c_int,
) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe { call(handle, |it| put(blocks, it.golden.state_after(command)?.stash.len() as c_int)) }
}

/// Checks a block of the stash after a command.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_check_stash(
    handle: *mut Handle,
    command: u64,
    index: c_int,
    address: u64,
    leaf: u64,
) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        call(handle, |it| it.golden.check_stash(command, number("index", index)?, address, leaf))
    }
}

/// Copies the eviction counters after a command.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null. The other pointers point to numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_evictions(
    handle: *mut Handle,
    command: u64,
    evictions: *mut u64,
    accesses_since: *mut c_int,
) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        call(handle, |it| {
            let state = it.golden.state_after(command)?;
            put(evictions, state.evictions)?;
            put(accesses_since, state.accesses_since_eviction as c_int)
        })
    }
}

/// Copies the number of background evictions so far.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null. `count` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_background_evictions(
    handle: *mut Handle,
    count: *mut u64,
) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe { call(handle, |it| put(count, it.golden.background_evictions())) }
}

/// Checks that the controller has given all expected output, and has taken at least as many leaves
/// from the entropy port as the engine has used.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_check_all_done(handle: *mut Handle) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe { call(handle, |it| it.golden.check_is_done()) }
}

/// Adds a beat of the controller's memory to the image to be checked.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null. `data` points to 32 words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_image_put(
    handle: *mut Handle,
    address: u64,
    data: *const u32,
) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        call(handle, |it| {
            if it.foreign.layout().beat_at(address).is_none() {
                return Err(Problem::Mismatch(format!(
                    "address {address:#x} of the image is past the tree"
                )));
            }
            let bytes = beat_bytes(data)?;
            it.foreign.put_beat(address, &bytes[..it.golden.params().beat_bytes()]);
            Ok(())
        })
    }
}

/// Compares the image from [`golden_image_put`] with the model's memory, and has a fresh engine
/// read the image. Then clears the image.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_check_image(handle: *mut Handle) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        call(handle, |it| {
            let empty = it.golden.empty_image();
            let foreign = std::mem::replace(&mut it.foreign, empty);
            it.golden.check_image(&foreign)
        })
    }
}

/// Copies the model's memory for [`golden_image_beat`], and stores in `beats` how many beats its
/// written buckets have.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null. `beats` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_image_begin(handle: *mut Handle, beats: *mut u64) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        call(handle, |it| {
            it.own = it.golden.image();
            it.own_addresses = it.own.addresses();
            put(beats, it.own_addresses.len() as u64)
        })
    }
}

/// Copies a beat of the memory that [`golden_image_begin`] copied. Beats are in ascending order of
/// addresses.
///
/// # Safety
/// `handle` comes from [`golden_create`], or is null. `address` points to a number, `data` to 32
/// words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn golden_image_beat(
    handle: *mut Handle,
    beat: u64,
    address: *mut u64,
    data: *mut u32,
) -> c_int {
    // SAFETY: the caller upholds this function's contract.
    unsafe {
        call(handle, |it| {
            let found = it.own_addresses.get(beat as usize).copied();
            let found = found.ok_or_else(|| misuse(format!("the image has no beat {beat}")))?;
            put(address, found)?;
            put_beat(data, it.own.beat(found).unwrap_or_default())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn create(leaf_level: c_int) -> *mut Handle {
        golden_create(1, leaf_level, 4, 10, 3, 20, 64, 512, 4, 7)
    }

    fn error(handle: *mut Handle) -> String {
        // SAFETY: the text lives until the next call.
        unsafe { CStr::from_ptr(golden_error(handle)) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_creation_that_fails_says_why() {
        assert!(create(-1).is_null());
        assert!(error(ptr::null_mut()).contains("leaf_level"));
        assert!(create(99).is_null());
        assert!(error(ptr::null_mut()).contains("99"));
    }

    #[test]
    fn bad_arguments_are_refused_and_the_model_stays_usable() {
        let handle = create(3);
        let mut leaf = 0;
        let mut beat = [0; BEAT_WORDS];
        // SAFETY: the handle is live, and each pointer is null or points to what the call expects.
        unsafe {
            assert_eq!(golden_next(ptr::null_mut(), ptr::null_mut(), &mut leaf, &mut 0, &mut 0), 2);
            assert_eq!(golden_command(handle, 4, 0, 0, ptr::null(), &mut leaf), MISUSE);
            assert_eq!(golden_command(handle, 0, 20, 0, ptr::null(), &mut leaf), MISUSE);
            assert_eq!(golden_command(handle, 0, 0, 8, ptr::null(), &mut leaf), MISUSE);
            assert!(error(handle).contains("leaf 8 is not below 2^3"), "{}", error(handle));
            assert_eq!(golden_data_beat(handle, 0, beat.as_mut_ptr()), MISUSE);
            assert_eq!(golden_check_write_beat(handle, ptr::null(), ptr::null()), MISUSE);
            assert_eq!(golden_check_memory_command(handle, 0, u64::MAX), MISMATCH);
            assert_eq!(golden_image_put(handle, u64::MAX, beat.as_ptr()), MISMATCH);
            assert_eq!(golden_stash_blocks(handle, 0, &mut 0), MISUSE);
            assert_eq!(golden_set_mix(handle, 0, 0, 0, 0, 0), MISUSE);
            assert_eq!(golden_set_mix(handle, -1, 0, 0, 0, 0), MISUSE);
            assert_eq!(golden_command(handle, 1, 0, 5, ptr::null(), &mut leaf), OK);
            assert_eq!(golden_check_all_done(handle), MISMATCH);
            assert!(error(handle).contains("memory commands"), "{}", error(handle));
            assert_eq!(golden_warm_up(handle, 1), MISUSE);
            golden_destroy(handle);
        }
    }

    #[test]
    fn after_a_panic_the_model_is_closed() {
        let handle = create(3);
        // SAFETY: the handle is live.
        unsafe {
            assert_eq!(call(handle, |_| panic!("planted")), PANIC);
            assert_eq!(golden_check_all_done(handle), PANIC);
            golden_destroy(handle);
        }
    }
}
