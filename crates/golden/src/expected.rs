//! The output, in order, that the model still expects from the controller.

use std::collections::VecDeque;
use std::fmt;

use crate::image::TracedBeat;
use crate::layout::ImageLayout;
use crate::{Problem, misuse};

/// The command, round trip and address of a beat.
#[derive(Clone, Copy, Debug)]
struct CommandAddress {
    command: u64,
    trip: u32,
    address: u64,
}

#[derive(Debug)]
struct MemoryCommand {
    step: CommandAddress,
    is_write: bool,
}

#[derive(Debug)]
struct Beat {
    step: CommandAddress,
    data: Box<[u8]>,
    strobed_bytes: usize,
}

#[derive(Debug)]
struct Response {
    command: u64,
    /// The contents of the block before the command.
    block: Box<[u8]>,
    is_found: bool,
    beats_given: usize,
}

/// The controller's state after a command and its evictions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateAfterCommand {
    /// The number of the command, counted from 0.
    pub command: u64,
    /// Address and leaf of each block in the stash, oldest first.
    pub stash: Vec<(u64, u64)>,
    /// The number of EO (eviction-only) accesses so far (G). 0 in Path ORAM.
    pub evictions: u64,
    /// The number of AO (access-only) accesses since the last scheduled EO access. 0 in Path ORAM.
    pub accesses_since_eviction: u32,
}

/// The contents of a response beat.
#[derive(Clone, Copy, Debug)]
pub struct ResponseBeat<'a> {
    /// The data of the beat.
    pub data: &'a [u8],
    /// Whether this is the last beat of the response.
    pub is_last: bool,
    /// The status of the response.
    pub status: u32,
    /// Whether the block was present before the command.
    pub is_found: bool,
}

/// The output that the model still expects from the controller, with one queue for each port.
#[derive(Debug)]
pub(crate) struct Expected {
    layout: ImageLayout,
    beat_bytes: usize,
    memory_commands: VecDeque<MemoryCommand>,
    read_beats: VecDeque<Beat>,
    write_beats: VecDeque<Beat>,
    responses: VecDeque<Response>,
    state_after: VecDeque<StateAfterCommand>,
}

impl Expected {
    pub(crate) fn new(layout: ImageLayout, beat_bytes: usize) -> Self {
        Self {
            layout,
            beat_bytes,
            memory_commands: VecDeque::new(),
            read_beats: VecDeque::new(),
            write_beats: VecDeque::new(),
            responses: VecDeque::new(),
            state_after: VecDeque::new(),
        }
    }

    /// Queues the beats of a command, each with its memory command.
    pub(crate) fn push_beats(&mut self, command: u64, beats: Vec<TracedBeat>) {
        for TracedBeat { trip, is_write, address, data, strobed_bytes } in beats {
            let step = CommandAddress { command, trip, address };
            self.memory_commands.push_back(MemoryCommand { step, is_write });
            let queue = if is_write { &mut self.write_beats } else { &mut self.read_beats };
            queue.push_back(Beat { step, data, strobed_bytes });
        }
    }

    pub(crate) fn push_response(&mut self, command: u64, block: Box<[u8]>, is_found: bool) {
        self.responses.push_back(Response { command, block, is_found, beats_given: 0 });
    }

    pub(crate) fn push_state_after(&mut self, state: StateAfterCommand) {
        self.state_after.push_back(state);
    }

    pub(crate) fn check_memory_command(
        &mut self,
        is_write: bool,
        address: u64,
    ) -> Result<(), Problem> {
        let verb = |is_write| if is_write { "write" } else { "read" };
        let Some(expected) = self.memory_commands.pop_front() else {
            return Err(Problem::Mismatch(format!(
                "memory command that the engine does not issue: {} {}",
                verb(is_write),
                self.beat_name(address)
            )));
        };
        let MemoryCommand { step, is_write: expected_write } = expected;
        if (is_write, address) == (expected_write, step.address) {
            return Ok(());
        }
        Err(Problem::Mismatch(format!(
            "{}: memory command {} {}, expected {} {}",
            self.step_name(step),
            verb(is_write),
            self.beat_name(address),
            verb(expected_write),
            self.beat_name(step.address)
        )))
    }

    pub(crate) fn check_write_beat(&mut self, data: &[u8], strobe: u128) -> Result<(), Problem> {
        let Some(Beat { step, data: expected, strobed_bytes }) = self.write_beats.pop_front()
        else {
            return Err(Problem::Mismatch("write beat that the engine does not write".into()));
        };
        let expected_strobe = u128::MAX >> (128 - strobed_bytes);
        if strobe != expected_strobe {
            return Err(Problem::Mismatch(format!(
                "{}: strobe {strobe:#x}, expected {expected_strobe:#x}",
                self.step_name(step)
            )));
        }
        let (data, expected) = (&data[..strobed_bytes], &expected[..strobed_bytes]);
        compare(&format!("{}: write beat", self.step_name(step)), data, expected)
    }

    /// Removes the next beat of a read from the queue and returns it.
    pub(crate) fn take_read_beat(&mut self) -> Result<Box<[u8]>, Problem> {
        let beat = self.read_beats.pop_front();
        let missing = || Problem::Mismatch("read beat that the engine does not read".into());
        beat.map(|beat| beat.data).ok_or_else(missing)
    }

    pub(crate) fn check_read_beat(&mut self, data: &[u8]) -> Result<(), Problem> {
        let step = self.read_beats.front().map(|beat| beat.step);
        let expected = self.take_read_beat()?;
        let step = step.map_or_else(String::new, |step| self.step_name(step));
        compare(&format!("{step}: read beat"), &data[..expected.len()], &expected)
    }

    pub(crate) fn check_response(&mut self, beat: ResponseBeat<'_>) -> Result<(), Problem> {
        let beat_bytes = self.beat_bytes;
        let Some(response) = self.responses.front_mut() else {
            return Err(Problem::Mismatch("response beat without a command".into()));
        };
        let start = response.beats_given * beat_bytes;
        let name = format!("command {}: response beat {}", response.command, response.beats_given);
        let is_last = start + beat_bytes == response.block.len();
        let actual = (beat.status, beat.is_found, beat.is_last);
        if actual != (0, response.is_found, is_last) {
            return Err(Problem::Mismatch(format!(
                "{name}: status {}, found {}, last {}; expected status 0, found {}, last {is_last}",
                beat.status, beat.is_found, beat.is_last, response.is_found
            )));
        }
        let expected = &response.block[start..start + beat_bytes];
        compare(&name, &beat.data[..beat_bytes], expected)?;
        response.beats_given += 1;
        if is_last {
            self.responses.pop_front();
        }
        Ok(())
    }

    /// Returns the state after `command`. Drops the states of earlier commands.
    pub(crate) fn state_after(&mut self, command: u64) -> Result<&StateAfterCommand, Problem> {
        while self.state_after.front().is_some_and(|state| state.command < command) {
            self.state_after.pop_front();
        }
        let state = self.state_after.front().filter(|state| state.command == command);
        state.ok_or_else(|| misuse(format!("the state after command {command} is not available")))
    }

    /// Returns an error if the model still expects output.
    pub(crate) fn check_is_done(&self) -> Result<(), Problem> {
        let of = |step: Option<CommandAddress>| {
            step.map_or_else(String::new, |step| self.step_name(step))
        };
        let left = [
            (self.memory_commands.len(), "memory commands", {
                of(self.memory_commands.front().map(|command| command.step))
            }),
            (self.read_beats.len(), "read beats", of(self.read_beats.front().map(|it| it.step))),
            (self.write_beats.len(), "write beats", of(self.write_beats.front().map(|it| it.step))),
            (self.responses.len(), "responses", {
                let command = self.responses.front().map(|response| response.command);
                command.map_or_else(String::new, |command| format!("command {command}"))
            }),
        ];
        match left.into_iter().find(|(count, ..)| *count > 0) {
            None => Ok(()),
            Some((count, what, first)) => {
                Err(Problem::Mismatch(format!("{count} {what} are missing, first: {first}")))
            }
        }
    }

    fn step_name(&self, CommandAddress { command, trip, address }: CommandAddress) -> String {
        format!("command {command}, trip {trip}, {}", self.beat_name(address))
    }

    fn beat_name(&self, address: u64) -> String {
        match self.layout.beat_at(address) {
            Some(at) => {
                format!("{address:#x} (level {}, bucket {}, beat {})", at.level, at.index, at.beat)
            }
            None => format!("{address:#x} (past the tree)"),
        }
    }
}

/// Compares the bytes of a beat.
fn compare(name: &str, actual: &[u8], expected: &[u8]) -> Result<(), Problem> {
    match actual.iter().zip(expected).position(|(actual, expected)| actual != expected) {
        None => Ok(()),
        Some(byte) => Err(Problem::Mismatch(format!(
            "{name}: byte {byte} differs\n  actual   {}\n  expected {}",
            Hex(actual),
            Hex(expected)
        ))),
    }
}

/// Formats bytes in hexadecimal, byte 0 first.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            let gap = if i > 0 && i % 8 == 0 { " " } else { "" };
            write!(f, "{gap}{byte:02x}")?;
        }
        Ok(())
    }
}
