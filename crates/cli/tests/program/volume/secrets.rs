//! Passphrases, keys and the contents of disks are neither shown nor stored as plain text.

use std::process::Command;
use std::{fs, mem};

use memchr::memmem;
use rustix::process::{Pid, Signal, kill_process};

use super::test_dir::{MIB, Server, TestDir, VOLUME};
use crate::common::terminal::Terminal;
use crate::common::{command, oblivio, succeeds};

const PASSPHRASE: &str = "Vollmond-Kaktus-7193";

/// A test directory with a volume that has a passphrase. With `--unlock-millis 1`, each attempt to
/// unlock it is fast.
fn test_dir() -> TestDir {
    let test_dir = TestDir::new();
    fs::write(test_dir.path("words"), format!("{PASSPHRASE}\n")).unwrap();
    test_dir.succeeds("create disk.obl --size 16M --passphrase-file words --unlock-millis 1");
    test_dir
}

#[test]
fn a_passphrase_is_never_shown() {
    let test_dir = test_dir();
    fs::write(test_dir.path("key"), "another secret, of 32 or so bytes").unwrap();
    for command_line in [
        "info disk.obl --passphrase-file words --json",
        "info disk.obl --passphrase-command 'cat words'",
        "check disk.obl --passphrase-file words --json",
        "key add disk.obl --passphrase-file words --new-key-file key",
        "key list disk.obl --json",
        // The command line and environment of the server and of its command.
        "serve nbd disk.obl --passphrase-file words --run 'cd /proc; cat self/cmdline \
         self/environ $PPID/cmdline $PPID/environ'",
        "serve nbd disk.obl --passphrase-command 'cat words' --run 'cd /proc; cat self/cmdline \
         self/environ $PPID/cmdline $PPID/environ'",
        "view record disk.obl --passphrase-file words --output view --run 'nbdinfo \"$uri\"'",
        "info disk.obl --passphrase-file key",
        "check disk.obl --key-file words",
    ] {
        let (_, stdout, stderr) = oblivio(test_dir.path(""), command_line);
        assert!(!(stdout.clone() + &stderr).is_empty(), "{command_line} must print something");
        for secret in [PASSPHRASE, "another secret"] {
            assert!(!stdout.contains(secret) && !stderr.contains(secret), "{command_line}");
        }
    }
    let state = test_dir.state();
    let files = fs::read_dir(state).unwrap().map(|entry| entry.unwrap().path());
    for path in files.chain([test_dir.path("disk.obl"), test_dir.path("view")]) {
        let contents = fs::read(&path).unwrap();
        assert!(memmem::find(&contents, PASSPHRASE.as_bytes()).is_none(), "{}", path.display());
    }
}

#[test]
fn there_is_no_option_that_takes_the_passphrase_itself() {
    let test_dir = test_dir();
    test_dir.fails_with(&format!("info disk.obl --passphrase {PASSPHRASE}"), 2, "--passphrase");
    // Without a terminal there is no prompt.
    let (code, _, message) = oblivio(test_dir.path(""), "info disk.obl");
    assert!(code == 3 && message.contains("--passphrase-file"), "{code}: {message}");
}

/// Types `words` at a terminal, one word at each prompt. Returns the exit code (128 if a signal
/// ended the session) and the text shown.
fn typed(test_dir: &TestDir, command_line: &str, words: &[&str]) -> (i32, String) {
    let terminal = Terminal::new();
    let mut child = terminal.run(&command(&test_dir.path(""), command_line)).spawn().unwrap();
    let mut typed = 0;
    let shown = terminal.type_secrets(|shown| {
        (shown.matches("Passphrase:").count() > typed).then(|| {
            typed += 1;
            (*words.get(typed - 1).expect("there is one prompt too many")).to_owned()
        })
    });
    assert_eq!(typed, words.len(), "{shown}");
    (child.wait().unwrap().code().unwrap_or(128), shown)
}

#[test]
fn a_wrong_passphrase_is_reported_and_asked_for_three_times_in_all() {
    let test_dir = test_dir();
    let (code, shown) = typed(&test_dir, "info disk.obl", &["no", "neither", PASSPHRASE]);
    assert!(code == 0 && shown.contains("16.0 MiB"), "{code}: {shown}");
    assert_eq!(shown.matches("the passphrase is wrong").count(), 2, "{shown}");
    assert!(!shown.contains(PASSPHRASE), "{shown}");
    let (code, shown) = typed(&test_dir, "info disk.obl", &["no", "neither", "nor this"]);
    assert!(code == 6 && shown.matches("the passphrase is wrong").count() == 3, "{code}: {shown}");
    let (code, shown) = typed(&test_dir, "info disk.obl", &["\u{3}"]);
    assert!(code != 0 && !shown.contains("wrong"), "Ctrl-C: {code}: {shown}");
    // A file would hold the same passphrase again, so it is read only once.
    fs::write(test_dir.path("wrong"), "no\n").unwrap();
    test_dir.fails_with("info disk.obl --passphrase-file wrong", 6, "the passphrase is wrong");
}

/// Exit code and standard error of a line of bash in the folder of `test_dir`, in which `oblivio`
/// is the program.
fn in_bash(test_dir: &TestDir, line: &str) -> (i32, String) {
    let mut bash = Command::new("bash");
    let script = format!("oblivio() {{ timeout 60 \"$0\" \"$@\"; }}; {line}");
    bash.args(["-c", &script, env!("CARGO_BIN_EXE_oblivio")]).current_dir(test_dir.path(""));
    let program = command(&test_dir.path(""), "");
    bash.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = bash.output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_new_key_comes_from_a_source_that_supplies_it_again() {
    let test_dir = TestDir::with_volume(1);
    fs::write(test_dir.path("words"), PASSPHRASE).unwrap();
    let made = Command::new("mkfifo").arg(test_dir.path("fifo")).status().unwrap();
    assert!(made.success());
    std::os::unix::fs::symlink("/dev/urandom", test_dir.path("link")).unwrap();
    let before = test_dir.succeeds("key list disk.obl");
    for (source, what) in [
        ("key-file <(head -c 32 /dev/urandom)", "is a pipe"),
        ("key-file <(cat key)", "is a pipe"),
        ("key-file /dev/stdin < <(cat key)", "is a pipe"),
        ("key-file fifo", "is a pipe"),
        ("key-file /dev/urandom", "is a character device"),
        ("key-file link", "is a character device"),
        ("key-file /dev/fd/7 7< gone", "is a deleted file"),
        // This is a regular file, but it has other contents at each reading.
        ("key-file /proc/sys/kernel/random/uuid", "not supply the same key twice"),
        ("passphrase-file <(cat words)", "is a pipe"),
        ("passphrase-file /proc/sys/kernel/random/uuid", "not supply the same key twice"),
        ("passphrase-command 'cat /proc/sys/kernel/random/uuid'", "not supply the same key twice"),
        ("passphrase-command cat < <(cat words)", "not supply the same key twice"),
    ] {
        let gone = "cp key gone; exec 8< gone; rm gone; gone=/dev/fd/8;";
        let source = source.replace("7< gone", "7< $gone");
        for line in [
            format!("oblivio create new.obl --size 1M --state ./new --unlock-millis 1 --{source}"),
            format!("oblivio key add {VOLUME} --unlock-millis 1 --new-{source}"),
        ] {
            let (code, message) = in_bash(&test_dir, &format!("{gone} {line}"));
            assert!(code == 3 && message.contains(what), "{line}: {code}: {message}");
            let advice =
                if source.starts_with("key") { "disk.key" } else { "--passphrase-command" };
            assert!(message.contains(advice), "{line}: {message}");
        }
        assert!(!test_dir.path("new.obl").exists() && !test_dir.path("new").exists(), "{source}");
    }
    assert_eq!(test_dir.succeeds("key list disk.obl"), before);

    // These sources supply the key again, so a volume can be created with them. A pipe can then
    // open the volume.
    for (source, pipe) in [
        ("key-file /dev/stdin < key", "key-file <(cat key)"),
        ("passphrase-command 'cat words'", "passphrase-file <(cat words)"),
        ("passphrase-file /dev/fd/3 3< words", "passphrase-command cat < words"),
    ] {
        let line = format!(
            "oblivio create new.obl --size 1M --state ./new --unlock-millis 1 --{source} && \
             oblivio info new.obl --state ./new --{pipe} && rm -r new new.obl"
        );
        let (code, message) = in_bash(&test_dir, &line);
        assert!(code == 0, "{line}: {message}");
    }
}

#[test]
fn an_added_key_is_not_called_wrong_if_storage_was_rolled_back() {
    let test_dir = TestDir::with_volume(1);
    fs::write(test_dir.path("other"), [9; 32]).unwrap();
    fs::write(test_dir.path("wrong"), [8; 32]).unwrap();
    test_dir.copy("disk.obl", "old.obl");
    test_dir.succeeds(&format!("key add {VOLUME} --new-key-file other"));
    test_dir.copy("disk.obl", "latest.obl");
    test_dir.copy("old.obl", "disk.obl");
    for command in ["check", "info", "rescue", "info --key-slot 1"] {
        let image = if command == "rescue" { "image" } else { "" };
        test_dir.fails_with(
            &format!("{command} disk.obl --key-file other {image}"),
            8,
            "key slots were rolled back",
        );
        let code = if command == "info --key-slot 1" { 3 } else { 6 };
        test_dir.fails_with(&format!("{command} disk.obl --key-file wrong {image}"), code, "key");
    }
    assert!(!test_dir.path("image").exists());
    // With a removed key, the old superblock copy in the client's directory opens nothing.
    let copy = test_dir.state().join("superblock-copy");
    fs::copy(&copy, test_dir.path("old-copy")).unwrap();
    test_dir.copy("latest.obl", "disk.obl");
    test_dir.succeeds(&format!("key remove {VOLUME} 1"));
    fs::copy(test_dir.path("old-copy"), &copy).unwrap();
    test_dir.fails_with("check disk.obl --key-file other", 6, "the key file is wrong");
    test_dir.copy("old.obl", "disk.obl");
    test_dir.fails_with("check disk.obl --key-file other", 6, "the key file is wrong");
}

#[test]
fn text_that_a_terminal_could_not_type_again_is_refused_as_a_passphrase() {
    let test_dir = TestDir::with_volume(1);
    // To open a volume, any line that is not empty is tried (code 6): its slot may have been
    // created with any characters.
    for (text, what, is_line) in [
        (&b"hunter2\rextra"[..], "carriage return", false),
        (b"hunter2\nuser: me\n", "more than one line", false),
        (b"\xef\xbb\xbfhunter2\n", "byte order mark", true),
        (b"\xff\xfeh\0u\0", "not UTF-8", true),
        (b"hunt\0er2\n", "control character", true),
        (b"\n", "empty", false),
    ] {
        fs::write(test_dir.path("text"), text).unwrap();
        for source in ["passphrase-file text", "passphrase-command 'cat text'"] {
            for line in [
                format!("create new.obl --size 1M --state ./new --{source}"),
                format!("key add {VOLUME} --new-{source}"),
            ] {
                test_dir.fails_with(&line, 3, what);
            }
            let (code, advice) = if is_line { (6, "passphrase") } else { (3, what) };
            test_dir.fails_with(&format!("info disk.obl --{source}"), code, advice);
        }
        assert!(!test_dir.path("new.obl").exists() && !test_dir.path("new").exists(), "{text:?}");
    }
    // A CRLF line end is not part of the passphrase.
    let test_dir = self::test_dir();
    fs::write(test_dir.path("text"), format!("{PASSPHRASE}\r\n")).unwrap();
    succeeds(test_dir.path(""), "info disk.obl --passphrase-file text");
    // An accidental key press makes a wrong passphrase. The user can type it again.
    let (code, shown) = typed(&test_dir, "info disk.obl", &["\u{1b}[A", PASSPHRASE]);
    assert!(code == 0 && shown.contains("Try again"), "{code}: {shown}");
    let (code, shown) = typed(&test_dir, "info disk.obl", &[""]);
    assert!(code == 3 && shown.contains("what was typed is empty"), "{code}: {shown}");
    // A terminal would cut such a long line at the same place each time.
    let (code, shown) = typed(&test_dir, "info disk.obl", &[&"x".repeat(4095)]);
    assert!(code == 3 && shown.contains("a terminal cuts lines"), "{code}: {shown}");
}

/// A command that asks for a passphrase, and writes its process ID to `pid`. HUP, INT, QUIT and
/// TERM have their default actions.
fn asking(test_dir: &TestDir) -> Command {
    let script = "echo $$ > pid; exec env --default-signal=HUP,INT,QUIT,TERM \"$0\" info disk.obl";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(env!("CARGO_BIN_EXE_oblivio")).current_dir(test_dir.path(""));
    let program = command(&test_dir.path(""), "");
    shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

/// A signal that asks the program to end takes effect at a prompt, too. The program first restores
/// the terminal.
#[test]
fn a_signal_at_a_prompt_restores_the_terminal() {
    let test_dir = test_dir();
    for (key, signal) in [("\u{3}", Signal::INT), ("\u{1c}", Signal::QUIT)] {
        let (_, shown) = typed(&test_dir, "info disk.obl", &[key]);
        assert!(!shown.contains("wrong"), "{signal:?}: {shown}");
    }
    for signal in [Signal::TERM, Signal::HUP, Signal::QUIT] {
        let terminal = Terminal::new();
        let mut session = terminal.run(&asking(&test_dir)).spawn().unwrap();
        let mut is_sent = false;
        let shown = terminal.type_secrets(|shown| {
            if shown.contains("Passphrase:") && !mem::replace(&mut is_sent, true) {
                let pid = fs::read_to_string(test_dir.path("pid")).unwrap().trim().parse().unwrap();
                kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
            }
            None
        });
        assert!(is_sent && !session.wait().unwrap().success(), "{shown}");
    }
}

/// After a prompt, Ctrl-C still ends the program while it unlocks the volume, because no data can
/// be lost yet.
#[test]
fn unlocking_after_a_prompt_can_be_interrupted() {
    let test_dir = TestDir::new();
    fs::write(test_dir.path("slow"), format!("{PASSPHRASE}\n")).unwrap();
    test_dir.succeeds("create slow.obl --size 4M --passphrase-file slow --unlock-millis 1500");
    let terminal = Terminal::new();
    let mut session = terminal.run(&command(&test_dir.path(""), "info slow.obl")).spawn().unwrap();
    let mut answered = false;
    let shown = terminal.type_secrets(|shown| {
        (shown.contains("Passphrase:") && !mem::replace(&mut answered, true))
            .then(|| format!("{PASSPHRASE}\n\u{3}"))
    });
    assert!(!session.wait().unwrap().success() && !shown.contains("4.00 MiB"), "{shown}");
}

/// Storage can change the cost of a slot before the client authenticates it. So an opening tries
/// only the named slot, and refuses a cost above its memory limit.
#[test]
fn an_opening_tries_the_named_slot_and_stays_within_its_memory_limit() {
    let test_dir = test_dir();
    fs::write(test_dir.path("key"), [1; 32]).unwrap();
    test_dir.succeeds("key add disk.obl --passphrase-file words --new-key-file key");
    let info = "info disk.obl --passphrase-file words";
    test_dir.fails_with(&format!("{info} --unlock-memory-max 63M"), 3, "--unlock-memory-max");
    test_dir.succeeds(&format!("{info} --unlock-memory-max 64M"));
    test_dir.succeeds(&format!("{info} --key-slot 0"));
    test_dir.fails_with(&format!("{info} --key-slot 1"), 6, "key list");
    test_dir.fails_with(&format!("{info} --key-slot 2"), 3, "there is no key slot 2");
    test_dir.succeeds("info disk.obl --key-file key --unlock-memory-max 0");
}

#[test]
fn neither_storage_nor_the_clients_directory_shows_the_contents() {
    let test_dir = TestDir::with_volume(8);
    let line = b"a secret line that was written to this disk and must stay unreadable\n";
    fs::write(test_dir.path("data"), line.repeat((8 * MIB) as usize / line.len())).unwrap();
    let server = Server::start(&test_dir, "--cache 1M").ready();
    server.write(&test_dir.path("data"));
    // A killed server leaves its log as it was in use.
    server.kill();
    for path in [test_dir.path("disk.obl"), test_dir.state_file()] {
        let contents = fs::read(&path).unwrap();
        let shown = memmem::find(&contents, &line[..16]).is_some();
        assert!(!shown && contents.len() as u64 > 8 * MIB, "{}", path.display());
    }
}
