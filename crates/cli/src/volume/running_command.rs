//! The shell command of `--run`, and the processes that it starts.

use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

/// Time that the processes may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// A running shell command.
pub(super) struct RunningCommand {
    shell: Child,
    /// Whether the shell leads a process group of its own. At a terminal it does not, because only
    /// one group may read from it; there, Ctrl-C reaches all processes anyway.
    has_group: bool,
}

impl RunningCommand {
    /// Starts the command, with the disk's location in its environment.
    pub(super) fn start(command: &str, uri: &str, socket: Option<&Path>) -> io::Result<Self> {
        let has_group = !io::stdin().is_terminal();
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).env("uri", uri);
        match socket {
            Some(socket) => shell.env("unixsocket", socket),
            // Not the socket of another server around this one.
            None => shell.env_remove("unixsocket"),
        };
        if has_group {
            shell.process_group(0);
        }
        Ok(Self { shell: shell.spawn()?, has_group })
    }

    /// Whether the shell has ended. It is not reaped, so its process ID still identifies its group.
    pub(super) fn has_ended(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        Ok(rustix::process::waitid(WaitId::Pid(self.pid()), options)?.is_some())
    }

    /// Asks the shell's process group to end, and kills the remaining processes after [`GRACE`]. If
    /// the shell has no group of its own, ends only the shell. Returns the shell's exit status.
    pub(super) fn stop(mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        for _ in 0..GRACE.as_millis() / LOOK.as_millis() {
            if self.nothing_is_left()? {
                return self.shell.wait();
            }
            thread::sleep(LOOK);
        }
        self.signal(Signal::KILL)?;
        self.shell.wait()
    }

    /// Whether all processes of the shell's group have ended. If the shell has no group of its own,
    /// whether the shell has ended.
    fn nothing_is_left(&mut self) -> io::Result<bool> {
        if !self.has_group {
            return self.has_ended();
        }
        // While a process of the group lives, no other process or group gets its number. Numbers
        // are assigned in turn, so none is reused between two checks.
        self.shell.try_wait()?;
        Ok(rustix::process::test_kill_process_group(self.pid()) == Err(Errno::SRCH))
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        let sent = match self.has_group {
            true => rustix::process::kill_process_group(self.pid(), signal),
            false => rustix::process::kill_process(self.pid(), signal),
        };
        match sent {
            // No process is left.
            Err(Errno::SRCH) => Ok(()),
            sent => Ok(sent?),
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.shell)
    }
}
