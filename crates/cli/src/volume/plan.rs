//! `oblivio plan`: shows what a volume would cost.

use oblivio_core::durable::{Fact, FactValue, find_number};
use oblivio_nbd::Limits;
use oblivio_store::StoreKind;
use oblivio_volume::disk::BLOCKS_UNDER_WAY_MAX;
use oblivio_volume::keys::Cost as UnlockCost;
use oblivio_volume::plan::{Cost, Slots, StateRoom};
use oblivio_volume::superblock::VolumeParams;
use oblivio_volume::volume::shapes;
use oblivio_volume::{ArrayRequirements, DiskOptions, VolumeError, VolumeOptions};
use serde_json::{Value, json};

use super::alloc::{self, SearchedSlots};
use super::links::LinkEstimate;
use super::media::MediumEstimate;
use super::object_stores::{self, ObjectsEstimate};
use super::room::EXT4_FILE_BYTES_MAX;
use super::sizes;
use crate::args::{PlanArgs, VolumeRequirementsArgs};
use crate::error::CliError;
use crate::output;

/// Default bytes of the cache of a disk.
const CACHE_BYTES_MAX: u64 = DiskOptions::DEFAULT.cache_bytes_max;

/// Additional bytes of memory for long reads that must be answered in one piece, shared by all
/// clients.
const LONG_REPLY_BYTES_MAX: u64 = Limits::DEFAULT.request_bytes_max as u64;

/// `oblivio plan`.
pub(crate) fn plan(args: &PlanArgs) -> Result<(), CliError> {
    let Some(bytes) = args.size else { return sizes::compare(&args.requirements, args.json) };
    let requirements = object_stores::requirements(args, bytes);
    let mut plan = VolumePlan::new(bytes, &requirements, kind(args))?;
    if args.alloc.alloc {
        plan = alloc::search(plan, &args.alloc)?;
    }
    let objects_estimate = ObjectsEstimate::of(&plan, &requirements, args)?;
    let medium_estimate =
        args.medium.map(|medium| MediumEstimate::of(&plan, &requirements, medium)).transpose()?;
    // A volume in objects has a model of its own for a link.
    let link = args.link.filter(|_| objects_estimate.is_none());
    let link_estimate =
        link.map(|link| LinkEstimate::of(&plan, &requirements, link)).transpose()?;
    if args.json {
        let mut json = plan.json();
        if let Some(medium_estimate) = medium_estimate {
            json["on_medium"] = medium_estimate.json();
        }
        if let Some(link_estimate) = link_estimate {
            json["on_link"] = link_estimate.json();
        }
        if let Some(objects_estimate) = objects_estimate {
            json["on_store"] = objects_estimate.json();
        }
        output::print(&format!("{json:#}"))
    } else {
        let more = medium_estimate
            .map(|it| it.text())
            .or(link_estimate.map(|it| it.text()))
            .or(objects_estimate.map(|it| it.text()));
        let more = more.map(|text| format!("\n\n{text}")).unwrap_or_default();
        output::print(&format!("{}\n{}{more}", plan.text(), plan.notes()))
    }
}

/// The kind of store of the planned volume.
fn kind(args: &PlanArgs) -> StoreKind {
    if let Some(store) = args.store {
        return store.kind();
    }
    match args.servers {
        Some(servers) => {
            let colluding = args.colluding.unwrap_or((servers - 1) / 2).into();
            StoreKind::Shares { servers: servers.into(), colluding }
        }
        None if args.requirements.is_for_share_servers() => {
            StoreKind::Shares { servers: SHARE_SERVERS, colluding: (SHARE_SERVERS - 1) / 2 }
        }
        None => StoreKind::default(),
    }
}

/// Default number of share servers.
const SHARE_SERVERS: usize = 3;

/// The parameters of a volume, and their cost.
pub(crate) struct VolumePlan {
    pub(crate) params: VolumeParams,
    /// Requested bytes of the disk, if known.
    pub(super) bytes_requested: Option<u64>,
    /// Facts that the scheme reports about the volume.
    facts: Vec<Fact>,
    pub(super) cost: Cost,
    /// The kind of store that will hold the volume.
    pub(super) kind: StoreKind,
    /// Size of the store in bytes.
    pub(super) store_bytes: u64,
    /// Size of the client's directory.
    pub(super) state_room: StateRoom,
    /// The searched slots of each level, if there was a search.
    pub(super) allocated: Option<SearchedSlots>,
}

impl VolumePlan {
    /// The plan of a disk of `bytes` bytes.
    pub(crate) fn new(
        bytes: u64,
        requirements: &VolumeRequirementsArgs,
        kind: StoreKind,
    ) -> Result<Self, CliError> {
        let uniform =
            Self { bytes_requested: Some(bytes), ..Self::uniform(bytes, requirements, kind)? };
        match &requirements.alloc_from {
            Some(path) => alloc::from_file(uniform, path),
            None => Ok(uniform),
        }
    }

    fn uniform(
        bytes: u64,
        requirements: &VolumeRequirementsArgs,
        kind: StoreKind,
    ) -> Result<Self, CliError> {
        let scheme = requirements.scheme(kind);
        // A block size beyond `u32` is refused like any other that is too large.
        let block_bytes = u32::try_from(requirements.block_bytes(kind)).unwrap_or(u32::MAX);
        let (servers, colluding) = match kind {
            StoreKind::Shares { servers, colluding } => {
                (Some(servers as u8), Some(colluding as u8))
            }
            _ => (None, None),
        };
        let params = VolumeParams::plan(&ArrayRequirements {
            bytes,
            block_bytes,
            servers,
            colluding,
            slots: requirements.slots.map(Slots::Same),
            evict_period: requirements.evict_period,
            stash_blocks_max: requirements.stash,
            tree_top_bytes_max: requirements.tree_top,
            tree_top_ways: requirements.tree_top_ways,
            range_bytes: requirements.range_classes.clone(),
            range_policy: requirements.range_policy,
            client_bytes_max: requirements.client_memory,
            ..ArrayRequirements::new(bytes, scheme)
        })?;
        Self::of(params, kind)
    }

    pub(crate) fn of(params: VolumeParams, kind: StoreKind) -> Result<Self, CliError> {
        let config = params.config()?;
        let (facts, cost) = (config.facts(), config.cost().map_err(VolumeError::from)?);
        // The servers' working data is stored beside their store.
        let beside = match kind {
            StoreKind::Shares { .. } => cost.tree_bytes,
            _ => 0,
        };
        let store_bytes = kind.bytes_needed(&shapes(&params)?)? + beside;
        let state_file_bytes_max = VolumeOptions::default().state_file_bytes_max;
        let state_room = StateRoom::of(&params, state_file_bytes_max)?;
        Ok(Self {
            params,
            bytes_requested: None,
            facts,
            cost,
            kind,
            store_bytes,
            state_room,
            allocated: None,
        })
    }

    /// The scheme's fact `name`, if it is a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        find_number(&self.facts, name)
    }

    /// The scheme's fact `name`, if it is a list of numbers; otherwise empty.
    fn numbers(&self, name: &str) -> &[u64] {
        let numbers = self.facts.iter().find_map(|fact| match fact {
            Fact::Value(its, FactValue::Numbers(numbers)) if *its == name => Some(&numbers[..]),
            _ => None,
        });
        numbers.unwrap_or_default()
    }

    pub(super) fn disk_line(&self) -> String {
        let bytes = self.params.capacity_bytes();
        let rounded = match self.bytes_requested {
            Some(asked) if asked != bytes => format!(", rounded up from {asked}"),
            _ => String::new(),
        };
        format!("disk              {} ({bytes} bytes{rounded})", size(bytes as f64))
    }

    pub(super) fn storage_line(&self) -> String {
        format!(
            "storage           up to {}, {:.1} times the disk: sparse at first, and grows with \
             every access, reads included",
            size(self.store_bytes as f64),
            self.expansion()
        )
    }

    pub(super) fn access_line(&self) -> String {
        let Self { cost, params, .. } = self;
        let of_ranges = match cost.blocks_per_access {
            1 => String::new(),
            blocks => {
                format!("to {} ", size((blocks * u64::from(params.block_bytes)) as f64))
            }
        };
        format!(
            "an access         {of_ranges}reads {} and writes {}, in {:.1} trips, on average",
            size(cost.read_bytes_per_access),
            size(cost.written_bytes_per_access),
            cost.trips_per_access
        )
    }

    /// Lines about the traffic of an access to a range of each size, if the scheme has ranges.
    fn range_lines(&self) -> impl Iterator<Item = String> {
        let [sizes, read, written] = ["range_bytes", "range_read_bytes", "range_written_bytes"]
            .map(|name| self.numbers(name).iter().map(|bytes| size(*bytes as f64)));
        sizes.zip(read).zip(written).map(|((bytes, read), written)| {
            format!("a range           of {bytes}: an access reads {read} and writes {written}")
        })
    }

    fn expansion(&self) -> f64 {
        self.store_bytes as f64 / self.params.capacity_bytes() as f64
    }

    /// The scheme's facts as lines. If slots were searched, the search gives the line about the
    /// stash.
    fn scheme_lines(&self) -> impl Iterator<Item = String> {
        self.facts.iter().filter_map(|fact| match (fact, &self.allocated) {
            (Fact::Line("stash", _), Some(allocated)) => Some(allocated.stash_line()),
            (Fact::Line(about, line), _) => Some(format!("{about:<18}{line}")),
            (Fact::Value(..), _) => None,
        })
    }

    pub(crate) fn text(&self) -> String {
        let Self { params, cost, allocated, .. } = self;
        let mut lines = vec![
            self.disk_line(),
            format!("blocks            {} of {}", params.blocks, size(params.block_bytes.into())),
            format!("scheme            {}", params.scheme),
        ];
        lines.extend(self.scheme_lines());
        lines.extend([
            self.storage_line(),
            format!(
                "state             up to {} in the client's directory, {} while in use",
                size(self.state_room.closed_bytes_max as f64),
                size(self.state_room.in_use_bytes_max as f64)
            ),
            self.access_line(),
        ]);
        lines.extend(self.range_lines());
        lines.extend([
            format!(
                "client memory     {}: up to {} for the position map, {} for {}",
                size(cost.client_bytes() as f64),
                size(cost.position_map_bytes as f64),
                size(cost.blocks_on_client_bytes as f64),
                match self.kind {
                    StoreKind::Shares { .. } => "the matrices of an eviction with a block",
                    _ => "blocks",
                }
            ),
            format!(
                "memory in use     about {} with a few clients, without the program itself: {} \
                 more for the cache (--cache), {} for requests over NBD, {} for data to and from \
                 storage; and {} for long reads of NBD clients without structured replies",
                size(self.bytes_in_use_max() as f64),
                size(self.cache_bytes_max() as f64),
                size(self.requests_bytes_max() as f64),
                size(self.bytes_on_their_way_max() as f64),
                size(LONG_REPLY_BYTES_MAX as f64)
            ),
            format!(
                "checkpoint        every {} accesses at the latest",
                cost.accesses_per_checkpoint
            ),
        ]);
        lines.extend(allocated.iter().flat_map(|allocated| allocated.lines()));
        lines.join("\n")
    }

    /// Notes that do not depend on the location or on how the volume is opened.
    fn notes(&self) -> String {
        let mut lines = vec![format!(
            "opening           needs up to {} more for a moment with a passphrase, nothing with a \
             key file",
            kibibytes(UnlockCost::CALIBRATED_MEMORY_KIB_MAX)
        )];
        let is_in_objects = matches!(self.kind, StoreKind::Objects(_));
        if self.store_bytes > EXT4_FILE_BYTES_MAX && !is_in_objects {
            lines.push(
                "note              too large for one file on ext4 (16 TiB): use another file \
                 system, such as XFS, or stripe: over several locations"
                    .into(),
            );
        }
        lines.join("\n")
    }

    /// Maximum bytes of client memory of a volume that is served over NBD with default options. Not
    /// included: the program itself, memory that the system's allocator keeps, and the buffers of
    /// many connections.
    fn bytes_in_use_max(&self) -> u64 {
        let for_requests = self.requests_bytes_max() + self.bytes_on_their_way_max();
        self.cost.client_bytes() + self.cache_bytes_max() + for_requests
    }

    /// Maximum bytes of memory of the cache, including the metadata that it has for each block.
    fn cache_bytes_max(&self) -> u64 {
        /// Bytes of the cache's metadata per block, measured with blocks of 16 bytes.
        const NOTES_BYTES: u64 = 170;
        let VolumeParams { blocks, block_bytes, .. } = self.params;
        let cached = blocks.min(CACHE_BYTES_MAX / u64::from(block_bytes));
        cached * (u64::from(block_bytes) + NOTES_BYTES)
    }

    /// Maximum bytes of memory for the requests of all clients and their answers, if the server
    /// sends long answers in portions.
    fn requests_bytes_max(&self) -> u64 {
        let Limits { shared_bytes_max, connections_max, in_flight_bytes_max, .. } = Limits::DEFAULT;
        let of_each = in_flight_bytes_max.max(self.params.block_bytes);
        u64::from(shared_bytes_max) + connections_max as u64 * u64::from(of_each)
    }

    /// Maximum bytes of memory of the store, and of the blocks that the cache may hold beyond its
    /// bound while requests are in flight.
    fn bytes_on_their_way_max(&self) -> u64 {
        let of_blocks = BLOCKS_UNDER_WAY_MAX as u64 * u64::from(self.params.block_bytes);
        let shapes = shapes(&self.params).unwrap_or_default();
        self.kind.client_bytes_max(&shapes) + of_blocks
    }

    pub(crate) fn json(&self) -> Value {
        let Self { params, facts, cost, store_bytes, state_room, allocated, .. } = self;
        let mut json = json!({
            "disk_bytes": params.capacity_bytes(),
            "blocks": params.blocks,
            "block_bytes": params.block_bytes,
            "scheme": params.scheme.as_str(),
            "storage_bytes": store_bytes,
            "expansion": self.expansion(),
            "state_bytes_closed_max": state_room.closed_bytes_max,
            "state_bytes_in_use_max": state_room.in_use_bytes_max,
            "blocks_per_access": cost.blocks_per_access,
            "read_bytes_per_access": cost.read_bytes_per_access,
            "written_bytes_per_access": cost.written_bytes_per_access,
            "trips_per_access": cost.trips_per_access,
            "position_map_depth": cost.position_map_depth,
            "position_map_bytes": cost.position_map_bytes,
            "blocks_on_client_bytes": cost.blocks_on_client_bytes,
            "client_bytes": cost.client_bytes(),
            "client_bytes_in_use_max": self.bytes_in_use_max(),
            "long_reply_bytes_max": LONG_REPLY_BYTES_MAX,
            "accesses_per_checkpoint": cost.accesses_per_checkpoint,
        });
        for fact in facts {
            if let Fact::Value(name, value) = fact {
                json[*name] = match value {
                    FactValue::Number(number) => json!(number),
                    FactValue::Numbers(numbers) => json!(numbers),
                    FactValue::Word(word) => json!(word),
                };
            }
        }
        if let Some(allocated) = allocated {
            json["alloc"] = allocated.json();
        }
        json
    }
}

/// A line about the temporary memory that opening needs, if a passphrase opens the volume.
pub(super) fn opening_line(passphrase: Option<UnlockCost>) -> Option<String> {
    let memory = kibibytes(passphrase?.memory_kib());
    Some(format!("opening           needs {memory} more for a moment with the passphrase"))
}

fn kibibytes(kib: u32) -> String {
    size(f64::from(kib) * 1024.0)
}

/// A number of bytes as text, with a suitable unit.
pub(crate) fn size(bytes: f64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let steps = (0..units.len() - 1).take_while(|step| bytes >= 1024f64.powi(*step as i32 + 1));
    match steps.count() {
        0 => format!("{bytes:.0} bytes"),
        step => format!("{:.1} {}", bytes / 1024f64.powi(step as i32), units[step]),
    }
}
