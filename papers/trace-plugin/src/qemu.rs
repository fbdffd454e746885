//! The interface to the emulator: the only module with `unsafe` code.
//!
//! The module declares the used parts of version 1 of QEMU's plugin interface (`qemu-plugin.h`).
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io::{self, Write};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use oblivio_sim::recording::Access;

use crate::arguments::Arguments;
use crate::recorder::Recorder;

/// A translation block of the emulator: an opaque type.
type Block = c_void;
/// An instruction of a translation block: an opaque type.
type Instruction = c_void;

const NO_REGISTERS: c_int = 0;
const LOADS_AND_STORES: c_int = 3;
const ADD_U64: c_int = 0;

type OnTranslation = unsafe extern "C" fn(plugin: u64, block: *mut Block);
type OnAccess = extern "C" fn(cpu: c_uint, info: u32, address: u64, to_come: *mut c_void);
type OnEnd = extern "C" fn(plugin: u64, none: *mut c_void);

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(plugin: u64, call: OnTranslation);
    fn qemu_plugin_register_atexit_cb(plugin: u64, call: OnEnd, argument: *mut c_void);
    fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const Block, number: usize) -> *mut Instruction;
    fn qemu_plugin_register_vcpu_tb_exec_inline(
        block: *mut Block,
        operation: c_int,
        counter: *mut c_void,
        number: u64,
    );
    fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut Instruction,
        call: OnAccess,
        registers: c_int,
        kinds: c_int,
        argument: *mut c_void,
    );
    safe fn qemu_plugin_mem_is_store(info: u32) -> bool;
    safe fn qemu_plugin_mem_size_shift(info: u32) -> c_uint;
}

/// The version of the interface that this plugin uses.
// SAFETY: the emulator looks this name up, and reads one `int`.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
static qemu_plugin_version: c_int = 1;

/// The number of instructions of all blocks started so far. Translated code adds to it without a
/// lock, so concurrent threads may lose a few additions.
static INSTRUCTIONS: AtomicU64 = AtomicU64::new(0);

static RECORDER: OnceLock<Mutex<Recorder>> = OnceLock::new();

/// Installs the plugin, after the emulator has loaded it. A result other than 0 ends the emulator.
///
/// # Safety
/// `arguments` points to `count` C strings.
// SAFETY: the emulator looks this name up, and calls it as its header declares it.
#[unsafe(no_mangle)]
unsafe extern "C" fn qemu_plugin_install(
    plugin: u64,
    _info: *const c_void,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    let words = (0..usize::try_from(count).unwrap_or(0)).map(|number| {
        // SAFETY: `number` is below `count`; the strings live until this function returns.
        unsafe { CStr::from_ptr(*arguments.add(number)) }.to_str()
    });
    let recorder = words
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| "an argument is not UTF-8".to_owned())
        .and_then(|words| Arguments::parse(words.into_iter()))
        .and_then(Recorder::start);
    match recorder {
        Ok(recorder) => drop(RECORDER.set(Mutex::new(recorder))),
        Err(message) => {
            // The emulator has no other way to report the reason. If this fails too, only the exit
            // code remains.
            let _ = writeln!(io::stderr(), "trace plugin: {message}");
            return 1;
        }
    }
    // SAFETY: `plugin` is the number that the emulator just passed in. Both functions have the
    // types with which it calls them, and live as long as the library, which is never unloaded.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(plugin, on_translation);
        qemu_plugin_register_atexit_cb(plugin, on_end, ptr::null_mut());
    }
    0
}

/// Inserts code into `block` that counts its instructions and reports its loads and stores.
///
/// # Safety
/// `block` is a block that the emulator is translating.
unsafe extern "C" fn on_translation(_plugin: u64, block: *mut Block) {
    // SAFETY: `block` is valid during this call, and its instructions are numbered from 0. The
    // counter is a static 64-bit atomic, so it may be written through a shared reference.
    // `on_access` has the type with which it is called. Its argument is a number that is never
    // dereferenced.
    unsafe {
        let count = qemu_plugin_tb_n_insns(block);
        let counter = INSTRUCTIONS.as_ptr().cast();
        qemu_plugin_register_vcpu_tb_exec_inline(block, ADD_U64, counter, count as u64);
        for number in 0..count {
            let instruction = qemu_plugin_tb_get_insn(block, number);
            let to_come = ptr::without_provenance_mut(count - 1 - number);
            qemu_plugin_register_vcpu_mem_cb(
                instruction,
                on_access,
                NO_REGISTERS,
                LOADS_AND_STORES,
                to_come,
            );
        }
    }
}

/// Records an access of an instruction. `to_come` is the number of instructions that follow it in
/// its block. The counter already includes them.
extern "C" fn on_access(_cpu: c_uint, info: u32, address: u64, to_come: *mut c_void) {
    let instruction = INSTRUCTIONS.load(Ordering::Relaxed) - to_come.addr() as u64;
    let bytes = 1 << qemu_plugin_mem_size_shift(info);
    let is_store = qemu_plugin_mem_is_store(info);
    let access = Access { instruction, address, bytes, is_store };
    with_recorder(|recorder| recorder.access(access));
}

extern "C" fn on_end(_plugin: u64, _none: *mut c_void) {
    with_recorder(|recorder| recorder.end(INSTRUCTIONS.load(Ordering::Relaxed)));
}

/// Calls `act` with the recorder, which all threads of the program share.
fn with_recorder(act: impl FnOnce(&mut Recorder)) {
    if let Some(recorder) = RECORDER.get() {
        act(&mut recorder.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
