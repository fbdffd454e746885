//! Command-line arguments.

mod background;
mod bench;
mod copy;
mod demo;
mod key;
mod models;
mod opening;
mod plan;
mod removal;
mod running;
mod serving;
mod shares;
mod values;
mod view;
mod volume;
mod watching;

pub(crate) use background::*;
pub(crate) use bench::*;
pub(crate) use copy::*;
pub(crate) use demo::*;
pub(crate) use key::*;
pub use models::*;
pub(crate) use opening::*;
pub(crate) use plan::*;
pub(crate) use removal::*;
pub(crate) use running::*;
pub(crate) use serving::*;
pub(crate) use shares::*;
pub(crate) use view::*;
pub(crate) use volume::*;
pub(crate) use watching::*;

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand};

use crate::help;

const EXIT_CODES: &str = "\
Exit codes:
  0   success
  1   a disk, the system or the engine failed
  2   invalid command line
  3   unusable input: missing, empty, too large, or of the wrong kind
  4   the output cannot be written
  5   the data read back differs from the data written
  6   wrong key: it opens no key slot, or a server does not admit its owner
  7   tampered or damaged: storage does not hold what was written
  8   rolled back: storage is older than the client knows
  9   locked: another process uses the volume
  10  no space left
  11  the client's directory is missing, damaged, or of another volume
  12  the client's directory is older than storage
  13  written by another version of this program, usually a newer one
  14  the volume was not closed and needs recovery (`info --require-clean` only)
  15  storage does not answer

If a command that was run by this program (`serve nbd --run`, `view record --run`) fails, this \
program returns its exit code; 128 plus the number of the signal if a signal ended it.";

/// Oblivious storage: a disk on untrusted storage that does not reveal which blocks you use.
#[derive(Parser)]
#[command(name = "oblivio", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The command line, with its help texts.
pub(crate) fn command() -> clap::Command {
    help::flowing(Cli::command())
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a real file system on a volume, kill its server, recover, and compare both sides.
    ///
    /// Creates a volume and an ext4 with the files of a folder, writes and reads it as a network
    /// block device, and kills the server in the middle of that. As root, it also kills the server
    /// of a mounted file system. Then it recovers, compares every file, and shows the owner's
    /// requests beside what storage saw.
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoArgs),
    /// Show what a volume would cost, before anything is created.
    #[command(after_help = plan_examples())]
    Plan(PlanArgs),
    /// Create a volume.
    #[command(after_help = "Examples:
  oblivio create disk.obl --size 1G
  oblivio create disk.obl --size 64M --key-file disk.key --state ./disk.state")]
    Create(CreateArgs),
    /// Show the parameters of a volume.
    Info(InfoArgs),
    /// Read a whole volume, and check that every block is the one written last.
    ///
    /// Reads every bucket that was ever written. Every access writes buckets, reads included, so
    /// checking a disk of 1 TiB that has been in use takes hours, however little it holds.
    ///
    /// Opening a volume writes to it and to the client's directory, and `check` is no exception. So
    /// check the volume and not a copy of it: the client's directory would continue with the copy,
    /// and refuse the volume as rolled back (exit code 8). `oblivio rescue` writes to neither.
    Check(CheckArgs),
    /// Copy a volume to another location, without opening it.
    ///
    /// Needs neither a key nor the client's directory. No other process may have the volume open.
    /// The copy is read back and compared. The client's directory of the volume also opens the
    /// copy; after that, it refuses the original as older (exit code 8). So use `copy` to move a
    /// volume, not to keep a backup.
    #[command(after_help = COPY_EXAMPLES)]
    Copy(CopyArgs),
    /// Remove a volume, or the remains of an interrupted creation.
    ///
    /// Needs neither a key nor the client's directory. No other process may have the volume open.
    #[command(after_help = REMOVE_EXAMPLES)]
    Remove(RemoveArgs),
    /// Save what is left of a damaged volume as a plain disk image.
    ///
    /// Takes every block that still authenticates, and reports which blocks are lost and which may
    /// be older than the latest. Reads all of storage, used or not, and changes nothing: the store
    /// and the client's directory may be on read-only media. Exit code 7 if anything is lost or
    /// damaged, including copies of the header and of the superblock.
    #[command(after_help = RESCUE_EXAMPLES)]
    Rescue(RescueArgs),
    /// Serve a volume to other programs, or storage to other machines.
    Serve {
        #[command(subcommand)]
        command: ServeCommand,
    },
    /// Work with volumes on share servers.
    Shares {
        #[command(subcommand)]
        command: SharesCommand,
    },
    /// Mount a volume: as a file system (made if the disk is empty), or as a raw disk.
    #[command(after_help = "Examples:
  oblivio mount disk.obl /mnt          (as root)
  oblivio mount disk.obl /mnt --background
  oblivio mount disk.obl ./dir --raw

A file system is made if no block of the disk holds data.

The command runs until the directory is unmounted: by oblivio umount, by umount, or by a signal
(Ctrl-C, SIGTERM, a terminal that closes). A directory in use stays mounted until it is free,
even after several signals. With --background, the command returns once the directory is mounted.")]
    Mount(MountArgs),
    /// Unmount a directory that `oblivio mount` mounted, and wait until its volume is closed.
    Umount(UmountArgs),
    /// Manage the keys of a volume.
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Measure how fast a volume is on this machine.
    ///
    /// Creates a volume, fills it, reads and writes it in several ways, and removes it.
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(BenchArgs),
    /// Work with recorded views: what storage saw.
    View {
        #[command(subcommand)]
        command: ViewCommand,
    },
    /// Write man pages to a directory, one for each command.
    Man {
        /// The directory to write to. Created if missing.
        directory: PathBuf,
    },
    /// Print a completion script for a shell.
    #[command(after_help = "Example:
  oblivio completions bash > ~/.local/share/bash-completion/completions/oblivio")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Whether the key of a volume may be in memory while the command runs. The keys of `bench` and
    /// `demo` do not count: they are generated for these commands alone.
    pub(crate) fn holds_keys(&self) -> bool {
        match self {
            Self::Create(_)
            | Self::Info(_)
            | Self::Check(_)
            | Self::Rescue(_)
            | Self::Serve { .. }
            | Self::Shares { .. }
            | Self::Mount(_)
            | Self::Key { .. }
            | Self::View { command: ViewCommand::Record(_) } => true,
            Self::Copy(_)
            | Self::Remove(_)
            | Self::Demo(_)
            | Self::Plan(_)
            | Self::Umount(_)
            | Self::View { .. }
            | Self::Bench(_)
            | Self::Man { .. }
            | Self::Completions { .. } => false,
        }
    }
}
