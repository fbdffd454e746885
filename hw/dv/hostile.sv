// SPDX-License-Identifier: Apache-2.0 OR MIT

/// A back end under bad input: garbage from memory, memory errors, bad commands, bad start-up and
/// counters at their end. For every input, each command is answered in time. A closed controller
/// answers with its status, and starts no operation. After a memory error or a corrupt bucket no
/// byte of memory changes.
///
/// `ORAM_RAW` selects `raw_backend`; without it, the controller is `path_backend`.
///
/// | argument | meaning |
/// |---|---|
/// | +mode=N | what is wrong, see `mode_e` (0: nothing) |
/// | +accesses=N | commands before the run ends, if the controller stays open (200) |
/// | +hurries=1 | commands to the closed controller do not wait until memory is quiet |
/// | +after=N | commands to the closed controller (20) |
/// | +percent=N | beats that are changed (5) |
/// | +status=N | the status with which the controller must close (7: 3 or 4) |
/// | +expect=N | 1: must close, 0: must stay open, 2: either (2) |
/// | +stalls=PERCENT | stalled cycles of each port (0) |
/// | +early_reads=1 | memory returns reads before the data of earlier writes to other addresses |
/// | +seed=N | seed of everything random (1) |
/// | +watchdog=CYCLES | most cycles from an offered command to its last beat (30000) |
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off SYNCASYNCNET
module hostile #(
  parameter int unsigned LeafLevel = 2,
  parameter int unsigned BucketSlots = 4,
  parameter int unsigned StashBlocksMax = 4,
  parameter int unsigned EvictPeriod = 2,
  parameter int unsigned EvictPeriodMax = 8,
  parameter int unsigned BlockBytes = 64,
  parameter int unsigned BusBits = 512,
  parameter int unsigned AesCores = 1,
  parameter longint unsigned Capacity = 64'd8,
  parameter int unsigned MemoryLatency = 30
) (
  input  logic clk_i,
  output logic done_o,
  output logic failed_o
);

`ifdef ORAM_RAW
  localparam bit Raw = 1'b1;
`else
  localparam bit Raw = 1'b0;
`endif

  typedef enum int {
    Honest = 0,
    // Beats of random bytes, with one bit changed, of zeros, and of ones.
    RandomBeats = 1,
    FlippedBits = 2,
    Zeros = 3,
    Ones = 4,
    // The first beat that was ever written to the address.
    Replayed = 5,
    // A header with a plausible counter and a random rest.
    RandomHeaders = 6,
    // Sealing is an XOR: dummies of a header become blocks with addresses and leaves that exist.
    ForgedHeaders = 7,
    // Any of the above.
    Mixed = 8,
    MemoryError = 9,
    // Commands.
    BadAddress = 10,
    BadOldLeaf = 11,
    BadNewLeaf = 12,
    AppendTwice = 13,
    // All blocks are mapped to leaf 0, whose path has not enough slots.
    OneLeaf = 14,
    // A dummy of a header becomes a block that no bucket may hold: with an address out of range,
    // off its path, with a leaf out of range; or the wanted one, which is in the stash.
    ForgedAddress = 15,
    ForgedPath = 16,
    ForgedLeaf = 17,
    ForgedCopy = 18,
    // Start-up.
    PeriodZero = 20,
    PeriodTooLarge = 21,
    SecondStart = 22,
    // A reset, and a start with the same key and counts of 0 on the used memory.
    Restarted = 23,
    // Counters.
    WritesExhausted = 30,
    EvictionsExhausted = 31
  } mode_e;

  localparam int unsigned BlockBeats = BlockBytes * 8 / BusBits;
  localparam int unsigned BucketBeats = 1 + BucketSlots * BlockBeats;
  localparam int unsigned LeafWidth = LeafLevel == 0 ? 1 : LeafLevel;
  localparam int unsigned AddressBits = 8 * oram_pkg::field_bytes(Capacity);
  localparam int unsigned LeafBits = 8 * oram_pkg::field_bytes((64'd1 << LeafLevel) - 64'd1);
  localparam int unsigned AddressesAt = 64;
  localparam int unsigned LeavesAt =
      AddressesAt + oram_pkg::table_bits(BucketSlots, AddressBits / 8);
  localparam int unsigned ResetCycles = 10;
  // Commands before the restart.
  localparam longint unsigned RestartAt = 12;
  localparam int unsigned Blocks = Capacity < 16 ? int'(Capacity) : 16;
  // Memory counts as quiet after this many cycles without a transfer.
  localparam int unsigned QuietCycles = 500;

  logic rst_n, start_valid, start_ready, entropy_valid, entropy_ready;
  logic [127:0] start_key;
  logic [16:0] start_evict_period;
  logic [LeafWidth-1:0] entropy;
  logic cmd_valid, cmd_ready, wdata_valid, wdata_ready;
  oram_pkg::op_e cmd_op;
  logic [AddressBits-1:0] cmd_address;
  logic [LeafBits-1:0] cmd_old_leaf, cmd_new_leaf;
  logic [BusBits-1:0] wdata, rsp_data, mem_wdata, mem_rdata, honest_rdata;
  logic rsp_valid, rsp_ready, rsp_last, rsp_found;
  oram_pkg::status_e rsp_status;
  logic mem_cmd_valid, mem_cmd_ready, mem_cmd_write, mem_wdata_valid, mem_wdata_ready;
  logic [47:0] mem_cmd_address;
  logic [BusBits/8-1:0] mem_wdata_strobe;
  logic mem_rdata_valid, mem_rdata_ready, mem_rdata_error, closed;
  int unsigned stall_percent;
  longint unsigned seed, error_at, bus_beats;

`ifdef ORAM_RAW
  raw_backend #(
    .EvictPeriodMax(EvictPeriodMax),
`else
  path_backend #(
`endif
    .LeafLevel     (LeafLevel),
    .BucketSlots   (BucketSlots),
    .StashBlocksMax(StashBlocksMax),
    .BlockBytes    (BlockBytes),
    .BusBits       (BusBits),
    .AesCores      (AesCores),
    .Capacity      (Capacity)
  ) dut (
    .clk_i               (clk_i),
    .rst_ni              (rst_n),
    .start_valid_i       (start_valid),
    .start_ready_o       (start_ready),
    .start_key_i         (start_key),
    .start_evict_period_i(start_evict_period),
    .start_operations_i  (mode == WritesExhausted ? -64'd12 : 64'd0),
    .start_evictions_i   (mode == EvictionsExhausted ? -64'd1 : 64'd0),
    .entropy_valid_i     (entropy_valid),
    .entropy_ready_o     (entropy_ready),
    .entropy_i           (entropy),
    .cmd_valid_i         (cmd_valid),
    .cmd_ready_o         (cmd_ready),
    .cmd_op_i            (cmd_op),
    .cmd_address_i       (cmd_address),
    .cmd_old_leaf_i      (cmd_old_leaf),
    .cmd_new_leaf_i      (cmd_new_leaf),
    .wdata_valid_i       (wdata_valid),
    .wdata_ready_o       (wdata_ready),
    .wdata_i             (wdata),
    .rsp_valid_o         (rsp_valid),
    .rsp_ready_i         (rsp_ready),
    .rsp_data_o          (rsp_data),
    .rsp_last_o          (rsp_last),
    .rsp_status_o        (rsp_status),
    .rsp_found_o         (rsp_found),
    .mem_cmd_valid_o     (mem_cmd_valid),
    .mem_cmd_ready_i     (mem_cmd_ready),
    .mem_cmd_write_o     (mem_cmd_write),
    .mem_cmd_address_o   (mem_cmd_address),
    .mem_wdata_valid_o   (mem_wdata_valid),
    .mem_wdata_ready_i   (mem_wdata_ready),
    .mem_wdata_o         (mem_wdata),
    .mem_wdata_strobe_o  (mem_wdata_strobe),
    .mem_rdata_valid_i   (mem_rdata_valid),
    .mem_rdata_ready_o   (mem_rdata_ready),
    .mem_rdata_i         (mem_rdata),
    .mem_rdata_error_i   (mem_rdata_error),
    .closed_o            (closed)
  );

  ideal_memory #(
    .BusBits(BusBits),
    .Latency(MemoryLatency)
  ) u_memory (
    .clk_i         (clk_i),
    .rst_ni        (rst_n),
    .stall_cmd_i   (stall_percent),
    .stall_wdata_i (stall_percent),
    .stall_rdata_i (stall_percent),
    .seed_i        (seed),
    .error_at_i    (error_at),
    .early_reads_i (early_reads),
    .cmd_valid_i   (mem_cmd_valid),
    .cmd_ready_o   (mem_cmd_ready),
    .cmd_write_i   (mem_cmd_write),
    .cmd_address_i (mem_cmd_address),
    .wdata_valid_i (mem_wdata_valid),
    .wdata_ready_o (mem_wdata_ready),
    .wdata_i       (mem_wdata),
    .wdata_strobe_i(mem_wdata_strobe),
    .rdata_valid_o (mem_rdata_valid),
    .rdata_ready_i (mem_rdata_ready),
    .rdata_o       (honest_rdata),
    .rdata_error_o (mem_rdata_error),
    .bus_beats_o   (bus_beats)
  );

  // What memory does to a beat: the change is drawn once for each beat, and stays.
  logic changes, replaces;
  logic [BusBits-1:0] change;

  assign mem_rdata = !changes ? honest_rdata : replaces ? change : honest_rdata ^ change;

  typedef struct {
    bit present;
    longint unsigned leaf;
  } block_t;

  block_t blocks[Blocks];
  // Addresses of read commands whose data have not come, and the first beat of each address.
  logic [47:0] reads[$], writes[$];
  logic [BusBits-1:0] firsts[logic [47:0]];
  longint unsigned accesses, after, percent, expected_status, expects, watchdog, period;
  longint unsigned cycle, waiting, quiet, random_state, accepted, answered, answered_closed;
  longint unsigned changed, operations;
  int unsigned data_left;
  mode_e mode;
  oram_pkg::status_e closed_status;
  bit is_started, starts_again, is_over, has_failed, is_closed, is_quiet, is_bad_command;
  bit was_discarding, was_wdata_waiting, early_reads, hurries;
  longint unsigned second_start_at, restart_cycle, beats_read;
  // Whether each command without an answer is bad.
  bit bad_commands[$];
  bit beat_is_drawn;

  function automatic longint unsigned argument(string name, longint unsigned value);
    longint unsigned given;
    if ($value$plusargs({name, "=%d"}, given) != 0) return given;
    return value;
  endfunction

  function automatic longint unsigned draw();
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 64'h2545_f491_4f6c_dd1d;
  endfunction

  function automatic longint unsigned below(longint unsigned bound);
    return (draw() >> 16) % bound;
  endfunction

  function automatic logic [BusBits-1:0] draw_beat();
    logic [BusBits-1:0] beat;
    for (int i = 0; i < BusBits / 64; i++) beat[64*i+:64] = draw();
    return beat;
  endfunction

  function automatic bit stalls();
    return stall_percent != 0 && below(64'd100) < 64'(stall_percent);
  endfunction

  function automatic void fail(string text);
    if (!has_failed) begin
      $display("hostile: cycle %0d, %0d commands accepted, %0d answered: %s",
               cycle, accepted, answered, text);
    end
    has_failed = 1'b1;
    is_over = 1'b1;
  endfunction

  /// Draws the change of the next beat.
  function automatic void draw_change();
    automatic mode_e kind = mode == Mixed ? mode_e'(1 + below(64'd7)) : mode;
    automatic bit is_header = reads.size() > 0 && reads[0] % 48'(BucketBeats) == 0;
    changes <= kind >= RandomBeats && kind <= ForgedHeaders && below(64'd100) < percent;
    replaces <= 1'b1;
    change <= '0;
    case (kind)
      RandomBeats: change <= draw_beat();
      FlippedBits: begin
        replaces <= 1'b0;
        change <= BusBits'(1) << below(64'(BusBits));
      end
      Zeros: change <= '0;
      Ones: change <= '1;
      Replayed: begin
        if (reads.size() > 0 && firsts.exists(reads[0]) != 0) change <= firsts[reads[0]];
      end
      RandomHeaders: begin
        automatic logic [BusBits-1:0] beat = draw_beat();
        automatic logic [63:0] counter = 64'd1 + below(accepted / 2 + 64'd1);
        beat[63:0] = {<<8{counter}};
        if (!is_header) changes <= 1'b0;
        change <= beat;
      end
      ForgedHeaders: begin
        automatic logic [BusBits-1:0] beat = '0;
        for (int i = 0; i < BucketSlots; i++) begin
          if (below(64'd2) == 0) begin
            beat[AddressesAt+AddressBits*i +: AddressBits] = ~AddressBits'(below(Capacity));
            beat[LeavesAt+LeafBits*i +: LeafBits] = LeafBits'(below(64'd1 << LeafLevel));
          end
        end
        if (!is_header) changes <= 1'b0;
        replaces <= 1'b0;
        change <= beat;
      end
      ForgedAddress, ForgedPath, ForgedLeaf, ForgedCopy: begin
        // The last two slots are dummies: there are two blocks, and buckets are filled from slot 0.
        automatic logic [BusBits-1:0] beat = '0;
        automatic longint unsigned leaf = below(64'd1 << LeafLevel);
        for (int i = 0; i < 2 && i < BucketSlots; i++) begin
          automatic int slot = BucketSlots - 1 - i;
          automatic longint unsigned address = kind == ForgedAddress ? Capacity + 64'(i)
              : kind == ForgedCopy ? 64'(cmd_address) : 64'(Blocks - 1 - i);
          // One of two leaves that differ in bit 0 is off the path, but for the root.
          automatic longint unsigned forged = kind == ForgedPath ? leaf ^ 64'(i)
              : kind == ForgedLeaf ? leaf | 64'd1 << LeafLevel : leaf;
          if (kind == ForgedCopy && i == 1) continue;
          beat[AddressesAt+AddressBits*slot +: AddressBits] = ~AddressBits'(address);
          beat[LeavesAt+LeafBits*slot +: LeafBits] = LeafBits'(forged);
        end
        // Once: in the root, where every leaf is on the path, or below it. RAW ORAM looks at leaves
        // in EO accesses, every third operation here. A copy is forged on the path of the second
        // command of a pair.
        changes <= is_header && changed == 0 && (reads[0] == 0) == (kind != ForgedPath)
            && (kind == ForgedCopy ? accepted == 12 : accepted > 10)
            && (kind == ForgedCopy || kind == ForgedAddress || !Raw
                || beats_read / (64'(BucketBeats) * 64'(LeafLevel + 1)) % 3 == 2);
        replaces <= 1'b0;
        change <= beat;
      end
      default: ;
    endcase
  endfunction

  /// Chooses the next command. One in eight is bad in the modes of bad commands.
  function automatic void next_command();
    automatic longint unsigned address = below(64'(Blocks));
    automatic longint unsigned old_leaf;
    automatic longint unsigned new_leaf = below(64'd1 << LeafLevel);
    automatic oram_pkg::op_e op = oram_pkg::op_e'(below(64'd4));
    automatic bit turns_bad = below(64'd8) == 0 && accepted > 5;
    old_leaf = blocks[address].present ? blocks[address].leaf : below(64'd1 << LeafLevel);
    is_bad_command = 1'b0;
    if (mode >= ForgedAddress && mode <= ForgedCopy) begin
      // The second of two commands finds its block in the stash, if no EO access is between.
      address = accepted / 2 % 2;
      op = accepted % 2 == 0 ? oram_pkg::OpWrite : oram_pkg::OpRead;
      old_leaf = blocks[address].present ? blocks[address].leaf : below(64'd1 << LeafLevel);
    end
    if (mode == AppendTwice) begin
      // Reads that leave the stash empty, and then the same block twice.
      address = 0;
      op = accepted < 6 ? oram_pkg::OpRead : oram_pkg::OpAppend;
      is_bad_command = accepted >= 7;
    end
    if (mode == OneLeaf) begin
      op = oram_pkg::OpWrite;
      new_leaf = 0;
    end
    if (op == oram_pkg::OpAppend && blocks[address].present && !is_bad_command) begin
      op = oram_pkg::OpWrite;
    end
    if (turns_bad && mode == BadAddress) begin
      is_bad_command = 1'b1;
      address = below(64'd2) == 0 ? Capacity : (64'd1 << AddressBits) - 64'd1;
    end
    if (turns_bad && mode == BadOldLeaf && op != oram_pkg::OpAppend) begin
      is_bad_command = 1'b1;
      old_leaf = below(64'd2) == 0 ? 64'd1 << LeafLevel : (64'd1 << LeafBits) - 64'd1;
    end
    if (turns_bad && mode == BadNewLeaf && op != oram_pkg::OpReadRemove) begin
      is_bad_command = 1'b1;
      new_leaf = below(64'd2) == 0 ? 64'd1 << LeafLevel : (64'd1 << LeafBits) - 64'd1;
    end
    // Fields that an operation ignores may have any value.
    if (op == oram_pkg::OpAppend) old_leaf = draw();
    if (op == oram_pkg::OpReadRemove) new_leaf = draw();
    cmd_op <= op;
    cmd_address <= AddressBits'(address);
    cmd_old_leaf <= LeafBits'(old_leaf);
    cmd_new_leaf <= LeafBits'(new_leaf);
  endfunction

  function automatic void apply();
    if (!is_bad_command && 64'(cmd_address) < 64'(Blocks)) begin
      automatic int address = int'(cmd_address);
      blocks[address].leaf = 64'(cmd_new_leaf);
      case (cmd_op)
        oram_pkg::OpRead: ;
        oram_pkg::OpReadRemove: blocks[address].present = 1'b0;
        default: blocks[address].present = 1'b1;
      endcase
    end
  endfunction

  initial begin
    mode = mode_e'(argument("mode", 0));
    accesses = argument("accesses", 200);
    after = argument("after", 20);
    percent = argument("percent", 5);
    expected_status = argument("status", 7);
    expects = argument("expect", 2);
    seed = argument("seed", 1);
    stall_percent = int'(argument("stalls", 0));
    early_reads = argument("early_reads", 0) != 0;
    watchdog = argument("watchdog", 30000);
    random_state = seed * 64'h9e37_79b9_7f4a_7c15 + 64'd1;
    // An error in any beat, or in a header.
    error_at = mode != MemoryError ? 64'd0 : seed % 2 == 0 ? 64'd1 + below(64'd300)
        : 64'd1 + 64'(BucketBeats) * below(64'd60);
    second_start_at = below(64'd12);
    restart_cycle = 0;
    beats_read = 0;
    hurries = argument("hurries", 0) != 0;
    for (int i = 0; i < Blocks; i++) blocks[i].present = 1'b0;
    start_key = {draw(), draw()};
    start_evict_period = mode == PeriodZero ? 17'd0
        : mode == PeriodTooLarge ? 17'(EvictPeriodMax + 1) : 17'(EvictPeriod);
    changes = 1'b0;
    replaces = 1'b0;
    change = '0;
    cmd_op = oram_pkg::OpRead;
    cmd_address = '0;
    cmd_old_leaf = '0;
    cmd_new_leaf = '0;
    entropy = '0;
    wdata = '0;
    rst_n = 1'b0;
    start_valid = 1'b0;
    cmd_valid = 1'b0;
    wdata_valid = 1'b0;
    rsp_ready = 1'b0;
    entropy_valid = 1'b0;
    done_o = 1'b0;
    failed_o = 1'b0;
  end

  // verilator lint_off BLKSEQ
  // verilator lint_off MULTIDRIVEN
  always @(posedge clk_i) if (!is_over) begin
    cycle++;
    // The controller restarts when its commands are answered and memory is quiet.
    if (mode == Restarted && restart_cycle == 0 && accepted == RestartAt && answered == RestartAt
        && quiet >= 64'(QuietCycles)) begin
      restart_cycle = cycle;
      is_started = 1'b0;
    end
    rst_n <= cycle >= 64'(ResetCycles)
        && (restart_cycle == 0 || cycle >= restart_cycle + 64'(ResetCycles));
    if (!rst_n && restart_cycle != 0 && dut.u_backend.round_keys != '0) begin
      fail("a reset leaves the key");
    end

    if (rst_n) begin
      // Start, and in one mode a second start.
      if (start_valid && start_ready) is_started = 1'b1;
      start_valid <= !is_started || (mode == SecondStart && accepted == second_start_at);

      // Memory: the change of a beat is drawn while none is waiting.
      if (mem_cmd_valid && mem_cmd_ready) begin
        if (mem_cmd_write) writes.push_back(mem_cmd_address);
        else reads.push_back(mem_cmd_address);
        operations++;
      end
      if (restart_cycle != 0 && mem_wdata_valid && mem_wdata != '0) fail("masks repeat");
      if (was_discarding && mem_wdata_valid && !was_wdata_waiting
          && (mem_wdata != '0 || mem_wdata_strobe != '0)) begin
        fail("a beat is written after memory was wrong");
      end
      was_discarding = dut.u_backend.status_q == oram_pkg::StatusMemoryError
          || dut.u_backend.status_q == oram_pkg::StatusCorrupt;
      was_wdata_waiting = mem_wdata_valid && !mem_wdata_ready;
      if (mem_wdata_valid && mem_wdata_ready) begin
        automatic logic [47:0] address = writes.pop_front();
        if (firsts.exists(address) == 0) firsts[address] = mem_wdata;
      end
      if (mem_rdata_valid && mem_rdata_ready) begin
        void'(reads.pop_front());
        beats_read++;
        if (changes) changed++;
      end
      if (!mem_rdata_valid || mem_rdata_ready) draw_change();
      quiet = mem_cmd_valid || mem_wdata_valid || mem_rdata_valid ? 0 : quiet + 1;

      // Closed.
      if (is_closed && !closed) fail("the controller has opened again");
      is_closed |= closed;

      // Responses.
      waiting = cmd_valid || accepted != answered ? waiting + 1 : 0;
      if (rsp_valid && rsp_ready && rsp_last) begin
        automatic bit was_bad = bad_commands.pop_front();
        answered++;
        waiting = 0;
        if (rsp_status != oram_pkg::StatusOk) begin
          if (!closed) fail("an error, and the controller is not closed");
          if (answered_closed > 0 && rsp_status != closed_status) begin
            fail($sformatf("status %0d after status %0d", rsp_status, closed_status));
          end
          if (rsp_data != '0 || rsp_found) fail("an answer with an error has data");
          closed_status = rsp_status;
          answered_closed++;
        end else begin
          if (answered_closed > 0) fail("a good answer after an error");
          if (was_bad) fail("a bad command was done");
        end
      end
      rsp_ready <= !stalls();

      // Commands. After the first error they wait until memory is quiet.
      if (cmd_valid && cmd_ready) begin
        accepted++;
        apply();
        cmd_valid <= 1'b0;
        bad_commands.push_back(is_bad_command);
        data_left += BlockBeats;
      end else if (!cmd_valid && is_started && !stalls()
                   && (answered_closed == 0
                       ? accepted < accesses
                           && !(mode == Restarted && restart_cycle == 0 && accepted == RestartAt)
                           && accepted - answered < (mode == ForgedCopy ? 1 : 2)
                       : answered_closed < after && accepted == answered
                           && (hurries || quiet >= 64'(QuietCycles)))) begin
        next_command();
        cmd_valid <= 1'b1;
      end
      is_quiet |= is_closed && quiet >= 64'(QuietCycles);
      if (is_quiet && mem_cmd_valid) fail("a closed controller sends memory commands");
      if (wdata_valid && wdata_ready) data_left--;
      if (!wdata_valid || wdata_ready) begin
        wdata_valid <= data_left != 0 && !stalls();
        wdata <= draw_beat();
      end
      if (!entropy_valid || entropy_ready) begin
        entropy_valid <= !stalls();
        entropy <= LeafWidth'(draw());
      end

      // The end.
      if (waiting == watchdog) begin
        fail($sformatf("no answer for %0d cycles, stash %0d", watchdog, dut.u_backend.count));
      end
      if (!is_over && !cmd_valid && accepted == answered && quiet >= 64'(QuietCycles)
          && (answered_closed == 0 ? answered == accesses : answered_closed == after)) begin
        $display("hostile: %s, mode %0d: %0d commands, %0d beats changed, status %0d",
                 Raw ? "RAW" : "Path", mode, accepted, changed,
                 answered_closed == 0 ? 0 : closed_status);
        if (u_memory.writes.size() != 0) fail("memory waits for data");
        if (expects == 1 && answered_closed == 0) fail("the controller has stayed open");
        if (expects == 0 && answered_closed != 0) fail("the controller has closed");
        if (answered_closed != 0 && expected_status != 7
            && 64'(closed_status) != expected_status) begin
          fail($sformatf("status %0d, expected %0d", closed_status, expected_status));
        end
        if (answered_closed != 0 && expected_status == 7
            && closed_status != oram_pkg::StatusMemoryError
            && closed_status != oram_pkg::StatusCorrupt) begin
          fail($sformatf("status %0d for what memory did", closed_status));
        end
        is_over = 1'b1;
      end
    end
    done_o <= is_over;
    failed_o <= has_failed;
  end else begin
    done_o <= 1'b1;
    failed_o <= has_failed;
  end
  // verilator lint_on MULTIDRIVEN
  // verilator lint_on BLKSEQ

endmodule
