//! Who opens a volume on share servers, and who is refused and takes it from nobody.

use std::fs;

use super::shares::{PROGRAM, SMALL, ShareServers};
use super::world::{MIB, World, bytes};

/// Copies that lack the last writes of an owner at work, or all since his opening, know less than the servers: these say so to whoever looks.
#[test]
fn an_older_copy_of_the_directory_is_refused_and_its_owner_keeps_the_volume() {
    for map in ["", "--client-memory 236000"] {
        let world = World::new();
        let servers = ShareServers::new(&world, 3, "");
        let volume = servers.volume("disk");
        world.good(&format!("create {volume} --size 1M {SMALL} {map} --state client"));
        fs::write(world.path("data"), bytes(3, MIB / 4)).unwrap();
        world.copy("client", "older");
        let refused = |state: &str| {
            let of_copy = servers.volume("disk").replace('\'', "\"");
            let opened = format!("{of_copy} --state {state}");
            format!(
                "{PROGRAM} check {opened}; test $? = 12 && {PROGRAM} serve nbd {opened} --run true; test $? = 12"
            )
        };
        let write = "nbdcopy --flush data \"$uri\"";
        // The last one lacks a block, and no eviction came after it.
        let one_block = "qemu-io --format raw --cmd \"write -q 0 4K\" \"$uri\"";
        let (older, lacks_many, lacks_one) =
            (refused("older"), refused("lacks-many"), refused("lacks-one"));
        world.good(&format!(
            "serve nbd {volume} --cache 0 --state client --run '({older}) && cp -r client lacks-many && {write} && ({lacks_many}) && cp -r client lacks-one && {one_block} && ({lacks_one}) && {write} && nbdcopy \"$uri\" back && cmp --bytes=262144 data back'"
        ));
        world.good(&format!("check {volume} --state client"));
    }
}
