//! Replaces advice to callers of a library with advice to users of this program.
//!
//! An error message of a library advises its caller, such as to set an option in code. This module
//! replaces that advice with the option or command that has the same effect.

/// The advice in messages of libraries, each with its replacement in messages of this program.
const ADVICE: [(&str, &str); 28] = [
    ("allow more client memory", "allow more client memory (--client-memory)"),
    ("open the volume with `after_tampering`", "open the volume with --after-tampering"),
    ("check the volume with `after_tampering`", "run `oblivio check --after-tampering`"),
    ("without an access: open them without that", "without an access: leave --serve-hits out"),
    ("have moves durable before reads", "leave --sync-moves out"),
    ("allow longer files", "allow longer files (`ulimit -f`)"),
    ("choose another client's directory", "choose another client's directory (--state)"),
    ("fewer at a tick", "fewer at a tick (--burst)"),
    ("`oblivio shares repair` of server ", "`oblivio shares repair URL` with --server "),
    ("it can be rebuilt anyway", "--anyway rebuilds it"),
    ("anyway (`oblivio shares repair`)", "(`oblivio shares repair --anyway`)"),
    ("turn direct I/O off", "leave --direct out"),
    ("name the client's directory", "name the client's directory with --state"),
    ("by its own path", "with --state"),
    ("one of them can be named", "--key-slot names one"),
    ("more memory can be allowed", "--unlock-memory-max allows more"),
    ("go on with the copy", "go on with `oblivio copy --resume`"),
    ("remove what is left of it", "remove what is left of it (`oblivio remove URL --yes`)"),
    ("the raw disk", "the raw disk (--raw)"),
    ("allow it, or create one", "mount it once without --no-mkfs and --read-only"),
    ("allow addresses beyond loopback", "allow addresses beyond loopback (--beyond-loopback)"),
    (
        "require client certificates",
        "require client certificates (--tls-client-authorities, without --tls-optional)",
    ),
    ("allow any client explicitly", "allow any client explicitly (--any-client)"),
    ("bytes; choose a shorter one", "bytes; choose a shorter one (--socket)"),
    (
        "Without room it can still be rescued and copied",
        "Without room, `oblivio rescue`, `serve nbd --rescued`, `copy`, `info` and `key list` \
         still read it",
    ),
    (
        "Without writing it can still be rescued and copied",
        "`oblivio rescue`, `serve nbd --rescued`, `copy`, `info` and `key list` only read it",
    ),
    (
        "`oblivio rescue` can recover it with the client's directory",
        "`oblivio rescue` and `serve nbd --rescued` can recover it with --state",
    ),
    ("choose another socket file", "choose another socket file (--socket)"),
];

/// The system's text for the error `EMFILE` (no file descriptors left), and its replacement with
/// advice. The advice is added here, because every call that opens a file or a connection can fail
/// with this error.
const TOO_MANY_FILES: (&str, &str) = ("(os error 24)", "(os error 24; raise `ulimit -n`)");

/// Returns a library's message with advice for users of this program.
pub(crate) fn with_cli_advice(message: &str) -> String {
    let message = message.to_owned();
    let advice = ADVICE.iter().chain([&TOO_MANY_FILES]);
    advice.fold(message, |message, (library, here)| message.replace(library, here))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    /// Returns the path and the text of each source file of the library crates, without comments
    /// and test modules. A string literal that a backslash continues is on one line.
    fn libraries() -> Vec<(PathBuf, String)> {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut left: Vec<_> = [
            "core",
            "store",
            "volume",
            "shares",
            "wire",
            "nbd",
            "mount",
            "watch",
            "bucket-server",
            "oblivio",
        ]
        .map(|name| crates.join(name).join("src"))
        .into();
        let mut found = Vec::new();
        while let Some(path) = left.pop() {
            if path.is_dir() {
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
                let text = fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
                let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                found.push((path, lines.map(joined).collect()));
            }
        }
        found
    }

    /// Returns a line of source code without its indentation, and without its line break if a
    /// string literal continues on the next line.
    fn joined(line: &str) -> String {
        let line = line.trim_start();
        line.strip_suffix('\\').map_or_else(|| format!("{line}\n"), str::to_owned)
    }

    #[test]
    fn every_replaced_advice_occurs_in_a_library() {
        let libraries = libraries();
        assert!(libraries.len() > 100);
        for (library, here) in ADVICE {
            let says = |(_, text): &&(PathBuf, String)| text.contains(library);
            assert!(libraries.iter().any(|it| says(&it)), "no library has this text: {library}");
            assert!(with_cli_advice(library).contains(here), "{library}");
        }
    }

    #[test]
    fn every_message_with_emfile_advises_a_higher_limit() {
        let shortage = std::io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
        let message = with_cli_advice(&format!("cannot listen: {shortage}; choose another port"));
        assert!(
            message.contains("Too many open files (os error 24; raise `ulimit -n`)"),
            "{message}"
        );
    }

    #[test]
    fn libraries_name_no_option_of_this_program() {
        let command = crate::args::command();
        let mut left = vec![&command];
        let mut options = Vec::new();
        while let Some(command) = left.pop() {
            options.extend(command.get_arguments().filter_map(|it| it.get_long()));
            left.extend(command.get_subcommands());
        }
        assert!(options.contains(&"after-tampering"));
        for (path, text) in libraries() {
            let after_dashes = text.split("--").skip(1).map(|rest| {
                let is_end = |letter: char| !(letter.is_ascii_alphanumeric() || letter == '-');
                rest.split(is_end).next().unwrap_or_default()
            });
            for word in after_dashes {
                assert!(!options.contains(&word), "{}: --{word}", path.display());
            }
        }
    }
}
