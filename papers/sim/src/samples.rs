//! Short traces that come with the simulator: enough to try it, and too short for any figure.

/// A name and a compressed trace, for [`Trace::read`](crate::trace::Trace::read). Those that follow the set of IR-ORAM's Table II stand
/// for the programs of these names; `sjeng` is a trace of SPEC06 that comes with Ramulator 1.0, under its licence.
pub const SAMPLES: [(&str, &[u8]); 14] = [
    ("gcc", include_bytes!("../samples/gcc.trace.gz")),
    ("mcf", include_bytes!("../samples/mcf.trace.gz")),
    ("xz", include_bytes!("../samples/xz.trace.gz")),
    ("xalancbmk", include_bytes!("../samples/xalancbmk.trace.gz")),
    ("deepsjeng", include_bytes!("../samples/deepsjeng.trace.gz")),
    ("bwaves", include_bytes!("../samples/bwaves.trace.gz")),
    ("lbm", include_bytes!("../samples/lbm.trace.gz")),
    ("cam4", include_bytes!("../samples/cam4.trace.gz")),
    ("imagick", include_bytes!("../samples/imagick.trace.gz")),
    ("roms", include_bytes!("../samples/roms.trace.gz")),
    ("blackscholes", include_bytes!("../samples/blackscholes.trace.gz")),
    ("streamcluster", include_bytes!("../samples/streamcluster.trace.gz")),
    ("freqmine", include_bytes!("../samples/freqmine.trace.gz")),
    ("sjeng", include_bytes!("../samples/sjeng.trace.gz")),
];
