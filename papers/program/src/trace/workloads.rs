//! Programs that replace the programs of Table II of IR-ORAM.
//!
//! SPEC must not be redistributed. If a free program of the same kind is available, it is recorded:
//! a compiler, a database. Otherwise, a kernel imitates the access pattern. Sizes and work are
//! chosen to come close to the table in reads and writes per 1000 instructions, past a cache of 2
//! MiB.

/// A program to record, and the name of its trace.
pub(super) struct Workload {
    /// The program's name in the table, or its own name if it is not in the table.
    pub(super) name: &'static str,
    /// A short description of the recorded program.
    pub(super) what: &'static str,
    /// Reads and writes per 1000 instructions in Table II.
    pub(super) paper: Option<(f64, f64)>,
    pub(super) program: Program,
    /// Instructions before the first record. The number is large enough to skip the creation of the
    /// data.
    pub(super) warm_up: u64,
}

/// The program to run.
pub(super) enum Program {
    /// `oblivio-kernels`, run with these arguments.
    Kernel(&'static str),
    /// The compiler proper of gcc (`cc1`), run on a generated program.
    Compiler { functions: u32 },
    /// An installed program, run with these arguments.
    System(&'static str, &'static [&'static str]),
    /// The source of a program in Python, run by the installed interpreter.
    Python(&'static str),
}

const DATABASE: &str = "\
    create table t(id integer primary key, name text, amount integer);\
    create index by_amount on t(amount);\
    with recursive n(i) as (select 1 union all select i + 1 from n where i < 400000)\
    insert into t select i, 'name ' || (i * 7919 % 100003), i * 31337 % 1000003 from n;\
    select count(*), sum(amount) from t where amount between 1000 and 900000;\
    select name, count(*) from t group by name order by 2 desc limit 5;\
    update t set amount = amount + 1 where id % 3 = 0;\
    select sum(a.amount) from t a join t b on a.id = b.amount;";

const DICTIONARY: &str = "\
counts = {}
for i in range(20000000):
    word = i * 7919 % 400009
    counts[word] = counts.get(word, 0) + i
";

const M: u64 = 1_000_000;

pub(super) const WORKLOADS: [Workload; 14] = [
    Workload {
        name: "gcc",
        what: "cc1 -O3",
        paper: Some((0.1, 0.3)),
        program: Program::Compiler { functions: 100 },
        warm_up: 200 * M,
    },
    Workload {
        name: "mcf",
        what: "pointer chase",
        paper: Some((19.5, 0.1)),
        program: Program::Kernel("chase --lines 1048576 --steps 100000000 --work 8"),
        warm_up: 300 * M,
    },
    Workload {
        name: "xz",
        what: "in-place sort",
        paper: Some((24.9, 29.6)),
        program: Program::Kernel("sort --kib 32768 --rounds 100"),
        warm_up: 20 * M,
    },
    Workload {
        name: "xalancbmk",
        what: "sqlite3",
        paper: Some((0.05, 0.1)),
        program: Program::System("sqlite3", &[":memory:", DATABASE]),
        warm_up: 100 * M,
    },
    Workload {
        name: "deepsjeng",
        what: "hash updates",
        paper: Some((0.0, 5.7)),
        program: Program::Kernel("hash --kib 65536 --steps 100000000 --work 29"),
        warm_up: 100 * M,
    },
    Workload {
        name: "bwaves",
        what: "5 arrays stored",
        paper: Some((0.0, 20.7)),
        program: Program::Kernel("stream --arrays 5 --kib 16384 --rounds 1000 --work 21"),
        warm_up: 50 * M,
    },
    Workload {
        name: "lbm",
        what: "19 arrays stored",
        paper: Some((0.0, 45.3)),
        program: Program::Kernel("stream --arrays 19 --kib 4096 --rounds 1000 --work 2"),
        warm_up: 50 * M,
    },
    Workload {
        name: "cam4",
        what: "stencil",
        paper: Some((0.01, 8.8)),
        program: Program::Kernel("stencil --reuse 1000 --rounds 1000 --work 1"),
        warm_up: 50 * M,
    },
    Workload {
        name: "imagick",
        what: "stencil",
        paper: Some((0.3, 2.9)),
        program: Program::Kernel("stencil --reuse 10 --rounds 1000 --work 5"),
        warm_up: 100 * M,
    },
    Workload {
        name: "roms",
        what: "3 arrays stored",
        paper: Some((0.02, 23.0)),
        program: Program::Kernel("stream --arrays 3 --kib 32768 --rounds 1000 --work 19"),
        warm_up: 50 * M,
    },
    Workload {
        name: "blackscholes",
        what: "scan, few results",
        paper: Some((2.6, 0.4)),
        program: Program::Kernel("scan --per-result 6 --rounds 1000 --work 6"),
        warm_up: 50 * M,
    },
    Workload {
        name: "freqmine",
        what: "scan, few results",
        paper: Some((2.1, 0.4)),
        program: Program::Kernel("scan --kib 32768 --per-result 5 --rounds 1000 --work 7"),
        warm_up: 50 * M,
    },
    Workload {
        name: "streamcluster",
        what: "scan, few results",
        paper: Some((2.7, 0.5)),
        program: Program::Kernel("scan --kib 16384 --per-result 5 --rounds 1000 --work 5"),
        warm_up: 50 * M,
    },
    Workload {
        name: "python",
        what: "dictionary",
        paper: None,
        program: Program::Python(DICTIONARY),
        warm_up: 500 * M,
    },
];
