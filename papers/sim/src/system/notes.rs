//! What each key of a machine's file means, in plain words: unit, and where its number comes from.
//!
//! A *paper* without a name is IR-ORAM.

/// The comment on a key, by its path.
pub(super) fn note(path: &str) -> Option<&'static str> {
    NOTES.iter().find(|(key, _)| *key == path).map(|(_, note)| *note)
}

/// In the order of a file.
pub(super) const NOTES: &[(&str, &str)] = &[
    ("channels", "Channels of DRAM. Table I: 4."),
    (
        "layout",
        "How trees lie in DRAM: \"heap\" (level after level), \"subtrees\" (as many levels as fill a row of every channel \
         together; the paper) or \"balanced\" (the same, with the lines of each path spread over the channels; no paper says how).",
    ),
    (
        "header_lines",
        "Lines of 64 bytes in a bucket's header. The paper counts none, Tiny ORAM one.",
    ),
    (
        "memory_latency",
        "Cycles of the processor from DRAM to the chip on top of DRAM's own, once for each path. No paper on processors says any.",
    ),
    ("processor", "The processor and its last-level cache (LLC)."),
    (
        "processor.clock_mhz",
        "Clock in MHz. A cycle, here and below, is one of this clock. Section V: 3200.",
    ),
    ("processor.width", "Instructions fetched in a cycle. Table I: 4."),
    (
        "processor.retire_width",
        "Instructions retired in a cycle, width at most. No paper says how many; without this key as many as are fetched. USIMM's \
         configuration for one channel has 2.",
    ),
    ("processor.rob", "Entries of the reorder buffer, in instructions. Table I: 128."),
    (
        "processor.depth",
        "Cycles from fetch to completion of an instruction that waits for nothing. No paper says how many; USIMM has 10.",
    ),
    ("processor.llc_bytes", "Size of the LLC in bytes. Table I: 2 MB."),
    ("processor.llc_ways", "Places of each line in the LLC. Table I: 8."),
    (
        "processor.llc_latency",
        "Cycles to look into the LLC, on top of depth. No paper says how many; 10 is usual for this size.",
    ),
    (
        "processor.fetch_on_write_miss",
        "Whether a write that misses the LLC fetches its line first. No paper says so. Delayed remapping needs it.",
    ),
    (
        "processor.write_back_room",
        "Write-backs that may wait until memory takes them. No paper says how many.",
    ),
    (
        "processor.fetch_room",
        "Fetches under way at once, those of reads and of writes. No paper says how many; 16 miss registers are usual.",
    ),
    (
        "processor.paths_stop_retirement",
        "Whether each path of an ORAM stops retirement until it is read: a front end in order, with fetch_room = 1. No paper says \
         so; published simulators have it.",
    ),
    (
        "dram",
        "One channel of DRAM. Table I names its clock alone; the rest is the data sheet of DDR3-1600.",
    ),
    ("dram.name", "What to call it."),
    ("dram.clock_mhz", "Clock of the command bus in MHz; data moves twice a clock. Table I: 800."),
    ("dram.ranks", "Ranks of a channel, a power of two. No paper says how many; USIMM has 2."),
    ("dram.banks", "Banks of a rank, in all its groups; a power of two. Data sheet."),
    (
        "dram.rows",
        "Rows of a bank, a power of two. As many as the tree needs; no paper says how many.",
    ),
    ("dram.row_bytes", "Bytes of a row in all chips of a rank, a power of two. Data sheet."),
    ("dram.line_bytes", "Bytes of a burst, a line of the processor: 64."),
    ("dram.burst_clocks", "Clocks of the command bus that a burst takes. Data sheet."),
    (
        "dram.address_order",
        "What the bits of a line's number select, the most significant first: row, rank, bank, column, channel, and group where \
         there are bank groups. No paper says in which order.",
    ),
    (
        "dram.timing",
        "Clocks of the command bus that must lie between commands. All from the data sheet.",
    ),
    ("dram.timing.tCAS", "From a read to the first beat of its data."),
    ("dram.timing.tRCD", "From opening a row to a read or write."),
    ("dram.timing.tRP", "From closing a row to opening the next."),
    ("dram.timing.tRAS", "From opening a row to closing it."),
    ("dram.timing.tRC", "From opening a row to opening the next in the same bank."),
    ("dram.timing.tRRD", "From opening a row to opening one in another bank of the rank."),
    ("dram.timing.tFAW", "In any stretch of so many clocks a rank opens four rows at most."),
    ("dram.timing.tWR", "From the last beat of a write to closing its row."),
    ("dram.timing.tWTR", "From the last beat of a write to a read of the same rank."),
    ("dram.timing.tRTP", "From a read to closing its row."),
    ("dram.timing.tCCD", "From a read to a read, and a write to a write, of the same rank."),
    ("dram.timing.tCWD", "From a write to the first beat of its data."),
    (
        "dram.timing.tRTRS",
        "For how long the data bus is silent when the rank or the direction changes.",
    ),
    ("dram.timing.tREFI", "How often a rank is refreshed."),
    ("dram.timing.tRFC", "From a refresh of a rank to the next command to it."),
    (
        "dram.bank_groups",
        "Banks of one group share circuits, from DDR4 on: further apart, in clocks. DDR3 has none.",
    ),
    ("dram.bank_groups.groups", "Groups of a rank, a power of two. Data sheet."),
    ("dram.bank_groups.tCCD_L", "tCCD within a group. Data sheet."),
    ("dram.bank_groups.tRRD_L", "tRRD within a group. Data sheet."),
    ("dram.bank_groups.tWTR_L", "tWTR within a group. Data sheet."),
    (
        "dram.queues",
        "The requests from which a channel chooses, in lines. No paper says how many; USIMM has these.",
    ),
    ("dram.queues.read", "Reads in view."),
    ("dram.queues.write", "Writes in view."),
    ("dram.queues.drain_high", "From so many writes on, they go before reads ..."),
    ("dram.queues.drain_low", "... until so many are left."),
    (
        "controller",
        "The ORAM controller on the chip. A machine without an ORAM takes no notice of it.",
    ),
    (
        "controller.pace",
        "When paths start: \"free\" (as soon as there is a request), or after T cycles: start-to-start = T, gap = T (from the end \
         of a path), or when-idle = T (a dummy after T cycles without a request; not oblivious). The paper: \"one path access per \
         T cycles\", with T = 1000, and not what T counts.",
    ),
    (
        "controller.early_write_backs",
        "Whether slots that nobody needs write back dirty lines (IR-DWB).",
    ),
    (
        "controller.on_chip",
        "Cycles on the chip: for the stash, and from the bus to the LLC. No paper says how many.",
    ),
    (
        "controller.write_queue_answers",
        "Whether the reads of an eviction or a dummy are answered from the queue of DRAM's writes, so that it costs half. No paper \
         says so; published simulators seem to do it. Not oblivious: the bus shows which paths these are.",
    ),
    (
        "controller.context_switch",
        "For how many cycles the program runs until it is switched out. Then its stash goes to the tree, and the tree top to memory \
         and back (section IV-C); the PLB, the positions on the chip and the LLC stay. Without this key it is never switched out.",
    ),
    (
        "controller.write_marks",
        "When write-backs of the LLC come before its reads, in lines. No paper says when.",
    ),
    ("controller.write_marks.high", "From so many that wait on, they come first ..."),
    ("controller.write_marks.low", "... until so many wait."),
    ("oram", "The ORAM. Without this table, the LLC asks DRAM itself."),
    ("oram.data_blocks", "Blocks of data. Table I: 4 GB, which are 67108864 of 64 bytes."),
    (
        "oram.block_lines",
        "Lines of 64 bytes in a block. Table I: 1. With larger blocks the tree has fewer, and a position-map block more positions: \
         set data_blocks, slots and fan_out too.",
    ),
    (
        "oram.slots",
        "Blocks of a bucket (Z) on each level, from the root to the leaves. Table I: 4 on 25 levels. IR-Alloc has fewer on some.",
    ),
    (
        "oram.scheme",
        "\"path\" (Path ORAM; the paper), or the table [oram.scheme.raw] with evict_period = A: RAW ORAM of Tiny ORAM, which \
         evicts after A accesses.",
    ),
    (
        "oram.tree_top_levels",
        "Levels from the root down that are kept on the chip. Section VI: 10.",
    ),
    (
        "oram.tree_top_ways",
        "How the chip keeps them: in sets of so many blocks, found by their address (the S-Stash of IR-Stash, section VI: 4). \
         Without this key, in a dedicated cache (Table I).",
    ),
    (
        "oram.stash_blocks_max",
        "Blocks that may stay in the stash; past it, background eviction. Table I: 200 entries, of which a path takes 100.",
    ),
    ("oram.plb_blocks", "Position-map blocks in the PLB. Table I: 64 KB, which are 1024."),
    (
        "oram.plb_ways",
        "Places in the PLB for each of them, a divisor of plb_blocks. Freecursive ORAM: 1.",
    ),
    (
        "oram.fan_out",
        "Positions in a position-map block (X). Freecursive ORAM: 16, or 32 compressed.",
    ),
    (
        "oram.client_entries_max",
        "Positions that may lie on the chip. Table I: 512 KB; at two bytes each these are 262144. No paper says how many bytes.",
    ),
    (
        "oram.position_map",
        "Where the position map lies that is not on the chip: \"in-tree\" (with the data, behind a PLB; what is not said) or \
         \"own-trees\" (each level in a tree of its own, a path of each for a request, no PLB: plain recursion).",
    ),
    (
        "oram.remap",
        "When a block gets a new leaf: \"at-access\" (the paper), or \"delayed\" (LLC-D: when the LLC gives it back).",
    ),
    (
        "oram.initial",
        "What the ORAM holds at first: \"empty\", \"placed\" (every block, in the deepest free slot of its path) \"each-once\" \
         (every block, accessed once in a random order; section III-B), or aged = N (placed, and then N random requests for each \
         thousand data blocks). No paper says it of the timed runs.",
    ),
    ("oram.rho", "A small tree in front (Rho). Without this table there is none."),
    (
        "oram.rho.blocks",
        "Blocks of the small tree. Section VI: L = 19 and Z = 2; these are 262144 beside 25 levels.",
    ),
    (
        "oram.rho.small_per_main",
        "Accesses to the small tree for each one to the main tree. Section VI: 2.",
    ),
    (
        "oram.rho.old_copy",
        "What becomes of a block's copy in the main tree when the LLC gives the block to the small one: \"taken-out\", or \
         \"left-behind\" (no ORAM: it approximates what the rule could gain). No paper says it.",
    ),
];
