//! Drives a disk through runs that end in crashes, and holds it to its contract.

use std::collections::BTreeMap;
use std::fmt;

use oblivio_core::store::TreeShape;
use oblivio_volume::device::{BlockDevice, DiskError, DiskOp, call};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::directory::CrashDir;
use super::fault::{Counts, FailedSync, Fault, Station, Strike, Survival};
use super::shadow::{Report, ShadowDisk};
use super::store::CrashStore;
use super::workload::{Step, ops};
use super::world::World;

/// A disk, and what is done to it. The same trial with the same lives is the same run.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The trees of the store.
    pub shapes: Vec<TreeShape>,
    /// Over so many disks the store is striped.
    pub disks: usize,
    /// Bytes of the disk.
    pub bytes: u64,
    /// Its block size.
    pub block_bytes: u32,
    /// Steps of the workload, over all lives.
    pub steps: usize,
    /// Where all coins come from.
    pub seed: u64,
    /// What failed syncs do.
    pub failed_sync: FailedSync,
}

/// One run of the machine, from opening the disk to a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// What is planned to go wrong. Operations count from the opening of the disk.
    pub faults: Vec<Fault>,
    /// What survives of the store.
    pub store: Survival,
    /// What survives of the directory.
    pub dir: Survival,
}

impl Life {
    /// A life in which both sides fare alike.
    pub fn new(faults: &[Fault], survival: Survival) -> Self {
        Self { faults: faults.to_vec(), store: survival, dir: survival }
    }
}

/// What happened in a trial that the disk passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The operations of each life, by kind.
    pub operations: Vec<Counts>,
    /// The steps of each life at stations beside.
    pub steps: Vec<BTreeMap<Station, u64>>,
    /// Where in each life a planned fault struck first.
    pub strikes: Vec<Option<Strike>>,
}

impl Ran {
    /// How many lives met a fault that was planned.
    pub fn struck(&self) -> usize {
        self.strikes.iter().flatten().count()
    }
}

/// What a disk did wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Bytes that are not what they must be: all of them, when the disk does not answer.
    pub bytes: u64,
    /// What happened, and when.
    pub message: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Loss {
    fn during(self, when: impl fmt::Display) -> Self {
        Self { message: format!("{when}: {}", self.message), ..self }
    }

    fn reported(when: &str, report: &Report) -> Self {
        Self { bytes: report.bytes_wrong, message: format!("{when}: {report}") }
    }
}

impl Trial {
    /// Lives through `lives`, and then through one without faults that ends in a power cut which
    /// nothing unsynced survives. `open` opens the disk, and makes it when there is none yet.
    ///
    /// A life ends at the first error, or when its share of the workload is done. After each crash
    /// the disk has to open, unless a fault prevents that, and to hold what its contract says.
    ///
    /// # Errors
    /// With what the disk did wrong.
    pub fn run<D: BlockDevice>(
        &self,
        lives: &[Life],
        mut open: impl FnMut(CrashStore, CrashDir) -> Result<D, DiskError>,
    ) -> Result<Ran, Loss> {
        let world = World::striped(&self.shapes, self.disks);
        world.set_failed_sync(self.failed_sync);
        let mut coins = StdRng::seed_from_u64(self.seed);
        let mut bench = Bench {
            world: &world,
            bytes: self.bytes,
            open: || open(world.store(), world.dir()),
            shadow: ShadowDisk::new(self.bytes, self.block_bytes),
            steps: ops(self.seed, self.bytes, self.steps),
            after: None,
        };
        let mut ran = Ran { operations: Vec::new(), steps: Vec::new(), strikes: Vec::new() };
        let last = Life::new(&[], Survival::None);
        let share = self.steps / (lives.len() + 1);
        for (i, life) in lives.iter().chain([&last]).enumerate() {
            let in_life = |loss: Loss| loss.during(format_args!("life {i} ({life:?})"));
            world.plan(&life.faults, &mut coins);
            let steps = if i < lives.len() { share } else { usize::MAX };
            let device = bench.live(steps).map_err(in_life)?;
            ran.operations.push(world.counts());
            ran.steps.push(world.steps());
            ran.strikes.push(world.first_strike());
            world.crash_apart(&mut coins, life.store, life.dir);
            // Not before: what closes in good order has not crashed.
            drop(device);
            bench.after = Some(After::of(life));
        }
        bench.live(0).map_err(|loss| loss.during("after all lives"))?;
        Ok(ran)
    }
}

/// What the crash before this run has made of what the disk shows.
#[derive(Clone, Copy)]
enum After {
    /// All of it is durable.
    PowerCut,
    /// Some may still be in a cache alone.
    Kill,
}

impl After {
    fn of(life: &Life) -> Self {
        let is_kill = life.store == Survival::All || life.dir == Survival::All;
        if is_kill { Self::Kill } else { Self::PowerCut }
    }
}

struct Bench<'w, O, S> {
    world: &'w World,
    /// Of the disk.
    bytes: u64,
    open: O,
    shadow: ShadowDisk,
    steps: S,
    /// The crash that the disk has not been checked after.
    after: Option<After>,
}

impl<D, O, S> Bench<'_, O, S>
where
    D: BlockDevice,
    O: FnMut() -> Result<D, DiskError>,
    S: Iterator<Item = Step>,
{
    /// Opens, checks, and works until something fails.
    fn live(&mut self, steps: usize) -> Result<Option<D>, Loss> {
        let mut device = match (self.open)() {
            Ok(device) => device,
            Err(error) => return self.excuse("opening", &error).map(|()| None),
        };
        if let Err(error) = self.check_after_crash(&device)? {
            return self.excuse("reading", &error).map(|()| Some(device));
        }
        for _ in 0..steps {
            let Some(step) = self.steps.next() else { break };
            let outcome = match step.op() {
                Some(op) => apply(&device, op, &mut self.shadow),
                None => apply(&device, DiskOp::Flush, &mut self.shadow),
            };
            let report = match outcome {
                Ok(report) => report,
                Err(error) => return self.excuse("a request", &error).map(|()| Some(device)),
            };
            if !report.is_clean() {
                return Err(Loss::reported("a read", &report));
            }
            if step == Step::Reopen {
                drop(device);
                device = match (self.open)() {
                    Ok(device) => device,
                    Err(error) => return self.excuse("opening", &error).map(|()| None),
                };
            }
        }
        Ok(Some(device))
    }

    /// Without a fault, nothing may fail.
    fn excuse(&self, what: &str, error: &DiskError) -> Result<(), Loss> {
        match self.world.faults_fired() {
            0 => Err(Loss {
                bytes: self.bytes,
                message: format!("{what} failed though nothing went wrong: {error}"),
            }),
            _ => Ok(()),
        }
    }

    fn check_after_crash(&mut self, device: &D) -> Result<Result<(), DiskError>, Loss> {
        let Some(after) = self.after else { return Ok(Ok(())) };
        let held = match read_all(device) {
            Ok(held) => held,
            Err(error) => return Ok(Err(error)),
        };
        let read = |offset: u64, out: &mut [u8]| {
            out.copy_from_slice(&held[offset as usize..][..out.len()]);
        };
        let report = self.shadow.check(read);
        if !report.is_clean() {
            return Err(Loss::reported("after the crash before", &report));
        }
        match after {
            After::PowerCut => self.shadow.adopt(read),
            After::Kill => self.shadow.adopt_unflushed(read),
        }
        self.after = None;
        Ok(Ok(()))
    }
}

/// Lets a disk do one thing, and its shadow too. The report says what a read got wrong.
///
/// # Errors
/// What the disk answers.
pub fn apply(
    device: &dyn BlockDevice,
    op: DiskOp,
    shadow: &mut ShadowDisk,
) -> Result<Report, DiskError> {
    let ticket = shadow.submit(&op);
    let read_from = match &op {
        DiskOp::Read { offset, .. } => Some(*offset),
        _ => None,
    };
    match call(device, op) {
        Ok(data) => {
            let check = |offset| shadow.check_read(&ticket, offset, &data);
            let report = read_from.map(check).unwrap_or_default();
            shadow.answered(ticket);
            Ok(report)
        }
        Err(error) => {
            shadow.failed(ticket);
            Err(error)
        }
    }
}

/// Everything on a disk.
fn read_all(device: &dyn BlockDevice) -> Result<Vec<u8>, DiskError> {
    let mut held = Vec::with_capacity(device.bytes() as usize);
    while (held.len() as u64) < device.bytes() {
        let offset = held.len() as u64;
        let rest = (device.bytes() - offset).min(u64::from(device.request_bytes_max()));
        held.extend_from_slice(&call(device, DiskOp::Read { offset, bytes: rest as u32 })?);
    }
    Ok(held)
}
