//! The shell command of `--run`, and all that it starts.

use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
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

    /// Its exit code, once it has ended.
    pub(super) fn exit_code(&mut self) -> io::Result<Option<i32>> {
        Ok(self.shell.try_wait()?.map(|status| status.code().unwrap_or(1)))
    }

    /// Asks it to end, and kills what is left of it after a while. Its exit code.
    pub(super) fn stop(mut self) -> io::Result<i32> {
        self.signal(Signal::TERM)?;
        for _ in 0..GRACE.as_millis() / LOOK.as_millis() {
            if self.has_ended()? {
                break;
            }
            thread::sleep(LOOK);
        }
        self.signal(Signal::KILL)?;
        Ok(self.shell.wait()?.code().unwrap_or(1))
    }

    /// Whether the shell has ended. Its number stays taken: the group that has the same is still its own.
    fn has_ended(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        Ok(rustix::process::waitid(WaitId::Pid(self.pid()), options)?.is_some())
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
