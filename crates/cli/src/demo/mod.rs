//! `oblivio demo`: a real file system on an oblivious disk, a server that is killed, and one
//! picture of what the owner did and what storage saw.
//!
//! - [`demo_dir`]: the directory of the demonstration; [`folder`]: the files that are stored.
//! - [`session`]: the owner uses the disk while storage is recorded; [`request_log`]: the owner's
//!   requests.
//! - [`servers`]: a bucket server or share servers, if they store the volume.
//! - [`services`]: an S3 server or a Redis cluster, if it stores the volume.
//! - [`crash`]: servers are killed in the middle of their work.
//! - [`picture`], [`terminal`], [`report`]: the two sides side by side, and the figures.

mod crash;
mod demo_dir;
mod folder;
mod picture;
mod programs;
mod report;
mod request_log;
mod servers;
mod services;
mod session;
mod terminal;

use crate::args::DemoArgs;
use crate::error::CliError;
use crate::output;
use demo_dir::DemoDir;
use folder::Folder;
use programs::{DEBUGFS, E2FSCK, MKE2FS, NBDCOPY};
use report::Report;

/// `oblivio demo`.
pub(crate) fn run(args: &DemoArgs) -> Result<(), CliError> {
    let tell = |what: &str| if args.json { Ok(()) } else { output::print(what) };
    for tool in [MKE2FS, E2FSCK, DEBUGFS, NBDCOPY] {
        tool.find()?;
    }
    let demo_dir = DemoDir::prepare(&args.output, args.store, args.servers)?;
    let source = match &args.folder {
        Some(path) => Folder::read(path)?,
        None => demo_dir.own_files()?,
    };

    tell("1. a volume, and a real file system made from a folder of real files")?;
    let disk_bytes = source.disk_bytes()?;
    demo_dir.create_volume(disk_bytes)?;
    demo_dir.make_image(&source, disk_bytes)?;
    tell(&format!(
        "   {} files, {} bytes, from {}; a disk of {} MiB, as {}",
        source.files.len(),
        source.bytes,
        source.path.display(),
        disk_bytes >> 20,
        demo_dir.volume()
    ))?;

    tell("2. recorded: the owner writes it, reads it, rereads three blocks, reads in a loop")?;
    let session = session::play(&demo_dir)?;
    let first = demo_dir.unpack(&demo_dir.copy())?.compare(&source);
    tell(&format!("   {}", first.text()))?;

    tell("3. the server is killed (SIGKILL) while the files are written again")?;
    let killed = crash::kill_server(&demo_dir, session.writing)?;
    tell(&format!("   {}", killed.text()))?;

    tell("4. a mounted file system loses its server in the middle of work")?;
    let mounted = crash::kill_mount(&demo_dir, &source, args.without_mount)?;
    tell(&format!("   {}", mounted.text()))?;

    tell("5. the volume is recovered, read completely, and checked")?;
    let repeated = demo_dir.read_out(&demo_dir.recovered())?;
    let expected = source.joined(mounted.synced());
    let last = demo_dir.unpack(&demo_dir.recovered())?.compare(&expected);
    if repeated > 0 {
        tell(&format!("   recovered, {repeated} accesses were made again"))?;
    }
    tell(&format!("   {}", last.text()))?;
    let checked = demo_dir.check()?;
    tell(&format!("   {}\n", checked.trim_end()))?;

    let pictures = picture::draw(&demo_dir, &session)?;
    let report = Report::new(&source, disk_bytes, &session, [&first, &last], &mounted, &pictures);
    if args.json {
        output::print(&report.json()?)?;
    } else {
        output::print(&format!("{}\n{}", terminal::plots(&session), report.text()))?;
    }
    report.check_nothing_lost()
}
