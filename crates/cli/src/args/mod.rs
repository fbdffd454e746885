//! What can be typed.

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
  0   all went well
  1   something failed: a disk, the system, the engine
  2   the command line is not understood
  3   the input cannot be used: missing, empty, too large, not what it should be
  4   the output cannot be written
  5   what was read back differs from what was written
  6   wrong key: no key slot opens with it, or a server does not let its owner in
  7   tampered or damaged: storage does not hold what was written
  8   rolled back: storage is older than the client knows
  9   locked: somebody else uses the volume
  10  no space left
  11  the client's directory is missing, damaged, or of another volume
  12  the client's directory is older than storage
  13  another version of this program wrote it, mostly a newer one
  14  the volume was not closed and needs recovery (`info --require-clean` only)
  15  storage does not answer

A command that was run (`serve nbd --run`, `view record --run`) and did not end well hands on \
its exit code; 128 and the number of the signal if one ended it.";

/// Oblivious storage: a disk on storage you do not trust, which does not learn which blocks you use.
#[derive(Parser)]
#[command(name = "oblivio", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The command line, as it is understood and described.
pub(crate) fn command() -> clap::Command {
    help::flowing(Cli::command())
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Keep a real file system on a volume, kill its server, and look at it all from both sides.
    ///
    /// Makes a volume and an ext4 with the files of a folder, writes and reads it as a network block
    /// device, kills the server in the middle, as root also that of a mounted file system, recovers,
    /// compares every file, and shows what the owner did beside what storage saw.
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoArgs),
    /// Say what a volume would cost, before anything is created.
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(PlanArgs),
    /// Create a volume.
    #[command(
        after_help = "Examples:\n  oblivio create disk.obl --size 1G\n  oblivio create disk.obl --size 64M --key-file disk.key --state ./disk.state"
    )]
    Create(CreateArgs),
    /// Say what a volume is.
    Info(InfoArgs),
    /// Read all of a volume, and check that everything is what was written last.
    ///
    /// It reads every bucket that was ever written. Accesses write buckets, reads included, so a disk of a TiB
    /// that has been in use takes hours, however little it holds.
    ///
    /// Opening a volume writes to it and to the client's directory, here as everywhere. So check the volume and
    /// not a copy of it: the client's directory would go on with the copy, and refuse the volume as one that
    /// was set back (exit code 8). `oblivio rescue` writes to neither.
    Check(CheckArgs),
    /// Copy a volume from one place to another, without opening it.
    ///
    /// It takes neither a key nor the client's directory, and nothing else may have the volume open. What is
    /// copied is read back and compared. The client's directory of the volume opens the copy; once it has, it
    /// refuses the volume at the old place as older (exit code 8): move the volume so, and do not keep a
    /// backup so.
    #[command(after_help = COPY_EXAMPLES)]
    Copy(CopyArgs),
    /// Remove a volume, or what an interrupted creation has left of one.
    ///
    /// It takes neither a key nor the client's directory, and nothing else may have the volume open.
    #[command(after_help = REMOVE_EXAMPLES)]
    Remove(RemoveArgs),
    /// Save what is left of a volume whose storage is damaged, as a plain disk image.
    ///
    /// It takes every block that still authenticates, and says which are lost, and which may be older than
    /// the latest. It reads all of storage, whatever is in use, and changes nothing: the store and the client's
    /// directory may be on read-only media. Exit code 7 if anything is lost or damaged, copies of the header and
    /// of the superblock included.
    #[command(after_help = RESCUE_EXAMPLES)]
    Rescue(RescueArgs),
    /// Serve a volume to other programs.
    Serve {
        #[command(subcommand)]
        command: ServeCommand,
    },
    /// Work with volumes on share servers.
    Shares {
        #[command(subcommand)]
        command: SharesCommand,
    },
    /// Mount a volume: as a file system, made where the disk is empty, or as a raw disk.
    #[command(
        after_help = "Examples:\n  oblivio mount disk.obl /mnt          (as root)\n  oblivio mount disk.obl /mnt --background\n  oblivio mount disk.obl ./dir --raw\nA file system is made if no block of the disk holds anything.\n\nIt runs until the directory is unmounted: with oblivio umount or umount, or by a signal\n(Ctrl-C, SIGTERM, a terminal that closes). One in use stays until it is not, however many\nsignals come. With --background, it returns once the directory is mounted."
    )]
    Mount(MountArgs),
    /// Unmount what `oblivio mount` mounted, and wait until its volume is closed.
    Umount(UmountArgs),
    /// Work with the keys of a volume.
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Measure how fast a volume is on this machine.
    ///
    /// Makes a volume, fills it, reads and writes it in several ways, and removes it.
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(BenchArgs),
    /// Work with recorded views: what storage saw.
    View {
        #[command(subcommand)]
        command: ViewCommand,
    },
    /// Write man pages to a directory, one for each command.
    Man {
        /// The directory. Made if missing.
        directory: PathBuf,
    },
    /// Print a completion script for a shell.
    #[command(
        after_help = "Example:\n  oblivio completions bash > ~/.local/share/bash-completion/completions/oblivio"
    )]
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Whether the key of a volume is in memory while it runs. Those of a benchmark and of the
    /// demonstration are drawn for them alone.
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
