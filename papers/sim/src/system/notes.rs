//! The comments on the keys of a machine's file: meaning, unit, and source of the number.
//!
//! *The paper* is IR-ORAM. Sections and tables without a paper's name are in IR-ORAM.

/// The comment on the key with this path.
pub(super) fn note(path: &str) -> Option<&'static str> {
    NOTES.iter().find(|(key, _)| *key == path).map(|(_, note)| *note)
}

/// Pairs of a path and its comment, in the order of the file.
pub(super) const NOTES: &[(&str, &str)] = &[
    ("channels", "Channels of DRAM. Table I: 4."),
    (
        "layout",
        "Layout of trees in DRAM: \"heap\" (level after level), \"subtrees\" (of levels that fill \
         a row of every channel; the paper) or \"balanced\" (subtrees, with the lines of each path \
         spread over the channels; no paper describes it).",
    ),
    (
        "header_lines",
        "Lines of 64 bytes in a bucket's header. The paper counts none, Tiny ORAM one.",
    ),
    (
        "memory_latency",
        "Processor cycles from DRAM to the chip, in addition to DRAM's own, once per path. No \
         paper on processors gives a number.",
    ),
    ("processor", "The processor and its last-level cache (LLC)."),
    (
        "processor.clock_mhz",
        "Clock in MHz. All cycles here and below are of this clock. Section V: 3200.",
    ),
    ("processor.width", "Instructions fetched per cycle. Table I: 4."),
    (
        "processor.retire_width",
        "Instructions retired per cycle, at most width. No paper gives a number; the default is \
         width. USIMM's configuration for one channel has 2.",
    ),
    ("processor.rob", "Entries of the reorder buffer, in instructions. Table I: 128."),
    (
        "processor.depth",
        "Cycles from fetch to completion of an instruction that waits for nothing. No paper gives \
         a number; USIMM has 10.",
    ),
    ("processor.llc_bytes", "Size of the LLC in bytes. Table I: 2 MB."),
    ("processor.llc_ways", "Associativity of the LLC. Table I: 8."),
    (
        "processor.llc_latency",
        "Cycles of an LLC look-up, in addition to depth. No paper gives a number; 10 is usual for \
         this size.",
    ),
    (
        "processor.fetch_on_write_miss",
        "Whether a write that misses the LLC fetches its line first. No paper states this. Delayed \
         remapping needs it.",
    ),
    (
        "processor.write_back_room",
        "The most write-backs that may wait for memory. No paper gives a number.",
    ),
    (
        "processor.fetch_room",
        "The most fetches in flight, of reads and of writes. No paper gives a number; 16 miss \
         registers are usual.",
    ),
    (
        "processor.paths_stop_retirement",
        "Whether each path of an ORAM stops retirement until it is read: an in-order front end, \
         with fetch_room = 1. No paper states this; published simulators do it.",
    ),
    (
        "dram",
        "One channel of DRAM. Table I gives only its clock; the rest is the data sheet of \
         DDR3-1600.",
    ),
    ("dram.name", "Name."),
    (
        "dram.clock_mhz",
        "Clock of the command bus in MHz; data moves twice per clock. Table I: 800.",
    ),
    ("dram.ranks", "Ranks per channel, a power of two. No paper gives a number; USIMM has 2."),
    ("dram.banks", "Banks per rank, over all bank groups; a power of two. Data sheet."),
    ("dram.rows", "Rows per bank, a power of two. Enough for the tree; no paper gives a number."),
    ("dram.row_bytes", "Bytes of a row, over all chips of a rank; a power of two. Data sheet."),
    ("dram.line_bytes", "Bytes of a burst: one line of the processor, 64."),
    ("dram.burst_clocks", "Clocks of the command bus per burst. Data sheet."),
    (
        "dram.address_order",
        "What the bits of a line's number select, most significant first: row, rank, bank, column, \
         channel, and group if there are bank groups. No paper gives the order.",
    ),
    ("dram.timing", "Minimum clocks of the command bus between commands. All from the data sheet."),
    ("dram.timing.tCAS", "From a read to the first beat of its data."),
    ("dram.timing.tRCD", "From opening a row to a read or write."),
    ("dram.timing.tRP", "From closing a row to opening the next."),
    ("dram.timing.tRAS", "From opening a row to closing it."),
    ("dram.timing.tRC", "From opening a row to opening the next in the same bank."),
    ("dram.timing.tRRD", "From opening a row to opening one in another bank of the rank."),
    ("dram.timing.tFAW", "A rank opens at most four rows in any window of this length."),
    ("dram.timing.tWR", "From the last beat of a write to closing its row."),
    ("dram.timing.tWTR", "From the last beat of a write to a read of the same rank."),
    ("dram.timing.tRTP", "From a read to closing its row."),
    ("dram.timing.tCCD", "From a read to a read, and a write to a write, of the same rank."),
    ("dram.timing.tCWD", "From a write to the first beat of its data."),
    ("dram.timing.tRTRS", "Idle time of the data bus when the rank or the direction changes."),
    ("dram.timing.tREFI", "Interval between refreshes of a rank."),
    ("dram.timing.tRFC", "From a refresh of a rank to the next command to it."),
    (
        "dram.bank_groups",
        "Bank groups, from DDR4 on: banks of one group share circuits, so their commands must be \
         further apart, in clocks. DDR3 has none.",
    ),
    ("dram.bank_groups.groups", "Groups per rank, a power of two. Data sheet."),
    ("dram.bank_groups.tCCD_L", "tCCD within a group. Data sheet."),
    ("dram.bank_groups.tRRD_L", "tRRD within a group. Data sheet."),
    ("dram.bank_groups.tWTR_L", "tWTR within a group. Data sheet."),
    (
        "dram.queues",
        "The requests from which a channel's scheduler chooses, in lines. No paper gives numbers; \
         these are USIMM's.",
    ),
    ("dram.queues.read", "Window of reads."),
    ("dram.queues.write", "Window of writes."),
    ("dram.queues.drain_high", "From this number of writes on, writes go before reads ..."),
    ("dram.queues.drain_low", "... until only this number is left."),
    ("controller", "The ORAM controller on the chip. A machine without an ORAM ignores it."),
    (
        "controller.pace",
        "When paths start: \"free\" (as soon as there is a request), or after T cycles: \
         start-to-start = T, gap = T (from the end of a path), or when-idle = T (a dummy after T \
         cycles without a request; not oblivious). The paper: \"one path access per T cycles\" \
         with T = 1000; it does not say what T counts.",
    ),
    ("controller.early_write_backs", "Whether unused slots write back dirty lines (IR-DWB)."),
    (
        "controller.on_chip",
        "Cycles on the chip: for a hit in the stash, and from the bus to the LLC. No paper gives a \
         number.",
    ),
    (
        "controller.write_queue_answers",
        "Whether the reads of an eviction or a dummy are answered from DRAM's write queue, so that \
         the path costs half. No paper states this; published simulators seem to do it. Not \
         oblivious: the bus shows which paths these are.",
    ),
    (
        "controller.context_switch",
        "Cycles that the program runs until it is switched out. Then its stash is evicted to the \
         tree, and the tree top is moved to memory and back (section IV-C); the PLB, the positions \
         on the chip and the LLC stay. Without this key it is never switched out.",
    ),
    (
        "controller.write_marks",
        "When write-backs of the LLC go before its reads, in lines. No paper gives numbers.",
    ),
    (
        "controller.write_marks.high",
        "From this number of waiting write-backs on, they go first ...",
    ),
    ("controller.write_marks.low", "... until only this number is left."),
    ("oram", "The ORAM. Without this table, the LLC accesses DRAM directly."),
    ("oram.data_blocks", "Number of data blocks. Table I: 4 GB, or 67108864 blocks of 64 bytes."),
    (
        "oram.block_lines",
        "Lines of 64 bytes per block. Table I: 1. With larger blocks the tree has fewer of them, \
         and a position-map block has more positions: set data_blocks, slots and fan_out too.",
    ),
    (
        "oram.slots",
        "Slots per bucket (Z) on each level, from the root to the leaves. Table I: 4 on 25 levels. \
         IR-Alloc has fewer on some.",
    ),
    (
        "oram.scheme",
        "\"path\" (Path ORAM; the paper), or the table [oram.scheme.raw] with evict_period = A: \
         RAW ORAM of Tiny ORAM, which evicts after A accesses.",
    ),
    ("oram.tree_top_levels", "Levels kept on the chip, from the root down. Section VI: 10."),
    (
        "oram.tree_top_ways",
        "Associativity of the tree top, if the chip keeps it in sets and finds blocks by address \
         (the S-Stash of IR-Stash, section VI: 4). Without this key it is a dedicated cache (Table \
         I).",
    ),
    (
        "oram.stash_blocks_max",
        "Stash bound in blocks, above which background evictions are made. Table I: 200 entries, \
         of which a path takes 100.",
    ),
    ("oram.plb_blocks", "Position-map blocks in the PLB. Table I: 64 KB, or 1024 blocks."),
    ("oram.plb_ways", "Associativity of the PLB, a divisor of plb_blocks. Freecursive ORAM: 1."),
    (
        "oram.fan_out",
        "Positions per position-map block (X). Freecursive ORAM: 16, or 32 compressed.",
    ),
    (
        "oram.client_entries_max",
        "The most positions kept on the chip. Table I: 512 KB, or 262144 positions of two bytes. \
         No paper gives the bytes per position.",
    ),
    (
        "oram.position_map",
        "Location of the position map outside of the chip: \"in-tree\" (with the data, behind a \
         PLB; the default) or \"own-trees\" (plain recursion: each level in a tree of its own, a \
         path of each tree per request, no PLB).",
    ),
    (
        "oram.remap",
        "When a block gets a new leaf: \"at-access\" (the paper), or \"delayed\" (LLC-D: when the \
         LLC evicts it).",
    ),
    (
        "oram.initial",
        "Initial contents of the ORAM: \"empty\", \"placed\" (every block, in the deepest free \
         slot of its path), \"each-once\" (every block, accessed once in random order; section \
         III-B), or aged = N (placed, and then N random requests per thousand data blocks). No \
         paper gives the contents of the timed runs.",
    ),
    ("oram.rho", "Rho: a small tree in front. Without this table there is none."),
    (
        "oram.rho.blocks",
        "Blocks of the small tree. Section VI: L = 19 and Z = 2, or 262144 blocks with 25 levels.",
    ),
    (
        "oram.rho.small_per_main",
        "Accesses to the small tree per access to the main tree. Section VI: 2.",
    ),
    (
        "oram.rho.old_copy",
        "A block's old copy in the main tree, when the LLC evicts the block to the small tree: \
         \"taken-out\", or \"left-behind\" (not an ORAM: it approximates what the rule could \
         gain). No paper describes it.",
    ),
];
