//! Drives a disk through runs that end in crashes, and checks its contract.

use std::collections::BTreeMap;
use std::fmt;

use oblivio_core::store::TreeShape;
use oblivio_volume::device::{BlockDevice, DiskError, DiskOp, call};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::directory::CrashDir;
use super::fault::{Counts, FailedOperation, FailedSync, InjectedFault, Station, Survival};
use super::shadow::{Report, ShadowDisk};
use super::store::CrashStore;
use super::workload::{WorkloadStep, ops};
use super::world::World;

/// A disk and its workload. A trial is deterministic: with equal [`Life`] values, it gives the same
/// run.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The shapes of the store's trees.
    pub shapes: Vec<TreeShape>,
    /// Number of disks that the store is striped over.
    pub disks: usize,
    /// Size of the disk in bytes.
    pub bytes: u64,
    /// The block size of the disk in bytes.
    pub block_bytes: u32,
    /// Number of steps of the workload, over all lives.
    pub steps: usize,
    /// Seed of all random choices.
    pub seed: u64,
    /// The effect of failed syncs.
    pub failed_sync: FailedSync,
}

/// One run of the machine, from opening the disk to a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// The planned faults. Operations are numbered from the opening of the disk.
    pub faults: Vec<InjectedFault>,
    /// The unsynced changes that survive in the store.
    pub store: Survival,
    /// The unsynced changes that survive in the directory.
    pub dir: Survival,
}

impl Life {
    /// Creates a life after which store and directory survive to the same degree.
    pub fn new(faults: &[InjectedFault], survival: Survival) -> Self {
        Self { faults: faults.to_vec(), store: survival, dir: survival }
    }
}

/// Statistics of a trial that the disk passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialOutcome {
    /// The numbers of operations of each life, by kind.
    pub operations: Vec<Counts>,
    /// The numbers of steps of each life at each station.
    pub steps: Vec<BTreeMap<Station, u64>>,
    /// The first operation of each life that a planned fault struck.
    pub failures: Vec<Option<FailedOperation>>,
}

impl TrialOutcome {
    /// The number of lives that a planned fault struck.
    pub fn struck(&self) -> usize {
        self.failures.iter().flatten().count()
    }
}

/// A violation of the contract by the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Number of wrong bytes. If the disk does not answer, the number of all its bytes.
    pub bytes: u64,
    /// A description that names the life and the step.
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
    /// Runs `lives`, and then a life without faults that ends in a power cut, after which no
    /// unsynced change survives. `open` opens the disk, and creates it if it does not exist.
    ///
    /// A life ends at the first error, or when its share of the workload is done. After each crash,
    /// the disk must open, unless a fault prevents that, and must hold what its contract demands.
    ///
    /// # Errors
    /// If the disk violates its contract.
    pub fn run<D: BlockDevice>(
        &self,
        lives: &[Life],
        mut open: impl FnMut(CrashStore, CrashDir) -> Result<D, DiskError>,
    ) -> Result<TrialOutcome, Loss> {
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
        let mut ran =
            TrialOutcome { operations: Vec::new(), steps: Vec::new(), failures: Vec::new() };
        let last = Life::new(&[], Survival::None);
        let share = self.steps / (lives.len() + 1);
        for (i, life) in lives.iter().chain([&last]).enumerate() {
            let in_life = |loss: Loss| loss.during(format_args!("life {i} ({life:?})"));
            world.plan(&life.faults, &mut coins);
            let steps = if i < lives.len() { share } else { usize::MAX };
            let device = bench.live(steps).map_err(in_life)?;
            ran.operations.push(world.counts());
            ran.steps.push(world.steps());
            ran.failures.push(world.first_failure());
            world.crash_apart(&mut coins, life.store, life.dir);
            // Drop it only after the crash: an orderly close would not be a crash.
            drop(device);
            bench.after = Some(After::from_life(life));
        }
        bench.live(0).map_err(|loss| loss.during("after all lives"))?;
        Ok(ran)
    }
}

/// The kind of crash before the current run, which decides how durable the contents are.
#[derive(Clone, Copy)]
enum After {
    /// The power failed: all contents are durable.
    PowerCut,
    /// The process was killed: some contents may exist only in a cache.
    Kill,
}

impl After {
    fn from_life(life: &Life) -> Self {
        let is_kill = life.store == Survival::All || life.dir == Survival::All;
        if is_kill { Self::Kill } else { Self::PowerCut }
    }
}

struct Bench<'w, O, S> {
    world: &'w World,
    /// Size of the disk in bytes.
    bytes: u64,
    open: O,
    shadow: ShadowDisk,
    steps: S,
    /// The last crash, until the disk has been checked after it.
    after: Option<After>,
}

impl<D, O, S> Bench<'_, O, S>
where
    D: BlockDevice,
    O: FnMut() -> Result<D, DiskError>,
    S: Iterator<Item = WorkloadStep>,
{
    /// Opens and checks the disk, and runs at most `steps` steps, until a step fails. Returns the
    /// disk, or `None` if it did not open.
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
            if step == WorkloadStep::Reopen {
                drop(device);
                device = match (self.open)() {
                    Ok(device) => device,
                    Err(error) => return self.excuse("opening", &error).map(|()| None),
                };
            }
        }
        Ok(Some(device))
    }

    /// Accepts an error of the disk if a fault has occurred in this run. Otherwise returns a loss.
    fn excuse(&self, what: &str, error: &DiskError) -> Result<(), Loss> {
        match self.world.faults_fired() {
            0 => Err(Loss {
                bytes: self.bytes,
                message: format!("{what} failed without a fault: {error}"),
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
            return Err(Loss::reported("after the previous crash", &report));
        }
        match after {
            After::PowerCut => self.shadow.adopt(read),
            After::Kill => self.shadow.adopt_unflushed(read),
        }
        self.after = None;
        Ok(Ok(()))
    }
}

/// Sends a request to a disk and to the disk's model. Returns the errors of a read.
///
/// # Errors
/// The error of the disk.
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

/// Reads the whole disk.
fn read_all(device: &dyn BlockDevice) -> Result<Vec<u8>, DiskError> {
    let mut held = Vec::with_capacity(device.bytes() as usize);
    while (held.len() as u64) < device.bytes() {
        let offset = held.len() as u64;
        let rest = (device.bytes() - offset).min(u64::from(device.request_bytes_max()));
        held.extend_from_slice(&call(device, DiskOp::Read { offset, bytes: rest as u32 })?);
    }
    Ok(held)
}
