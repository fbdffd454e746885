//! A server and its surroundings: which clients it admits, the environment of its command, its
//! socket.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use super::test_dir::{Server, TestDir, VOLUME, wait_until};
use super::tools::run;

/// One more than the maximum number of clients.
const TOO_MANY: usize = 65;

/// A connection on which the server has sent its greeting.
fn connect(server: &Server) -> UnixStream {
    let mut stream = UnixStream::connect(server.socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"NBDMAGICIHAVEOPT\x00\x03");
    stream
}

/// A client that has chosen the export.
fn client(server: &Server) -> UnixStream {
    let mut stream = connect(server);
    stream.write_all(&3_u32.to_be_bytes()).unwrap();
    stream.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
    stream.read_exact(&mut [0; 10]).unwrap();
    stream
}

#[test]
fn silent_clients_keep_no_client_out_and_are_reported() {
    let test_dir = TestDir::with_volume(1);
    let server = test_dir.serve("");
    let strangers: Vec<_> = (0..TOO_MANY).map(|_| connect(&server)).collect();
    run("nbdinfo", &["--size", server.uri()]);
    drop(strangers);
    let (code, messages) = server.stop();
    assert_eq!(code, 0, "{messages}");
    assert!(messages.contains("some client connects and then sends nothing"), "{messages}");
}

#[test]
fn clients_that_are_turned_away_are_reported() {
    let test_dir = TestDir::with_volume(1);
    let server = test_dir.serve("");
    let clients: Vec<_> = (1..TOO_MANY).map(|_| client(&server)).collect();
    // A client that has just chosen the export may not be counted yet.
    wait_until("a client to be turned away", || {
        let mut stream = UnixStream::connect(server.socket()).unwrap();
        stream.read(&mut [0; 1]).unwrap() == 0
    });
    wait_until("a complaint", || {
        server.messages().contains("a client was turned away: 64 clients already use the disk")
    });
    drop(clients);
    assert_eq!(server.stop().0, 0);
}

#[test]
fn a_signal_also_ends_the_processes_of_the_command() {
    let test_dir = TestDir::with_volume(1);
    let server = Server::start(&test_dir, "--run 'sleep 1000 & echo $! > child; wait'");
    let child = || fs::read_to_string(test_dir.path("child")).unwrap_or_default();
    wait_until("the command's child", || child().ends_with('\n'));
    let process = format!("/proc/{}", child().trim());
    assert!(Path::new(&process).exists());
    server.end_by(&[Signal::TERM]);
    wait_until("the end of the child", || !Path::new(&process).exists());
    test_dir.succeeds(&format!("info {VOLUME} --require-clean"));
}

#[test]
fn background_processes_of_the_command_end_with_it() {
    let test_dir = TestDir::with_volume(1);
    // The second process ignores SIGTERM.
    let command = "exec >printed 2>&1; sleep 1000 & echo $! > child; \
        (trap \"\" TERM; exec sleep 1000) & echo $! > deaf; exit 5";
    test_dir.fails_with(
        &format!("serve nbd {VOLUME} --run '{command}'"),
        5,
        "ended with exit code 5",
    );
    for process in ["child", "deaf"] {
        let number = fs::read_to_string(test_dir.path(process)).unwrap();
        let number = number.trim();
        let status = fs::read_to_string(format!("/proc/{number}/status")).unwrap_or_default();
        // The process that inherits a zombie may take its time to reap it.
        assert!(status.is_empty() || status.contains("State:\tZ"), "{process}: {status}");
    }
    test_dir.succeeds(&format!("info {VOLUME} --require-clean"));
}

/// If a signal ends the command of `--run`, the exit code is 128 plus the signal's number, as in a
/// shell.
#[test]
fn a_command_that_a_signal_ends_is_128_and_its_number() {
    let test_dir = TestDir::with_volume(1);
    for (name, number) in [("KILL", 9), ("SEGV", 11)] {
        let command_line = format!("serve nbd {VOLUME} --run 'kill -{name} $$'");
        test_dir.fails_with(
            &command_line,
            128 + number,
            &format!("signal {number} ended the command"),
        );
    }
    test_dir.succeeds(&format!("info {VOLUME} --require-clean"));
}

#[test]
fn a_command_gets_the_socket_only_if_there_is_one() {
    let test_dir = TestDir::with_volume(1);
    let command = "--run 'test -S \"$unixsocket\" && nbdinfo \"$uri\"'";
    test_dir.succeeds(&format!("serve nbd {VOLUME} {command}"));
    let command = "--run 'test -z \"${unixsocket+set}\" && nbdinfo \"$uri\"'";
    test_dir.succeeds(&format!("serve nbd {VOLUME} --tcp 127.0.0.1:0 {command}"));
}

#[test]
fn a_path_too_long_for_a_socket_has_an_error_with_advice() {
    let test_dir = TestDir::new();
    let deep = "d".repeat(110);
    let volume = format!("{VOLUME} --state {deep}");
    test_dir.succeeds(&format!("create {volume} --size 1M"));
    test_dir.fails_with(
        &format!("serve nbd {volume} --run true"),
        3,
        "choose a shorter one (--socket)",
    );
    test_dir.succeeds(&format!("serve nbd {volume} --socket here --run 'nbdinfo \"$uri\"'"));
    test_dir.succeeds(&format!(
        "view record {volume} --output view --socket here --cache 64K --run 'nbdinfo \"$uri\"'"
    ));
}

/// A volume works even if its block size is not a power of two, although clients support only
/// powers of two.
#[test]
fn a_volume_of_any_block_size_can_be_used_by_qemu() {
    for block in [17, 1000, 3000] {
        let test_dir = TestDir::new();
        test_dir.succeeds(&format!("create {VOLUME} --size 1M --block {block}"));
        test_dir.succeeds(&format!(
            "serve nbd {VOLUME} --run 'qemu-img info \"$uri\" && \
             qemu-io --format raw --cmd \"write -P 7 512 10K\" --cmd \"read -P 7 512 10K\" \
             \"$uri\"'"
        ));
    }
}

#[test]
fn fast_zeroing_is_offered_for_whole_blocks_only() {
    let test_dir = TestDir::with_data(1);
    test_dir.succeeds(&format!(
        "serve nbd {VOLUME} --run 'qemu-io --format raw --cmd \"write -zn 4K 64K\" \
         --cmd \"read -P 0 4K 64K\" \"$uri\"'"
    ));
    test_dir.succeeds(&format!(
        "serve nbd {VOLUME} --run '! qemu-io --format raw --cmd \"write -zn 512 1K\" \"$uri\"'"
    ));
}
