//! Short sample traces. They suffice to try the simulator, but are too short for measurements.

/// The name and the compressed file of each sample, for
/// [`Trace::read`](crate::trace::Trace::read). Each sample except `sjeng` imitates the program of
/// IR-ORAM's Table II after which it is named. `sjeng` is a SPEC06 trace that comes with Ramulator
/// 1.0, under the licence of Ramulator.
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
