// SPDX-License-Identifier: Apache-2.0 OR MIT

/// Invariants of the back end, bound to each `oram_backend` of a bench.
///
/// - The visit of the stash ends ScanCycles + 2 cycles after its command.
/// - Arrivals always find room in the queue before PushToLeaf: memory never waits for the placer.
/// - Every take from the free list finds a free slot, and no give finds it full.
/// - The entries of the stash never exceed its slots.
/// - When the controller is idle, each slot is free or an entry of the stash.
/// - Each mask finds room in its queue.
/// - State machines are in a state that has a name.
/// - Masks of coming EO accesses do not starve: before them, the cores make masks only for
///   operations in flight.
/// - A closed controller starts no operation, and at most one operation starts in a cycle.
/// - A command that waits for the previous command never finds the stash over its bound.
/// - With `+bus_checks=1`, which needs a bench without stalls and a tree with L = 20: a beat is
///   taken in each cycle in which memory offers one, and an EO access of RAW ORAM never waits for a
///   mask.
module backend_checks #(
  parameter bit Raw = 1'b1,
  parameter int unsigned Places = 256,
  parameter int unsigned ScanCycles = 70,
  // Masks for opening, sealing and serving that the operations in flight may ask for.
  parameter int unsigned OthersMax = 1000
) (
  input logic        clk_i,
  input logic        rst_ni,
  input logic        run_i,
  input logic        closed_i,
  // An operation starts: for a command, for an eviction, and for an EO access that was due.
  input logic [2:0]  op_starts_i,
  input logic        session_start_i,
  // A command waits for the previous command. The stash is over its bound.
  input logic        waits_i,
  input logic        over_bound_i,
  input logic        scanned_i,
  input logic        placer_idle_i,
  input logic        server_busy_i,
  input logic        writer_idle_i,
  input logic        issuer_idle_i,
  input int unsigned entries_i,
  input int unsigned free_i,
  input logic        arrival_valid_i,
  input logic        arrival_ready_i,
  input logic        take_i,
  input logic        take_valid_i,
  input logic        give_i,
  input logic        give_ready_i,
  // A mask leaves the AES cores; its queue has room.
  input logic        made_i,
  input logic        made_ready_i,
  input logic        states_good_i,
  // A mask under IV1 is wanted, and has been begun.
  input logic        body_wanted_i,
  input logic        body_taken_i,
  // Another mask has been begun. It takes one operation's share at most BucketMasks * Levels times.
  input logic        other_taken_i,
  input logic        rdata_valid_i,
  input logic        rdata_ready_i,
  // An EO access is being opened or sealed and has a beat, but no mask under IV1.
  input logic        body_missing_i,
  // For cover points alone: a command is served, and where its block was; a memory command waits; a
  // path has arrived and waits for the writing of the last one; the controller's status.
  input logic        served_i,
  input logic        found_in_stash_i,
  input logic        found_on_path_i,
  input logic        command_waits_i,
  input logic        opening_waits_i,
  input logic [2:0]  status_i
);

  int unsigned scan_cycles, quiet_cycles, others;
  logic scanning;
  int unsigned checks_bus;

  initial begin
    if ($value$plusargs("bus_checks=%d", checks_bus) == 0) checks_bus = 0;
    scanning = 1'b0;
    scan_cycles = 0;
    quiet_cycles = 0;
    others = 0;
  end

  // The bench runs on one clock edge and samples the values of the cycle that ends.
  // verilator lint_off BLKSEQ
  always @(posedge clk_i) begin
    if (rst_ni && run_i) begin
      // The visit.
      if (session_start_i) begin
        scanning = 1'b1;
        scan_cycles = 0;
      end else if (scanning) begin
        scan_cycles++;
        if (scanned_i) begin
          scanning = 1'b0;
          SCAN_ENDS_ON_TIME: assert (scan_cycles == ScanCycles + 2)
          else $error("the visit of the stash took %0d cycles, expected %0d", scan_cycles,
                      ScanCycles + 2);
        end
      end

      // Room.
      if (arrival_valid_i) begin
        ARRIVAL_HAS_ROOM: assert (arrival_ready_i)
        else $error("the queue of arrivals is full");
      end
      if (take_i) begin
        SLOT_IS_FREE: assert (take_valid_i)
        else $error("the stash has no free slot");
      end
      if (give_i) begin
        FREE_LIST_HAS_ROOM: assert (give_ready_i)
        else $error("a slot is freed twice");
      end
      if (made_i) begin
        MASK_HAS_ROOM: assert (made_ready_i)
        else $error("a mask is lost");
      end
      STATE_HAS_A_NAME: assert (states_good_i)
      else $error("a state machine has left its states");
      // Each operation in flight asks for masks to open and to seal its path, and one block.
      others = body_taken_i || !body_wanted_i ? 0 : others + 32'(other_taken_i);
      BODIES_DO_NOT_STARVE: assert (others <= OthersMax)
      else $error("%0d masks were made while one for an EO access was wanted", others);
      STASH_HAS_ROOM: assert (entries_i <= Places)
      else $error("the stash has %0d entries in %0d slots", entries_i, Places);

      // No slot is lost. Slots are free a few cycles after their last beat has left.
      quiet_cycles = placer_idle_i && !server_busy_i && writer_idle_i && issuer_idle_i
          && !session_start_i ? quiet_cycles + 1 : 0;
      if (quiet_cycles > 4 && !closed_i) begin
        NO_SLOT_IS_LOST: assert (entries_i + free_i == Places)
        else $error("%0d entries and %0d free slots are not %0d slots", entries_i, free_i, Places);
      end

      CLOSED_STARTS_NOTHING: assert (!(closed_i && op_starts_i != '0))
      else $error("a closed controller starts an operation");
      ONE_OPERATION_STARTS: assert ($onehot0(op_starts_i))
      else $error("two operations start in one cycle");
      WAITING_COMMAND_FITS: assert (!(waits_i && placer_idle_i && over_bound_i))
      else $error("a command waits, and the stash is over its bound");

      if (checks_bus != 0) begin
        BUS_IS_BUSY: assert (!rdata_valid_i || rdata_ready_i)
        else $error("memory waits for the controller to take a beat");
        MASK_IS_THERE: assert (!(Raw && body_missing_i))
        else $error("an EO access waits for a mask");
      end
    end
  end
  // verilator lint_on BLKSEQ

  // What the runs of `coverage.py` must reach.
  EVICTS_IN_BACKGROUND: cover property (@(posedge clk_i) op_starts_i[1]);
  ACCEPTS_SECOND: cover property (@(posedge clk_i) waits_i);
  FINDS_IN_STASH: cover property (@(posedge clk_i) served_i && found_in_stash_i);
  FINDS_ON_PATH: cover property (@(posedge clk_i) served_i && found_on_path_i);
  FINDS_NOTHING: cover property (@(posedge clk_i)
    served_i && !found_in_stash_i && !found_on_path_i);
  FILLS_STASH: cover property (@(posedge clk_i) over_bound_i);
  WAITS_FOR_MASK: cover property (@(posedge clk_i) body_missing_i);
  MAKES_OTHER_MASKS_FIRST: cover property (@(posedge clk_i) body_wanted_i && other_taken_i);
  MEMORY_STALLS_COMMANDS: cover property (@(posedge clk_i) command_waits_i);
  READS_ARRIVE_EARLY: cover property (@(posedge clk_i) opening_waits_i);
  BAD_COMMAND: cover property (@(posedge clk_i) status_i == oram_pkg::StatusBadCommand);
  BAD_START: cover property (@(posedge clk_i) status_i == oram_pkg::StatusBadStart);
  MEMORY_ERROR: cover property (@(posedge clk_i) status_i == oram_pkg::StatusMemoryError);
  CORRUPT: cover property (@(posedge clk_i) status_i == oram_pkg::StatusCorrupt);
  EXHAUSTED: cover property (@(posedge clk_i) status_i == oram_pkg::StatusExhausted);
  STASH_FULL: cover property (@(posedge clk_i) status_i == oram_pkg::StatusStashFull);

endmodule

bind oram_backend backend_checks #(
  .Raw       (Raw),
  .Places    (Places),
  .ScanCycles(StashBlocksMax + Beyond),
  // The command being served, the second one, and an EO access.
  .OthersMax (3 * (2 * Levels + BlockBeats))
) u_checks (
  .clk_i          (clk_i),
  .rst_ni         (rst_ni),
  .run_i          (run),
  .closed_i       (closed_o),
  .op_starts_i    ({cmd_op_start, evict_begin, evict_follow}),
  .session_start_i(session_start),
  .waits_i        (second_waits),
  .over_bound_i   (over_bound),
  .scanned_i      (scanned),
  .placer_idle_i  (placer_idle),
  .server_busy_i  (server_busy),
  .writer_idle_i  (!u_writer.op_valid && !u_writer.active_q && !u_writer.sealing_q),
  .issuer_idle_i  (!u_issuer.active_q && !u_issuer.op_valid),
  .entries_i      (32'(count)),
  .free_i         (32'(free_count)),
  .arrival_valid_i(reader_placed || server_placed),
  .arrival_ready_i(u_placer.waiting_room),
  .take_i         (reader_take || server_take),
  .take_valid_i   (free_valid),
  .give_i         (writer_give || server_give),
  .give_ready_i   (u_pool.queue_ready),
  .made_i         (u_masks.made),
  .made_ready_i   (u_masks.room[u_masks.made_for]),
  // The states of the placer take all codes.
  .states_good_i  (3'(u_server.state_q) <= 3'd5),
  .body_wanted_i  (Raw && u_masks.wants[3]),
  .body_taken_i   (u_masks.takes[3]),
  .other_taken_i  (u_masks.takes[2:0] != '0),
  .rdata_valid_i  (mem_rdata_valid_i),
  .rdata_ready_i  (mem_rdata_ready_o),
  .body_missing_i ((u_reader.walking_q && u_reader.needs_body && u_reader.beat_valid && !body_valid)
                   || (u_writer.sealing_q && u_writer.needs_body && !body_valid)),
  .served_i        (served && session_q && !closed_o),
  .found_in_stash_i(stash_found),
  .found_on_path_i (path_found && op_q != oram_pkg::OpAppend),
  .command_waits_i (mem_cmd_valid_o && !mem_cmd_ready_i),
  .opening_waits_i (u_reader.beat_valid && u_reader.to_write_q && !u_reader.walking_q),
  .status_i        (status_q)
);
