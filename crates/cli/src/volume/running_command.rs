//! The shell command of `--run`, and all that it starts.

use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

/// How long it may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// A command that runs.
pub(super) struct RunningCommand {
    shell: Child,
    /// The shell leads a group of processes of its own. It does not at a terminal, which only one group may
    /// read; there, Ctrl-C reaches all of them as it is.
    has_group: bool,
}

impl RunningCommand {
    /// Starts it, and tells it where the disk is.
    pub(super) fn start(command: &str, uri: &str, socket: Option<&Path>) -> io::Result<Self> {
        let has_group = !io::stdin().is_terminal();
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).env("uri", uri);
        match socket {
            Some(socket) => shell.env("unixsocket", socket),
            // Not that of another server, around this one.
            None => shell.env_remove("unixsocket"),
        };
        if has_group {
            shell.process_group(0);
        }
        Ok(Self { shell: shell.spawn()?, has_group })
    }

    /// Whether the shell has ended. Its number stays taken: the group that has the same is still its own.
    pub(super) fn has_ended(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        Ok(rustix::process::waitid(WaitId::Pid(self.pid()), options)?.is_some())
    }

    /// Asks the shell, if it has not ended, and what it has started to end, and kills what is left of them
    /// after a while. How the shell ended.
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

    /// Whether all of the group has ended; without a group, whether the shell has.
    fn nothing_is_left(&mut self) -> io::Result<bool> {
        if !self.has_group {
            return self.has_ended();
        }
        // While one process of the group is left, no other group gets its number, shell or not. And numbers
        // are given out in turn, so none gets it from one look to the next.
        self.shell.try_wait()?;
        Ok(rustix::process::test_kill_process_group(self.pid()) == Err(Errno::SRCH))
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        let sent = match self.has_group {
            true => rustix::process::kill_process_group(self.pid(), signal),
            false => rustix::process::kill_process(self.pid(), signal),
        };
        match sent {
            // There is nobody left.
            Err(Errno::SRCH) => Ok(()),
            sent => Ok(sent?),
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.shell)
    }
}
