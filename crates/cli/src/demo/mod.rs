//! `oblivio demo`: a file in an oblivious array, seen from both sides.
//!
//! - [`owner`]: what the owner asks for, in phases that everyone would recognise.
//! - [`onlooker`]: what storage saw of it.
//! - [`picture`], [`terminal`], [`report`]: the two side by side, and the figures.

mod onlooker;
mod owner;
mod picture;
mod report;
mod source;
mod terminal;

use oblivio_core::scheme::Backend;
use oblivio_core::view::{Event, EventSink, Recorder};
use oblivio_core::{FlatOram, Key, MemoryStore, PathOram, RawConfig, RawOram, Sealer, TreeConfig};
use rand::SeedableRng;
use rand::rngs::{StdRng, SysRng};

use crate::args::{DemoArgs, SchemeName};
use crate::clock::Stopwatch;
use crate::error::CliError;
use crate::files::OutputDir;
use crate::{output, progress, view};
use onlooker::Onlooker;
use owner::{Diary, Owner};
use report::Report;
use source::Source;

/// `oblivio demo`.
pub(crate) fn run(args: &DemoArgs) -> Result<(), CliError> {
    let source = Source::read(args)?;
    let config = SchemeConfig::new(args.scheme, &source)?;
    let output_dir = OutputDir::prepare(&args.output)?;
    let view_path = output_dir.path("demo.view");

    let mut onlooker = Onlooker::new(&view_path, &config)?;
    let diary = play(&config, &source, coins(args.seed)?, &mut onlooker)?;
    let seen = onlooker.finish()?;

    let csv_path = output_dir.path("demo.csv");
    view::write_csv(&view::read(&view_path)?, &csv_path)?;
    let picture_path = output_dir.write("demo.svg", &picture::svg(&diary, &seen)?)?;

    let report = Report::new(args, &source, &diary, &seen, [&picture_path, &view_path, &csv_path]);
    if args.json {
        output::print(&report.json()?)?;
    } else {
        output::print(&format!("{}\n{}", terminal::plots(&diary, &seen), report.text()))?;
    }
    report.check_identical()
}

/// The tree that carries the file.
enum SchemeConfig {
    Path(TreeConfig),
    Raw(RawConfig),
}

impl SchemeConfig {
    fn new(scheme: SchemeName, source: &Source) -> Result<Self, CliError> {
        let (blocks, block_bytes) = (source.block_count(), source.block_bytes);
        let config = match scheme {
            SchemeName::Path => Self::Path(TreeConfig::path(blocks, block_bytes)?),
            SchemeName::Raw => Self::Raw(RawConfig::new(blocks, block_bytes)?),
        };
        // Whatever cannot exist is refused before any file is touched.
        config.tree().shape()?;
        Ok(config)
    }

    fn tree(&self) -> &TreeConfig {
        match self {
            Self::Path(tree) | Self::Raw(RawConfig { tree, .. }) => tree,
        }
    }
}

/// Lets the owner do everything, under the eyes of the onlooker.
fn play(
    config: &SchemeConfig,
    source: &Source,
    mut coins: StdRng,
    onlooker: &mut Onlooker,
) -> Result<Diary, CliError> {
    let tree = config.tree();
    let sealer = Sealer::aes128(&Key::draw(&mut coins), tree.tree);
    let memory = MemoryStore::new(&[tree.shape()?], MemoryStore::default_layout())?;
    let store = Recorder::new(memory, |event: &Event, contents: &[u8]| {
        onlooker.record(event, contents);
    });
    let owner = Owner::new(source, StdRng::from_rng(&mut coins));
    match config {
        SchemeConfig::Path(path) => live(owner, PathOram::path(path, sealer, store, coins)?),
        SchemeConfig::Raw(raw) => live(owner, RawOram::raw(raw, sealer, store, coins)?),
    }
}

/// Lets the owner use `oram` from the first block to the last, and asks the engine how it went.
fn live<B: Backend>(
    mut owner: Owner<'_>,
    mut oram: FlatOram<B, StdRng>,
) -> Result<Diary, CliError> {
    let bar = progress::bar(owner.total_accesses());
    let stopwatch = Stopwatch::start();
    owner.use_all(&mut oram, &|| bar.inc(1))?;
    let elapsed = stopwatch.elapsed();
    bar.finish_and_clear();
    Ok(owner.into_diary(elapsed, oram.aes_blocks(), oram.stash().occupancy().peak_blocks()))
}

fn coins(seed: Option<u64>) -> Result<StdRng, CliError> {
    match seed {
        Some(seed) => Ok(StdRng::seed_from_u64(seed)),
        None => StdRng::try_from_rng(&mut SysRng).map_err(|error| {
            CliError::Engine(format!("the system gives no randomness ({error}): use --seed"))
        }),
    }
}
