//! What is left of a damaged volume is served read-only, and storage does not see what clients
//! read.

use std::fs;
use std::path::Path;

use super::own_file_system::{folder, on_a_file_system};
use super::store_file::{BUCKETS_AT, back_at};
use super::tools::{run, try_run};
use super::world::{Server, VOLUME, World};
use crate::common::oblivio;

/// Changes a byte in many buckets.
fn damage(world: &World) {
    let store = world.store();
    for at in (BUCKETS_AT..back_at(&store)).step_by(40 * 4096) {
        store.replace(at, &[store.read(at, 1)[0] ^ 1]);
    }
}

/// The files of a directory and their contents.
fn contents(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let named = files.map(|file| {
        (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap_or_default())
    });
    let mut named: Vec<_> = named.collect();
    named.sort();
    named
}

#[test]
fn a_sound_volume_is_served_completely_and_nothing_is_changed() {
    let world = World::with_data(16);
    let before = (fs::read(world.path("disk.obl")).unwrap(), contents(&world.state()));
    let serve = format!("serve nbd {VOLUME} --rescued");
    world.good(&format!("{serve} --run 'nbdcopy \"$uri\" copy && cmp data copy'"));
    let after = (fs::read(world.path("disk.obl")).unwrap(), contents(&world.state()));
    assert!(before == after, "a rescue changes neither side");
    world.assert_nothing_is_lost();
}

#[test]
fn reading_lost_blocks_fails_and_the_rest_is_as_a_rescue_saves_it() {
    let world = World::with_data(16);
    damage(&world);
    let rescue = oblivio(world.path(""), &format!("rescue {VOLUME} saved"));
    assert_eq!(rescue.0, 7, "{}", rescue.2);
    let server = Server::start(&world, "--rescued").ready();
    // With this option, the client reads zeros where blocks are lost, like a rescue.
    let copy = world.path("copy");
    let salvaged = ["convert", "--salvage", "-f", "raw", "-O", "raw", server.uri()];
    run("qemu-img", &[&salvaged[..], &[copy.to_str().unwrap()]].concat());
    assert!(fs::read(&copy).unwrap() == fs::read(world.path("saved")).unwrap());
    let read_all = try_run("nbdcopy", &[server.uri(), "null:"]);
    let said = String::from_utf8_lossy(&read_all.stderr).into_owned();
    assert!(!read_all.status.success() && said.contains("Input/output error"), "{said}");
    let write = try_run("qemu-io", &["-f", "raw", "-c", "write 0 4k", server.uri()]);
    let said = String::from_utf8_lossy(&write.stderr).into_owned();
    assert!(said.contains("Permission denied"), "{said}");
    let (code, complaints) = server.stop();
    assert_eq!(code, 7, "{complaints}");
}

/// Reading all of storage may take hours.
#[test]
fn errors_of_serving_are_reported_before_storage_is_read() {
    let world = World::with_data(1);
    for (options, code) in [("--socket nowhere/nbd.sock", 3), ("--tcp 0.0.0.0:0", 3)] {
        let line = format!("serve nbd {VOLUME} --rescued {options} --run true");
        let (actual, _, complaints) = oblivio(world.path(""), &line);
        assert_eq!(actual, code, "{complaints}");
        assert!(!complaints.contains("can be read"), "{complaints}");
    }
}

/// Everything was read before, and storage is not accessed any more.
#[test]
fn storage_may_be_deleted_while_the_rescued_disk_is_read() {
    let world = World::with_data(16);
    let server = Server::start(&world, "--rescued").ready();
    fs::remove_file(world.path("disk.obl")).unwrap();
    fs::remove_file(world.state_file()).unwrap();
    assert!(server.contents() == fs::read(world.path("data")).unwrap());
    assert_eq!(server.stop().0, 0);
}

#[test]
fn it_ends_with_the_code_of_the_command_or_of_a_rescue() {
    let world = World::with_data(16);
    let serve = |options: &str| {
        let line = format!("serve nbd {VOLUME} --rescued --run {options}");
        let (code, _, complaints) = oblivio(world.path(""), &line);
        (code, complaints)
    };
    assert_eq!(serve("'exit 3'").0, 3);
    world.copy(world.state(), "old");
    world.fill();
    let (code, complaints) = serve("true --state old");
    assert_eq!(code, 12, "{complaints}");
    damage(&world);
    let (code, complaints) = serve("true");
    assert_eq!(code, 7, "{complaints}");
    assert!(complaints.contains("lost") && complaints.contains("can be read"), "{complaints}");
    assert_eq!(serve("'exit 3'").0, 3);
}

#[test]
fn options_of_a_volume_in_use_are_refused_for_a_rescued_one() {
    let world = World::with_volume(1);
    for option in ["--rate 100/s", "--cache 0", "--after-tampering", "--record-view view"] {
        world.bad(&format!("serve nbd {VOLUME} --rescued {option}"), 2, "cannot be used with");
    }
    world.bad(&format!("serve nbd {VOLUME} --scratch ."), 2, "--rescued");
    world.bad(&format!("serve nbd {VOLUME} --rescued --scratch nowhere"), 4, "another directory");
}

#[test]
fn the_scratch_file_has_no_name_and_needs_room() {
    on_a_file_system(
        "-t tmpfs -o size=30M",
        concat!(module_path!(), "::needs_room_for_what_waits"),
    );
}

#[test]
#[ignore = "runs on a file system of its own"]
fn needs_room_for_what_waits() {
    let world = World::with_data(16);
    let scratch = folder();
    let serve = format!("serve nbd {VOLUME} --rescued --scratch {}", scratch.display());
    world.good(&format!("{serve} --run 'test -z \"$(ls -A {})\"'", scratch.display()));
    fs::write(scratch.join("fills it"), vec![1; 20 << 20]).unwrap();
    world.bad(&format!("{serve} --run true"), 10, "--scratch");
}
