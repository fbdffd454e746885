// SPDX-License-Identifier: Apache-2.0 OR MIT

/// Lock step: a back end runs random commands of the golden model over the ideal memory, and the
/// model checks each transfer on its ports, the stash in order and the eviction counter after each
/// command, and the memory at the end.
///
/// `ORAM_RAW` selects `raw_backend`; without it, the controller is `path_backend`.
///
/// | argument | meaning |
/// |---|---|
/// | +accesses=N | commands (1000) |
/// | +seed=N | seed of everything random (1) |
/// | +stalls=PERCENT | stalled cycles of each port (0: the next command is offered at once) |
/// | +reads=, +writes=, +removes=, +appends= | weights of operations (35, 40, 15, 10) |
/// | +crowding=PERCENT | new leaves that blocks share, which fills the stash (0) |
/// | +warm=N | commands that the engine runs before the controller takes its tree over (0) |
/// | +watchdog=CYCLES | cycles without any transfer that count as a hang (20000) |
/// | +early_reads=1 | memory returns reads before the data of earlier writes to other addresses |
/// | +image=0 | does not compare the memory at the end |
/// | +outstanding=N | commands that the bench sends before it waits for an answer (2) |
/// | +gap=N | the next command is offered N cycles after the last beat of a response (none) |
/// | +directed=1 | no random commands: all combinations that `queue_combination` lists |
/// | +distances=N | how many of its distances the directed sequence has (3) |
/// | +bus_checks=1 | checks of `backend_checks` that hold without stalls at L = 20 |
///
/// The bench runs on one clock edge and reads all outputs as they were in the cycle that ends.
//
// Values of the model are wider than the controller's, and both kinds share one reset.
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off SYNCASYNCNET
module lockstep #(
  parameter int unsigned LeafLevel = 4,
  parameter int unsigned BucketSlots = 4,
  parameter int unsigned StashBlocksMax = 64,
  // A, which the controller gets when it starts, and the largest A that it is built for.
  parameter int unsigned EvictPeriod = 5,
  parameter int unsigned EvictPeriodMax = 8,
  parameter int unsigned BlockBytes = 64,
  parameter int unsigned BusBits = 512,
  parameter int unsigned AesCores = 1,
  parameter bit AesBlockRam = 1'b1,
  parameter longint unsigned Capacity = 64'd1 << LeafLevel,
  parameter int unsigned SubtreeLevels = 4,
  parameter int unsigned MemoryLatency = 30
) (
  input  logic clk_i,
  output logic done_o,
  output logic failed_o
);

  import golden_pkg::*;

`ifdef ORAM_RAW
  localparam bit Raw = 1'b1;
`else
  localparam bit Raw = 1'b0;
`endif

  localparam int unsigned BlockBeats = BlockBytes * 8 / BusBits;
  localparam int unsigned LeafWidth = LeafLevel == 0 ? 1 : LeafLevel;
  localparam int unsigned AddressBits = 8 * oram_pkg::field_bytes(Capacity);
  localparam int unsigned LeafBits = 8 * oram_pkg::field_bytes((64'd1 << LeafLevel) - 64'd1);
  localparam int unsigned ResetCycles = 10;
  // Cycles without a transfer after which a run with all responses is over.
  localparam int unsigned QuietCycles = 5000;

  // The controller and its memory.

  logic rst_n;
  logic start_valid, start_ready;
  logic [127:0] start_key;
  logic entropy_valid, entropy_ready;
  logic [LeafWidth-1:0] entropy;
  logic cmd_valid, cmd_ready;
  logic [1:0] cmd_op;
  logic [AddressBits-1:0] cmd_address;
  logic [LeafBits-1:0] cmd_old_leaf, cmd_new_leaf;
  logic wdata_valid, wdata_ready;
  logic [BusBits-1:0] wdata;
  logic rsp_valid, rsp_ready, rsp_last, rsp_found;
  logic [BusBits-1:0] rsp_data;
  logic [2:0] rsp_status;
  logic mem_cmd_valid, mem_cmd_ready, mem_cmd_write;
  logic [47:0] mem_cmd_address;
  logic mem_wdata_valid, mem_wdata_ready;
  logic [BusBits-1:0] mem_wdata;
  logic [BusBits/8-1:0] mem_wdata_strobe;
  logic mem_rdata_valid, mem_rdata_ready, mem_rdata_error;
  logic [BusBits-1:0] mem_rdata;
  logic closed;
  int unsigned stall_percent;
  longint unsigned seed, bus_beats, start_operations, start_evictions;
  bit early_reads;

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
    .AesBlockRam   (AesBlockRam),
    .Capacity      (Capacity),
    .SubtreeLevels (SubtreeLevels)
  ) dut (
    .clk_i               (clk_i),
    .rst_ni              (rst_n),
    .start_valid_i       (start_valid),
    .start_ready_o       (start_ready),
    .start_key_i         (start_key),
    .start_evict_period_i(Raw ? 17'(EvictPeriod) : 17'd0),
    .start_operations_i  (start_operations),
    .start_evictions_i   (start_evictions),
    .entropy_valid_i     (entropy_valid),
    .entropy_ready_o     (entropy_ready),
    .entropy_i           (entropy),
    .cmd_valid_i         (cmd_valid),
    .cmd_ready_o         (cmd_ready),
    .cmd_op_i            (oram_pkg::op_e'(cmd_op)),
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
    .error_at_i    (64'd0),
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
    .rdata_o       (mem_rdata),
    .rdata_error_o (mem_rdata_error),
    .bus_beats_o   (bus_beats)
  );

  // ==== Probes: the one place that names internals of the controller. ===========================
  // They are read in the cycle in which a command begins. The stash then is in the state after the
  // previous command and its evictions.

  /// Whether a command begins in this cycle.
  function automatic bit begins();
    return dut.u_backend.begin_command;
  endfunction

  /// Blocks in the stash.
  function automatic int stash_blocks();
    return int'(dut.u_backend.u_placer.count_q);
  endfunction

  /// Where the stash's block number `i` is, the oldest being 0.
  function automatic int stash_place(int i);
    return (int'(dut.u_backend.u_placer.head_q) + i) % dut.u_backend.Places;
  endfunction

  /// Address and leaf at `place`. A word is {address, leaf, slot of the block's bytes}.
  function automatic longint unsigned stash_address(int place);
    return 64'(dut.u_backend.u_placer.u_order.gen_block_ram.words_q[place][
        dut.u_backend.PlaceWidth + LeafWidth +: AddressBits]);
  endfunction

  function automatic longint unsigned stash_leaf(int place);
    return 64'(dut.u_backend.u_placer.u_order.gen_block_ram.words_q[place][
        dut.u_backend.PlaceWidth +: LeafWidth]);
  endfunction

  /// G, of RAW ORAM.
  function automatic longint unsigned eviction_count();
    return dut.u_backend.evictions_q;
  endfunction

  /// AO accesses since the last EO access that was due.
  function automatic int accesses_since_eviction();
    return int'(dut.u_backend.since_q);
  endfunction
  // ==== End of the probes. ======================================================================

  // The run.

  chandle golden;
  longint unsigned accesses, watchdog, cycle, idle_cycles, random_state;
  longint unsigned gap, idle_since;
  bit has_gap, is_directed;
  longint unsigned outstanding;
  longint unsigned drawn, accepted, begun, answered, first_accept, last_accept, last_bus_beats;
  longint unsigned operations[4];
  longint unsigned latency_sum, latency_min, latency_max, latencies;
  longint unsigned accept_cycles[$];
  bit accept_appends[$];
  beat_t data_queue[$];
  bit is_started, has_command, has_entropy, is_in_response, is_over, has_failed;
  bit checks_image;
  int next_op;
  longint unsigned next_address, next_old_leaf, next_new_leaf, next_leaf;
  // Outputs of the cycle before, which must stay until they are taken.
  bit was_rsp_waiting, was_mem_cmd_waiting, was_mem_wdata_waiting;
  logic [BusBits+4:0] last_rsp;
  logic [48:0] last_mem_cmd;
  logic [BusBits+BusBits/8-1:0] last_mem_wdata;

  function automatic longint unsigned argument(string name, longint unsigned value);
    longint unsigned given;
    if ($value$plusargs({name, "=%d"}, given) != 0) return given;
    return value;
  endfunction

  /// Ends the run as failed.
  function automatic void fail(string text);
    if (!has_failed) begin
      $display("lockstep: cycle %0d, %0d commands accepted, %0d answered: %s",
               cycle, accepted, answered, text);
    end
    has_failed = 1'b1;
    is_over = 1'b1;
  endfunction

  /// Ends the run if the model reports an error.
  function automatic void check(int code, string port);
    if (code != 0) fail({port, ": ", golden_error(golden)});
  endfunction

  /// Whether to stall a port in the next cycle.
  function automatic bit stalls();
    if (stall_percent == 0) return 1'b0;
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return 32'(random_state >> 32) % 100 < stall_percent;
  endfunction

  /// Compares stash and eviction counter with the state after a command.
  function automatic void check_state(longint unsigned command);
    automatic int blocks;
    automatic longint unsigned evictions;
    automatic int accesses_since;
    check(golden_stash_blocks(golden, command, blocks), "stash");
    for (int i = 0; i < stash_blocks() && !has_failed; i++) begin
      automatic int place = stash_place(i);
      check(golden_check_stash(golden, command, i, stash_address(place), stash_leaf(place)),
            "stash");
    end
    if (blocks != stash_blocks()) begin
      fail($sformatf("stash: %0d blocks after command %0d, expected %0d",
                     stash_blocks(), command, blocks));
    end
    check(golden_evictions(golden, command, evictions, accesses_since), "evictions");
    if (Raw && (evictions != eviction_count() || accesses_since != accesses_since_eviction()))
    begin
      fail($sformatf("evictions: %0d and %0d accesses after command %0d, expected %0d and %0d",
                     eviction_count(), accesses_since_eviction(), command, evictions,
                     accesses_since));
    end
  endfunction

  // The directed sequence.

  typedef struct {
    int op;
    longint unsigned address, new_leaf;
    // Leaf of an absent block.
    bit sets_leaf;
    longint unsigned leaf;
  } directed_t;

  // Blocks 0 and 1 are used in the combinations. Block 2 is absent, and is read between commands.
  localparam int unsigned DirectedBlocks = 2;
  localparam longint unsigned Leaves = 64'd1 << LeafLevel;

  directed_t directed_queue[$];
  longint unsigned combination, distances, filler_leaf;
  // The state after the queued commands.
  bit present[DirectedBlocks];

  /// Queues the commands of one combination:
  ///
  /// - the operation: all four;
  /// - whether the block is present before it (not for append);
  /// - the old leaf and the new leaf: all pairs;
  /// - the block: 0 or 1;
  /// - the accesses between the command that prepares the block and the operation: none (the block
  ///   is in the stash, or where the write-back of Path ORAM put it), 1, and A (an EO access). They
  ///   read an absent block on all paths in turn.
  function automatic void queue_combination(longint unsigned number);
    automatic longint unsigned rest = number;
    automatic int op, fillers;
    automatic longint unsigned old_leaf, new_leaf, address;
    automatic bit is_present;
    op = int'(rest % 4); rest /= 4;
    is_present = rest % 2 != 0; rest /= 2;
    old_leaf = rest % Leaves; rest /= Leaves;
    new_leaf = rest % Leaves; rest /= Leaves;
    address = rest % 64'(DirectedBlocks); rest /= 64'(DirectedBlocks);
    fillers = rest == 0 ? 0 : rest == 1 ? 1 : EvictPeriod;
    if (op == 3 && is_present) return;
    if (is_present) begin
      directed_queue.push_back('{op: 1, address: address, new_leaf: old_leaf,
                                 sets_leaf: !present[address[0]], leaf: new_leaf});
    end else if (present[address[0]]) begin
      directed_queue.push_back('{op: 2, address: address, new_leaf: 0, sets_leaf: 0, leaf: 0});
    end
    for (int i = 0; i < fillers; i++) begin
      directed_queue.push_back('{op: 0, address: 2, new_leaf: 0, sets_leaf: 1,
                                 leaf: filler_leaf % Leaves});
      filler_leaf++;
    end
    directed_queue.push_back('{op: op, address: address, new_leaf: new_leaf,
                               sets_leaf: !is_present, leaf: old_leaf});
    present[address[0]] = op == 1 || op == 3 || (op == 0 && is_present);
  endfunction

  /// The next command of the directed sequence. Returns whether there is one.
  function automatic bit draw_directed();
    automatic directed_t command;
    while (directed_queue.size() == 0) begin
      if (combination == 64'd4 * 2 * Leaves * Leaves * 64'(DirectedBlocks) * distances) return 1'b0;
      queue_combination(combination);
      combination++;
    end
    command = directed_queue.pop_front();
    if (command.sets_leaf) begin
      check(golden_set_leaf(golden, command.address, command.leaf), "directed command");
    end
    next_op = command.op;
    next_address = command.address;
    next_new_leaf = command.new_leaf;
    check(golden_command(golden, command.op, command.address, command.new_leaf, null,
                         next_old_leaf), "directed command");
    return 1'b1;
  endfunction

  /// Draws the next command, and queues its data.
  function automatic void draw();
    automatic beat_t beat;
    if (!is_directed) begin
      check(golden_next(golden, next_op, next_address, next_old_leaf, next_new_leaf), "command");
    end else if (!draw_directed()) begin
      accesses = drawn;
      return;
    end
    for (int i = 0; i < BlockBeats; i++) begin
      check(golden_data_beat(golden, i, beat), "command");
      data_queue.push_back(beat);
    end
    operations[next_op[1:0]]++;
    drawn++;
    has_command = 1'b1;
  endfunction

  /// Hands the memory over to the model, which compares it.
  function automatic void check_image();
    automatic logic [47:0] address;
    automatic bit is_there = u_memory.first(address);
    while (is_there && !has_failed) begin
      check(golden_image_put(golden, 64'(address), 1024'(u_memory.peek(address))), "image");
      is_there = u_memory.next(address);
    end
    if (!has_failed) check(golden_check_image(golden), "image");
  endfunction

  function automatic void report();
    automatic string scheme = "Path ORAM";
    automatic longint unsigned background;
    automatic real commands = accepted > 1 ? real'(accepted - 1) : 1.0;
    automatic real cycles = real'(last_accept - first_accept);
    // A conditional expression would pad the shorter name.
    if (Raw) scheme = "RAW ORAM";
    check(golden_background_evictions(golden, background), "report");
    $display("lockstep: %s, L %0d, Z %0d, C %0d, A %0d, %0d bytes, %0d bits, %0d AES cores",
             scheme, LeafLevel, BucketSlots, StashBlocksMax,
             Raw ? EvictPeriod : 0, BlockBytes, BusBits, AesCores);
    $display("  commands              %0d (%0d read, %0d write, %0d read-remove, %0d append)",
             accepted, operations[0], operations[1], operations[2], operations[3]);
    $display("  background evictions  %0d", background);
    $display("  cycles per command    %0.2f (first to last accepted: %0d cycles)",
             cycles / commands, last_accept - first_accept);
    $display("  latency to data       %0.2f (%0d to %0d; accepted to first beat, without appends)",
             latencies == 0 ? 0.0 : real'(latency_sum) / real'(latencies), latency_min,
             latency_max);
    $display("  data bus busy         %0.1f %%",
             cycles == 0.0 ? 0.0 : 100.0 * real'(last_bus_beats) / cycles);
  endfunction

  initial begin
    automatic longint unsigned beats, address;
    automatic beat_t beat;
    automatic bit [127:0] key;
    accesses = argument("accesses", 1000);
    seed = argument("seed", 1);
    stall_percent = int'(argument("stalls", 0));
    watchdog = argument("watchdog", 20000);
    early_reads = argument("early_reads", 0) != 0;
    checks_image = argument("image", 1) != 0;
    outstanding = argument("outstanding", 2);
    gap = argument("gap", '1);
    has_gap = gap != '1;
    is_directed = argument("directed", 0) != 0;
    distances = argument("distances", 3);
    if (is_directed) accesses = '1;
    random_state = seed * 64'h2545_f491_4f6c_dd1d + 64'd1;
    latency_min = '1;
    golden = golden_create(int'(Raw), LeafLevel, BucketSlots, StashBlocksMax, EvictPeriod, Capacity,
                           BlockBytes, BusBits, SubtreeLevels, seed);
    if (golden == null) begin
      fail(golden_error(golden));
    end else begin
      check(golden_set_mix(golden, int'(argument("reads", 35)), int'(argument("writes", 40)),
                           int'(argument("removes", 15)), int'(argument("appends", 10)),
                           int'(argument("crowding", 0))), "arguments");
      check(golden_tree_key(golden, key), "key");
      if (argument("warm", 0) != 0) begin
        check(golden_warm_up(golden, argument("warm", 0)), "warm-up");
        check(golden_image_begin(golden, beats), "warm-up");
        for (longint unsigned i = 0; i < beats; i++) begin
          check(golden_image_beat(golden, i, address, beat), "warm-up");
          u_memory.poke(48'(address), BusBits'(beat));
        end
      end
      check(golden_start_counts(golden, start_operations, start_evictions), "start");
    end
    start_key = key;
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
  always @(posedge clk_i) if (!is_over) begin
    automatic bit has_transfer = 1'b0;
    cycle++;
    rst_n <= cycle >= 64'(ResetCycles);

    if (rst_n) begin
      // Start.
      if (start_valid && start_ready) is_started = 1'b1;
      start_valid <= !is_started;

      // Memory.
      if (mem_rdata_valid && mem_rdata_ready) begin
        has_transfer = 1'b1;
        check(golden_check_read_beat(golden, 1024'(mem_rdata)), "memory read");
      end
      if (mem_cmd_valid && mem_cmd_ready) begin
        has_transfer = 1'b1;
        check(golden_check_memory_command(golden, int'(mem_cmd_write), 64'(mem_cmd_address)),
              "memory command");
      end
      if (mem_wdata_valid && mem_wdata_ready) begin
        has_transfer = 1'b1;
        check(golden_check_write_beat(golden, 1024'(mem_wdata), 128'(mem_wdata_strobe)),
              "memory write");
      end

      // Response.
      if (rsp_valid && rsp_ready) begin
        has_transfer = 1'b1;
        check(golden_check_response(golden, 1024'(rsp_data), int'(rsp_last), int'(rsp_status),
                                    int'(rsp_found)), "response");
        if (!is_in_response && accept_cycles.size() > 0) begin
          automatic longint unsigned latency = cycle - accept_cycles.pop_front();
          if (!accept_appends.pop_front()) begin
            latency_sum += latency;
            latencies++;
            if (latency < latency_min) latency_min = latency;
            if (latency > latency_max) latency_max = latency;
          end
        end
        is_in_response = !rsp_last;
        idle_since = cycle;
        if (rsp_last) answered++;
      end
      rsp_ready <= !stalls();

      // Commands.
      if (begins()) begin
        if (begun > 0 && !is_over) check_state(begun - 1);
        begun++;
      end
      if (cmd_valid && cmd_ready) begin
        has_transfer = 1'b1;
        if (accepted == 0) first_accept = cycle;
        last_accept = cycle;
        last_bus_beats = bus_beats;
        accept_cycles.push_back(cycle);
        accept_appends.push_back(cmd_op == 2'd3);
        accepted++;
        has_command = 1'b0;
      end
      if (is_started && !has_command && drawn < accesses && !is_over) draw();
      if (!cmd_valid || cmd_ready) begin
        cmd_valid <= has_command && !stalls() && accepted - answered < outstanding
            && (!has_gap || (accepted == answered && cycle >= idle_since + gap));
        cmd_op <= next_op[1:0];
        cmd_address <= AddressBits'(next_address);
        cmd_old_leaf <= LeafBits'(next_old_leaf);
        cmd_new_leaf <= LeafBits'(next_new_leaf);
      end
      if (wdata_valid && wdata_ready) begin
        has_transfer = 1'b1;
        void'(data_queue.pop_front());
      end
      if (!wdata_valid || wdata_ready) begin
        wdata_valid <= data_queue.size() > 0 && !stalls();
        wdata <= data_queue.size() > 0 ? BusBits'(data_queue[0]) : '0;
      end

      // Entropy.
      if (entropy_valid && entropy_ready) has_entropy = 1'b0;
      if (!has_entropy) begin
        check(golden_next_entropy(golden, next_leaf), "entropy");
        has_entropy = 1'b1;
      end
      if (!entropy_valid || entropy_ready) begin
        entropy_valid <= !stalls();
        entropy <= LeafWidth'(next_leaf);
      end

      // Valid stays until ready, with the same payload.
      if (was_rsp_waiting
          && (!rsp_valid || {rsp_last, rsp_found, rsp_status, rsp_data} != last_rsp)) begin
        fail("response: changed before it was taken");
      end
      if (was_mem_cmd_waiting
          && (!mem_cmd_valid || {mem_cmd_write, mem_cmd_address} != last_mem_cmd)) begin
        fail("memory command: changed before it was taken");
      end
      if (was_mem_wdata_waiting
          && (!mem_wdata_valid || {mem_wdata_strobe, mem_wdata} != last_mem_wdata)) begin
        fail("memory write: changed before it was taken");
      end
      was_rsp_waiting = rsp_valid && !rsp_ready;
      was_mem_cmd_waiting = mem_cmd_valid && !mem_cmd_ready;
      was_mem_wdata_waiting = mem_wdata_valid && !mem_wdata_ready;
      last_rsp = {rsp_last, rsp_found, rsp_status, rsp_data};
      last_mem_cmd = {mem_cmd_write, mem_cmd_address};
      last_mem_wdata = {mem_wdata_strobe, mem_wdata};

      if (closed) fail("the controller has closed");

      // The end.
      idle_cycles = has_transfer ? 0 : idle_cycles + 1;
      if (!is_over && answered == accesses && idle_cycles == 64'(QuietCycles)) begin
        check(golden_check_all_done(golden), "end");
        if (!has_failed) check_state(accesses - 1);
        if (!has_failed && checks_image) check_image();
        report();
        is_over = 1'b1;
      end
      if (!is_over && idle_cycles == watchdog) begin
        automatic string missing = "";
        if (golden_check_all_done(golden) != 0) missing = golden_error(golden);
        fail($sformatf("no transfer for %0d cycles: %s", watchdog, missing));
      end
    end
    done_o <= is_over;
    failed_o <= has_failed;
  end else begin
    done_o <= 1'b1;
    failed_o <= has_failed;
  end
  // verilator lint_on BLKSEQ

endmodule
