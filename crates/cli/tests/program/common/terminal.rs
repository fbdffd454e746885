//! A pseudo terminal on which a test types passphrases.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Command;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};

pub(crate) struct Terminal {
    master: File,
    name: String,
}

impl Terminal {
    pub(crate) fn new() -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        Self { master: File::from(master), name }
    }

    /// The programs' end of the terminal. Programs read from it what the test types, and write to
    /// it what the terminal shows.
    pub(crate) fn programs(&self) -> File {
        File::options().read(true).write(true).open(&self.name).unwrap()
    }

    /// Returns a command that runs `command` in its own session with this controlling terminal. All
    /// three streams are the terminal, unless the caller changes them afterwards.
    pub(crate) fn run(&self, command: &Command) -> Command {
        let mut session = Command::new("setsid");
        session
            .args(["--ctty", "--wait"])
            .arg(command.get_program())
            .args(command.get_args())
            .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .stdin(self.programs())
            .stdout(self.programs())
            .stderr(self.programs());
        if let Some(directory) = command.get_current_dir() {
            session.current_dir(directory);
        }
        session
    }

    /// Passes the text shown so far to `answer`, and types the line that it returns, until the last
    /// program on the terminal has ended. Returns the text shown.
    pub(crate) fn type_secrets(mut self, mut answer: impl FnMut(&str) -> Option<String>) -> String {
        let (mut shown, mut some) = (String::new(), [0; 1000]);
        // After the end of the last program, reading fails.
        while let Ok(bytes @ 1..) = self.master.read(&mut some) {
            shown.push_str(&String::from_utf8_lossy(&some[..bytes]));
            if let Some(secret) = answer(&shown) {
                let echoes =
                    tcgetattr(&self.master).unwrap().local_modes.contains(LocalModes::ECHO);
                assert!(!echoes, "the answer would be shown: {shown}");
                self.master.write_all(format!("{secret}\n").as_bytes()).unwrap();
            }
        }
        // The terminal is restored, however the last program has ended.
        assert!(tcgetattr(&self.master).unwrap().local_modes.contains(LocalModes::ECHO), "{shown}");
        shown
    }
}
