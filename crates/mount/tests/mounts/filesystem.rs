//! A disk as a mounted file system, from an empty disk to a checked image.

use std::env;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use oblivio_mount::fuse::{FuseOptions, mount_raw};
use oblivio_mount::registry::{Registration, Registry};
use oblivio_mount::{
    FilesystemMount, MakeFilesystem, MountError, MountOptions, mount_filesystem, unmount_served,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tempfile::TempDir;

use oblivio_testkit::machine::can_mount;
use oblivio_testkit::memory_disk::{MIB, MemoryDisk, PATIENCE, Shared, wait_until};

const MAKE: MountOptions = MountOptions {
    make: MakeFilesystem::IfEmpty,
    filesystem: oblivio_mount::Filesystem::Ext4,
    is_known_empty: true,
    read_only: false,
};

/// A mount point with its own registry.
struct MountPoint {
    directory: PathBuf,
    registry: Registry,
    home: TempDir,
}

impl MountPoint {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().canonicalize().unwrap().join("my disk");
        fs::create_dir(&directory).unwrap();
        let registry = Registry::at(&home.path().join("run")).unwrap();
        Self { directory, registry, home }
    }

    fn mount(&self, disk: MemoryDisk, options: &MountOptions) -> Result<Mounted, MountError> {
        let (shared, disk) = (disk.shared(), Arc::new(disk));
        let watched = Arc::downgrade(&disk);
        let registration = self.registry.register(&self.directory)?;
        let mount = mount_filesystem(disk, &registration, options);
        assert!(
            mount.is_ok() || watched.upgrade().is_none(),
            "a failed mount still holds its disk"
        );
        Ok(Mounted { mount: mount?, registration, shared })
    }

    /// Lists the mounts and loop devices of this mount point that still exist.
    fn leftovers(&self) -> Vec<String> {
        let home = self.home.path().to_str().unwrap();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let loops = loop_devices();
        let lines = mounts.lines().chain(loops.lines());
        lines.filter(|line| line.contains(home)).map(str::to_owned).collect()
    }
}

impl Drop for MountPoint {
    fn drop(&mut self) {
        // Cleans up after a panic or an incomplete test.
        for line in self.leftovers() {
            if let Some(device) = line.split(' ').find(|word| word.starts_with("/dev/loop")) {
                let _ = Command::new("umount").args(["--lazy", device]).status();
                let _ = Command::new("losetup").args(["--detach", device]).status();
            }
        }
        for line in self.leftovers() {
            if let Some(directory) = line.split(' ').nth(4) {
                let directory = directory.replace("\\040", " ");
                let _ = Command::new("umount").args(["--lazy", &directory]).status();
            }
        }
    }
}

/// A mounted disk. The fields are dropped in order, the registration last.
struct Mounted {
    mount: FilesystemMount,
    #[expect(dead_code, reason = "held")]
    registration: Registration,
    shared: &'static Shared,
}

/// Lists the loop devices, one per line: name and backing file.
fn loop_devices() -> String {
    let arguments = ["--list", "--raw", "--noheadings", "--output", "NAME,BACK-FILE"];
    let output = Command::new("losetup").args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn unmount(mount_point: &MountPoint) -> Result<(), MountError> {
    unmount_served(&mount_point.directory, &mount_point.registry, PATIENCE).map(drop)
}

fn run(program: &str, arguments: &[&Path]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
}

/// Checks that e2fsck finds no errors.
fn check_image(image: &[u8]) {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), image).unwrap();
    let output = Command::new("e2fsck").arg("-fn").arg(file.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Creates a tree of files with known contents.
fn fill(directory: &Path) {
    let mut random = StdRng::seed_from_u64(2);
    for (number, bytes) in [0, 1, 4096, 100_000, 3_000_000].into_iter().enumerate() {
        let mut data = vec![0; bytes];
        random.fill_bytes(&mut data);
        let inner = directory.join(format!("directory {number}"));
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("file"), data).unwrap();
    }
}

fn same_trees(one: &Path, other: &Path) {
    run("diff", &["--recursive".as_ref(), "--exclude=lost+found".as_ref(), one, other]);
}

#[test]
fn a_disk_that_is_too_small_for_a_file_system_stays_empty() {
    if !can_mount() {
        return;
    }
    let mount_point = MountPoint::new();
    for kib in [16, 64, 96, 127] {
        let disk = MemoryDisk::new(kib * MIB / 1024);
        let shared = disk.shared();
        let refused = mount_point.mount(disk, &MAKE).map(drop);
        assert!(matches!(refused, Err(MountError::TooSmall(_))), "{kib} KiB");
        assert!(shared.image().iter().all(|byte| *byte == 0), "{kib} KiB");
    }
    mount_point.mount(MemoryDisk::new(MIB / 8), &MAKE).unwrap().mount.unmount().unwrap();
}

/// Small disks get a journal, so that they need no manual repair after a power loss.
#[test]
fn small_disks_have_a_journal_too() {
    if !can_mount() {
        return;
    }
    for mib in [2, 4, 7, 8] {
        let mount_point = MountPoint::new();
        let mut mounted = mount_point.mount(MemoryDisk::new(mib * MIB), &MAKE).unwrap();
        mounted.mount.unmount().unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), mounted.shared.image()).unwrap();
        let output = Command::new("dumpe2fs").arg("-h").arg(file.path()).output().unwrap();
        let description = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(description.contains("has_journal"), "{mib} MiB: {description}");
    }
}

#[test]
fn files_survive_from_mount_to_mount() {
    if !can_mount() {
        return;
    }
    let (mount_point, source) = (MountPoint::new(), tempfile::tempdir().unwrap());
    fill(source.path());

    let mut mounted = mount_point.mount(MemoryDisk::new(64 * MIB), &MAKE).unwrap();
    run("cp", &["-r".as_ref(), &source.path().join("."), &mount_point.directory]);
    File::open(&mount_point.directory).unwrap().sync_all().unwrap();
    same_trees(source.path(), &mount_point.directory);
    mounted.mount.unmount().unwrap();
    let image = mounted.shared.image();
    drop(mounted);
    assert_eq!(mount_point.leftovers(), [""; 0]);
    check_image(&image);

    // The file system exists, so it is not created again although that is allowed.
    let mounted = mount_point.mount(MemoryDisk::holding(image), &MAKE).unwrap();
    same_trees(source.path(), &mount_point.directory);
    drop(mounted);
    assert_eq!(mount_point.leftovers(), [""; 0]);
    assert_eq!(fs::read_dir(&mount_point.directory).unwrap().count(), 0);
}

#[test]
fn synced_data_are_durable() {
    if !can_mount() {
        return;
    }
    let mount_point = MountPoint::new();
    let mounted = mount_point.mount(MemoryDisk::new(32 * MIB), &MAKE).unwrap();
    let file = File::create(mount_point.directory.join("file")).unwrap();
    let before = mounted.shared.flushes.load(Ordering::SeqCst);
    file.sync_all().unwrap();
    assert!(mounted.shared.flushes.load(Ordering::SeqCst) > before);
}

#[test]
fn trimmed_space_is_trimmed_on_the_disk() {
    if !can_mount() {
        return;
    }
    let mount_point = MountPoint::new();
    let mounted = mount_point.mount(MemoryDisk::new(64 * MIB), &MAKE).unwrap();
    mounted.shared.trimmed_bytes.store(0, Ordering::SeqCst);
    run("fstrim", &[&mount_point.directory]);
    assert!(mounted.shared.trimmed_bytes.load(Ordering::SeqCst) > 30 * MIB);
}

#[test]
fn any_program_can_unmount_it() {
    if !can_mount() {
        return;
    }
    let mount_point = MountPoint::new();
    let mut mounted = mount_point.mount(MemoryDisk::new(32 * MIB), &MAKE).unwrap();
    fs::write(mount_point.directory.join("file"), "content").unwrap();
    assert!(!mounted.mount.wait_until_unmounted(Duration::from_millis(50)));
    run("umount", &[&mount_point.directory]);
    assert!(mounted.mount.wait_until_unmounted(PATIENCE));
    mounted.mount.unmount().unwrap();
    assert_eq!(mount_point.leftovers(), [""; 0]);
    check_image(&mounted.shared.image());
}

#[test]
fn a_file_system_in_use_stays_mounted() {
    if !can_mount() {
        return;
    }
    let mount_point = MountPoint::new();
    let mut mounted = mount_point.mount(MemoryDisk::new(32 * MIB), &MAKE).unwrap();
    let path = mount_point.directory.join("file");
    let file = File::create(&path).unwrap();
    let error = mounted.mount.unmount().unwrap_err();
    assert!(matches!(error, MountError::Busy(_)), "{error}");
    fs::write(&path, "still served").unwrap();
    drop(file);
    mounted.mount.unmount().unwrap();
    assert_eq!(mount_point.leftovers(), [""; 0]);
}

#[test]
fn a_mount_on_top_is_not_unmounted() {
    if !can_mount() {
        return;
    }
    let mount_point = MountPoint::new();
    let mut mounted = mount_point.mount(MemoryDisk::new(32 * MIB), &MAKE).unwrap();
    run("umount", &["--lazy".as_ref(), &mount_point.directory]);
    assert!(mounted.mount.wait_until_unmounted(PATIENCE));
    run("mount", &["-t".as_ref(), "tmpfs".as_ref(), "tmpfs".as_ref(), &mount_point.directory]);
    mounted.mount.unmount().unwrap();
    assert_eq!(mount_point.leftovers().len(), 1, "the tmpfs was unmounted");
}

#[test]
fn a_mount_on_top_of_one_in_use_is_not_unmounted() {
    if !can_mount() {
        return;
    }
    let mount_point = MountPoint::new();
    let mut mounted = mount_point.mount(MemoryDisk::new(32 * MIB), &MAKE).unwrap();
    let file = File::create(mount_point.directory.join("file")).unwrap();
    run("umount", &["--lazy".as_ref(), &mount_point.directory]);
    run("mount", &["-t".as_ref(), "tmpfs".as_ref(), "tmpfs".as_ref(), &mount_point.directory]);
    let error = mounted.mount.unmount().unwrap_err();
    assert!(matches!(error, MountError::Busy(_)), "{error}");
    fs::write(mount_point.directory.join("on tmpfs"), "").unwrap();
    run("umount", &[&mount_point.directory]);
    drop(file);
    mounted.mount.unmount().unwrap();
    assert_eq!(mount_point.leftovers(), [""; 0]);
}

#[test]
fn only_empty_disks_are_formatted() {
    if !can_mount() {
        return;
    }
    let mount_point = MountPoint::new();
    let bytes = 32 * MIB;
    // At the start, at the signature of btrfs, and at the backup of partition tables.
    for offset in [0, 64 << 10, bytes - 512] {
        let mut data = vec![0; bytes as usize];
        data[offset as usize] = 1;
        let disk = MemoryDisk::holding(data.clone());
        let shared = disk.shared();
        let error = mount_point.mount(disk, &MAKE).err().unwrap();
        assert!(matches!(error, MountError::NotThisFilesystem("ext4")), "{offset}: {error}");
        assert!(shared.image() == data, "{offset}: the disk was changed");
    }
    let disk = MemoryDisk::new(bytes);
    let shared = disk.shared();
    let never = MountOptions { make: MakeFilesystem::Never, ..MAKE };
    let error = mount_point.mount(disk, &never).err().unwrap();
    assert!(matches!(error, MountError::Empty), "{error}");
    // Zeros at start and end, but the rest is unknown.
    let unknown = MountOptions { is_known_empty: false, ..MAKE };
    let error = mount_point.mount(MemoryDisk::new(bytes), &unknown).err().unwrap();
    assert!(matches!(error, MountError::MayHoldData), "{error}");
    let error =
        mount_point.mount(MemoryDisk::new(bytes), &MountOptions { read_only: true, ..MAKE });
    assert!(matches!(error.err().unwrap(), MountError::Empty));
    assert!(shared.image().iter().all(|byte| *byte == 0));
    assert_eq!(mount_point.leftovers(), [""; 0]);
}

#[test]
fn a_read_only_mount_is_not_written() {
    if !can_mount() {
        return;
    }
    let mount_point = MountPoint::new();
    let mut mounted = mount_point.mount(MemoryDisk::new(32 * MIB), &MAKE).unwrap();
    fs::write(mount_point.directory.join("file"), "content").unwrap();
    mounted.mount.unmount().unwrap();
    let image = mounted.shared.image();
    drop(mounted);

    let options = MountOptions { read_only: true, ..MountOptions::default() };
    let mut mounted = mount_point.mount(MemoryDisk::holding(image.clone()), &options).unwrap();
    assert_eq!(fs::read_to_string(mount_point.directory.join("file")).unwrap(), "content");
    assert!(fs::write(mount_point.directory.join("file"), "other").is_err());
    mounted.mount.unmount().unwrap();
    assert!(mounted.shared.image() == image);
}

#[test]
fn earlier_steps_are_undone_if_a_later_one_fails() {
    if !can_mount() {
        return;
    }
    let mount_point = MountPoint::new();
    let full = MemoryDisk::new(32 * MIB);
    full.shared().is_full.store(true, Ordering::SeqCst);
    let error = mount_point.mount(full, &MAKE).err().unwrap();
    assert!(matches!(error, MountError::Program { program: "mkfs.ext4", .. }), "{error}");
    assert_eq!(mount_point.leftovers(), [""; 0], "after mkfs failed");

    let mut broken = vec![0; 32 * MIB as usize];
    broken[1080..1082].copy_from_slice(&[0x53, 0xef]);
    let error = mount_point.mount(MemoryDisk::holding(broken), &MAKE).err().unwrap();
    assert!(matches!(error, MountError::Program { program: "mount", .. }), "{error}");
    assert_eq!(mount_point.leftovers(), [""; 0], "after mount failed");

    let unreadable = MemoryDisk::new(32 * MIB);
    unreadable.shared().is_broken.store(true, Ordering::SeqCst);
    let error = mount_point.mount(unreadable, &MAKE).err().unwrap();
    assert!(matches!(error, MountError::Disk(_)), "{error}");

    mount_point.mount(MemoryDisk::new(32 * MIB), &MAKE).unwrap();
    assert_eq!(mount_point.leftovers(), [""; 0], "after a successful mount");
}

#[test]
fn a_panic_leaves_nothing_behind() {
    if !can_mount() {
        return;
    }
    let mount_point = MountPoint::new();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _mounted = mount_point.mount(MemoryDisk::new(32 * MIB), &MAKE).unwrap();
        assert_ne!(mount_point.leftovers(), [""; 0]);
        panic!("planted");
    }));
    assert!(panicked.is_err());
    assert_eq!(mount_point.leftovers(), [""; 0]);
}

#[test]
fn only_one_process_serves_a_directory() {
    let mount_point = MountPoint::new();
    assert!(mount_point.registry.find(&mount_point.directory).unwrap().is_none());
    let registration = mount_point.registry.register(&mount_point.directory).unwrap();
    let error = mount_point.registry.register(&mount_point.directory.join(".")).unwrap_err();
    let own = std::process::id();
    assert!(matches!(error, MountError::AlreadyServed { pid, .. } if pid == own), "{error}");
    let served = mount_point.registry.find(&mount_point.directory).unwrap().unwrap();
    assert_eq!((served.pid(), served.is_alive()), (own, true));
    // This process has mounted nothing yet: unmounting must not wait for ever.
    let moment = Duration::from_millis(200);
    let error = unmount_served(&mount_point.directory, &mount_point.registry, moment).unwrap_err();
    assert!(matches!(error, MountError::NotMountedYet { pid, .. } if pid == own), "{error}");
    drop(registration);
    assert!(mount_point.registry.find(&mount_point.directory).unwrap().is_none());
    let error = unmount(&mount_point).unwrap_err();
    assert!(matches!(error, MountError::NotServed(_)), "{error}");
    mount_point.registry.register(&mount_point.directory).unwrap();
}

/// Environment variables that turn this test program into a server. Their values are the directory
/// to serve, and the registry.
const SERVE: &str = "OBLIVIO_TEST_SERVE";
const REGISTRY: &str = "OBLIVIO_TEST_REGISTRY";
const DIE_HALF_WAY: &str = "OBLIVIO_TEST_DIE_HALF_WAY";

/// Not a test: the body of the server processes below.
#[test]
fn serve_when_asked_to() {
    let (Some(directory), Some(registry)) = (env::var_os(SERVE), env::var_os(REGISTRY)) else {
        return;
    };
    let registry_directory = registry;
    let registry = Registry::at(Path::new(&registry_directory)).unwrap();
    let registration = registry.register(Path::new(&directory)).unwrap();
    let disk = Arc::new(MemoryDisk::new(32 * MIB));
    if env::var_os(DIE_HALF_WAY).is_some() {
        die_between_loop_device_and_mount(disk, Path::new(&registry_directory));
    }
    let mut mount = mount_filesystem(disk, &registration, &MAKE).unwrap();
    assert!(mount.wait_until_unmounted(3 * PATIENCE));
    mount.unmount().unwrap();
    // Simulates the time that closing a volume takes.
    thread::sleep(Duration::from_millis(300));
    fs::write(registration.directory().join("closed"), "").unwrap();
}

/// Ends in the same way as a process that is killed before its loop device is set to detach itself.
fn die_between_loop_device_and_mount(disk: Arc<MemoryDisk>, registry: &Path) -> ! {
    let private = registry.join(format!("{}-0/raw", std::process::id()));
    fs::create_dir(&private).unwrap();
    let raw = mount_raw(disk, &private, &FuseOptions::default()).unwrap();
    run("losetup", &["--find".as_ref(), &raw.disk()]);
    std::process::abort();
}

#[test]
fn leftovers_of_a_process_that_died_while_mounting_are_taken_down() {
    if !can_mount() {
        return;
    }
    let mount_point = MountPoint::new();
    let mut server = Server(server_command(&mount_point).env(DIE_HALF_WAY, "1").spawn().unwrap());
    assert!(!server.0.wait().unwrap().success());
    assert_eq!(mount_point.leftovers().len(), 2, "expected the raw disk and the loop device");
    let watched = loop_devices();
    let ours =
        watched.lines().find(|line| line.contains(mount_point.home.path().to_str().unwrap()));
    let device = ours.and_then(|line| line.split_whitespace().next()).unwrap();
    unmount(&mount_point).unwrap();
    assert_eq!(mount_point.leftovers(), [""; 0]);
    // The unmounted backing file is shown as `/disk`, so only the name of the loop device tells it
    // from others. A leaked device keeps its name for ever. A device of another test may briefly
    // have the same name and path.
    wait_until(|| {
        let devices = loop_devices();
        let mut devices = devices.lines().map(|line| line.split_once(' '));
        !devices.any(|line| line == Some((device, "/disk")))
    });
}

/// Starts another process, which serves `mount_point`.
fn server(mount_point: &MountPoint) -> Server {
    let server = Server(server_command(mount_point).spawn().unwrap());
    wait_until(|| mount_point.directory.join("lost+found").exists());
    server
}

fn server_command(mount_point: &MountPoint) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "filesystem::serve_when_asked_to", "--nocapture"])
        .stdout(Stdio::null());
    command.env(SERVE, &mount_point.directory).env(REGISTRY, mount_point.home.path().join("run"));
    command
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn another_process_unmounts_and_waits_until_the_volume_is_closed() {
    if !can_mount() {
        return;
    }
    let mount_point = MountPoint::new();
    let mut server = server(&mount_point);
    let file = File::create(mount_point.directory.join("file")).unwrap();
    let error = unmount(&mount_point).unwrap_err();
    assert!(matches!(error, MountError::Busy(_)), "{error}");
    drop(file);
    unmount(&mount_point).unwrap();
    assert!(
        mount_point.directory.join("closed").exists(),
        "it did not wait for the server to close"
    );
    assert!(server.0.wait().unwrap().success());
    assert_eq!(mount_point.leftovers(), [""; 0]);
}

#[test]
fn leftovers_of_a_killed_process_are_taken_down() {
    if !can_mount() {
        return;
    }
    for by_next_mount in [false, true] {
        let mount_point = MountPoint::new();
        drop(server(&mount_point));
        assert_ne!(mount_point.leftovers(), [""; 0]);
        // A child of the killed process may hold the lock a moment longer.
        wait_until(|| {
            !mount_point.registry.find(&mount_point.directory).unwrap().unwrap().is_alive()
        });
        if by_next_mount {
            drop(mount_point.mount(MemoryDisk::new(32 * MIB), &MAKE).unwrap());
        } else {
            unmount(&mount_point).unwrap();
        }
        assert_eq!(mount_point.leftovers(), [""; 0]);
        assert!(mount_point.registry.find(&mount_point.directory).unwrap().is_none());
    }
}

/// Not a test: the body of the process that mounts without root.
#[test]
fn mount_without_root_when_asked_to() {
    let Some(directory) = env::var_os(WITHOUT_ROOT) else {
        return;
    };
    let directory = Path::new(&directory);
    let mount_point = directory.join("mnt");
    fs::create_dir(&mount_point).unwrap();
    let registry = Registry::at(&directory.join("registry")).unwrap();
    let registration = registry.register(&mount_point).unwrap();
    let disk = Arc::new(MemoryDisk::new(32 * MIB));
    let error = mount_filesystem(disk, &registration, &MAKE).err().unwrap().to_string();
    assert!(error.contains("the raw disk") && error.contains("NBD"), "{error}");
    println!("refused with advice");
}

const WITHOUT_ROOT: &str = "OBLIVIO_TEST_WITHOUT_ROOT";
const UNPRIVILEGED_UID: u32 = 65534;

#[test]
fn without_root_the_error_names_the_alternatives() {
    if !can_mount() {
        return;
    }
    // A copy, because other users may not be able to reach the build directory.
    let home = tempfile::tempdir().unwrap();
    let copy = home.path().join("test");
    // Copied by another process: a file that is open for writing, even in a forked child of another
    // test, cannot be executed.
    run("cp", &[&env::current_exe().unwrap(), &copy]);
    for path in [home.path(), &copy] {
        std::os::unix::fs::chown(path, Some(UNPRIVILEGED_UID), Some(UNPRIVILEGED_UID)).unwrap();
    }
    let mut command = Command::new(&copy);
    command.args(["--exact", "filesystem::mount_without_root_when_asked_to", "--nocapture"]);
    command
        .env(WITHOUT_ROOT, home.path())
        .uid(UNPRIVILEGED_UID)
        .gid(UNPRIVILEGED_UID)
        .current_dir("/");
    let output = command.output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("refused with advice"), "{output:?}");
}
