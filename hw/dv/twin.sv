// SPDX-License-Identifier: Apache-2.0 OR MIT

/// Twin run: two back ends get the same public inputs and different secrets, and must look the same
/// in every cycle.
///
/// Equal for both: the path leaves, the cycles in which the user offers and takes data,
/// whether a command is an append, and the stalls of memory. Different: the key, addresses,
/// operations (read, write, read-remove), new leaves, data, and where blocks are: in the stash,
/// near the root, deep, or absent.
///
/// In each cycle all pins are compared but write data, response data and `rsp_found_o`.
///
/// `ORAM_RAW` selects `raw_backend`; without it, the controllers are `path_backend`.
///
/// | argument | meaning |
/// |---|---|
/// | +accesses=N | commands (500) |
/// | +seed=N | seed of everything random (1) |
/// | +stalls=PERCENT | stalled cycles of each port (0) |
/// | +early_reads=1 | memory returns reads before the data of earlier writes to other addresses |
/// | +gap=N | the next command is offered N cycles after the last beat of a response (0: with one |
/// |        | command unanswered, the next one is offered) |
/// | +mirror=1 | the twins use the same blocks under different addresses, and one reads where the |
/// |           | other writes: both stashes are equally full, and there are background evictions |
/// | +places=0 | blocks need not be accessed in the stash, near the root, deep, and absent (1) |
/// | +watchdog=CYCLES | cycles without a response that count as a hang (20000) |
// verilator lint_off UNUSEDSIGNAL
// verilator lint_off SYNCASYNCNET
module twin #(
  parameter int unsigned LeafLevel = 4,
  parameter int unsigned BucketSlots = 4,
  parameter int unsigned StashBlocksMax = 64,
  parameter int unsigned EvictPeriod = 5,
  parameter int unsigned EvictPeriodMax = 8,
  parameter int unsigned BlockBytes = 64,
  parameter int unsigned BusBits = 512,
  parameter int unsigned AesCores = 1,
  parameter longint unsigned Capacity = 64'd1 << LeafLevel,
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

  localparam int unsigned BlockBeats = BlockBytes * 8 / BusBits;
  localparam int unsigned LeafWidth = LeafLevel == 0 ? 1 : LeafLevel;
  localparam int unsigned AddressBits = 8 * oram_pkg::field_bytes(Capacity);
  localparam int unsigned LeafBits = 8 * oram_pkg::field_bytes((64'd1 << LeafLevel) - 64'd1);
  localparam int unsigned ResetCycles = 10;
  // Addresses in use, and leaves in use: with few of both, several blocks share a path.
  localparam int unsigned Blocks = Capacity < 48 ? int'(Capacity) : 48;
  localparam int unsigned Leaves = 16;

  // Public inputs.
  logic rst_n, start_valid, cmd_valid, wdata_valid, rsp_ready, entropy_valid;
  logic [LeafBits-1:0] cmd_old_leaf;
  logic [LeafWidth-1:0] entropy;
  int unsigned stall_percent;
  longint unsigned seed;

  // Secret inputs.
  logic [127:0] start_key[2];
  oram_pkg::op_e cmd_op[2];
  logic [AddressBits-1:0] cmd_address[2];
  logic [LeafBits-1:0] cmd_new_leaf[2];
  logic [BusBits-1:0] wdata[2];

  // Outputs.
  logic [1:0] start_ready, entropy_ready, cmd_ready, wdata_ready, rsp_valid, rsp_last, rsp_found;
  logic [1:0] mem_cmd_valid, mem_cmd_write, mem_wdata_valid, mem_rdata_ready, closed;
  oram_pkg::status_e rsp_status[2];
  logic [BusBits-1:0] rsp_data[2];
  logic [47:0] mem_cmd_address[2];
  logic [BusBits/8-1:0] mem_wdata_strobe[2];

  // Where the wanted block was, in the cycle in which it is served, and the level of a hit on the
  // path: probes of the controllers.
  logic [1:0] evicts, is_served, is_append, is_in_stash, is_on_path, is_hit;
  int unsigned hit_level[2];

  for (genvar i = 0; i < 2; i++) begin : gen_twin
    logic mem_cmd_ready, mem_wdata_ready, mem_rdata_valid, mem_rdata_error;
    logic [BusBits-1:0] mem_wdata, mem_rdata;
    longint unsigned bus_beats;

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
      .start_ready_o       (start_ready[i]),
      .start_key_i         (start_key[i]),
      .start_evict_period_i(Raw ? 17'(EvictPeriod) : 17'd0),
      .start_operations_i  (64'd0),
      .start_evictions_i   (64'd0),
      .entropy_valid_i     (entropy_valid),
      .entropy_ready_o     (entropy_ready[i]),
      .entropy_i           (entropy),
      .cmd_valid_i         (cmd_valid),
      .cmd_ready_o         (cmd_ready[i]),
      .cmd_op_i            (cmd_op[i]),
      .cmd_address_i       (cmd_address[i]),
      .cmd_old_leaf_i      (cmd_old_leaf),
      .cmd_new_leaf_i      (cmd_new_leaf[i]),
      .wdata_valid_i       (wdata_valid),
      .wdata_ready_o       (wdata_ready[i]),
      .wdata_i             (wdata[i]),
      .rsp_valid_o         (rsp_valid[i]),
      .rsp_ready_i         (rsp_ready),
      .rsp_data_o          (rsp_data[i]),
      .rsp_last_o          (rsp_last[i]),
      .rsp_status_o        (rsp_status[i]),
      .rsp_found_o         (rsp_found[i]),
      .mem_cmd_valid_o     (mem_cmd_valid[i]),
      .mem_cmd_ready_i     (mem_cmd_ready),
      .mem_cmd_write_o     (mem_cmd_write[i]),
      .mem_cmd_address_o   (mem_cmd_address[i]),
      .mem_wdata_valid_o   (mem_wdata_valid[i]),
      .mem_wdata_ready_i   (mem_wdata_ready),
      .mem_wdata_o         (mem_wdata),
      .mem_wdata_strobe_o  (mem_wdata_strobe[i]),
      .mem_rdata_valid_i   (mem_rdata_valid),
      .mem_rdata_ready_o   (mem_rdata_ready[i]),
      .mem_rdata_i         (mem_rdata),
      .mem_rdata_error_i   (mem_rdata_error),
      .closed_o            (closed[i])
    );

    // The stalls of a memory depend on its traffic and on the seed. Both are the same.
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
      .cmd_valid_i   (mem_cmd_valid[i]),
      .cmd_ready_o   (mem_cmd_ready),
      .cmd_write_i   (mem_cmd_write[i]),
      .cmd_address_i (mem_cmd_address[i]),
      .wdata_valid_i (mem_wdata_valid[i]),
      .wdata_ready_o (mem_wdata_ready),
      .wdata_i       (mem_wdata),
      .wdata_strobe_i(mem_wdata_strobe[i]),
      .rdata_valid_o (mem_rdata_valid),
      .rdata_ready_i (mem_rdata_ready[i]),
      .rdata_o       (mem_rdata),
      .rdata_error_o (mem_rdata_error),
      .bus_beats_o   (bus_beats)
    );

    assign is_served[i] = dut.u_backend.served;
    assign evicts[i] = dut.u_backend.evict_begin;
    assign is_append[i] = dut.u_backend.op_q == oram_pkg::OpAppend;
    assign is_in_stash[i] = dut.u_backend.stash_found;
    assign is_on_path[i] = dut.u_backend.path_found;
    assign is_hit[i] = dut.u_backend.u_reader.is_block && dut.u_backend.u_reader.block_first
        && dut.u_backend.u_reader.is_wanted;
    assign hit_level[i] = 32'(dut.u_backend.u_reader.context_q.level);
  end

  // The run.

  typedef struct {
    bit present;
    longint unsigned leaf;
  } block_t;

  // The position map of each twin.
  block_t blocks[2][Blocks];
  longint unsigned leaves[Leaves];
  longint unsigned accesses, watchdog, gap, cycle, idle_cycles, idle_since, random_state;
  longint unsigned accepted, answered, differing;
  // Accesses of a twin by the place of their block.
  longint unsigned in_stash, near_root, deep, absent;
  int unsigned last_level[2], data_left;
  bit expected_found[2][$];
  bit is_started, is_over, has_failed;
  bit seen_cmd, seen_wdata, early_reads, is_mirrored, checks_places;
  longint unsigned evictions;

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
      $display("twin: cycle %0d, %0d commands accepted, %0d answered: %s",
               cycle, accepted, answered, text);
    end
    has_failed = 1'b1;
    is_over = 1'b1;
  endfunction

  /// Fails unless a pin is the same for both.
  function automatic void compare(string pin, longint unsigned a, longint unsigned b);
    if (a != b) fail($sformatf("%s is %0h and %0h", pin, a, b));
  endfunction

  function automatic int unsigned present_blocks(int twin);
    automatic int unsigned count = 0;
    for (int i = 0; i < Blocks; i++) count += 32'(blocks[twin][i].present);
    return count;
  endfunction

  /// Chooses the next command of both: a leaf, and for each twin a block that is mapped to it, or
  /// an absent block.
  function automatic void next_command();
    // Some blocks must be absent.
    automatic bit is_crowded =
        present_blocks(0) * 4 > Blocks * 3 || present_blocks(1) * 4 > Blocks * 3;
    automatic bit is_append = !is_crowded && below(64'd100) < 8;
    automatic longint unsigned leaf = leaves[below(64'(Leaves))];
    automatic bit needs_any = below(64'd4) == 0;
    for (int twin = 0; twin < 2; twin++) begin
      automatic longint unsigned first = below(64'(Blocks));
      automatic int chosen = -1;
      automatic int absent = -1;
      for (int i = 0; i < Blocks; i++) begin
        automatic int address = int'((first + 64'(i)) % 64'(Blocks));
        if (!blocks[twin][address].present) begin
          absent = address;
        end else if (blocks[twin][address].leaf == leaf) begin
          chosen = address;
        end
      end
      // Some accesses want a block that is absent, for one of both.
      if (chosen < 0 || (absent >= 0 && (is_append || (needs_any && twin[0] == leaf[0])))) begin
        chosen = absent;
      end
      cmd_address[twin] <= AddressBits'(chosen);
      cmd_new_leaf[twin] <= LeafBits'(leaves[below(64'(Leaves))]);
      cmd_op[twin] <= is_append ? oram_pkg::OpAppend
          : present_blocks(twin) * 4 > Blocks * 3 ? oram_pkg::OpReadRemove
          : below(64'd100) < 45 ? oram_pkg::OpWrite
          : below(64'd100) < 60 ? oram_pkg::OpRead : oram_pkg::OpReadRemove;
    end
    cmd_old_leaf <= LeafBits'(leaf);
  endfunction

  /// Chooses the next command of mirrored twins. Block `a` of one is block `Blocks - 1 - a` of the
  /// other, and both have the same leaves. What a read and a write do to the stash is the same for
  /// a block that is present.
  function automatic void next_mirrored();
    automatic int address = int'(below(64'(Blocks)));
    automatic bit was_present = blocks[0][address].present;
    automatic longint unsigned leaf =
        was_present ? blocks[0][address].leaf : leaves[below(64'(Leaves))];
    automatic longint unsigned new_leaf = leaves[below(64'(Leaves))];
    automatic bit is_first = below(64'd2) == 0;
    automatic bit creates = below(64'd3) != 0;
    automatic bit appends = below(64'd4) == 0;
    for (int twin = 0; twin < 2; twin++) begin
      automatic bit is_even = is_first ^ twin[0];
      cmd_address[twin] <= AddressBits'(twin == 0 ? address : Blocks - 1 - address);
      cmd_new_leaf[twin] <= LeafBits'(new_leaf);
      if (!was_present) begin
        cmd_op[twin] <= creates ? (appends ? oram_pkg::OpAppend : oram_pkg::OpWrite)
            : is_even ? oram_pkg::OpRead : oram_pkg::OpReadRemove;
      end else begin
        cmd_op[twin] <= !creates ? oram_pkg::OpReadRemove
            : is_even ? oram_pkg::OpRead : oram_pkg::OpWrite;
      end
    end
    cmd_old_leaf <= LeafBits'(leaf);
  endfunction

  /// Applies the command to the position map.
  function automatic void apply();
    for (int twin = 0; twin < 2; twin++) begin
      automatic int address = int'(cmd_address[twin]);
      automatic bit was_present = blocks[twin][address].present;
      expected_found[twin].push_back(was_present);
      blocks[twin][address].leaf = 64'(cmd_new_leaf[twin]);
      case (cmd_op[twin])
        oram_pkg::OpRead: ;
        oram_pkg::OpReadRemove: blocks[twin][address].present = 1'b0;
        default: blocks[twin][address].present = 1'b1;
      endcase
    end
    if (cmd_op[0] != cmd_op[1]) differing++;
  endfunction

  initial begin
    accesses = argument("accesses", 500);
    seed = argument("seed", 1);
    stall_percent = int'(argument("stalls", 0));
    early_reads = argument("early_reads", 0) != 0;
    checks_places = argument("places", 1) != 0;
    is_mirrored = argument("mirror", 0) != 0;
    evictions = 0;
    gap = argument("gap", 0);
    watchdog = argument("watchdog", 20000);
    random_state = seed * 64'h9e37_79b9_7f4a_7c15 + 64'd1;
    // Some leaves are on the paths of the next EO accesses, which put blocks deep into the tree.
    for (int i = 0; i < Leaves; i++) begin
      leaves[i] = i < 10 ? (64'(i) * 2) % (64'd1 << LeafLevel) : below(64'd1 << LeafLevel);
    end
    for (int twin = 0; twin < 2; twin++) begin
      start_key[twin] = {draw(), draw()};
      for (int i = 0; i < Blocks; i++) blocks[twin][i].present = 1'b0;
    end
    cycle = 0;
    idle_cycles = 0;
    idle_since = 0;
    accepted = 0;
    answered = 0;
    differing = 0;
    in_stash = 0;
    near_root = 0;
    deep = 0;
    absent = 0;
    data_left = 0;
    is_started = 1'b0;
    is_over = 1'b0;
    has_failed = 1'b0;
    seen_cmd = 1'b0;
    seen_wdata = 1'b0;
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
    cycle++;
    rst_n <= cycle >= 64'(ResetCycles);

    if (rst_n) begin
      // All pins of the cycle that ends. Payloads count from the first transfer on, and then in
      // every cycle.
      seen_cmd |= mem_cmd_valid != '0;
      seen_wdata |= mem_wdata_valid != '0;
      compare("start_ready_o", 64'(start_ready[0]), 64'(start_ready[1]));
      compare("entropy_ready_o", 64'(entropy_ready[0]), 64'(entropy_ready[1]));
      compare("cmd_ready_o", 64'(cmd_ready[0]), 64'(cmd_ready[1]));
      compare("wdata_ready_o", 64'(wdata_ready[0]), 64'(wdata_ready[1]));
      compare("rsp_valid_o", 64'(rsp_valid[0]), 64'(rsp_valid[1]));
      compare("rsp_last_o", 64'(rsp_valid[0] & rsp_last[0]), 64'(rsp_valid[1] & rsp_last[1]));
      compare("mem_cmd_valid_o", 64'(mem_cmd_valid[0]), 64'(mem_cmd_valid[1]));
      compare("mem_wdata_valid_o", 64'(mem_wdata_valid[0]), 64'(mem_wdata_valid[1]));
      compare("mem_rdata_ready_o", 64'(mem_rdata_ready[0]), 64'(mem_rdata_ready[1]));
      compare("closed_o", 64'(closed[0]), 64'(closed[1]));
      if (rsp_valid[0]) compare("rsp_status_o", 64'(rsp_status[0]), 64'(rsp_status[1]));
      if (seen_cmd) begin
        compare("mem_cmd_write_o", 64'(mem_cmd_write[0]), 64'(mem_cmd_write[1]));
        compare("mem_cmd_address_o", 64'(mem_cmd_address[0]), 64'(mem_cmd_address[1]));
      end
      if (seen_wdata && mem_wdata_strobe[0] != mem_wdata_strobe[1]) begin
        fail("mem_wdata_strobe_o differs");
      end
      if (closed != '0) fail("a controller has closed");

      if (start_valid && start_ready[0]) is_started = 1'b1;
      start_valid <= !is_started;

      // Responses.
      idle_cycles++;
      evictions += 64'(evicts[0]);
      for (int twin = 0; twin < 2; twin++) begin
        if (is_hit[twin]) last_level[twin] = hit_level[twin];
        if (is_served[twin] && !is_append[twin]) begin
          if (is_in_stash[twin]) in_stash++;
          else if (!is_on_path[twin]) absent++;
          else if (last_level[twin] * 2 <= LeafLevel) near_root++;
          else deep++;
        end
        if (rsp_valid[twin] && rsp_ready) begin
          if (rsp_found[twin] != expected_found[twin][0]) begin
            fail($sformatf("twin %0d: found is %0b", twin, rsp_found[twin]));
          end
          if (rsp_last[twin]) void'(expected_found[twin].pop_front());
        end
      end
      if (rsp_valid[0] && rsp_ready && rsp_last[0]) begin
        answered++;
        idle_cycles = 0;
        idle_since = cycle;
      end
      rsp_ready <= !stalls();

      // Commands.
      if (cmd_valid && cmd_ready[0]) begin
        accepted++;
        apply();
        cmd_valid <= 1'b0;
        data_left += BlockBeats;
      end else if (!cmd_valid && is_started && accepted < accesses && !stalls()
                   && (gap == 0 ? accepted - answered < 2
                       : accepted == answered && cycle >= idle_since + gap)) begin
        if (is_mirrored) next_mirrored();
        else next_command();
        cmd_valid <= 1'b1;
      end
      if (wdata_valid && wdata_ready[0]) data_left--;
      if (!wdata_valid || wdata_ready[0]) begin
        wdata_valid <= data_left != 0 && !stalls();
        for (int twin = 0; twin < 2; twin++) wdata[twin] <= draw_beat();
      end

      // Entropy is public when it is used.
      if (!entropy_valid || entropy_ready[0]) begin
        entropy_valid <= !stalls();
        entropy <= LeafWidth'(draw());
      end

      // The end: 1000 cycles after the last response. A last eviction may still be running.
      if (!is_over && answered == accesses && idle_cycles == 64'd1000) begin
        $display("twin: %s, L %0d, Z %0d, C %0d, %0d commands, %0d cycles, %0d with two operations",
                 Raw ? "RAW" : "Path", LeafLevel, BucketSlots, StashBlocksMax, accepted, cycle,
                 differing);
        $display("  blocks: %0d in the stash, %0d near the root, %0d deep, %0d absent",
                 in_stash, near_root, deep, absent);
        $display("  background evictions: %0d", evictions);
        if (is_mirrored && evictions == 0) fail("no background eviction");
        if (checks_places && (in_stash == 0 || near_root == 0 || deep == 0 || absent == 0
                              || differing == 0)) begin
          fail("a place of blocks was not covered");
        end
        is_over = 1'b1;
      end
      if (!is_over && idle_cycles == watchdog) begin
        fail($sformatf("no response for %0d cycles", watchdog));
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
