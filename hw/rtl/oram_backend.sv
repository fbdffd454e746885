// SPDX-License-Identifier: Apache-2.0 OR MIT

/// The back end of Tiny ORAM: Path ORAM or RAW ORAM over one memory port.
///
/// It does steps 2 to 5 of an access (Tiny ORAM, section II-A): the front end brings the leaf that
/// a block is mapped to, and the leaf that it moves to. Every bit in memory is as the engine of
/// this repository writes it. `path_backend` and `raw_backend` are this module with one parameter
/// set.
///
/// A command passes through these units:
///
/// - `command_issuer` sends the memory commands of its path,
/// - `placer` visits the stash, and finds the block if it is there,
/// - `path_reader` opens what memory returns, with masks of `mask_scheduler`,
/// - `block_server` exchanges the user's block, and answers,
/// - `placer` plans the path that is written,
/// - `path_writer` seals it, with masks of `mask_scheduler`.
///
/// The memory commands of an operation leave ahead of their data. So the next operation may be
/// under way while the last one is written: memory keeps the order. RAW ORAM accepts a second
/// command while an AO access that no EO access follows is under way, and sends its memory commands
/// at once. The second command begins when the first is answered.
///
/// Ports are ready/valid. Commands, leaves of memory commands, and times are public. Blocks,
/// addresses, new leaves and the stash are secret: no memory pin but the sealed data depends on
/// them, in any cycle.
module oram_backend #(
  // Whether it is RAW ORAM, and not Path ORAM.
  parameter bit Raw = 1'b1,
  // L: levels below the root.
  parameter int unsigned LeafLevel = 20,
  // Z: slots of a bucket.
  parameter int unsigned BucketSlots = 5,
  // C: blocks that may be in the stash when a command is accepted.
  parameter int unsigned StashBlocksMax = 64,
  // The largest A: AO accesses before an EO access. RAW ORAM alone.
  parameter int unsigned EvictPeriodMax = 8,
  parameter int unsigned BlockBytes = 64,
  parameter int unsigned BusBits = 512,
  parameter int unsigned AesCores = 1,
  // Whether S-boxes are in block RAM, and not in LUTs.
  parameter bit AesBlockRam = 1'b1,
  // N: addresses are below.
  parameter longint unsigned Capacity = 64'd1 << LeafLevel,
  // Levels of a subtree that is in one piece of memory.
  parameter int unsigned SubtreeLevels = 4,
  // Masks of coming EO accesses that are kept, in beats. RAW ORAM alone.
  parameter int unsigned BodyDepth = 512,
  localparam int unsigned LeafWidth = LeafLevel == 0 ? 1 : LeafLevel,
  localparam int unsigned AddressBits = 8 * oram_pkg::field_bytes(Capacity),
  localparam int unsigned LeafBits = 8 * oram_pkg::field_bytes((64'd1 << LeafLevel) - 64'd1)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // Start-up: the key of the tree, A, and how many operations and EO accesses the tree has had
  // under this key (both 0 if memory is new).
  input  logic                   start_valid_i,
  output logic                   start_ready_o,
  input  logic [127:0]           start_key_i,
  input  logic [16:0]            start_evict_period_i,
  input  logic [63:0]            start_operations_i,
  input  logic [63:0]            start_evictions_i,

  // Leaves of dummy accesses: uniform, and secret until they are used. Path ORAM alone.
  input  logic                   entropy_valid_i,
  output logic                   entropy_ready_o,
  input  logic [LeafWidth-1:0]   entropy_i,

  input  logic                   cmd_valid_i,
  output logic                   cmd_ready_o,
  input  oram_pkg::op_e          cmd_op_i,
  input  logic [AddressBits-1:0] cmd_address_i,
  input  logic [LeafBits-1:0]    cmd_old_leaf_i,
  input  logic [LeafBits-1:0]    cmd_new_leaf_i,

  // The block of a command: the same number of beats for every operation.
  input  logic                   wdata_valid_i,
  output logic                   wdata_ready_o,
  input  logic [BusBits-1:0]     wdata_i,

  // The block before the command: the same number of beats.
  output logic                   rsp_valid_o,
  input  logic                   rsp_ready_i,
  output logic [BusBits-1:0]     rsp_data_o,
  output logic                   rsp_last_o,
  output oram_pkg::status_e      rsp_status_o,
  output logic                   rsp_found_o,

  output logic                   mem_cmd_valid_o,
  input  logic                   mem_cmd_ready_i,
  output logic                   mem_cmd_write_o,
  // In beats.
  output logic [47:0]            mem_cmd_address_o,
  output logic                   mem_wdata_valid_o,
  input  logic                   mem_wdata_ready_i,
  output logic [BusBits-1:0]     mem_wdata_o,
  output logic [BusBits/8-1:0]   mem_wdata_strobe_o,
  input  logic                   mem_rdata_valid_i,
  output logic                   mem_rdata_ready_o,
  input  logic [BusBits-1:0]     mem_rdata_i,
  input  logic                   mem_rdata_error_i,

  // An error has closed the controller. Only a reset opens it. Start it then with a new key, or
  // with the current counts of operations and EO accesses. Otherwise masks would be used twice.
  output logic                   closed_o
);

  import oram_pkg::*;

  localparam int unsigned Levels = LeafLevel + 1;
  localparam int unsigned BlockBeats = BlockBytes * 8 / BusBits;
  localparam int unsigned BucketBeats = 1 + BucketSlots * BlockBeats;
  localparam int unsigned AddressTableBits = table_bits(BucketSlots, AddressBits / 8);
  localparam int unsigned LeafTableBits = table_bits(BucketSlots, LeafBits / 8);
  localparam int unsigned HeadMaskBits = Raw ? AddressTableBits : BusBits;
  // Blocks that the stash may hold beyond its bound between evictions: one for each AO access, and
  // an appended block.
  localparam int unsigned Beyond = (Raw ? EvictPeriodMax : 0) + 1;
  localparam int unsigned Places = StashBlocksMax + Beyond + 1 + Levels * BucketSlots;
  localparam int unsigned PlaceWidth = $clog2(Places);
  localparam int unsigned CountWidth = $clog2(Places + 1);
  localparam int unsigned LevelWidth = $clog2(LeafLevel + 2);
  localparam int unsigned IndexWidth = $clog2(BucketSlots + 1);
  localparam int unsigned SlotWidth = BucketSlots == 1 ? 1 : $clog2(BucketSlots);
  localparam int unsigned BlockBeatWidth = BlockBeats == 1 ? 1 : $clog2(BlockBeats);
  localparam int unsigned BodyCountWidth = $clog2(BodyDepth + 1);
  localparam int unsigned PeriodWidth = $clog2(EvictPeriodMax + 1);
  // After this many evictions in a row the controller closes: the blocks of the stash do not fit
  // the tree.
  localparam int unsigned EvictionsMax = 1023;
  // Body masks that must be ready before an EO access begins: all of them, or a full RAM.
  localparam int unsigned BodyBeats =
      2 * Levels * BucketBeats < BodyDepth ? 2 * Levels * BucketBeats : BodyDepth;

  if (LeafLevel > 40) begin : gen_bad_leaf_level
    $fatal(1, "LeafLevel = %0d (L) is more than 40", LeafLevel);
  end
  if (BucketSlots < 1 || BucketSlots > 255) begin : gen_bad_slots
    $fatal(1, "BucketSlots = %0d (Z) is not within 1 to 255", BucketSlots);
  end
  if (BusBits != 512 && BusBits != 1024) begin : gen_bad_bus
    $fatal(1, "BusBits = %0d is neither 512 nor 1024", BusBits);
  end
  if (BlockBytes < 64 || BlockBytes > 4096 || BlockBytes * 8 % BusBits != 0) begin : gen_bad_block
    $fatal(1, "BlockBytes = %0d is not within 64 to 4096 or no multiple of the beat's %0d bytes",
           BlockBytes, BusBits / 8);
  end
  if (64 + AddressTableBits + LeafTableBits > BusBits) begin : gen_bad_header
    $fatal(1, "BucketSlots = %0d (Z): a header of %0d bits does not fit a beat of BusBits = %0d",
           BucketSlots, 64 + AddressTableBits + LeafTableBits, BusBits);
  end
  if (Capacity < 1 || Capacity > ((64'd2 << LeafLevel) - 64'd1) * 64'(BucketSlots))
  begin : gen_bad_capacity
    $fatal(1, "Capacity = %0d (N): no tree of LeafLevel = %0d and BucketSlots = %0d holds it",
           Capacity, LeafLevel, BucketSlots);
  end
  if (StashBlocksMax < 1 || StashBlocksMax > 4096) begin : gen_bad_stash
    $fatal(1, "StashBlocksMax = %0d (C) is not within 1 to 4096", StashBlocksMax);
  end
  if (BodyDepth < 4) begin : gen_bad_body_depth
    $fatal(1, "BodyDepth = %0d must be at least 4", BodyDepth);
  end
  if (EvictPeriodMax < 1 || EvictPeriodMax > 65536) begin : gen_bad_period
    $fatal(1, "EvictPeriodMax = %0d is not within 1 to 65536", EvictPeriodMax);
  end

  // Start-up.

  logic started_q, period_good_q, key_ready, key_done, pool_ready, run;
  logic [PeriodWidth-1:0] period_q;
  aes_pkg::round_keys_t round_keys;
  logic start_first, start_again, period_good;

  assign start_ready_o = 1'b1;
  assign start_first = start_valid_i && !started_q;
  assign start_again = start_valid_i && started_q;
  assign period_good =
      !Raw || (start_evict_period_i != '0 && 32'(start_evict_period_i) <= EvictPeriodMax);
  assign run = key_done && pool_ready;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      started_q <= 1'b0;
      period_good_q <= 1'b0;
      period_q <= '0;
    end else if (start_first) begin
      started_q <= 1'b1;
      period_good_q <= period_good;
      period_q <= PeriodWidth'(start_evict_period_i);
    end
  end

  aes_key_schedule u_keys (
    .clk_i,
    .rst_ni,
    .valid_i     (start_first),
    .ready_o     (key_ready),
    .key_i       (start_key_i),
    .done_o      (key_done),
    .round_keys_o(round_keys)
  );

  // The state of the controller.

  status_e status_q;
  logic corrupt, corrupt_bucket, corrupt_counter, memory_error, found_twice, discard;

  assign closed_o = status_q != StatusOk;
  assign corrupt = corrupt_bucket || corrupt_counter;
  // Memory returned something wrong. Paths that were read are not written any more.
  assign discard = status_q == StatusMemoryError || status_q == StatusCorrupt;

  // Commands.

  typedef struct packed {
    op_e                    op;
    logic [AddressBits-1:0] address;
    logic [LeafWidth-1:0]   new_leaf;
    logic                   good;
    // The controller was open, and the command's operation, if it has one, has been started.
    logic                   starts;
  } command_t;

  // The command that begins, and the second one: it waits for the answer of the first.
  command_t command, second_q;
  logic second_valid_q;
  logic server_busy, serving, placer_idle, scanned, over_bound, ops_ready;
  logic issuer_ready, reader_ready, scheduler_ready, writer_ready, exhausted;
  logic accept, good_leaf, good_address, cmd_good, cmd_on_path, cmd_starts;
  logic free_to_begin, second_ready, second_waits, begin_second, begin_command;
  logic command_on_path, cmd_op_start;
  op_e op_q;
  logic [AddressBits-1:0] address_q;
  logic [LeafWidth-1:0] new_leaf_q;
  // The command has a session of the placer; the headers of its path have been opened; all of the
  // path has been opened.
  logic session_q, headers_q, opened_q;
  logic due, due_q, evict_pending_q, evict_begin, evict_follow;
  logic [PeriodWidth-1:0] since_q;
  logic [63:0] evictions_q;
  logic [$clog2(EvictionsMax + 1)-1:0] evict_run_q;
  logic evict_stuck;
  logic [LeafWidth-1:0] evict_leaf;
  logic [CountWidth-1:0] count;
  logic body_enough;
  logic [BodyCountWidth-1:0] body_count;
  logic headers, opened, served;
  logic op_start, session_start, command_start;
  kind_e op_kind;
  logic [LeafWidth-1:0] op_leaf;

  assign good_address = 64'(cmd_address_i) < 64'(Capacity);
  assign good_leaf = (cmd_op_i == OpAppend || 64'(cmd_old_leaf_i) >> LeafLevel == '0)
      && (cmd_op_i == OpReadRemove || 64'(cmd_new_leaf_i) >> LeafLevel == '0);
  assign cmd_good = good_address && good_leaf;
  assign cmd_on_path = cmd_op_i != OpAppend;
  assign cmd_starts = cmd_good && !closed_o && !(cmd_on_path && exhausted);
  assign ops_ready = issuer_ready && reader_ready && scheduler_ready && writer_ready;
  assign over_bound = count > CountWidth'(StashBlocksMax) + (Raw ? CountWidth'(since_q) : '0);
  assign free_to_begin = !server_busy && placer_idle && !over_bound;
  assign second_waits = Raw && second_valid_q;
  // An AO access adds at most one block, and the bound of the stash rises by one with it. So the
  // stash is not over its bound after an AO access that no EO access follows, and no eviction comes
  // before the next command.
  assign second_ready = Raw && server_busy && session_q && op_q != OpAppend && !due_q;
  assign cmd_ready_o = !second_waits && (closed_o
      ? !server_busy : run && ops_ready && (free_to_begin || second_ready));
  assign accept = cmd_valid_i && cmd_ready_o;

  // A command begins: the command accepted in this cycle, or the waiting second command.
  assign begin_second = second_waits && free_to_begin;
  assign begin_command = begin_second || (accept && !server_busy);
  assign command = second_waits ? second_q : '{
    op: cmd_op_i,
    address: cmd_address_i,
    new_leaf: LeafWidth'(cmd_new_leaf_i),
    good: cmd_good,
    starts: cmd_starts
  };
  assign command_start = begin_command && command.starts;
  assign command_on_path = command.op != OpAppend;
  assign due = Raw && command_on_path && since_q + PeriodWidth'(1) == period_q;
  assign evict_leaf = LeafLevel == 0 ? '0 : evictions_q[LeafWidth-1:0];

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      second_valid_q <= 1'b0;
    end else begin
      second_valid_q <= (second_valid_q || (accept && server_busy)) && !begin_second;
    end
  end

  always_ff @(posedge clk_i) begin
    if (accept) begin
      second_q <= command;
    end
  end

  // Operations. A command starts one; RAW ORAM's EO access follows an AO access by itself; and an
  // eviction starts one when the stash is over its bound.

  assign evict_stuck = evict_run_q == ($bits(evict_run_q))'(EvictionsMax);
  assign evict_begin = run && !closed_o && placer_idle && over_bound && !serving && ops_ready
      && !second_waits && !exhausted && !evict_stuck && (Raw ? body_enough : entropy_valid_i);
  assign evict_follow = evict_pending_q && !closed_o && ops_ready && !exhausted && body_enough;
  assign entropy_ready_o = evict_begin && !Raw;
  assign cmd_op_start = accept && cmd_starts && cmd_on_path;
  assign op_start = cmd_op_start || evict_begin || evict_follow;
  assign session_start = command_start || evict_begin;

  always_comb begin
    op_kind = Raw ? EvictionOnly : PathAccess;
    op_leaf = Raw ? evict_leaf : entropy_i;
    if (cmd_op_start) begin
      op_kind = Raw ? AccessOnly : PathAccess;
      op_leaf = LeafWidth'(cmd_old_leaf_i);
    end
  end

  assign body_enough = !Raw || body_count >= BodyCountWidth'(BodyBeats);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      op_q <= OpRead;
      session_q <= 1'b0;
      headers_q <= 1'b0;
      opened_q <= 1'b0;
      due_q <= 1'b0;
      evict_pending_q <= 1'b0;
      since_q <= '0;
      evictions_q <= '0;
      evict_run_q <= '0;
      status_q <= StatusOk;
    end else begin
      if (start_first) begin
        evictions_q <= start_evictions_i;
      end
      if (begin_command) begin
        op_q <= command.op;
        session_q <= command_start;
        headers_q <= 1'b0;
        opened_q <= 1'b0;
        due_q <= due && command_start;
        evict_run_q <= '0;
      end else begin
        evict_run_q <= evict_run_q + ($bits(evict_run_q))'(evict_begin);
        headers_q <= headers_q || headers;
        opened_q <= opened_q || opened;
      end
      if (command_start && command_on_path) begin
        since_q <= due ? '0 : since_q + PeriodWidth'(1);
        evict_pending_q <= due;
      end else if (evict_follow) begin
        evict_pending_q <= 1'b0;
      end
      if (evict_follow || (evict_begin && Raw)) begin
        evictions_q <= evictions_q + 64'd1;
      end

      // The first error stays.
      if (status_q == StatusOk) begin
        if (start_again || (started_q && !period_good_q)) begin
          status_q <= StatusBadStart;
        end else if (begin_command && !command.good || found_twice && op_q == OpAppend) begin
          status_q <= StatusBadCommand;
        end else if (memory_error) begin
          status_q <= StatusMemoryError;
        end else if (corrupt || found_twice) begin
          status_q <= StatusCorrupt;
        end else if (evict_stuck && placer_idle && over_bound) begin
          status_q <= StatusStashFull;
        end else if (exhausted && ((begin_command && !command.starts) || evict_pending_q
                         || (placer_idle && over_bound))
                     || evictions_q == '1) begin
          status_q <= StatusExhausted;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (begin_command) begin
      address_q <= command.address;
      new_leaf_q <= command.new_leaf;
    end
  end

  // Memory commands.

  command_issuer #(
    .LeafLevel    (LeafLevel),
    .BucketBeats  (BucketBeats),
    .SubtreeLevels(SubtreeLevels)
  ) u_issuer (
    .clk_i,
    .rst_ni,
    .op_valid_i   (op_start),
    .op_ready_o   (issuer_ready),
    .op_leaf_i    (op_leaf),
    .op_headers_i (op_kind == AccessOnly),
    .cmd_valid_o  (mem_cmd_valid_o),
    .cmd_ready_i  (mem_cmd_ready_i),
    .cmd_write_o  (mem_cmd_write_o),
    .cmd_address_o(mem_cmd_address_o)
  );

  // Masks.

  logic arrival_valid, arrival_ready, decode_valid, decode_ready, encode_valid, encode_ready;
  logic [63:0] arrival_counter;
  logic [LeafLevel:0] arrival_bucket;
  logic [HeadMaskBits-1:0] decode_mask, encode_mask;
  logic serve_valid, serve_ready, serve_mask_valid, serve_mask_ready;
  logic body_valid, body_ready_reader, body_ready_writer;
  logic [BusBits-1:0] serve_mask, body_mask;
  logic [LeafLevel:0] found_bucket;
  logic [63:0] found_evictions;
  logic [SlotWidth-1:0] found_slot;

  mask_scheduler #(
    .Raw             (Raw),
    .LeafLevel       (LeafLevel),
    .BucketSlots     (BucketSlots),
    .BlockBeats      (BlockBeats),
    .BusBits         (BusBits),
    .AesCores        (AesCores),
    .AesBlockRam     (AesBlockRam),
    .AddressTableBits(AddressTableBits),
    .LeafTableBits   (LeafTableBits),
    .BodyDepth       (BodyDepth)
  ) u_masks (
    .clk_i,
    .rst_ni,
    .start_i           (start_first),
    .start_operations_i,
    .start_evictions_i,
    .run_i             (run),
    .round_keys_i      (round_keys),
    .arrival_valid_i   (arrival_valid),
    .arrival_ready_o   (arrival_ready),
    .arrival_counter_i (arrival_counter),
    .arrival_bucket_i  (arrival_bucket),
    .decode_valid_o    (decode_valid),
    .decode_ready_i    (decode_ready),
    .decode_mask_o     (decode_mask),
    .op_valid_i        (op_start),
    .op_ready_o        (scheduler_ready),
    .op_leaf_i         (op_leaf),
    .exhausted_o       (exhausted),
    .corrupt_o         (corrupt_counter),
    .encode_valid_o    (encode_valid),
    .encode_ready_i    (encode_ready),
    .encode_mask_o     (encode_mask),
    .serve_valid_i     (serve_valid),
    .serve_ready_o     (serve_ready),
    .serve_bucket_i    (found_bucket),
    .serve_evictions_i (found_evictions),
    .serve_slot_i      (found_slot),
    .serve_mask_valid_o(serve_mask_valid),
    .serve_mask_ready_i(serve_mask_ready),
    .serve_mask_o      (serve_mask),
    .body_valid_o      (body_valid),
    .body_ready_i      (body_ready_reader || body_ready_writer),
    .body_mask_o       (body_mask),
    .body_count_o      (body_count)
  );

  // Slots of the stash.

  logic free_valid, reader_take, server_take, writer_give, server_give;
  logic [PlaceWidth-1:0] free_place, writer_give_place, server_give_place;
  logic [CountWidth-1:0] free_count;

  slot_pool #(
    .Slots(Places)
  ) u_pool (
    .clk_i,
    .rst_ni,
    .ready_o     (pool_ready),
    .take_valid_o(free_valid),
    .take_slot_o (free_place),
    .take_i      (reader_take || server_take),
    .give_i      (writer_give || server_give),
    .give_slot_i (writer_give ? writer_give_place : server_give_place),
    .free_o      (free_count)
  );

  // Bytes of the blocks of the stash.

  logic reader_store, server_store, writer_load, server_load;
  logic [PlaceWidth-1:0] reader_store_place, server_store_place;
  logic [PlaceWidth-1:0] writer_load_place, server_load_place;
  logic [BlockBeatWidth-1:0] reader_store_beat, server_store_beat;
  logic [BlockBeatWidth-1:0] writer_load_beat, server_load_beat;
  logic [BusBits-1:0] reader_store_data, server_store_data, load_data;

  localparam int unsigned BlockDepth = BlockBeats == 1 ? Places : Places << BlockBeatWidth;
  localparam int unsigned BlockAddressWidth = $clog2(BlockDepth);

  function automatic logic [BlockAddressWidth-1:0] block_address(
    logic [PlaceWidth-1:0] place, logic [BlockBeatWidth-1:0] beat
  );
    return BlockBeats == 1 ? BlockAddressWidth'(place) : BlockAddressWidth'({place, beat});
  endfunction

  ram_1r1w #(
    .Width(BusBits),
    .Depth(BlockDepth)
  ) u_blocks (
    .clk_i,
    .write_i        (reader_store || server_store),
    .write_address_i(reader_store ? block_address(reader_store_place, reader_store_beat)
                                  : block_address(server_store_place, server_store_beat)),
    .write_data_i   (reader_store ? reader_store_data : server_store_data),
    .read_i         (writer_load || server_load),
    .read_address_i (writer_load ? block_address(writer_load_place, writer_load_beat)
                                 : block_address(server_load_place, server_load_beat)),
    .read_data_o    (load_data)
  );

  // The path is read.

  logic arrived, written, path_found;
  logic [PlaceWidth-1:0] path_place;
  logic table_write;
  logic [LevelWidth-1:0] table_level;
  logic [AddressTableBits-1:0] opened_table;
  logic reader_placed, reader_placed_real, reader_placed_last;
  logic [AddressBits-1:0] reader_placed_address;
  logic [LeafWidth-1:0] reader_placed_leaf;
  logic [PlaceWidth-1:0] reader_placed_place;

  path_reader #(
    .Raw             (Raw),
    .LeafLevel       (LeafLevel),
    .BucketSlots     (BucketSlots),
    .BlockBeats      (BlockBeats),
    .BusBits         (BusBits),
    .Capacity        (Capacity),
    .AddressBits     (AddressBits),
    .LeafBits        (LeafBits),
    .AddressTableBits(AddressTableBits),
    .LeafTableBits   (LeafTableBits),
    .PlaceWidth      (PlaceWidth)
  ) u_reader (
    .clk_i,
    .rst_ni,
    .start_i          (start_first),
    .start_evictions_i,
    .op_valid_i       (op_start),
    .op_ready_o       (reader_ready),
    .op_kind_i        (op_kind),
    .op_leaf_i        (op_leaf),
    .op_user_i        (cmd_op_start),
    .wanted_valid_i   (command_start && command_on_path),
    .wanted_address_i (address_q),
    .wanted_leaf_i    (new_leaf_q),
    .wanted_remove_i  (op_q == OpReadRemove),
    .rdata_valid_i    (mem_rdata_valid_i),
    .rdata_ready_o    (mem_rdata_ready_o),
    .rdata_i          (mem_rdata_i),
    .rdata_error_i    (mem_rdata_error_i),
    .arrival_valid_o  (arrival_valid),
    .arrival_ready_i  (arrival_ready),
    .arrival_counter_o(arrival_counter),
    .arrival_bucket_o (arrival_bucket),
    .decode_valid_i   (decode_valid),
    .decode_ready_o   (decode_ready),
    .decode_mask_i    (decode_mask),
    .body_valid_i     (body_valid),
    .body_ready_o     (body_ready_reader),
    .body_mask_i      (body_mask),
    .served_i         (served),
    .written_i        (written),
    .free_valid_i     (free_valid),
    .free_place_i     (free_place),
    .free_take_o      (reader_take),
    .store_o          (reader_store),
    .store_place_o    (reader_store_place),
    .store_beat_o     (reader_store_beat),
    .store_data_o     (reader_store_data),
    .placed_valid_o   (reader_placed),
    .placed_real_o    (reader_placed_real),
    .placed_last_o    (reader_placed_last),
    .placed_address_o (reader_placed_address),
    .placed_leaf_o    (reader_placed_leaf),
    .placed_place_o   (reader_placed_place),
    .table_write_o    (table_write),
    .table_level_o    (table_level),
    .table_o          (opened_table),
    .arrived_o        (arrived),
    .headers_o        (headers),
    .opened_o         (opened),
    .found_o          (path_found),
    .found_place_o    (path_place),
    .found_bucket_o   (found_bucket),
    .found_evictions_o(found_evictions),
    .found_slot_o     (found_slot),
    .corrupt_o        (corrupt_bucket),
    .memory_error_o   (memory_error)
  );

  // The command is served.

  logic stash_found, server_arrival, server_real, server_start;
  logic [PlaceWidth-1:0] stash_place, server_place;

  assign server_start = !session_q || (scanned && (opened_q || op_q == OpAppend));
  assign found_twice = session_q && serving && server_start && stash_found
      && ((path_found && op_q != OpAppend) || op_q == OpAppend) && !served;

  block_server #(
    .Raw       (Raw),
    .BlockBeats(BlockBeats),
    .BusBits   (BusBits),
    .PlaceWidth(PlaceWidth)
  ) u_server (
    .clk_i,
    .rst_ni,
    .accept_i         (begin_command),
    .op_i             (command.op),
    .busy_o           (server_busy),
    .serving_o        (serving),
    .data_valid_i     (wdata_valid_i),
    .data_ready_o     (wdata_ready_o),
    .data_i           (wdata_i),
    .start_i          (server_start),
    .fail_i           (closed_o),
    .status_i         (status_q),
    .headers_i        (headers_q),
    .found_in_stash_i (stash_found),
    .stash_place_i    (stash_place),
    .found_on_path_i  (path_found && op_q != OpAppend),
    .path_place_i     (path_place),
    .mask_request_o   (serve_valid),
    .mask_accept_i    (serve_ready),
    .mask_valid_i     (serve_mask_valid),
    .mask_ready_o     (serve_mask_ready),
    .mask_i           (serve_mask),
    .free_place_i     (free_place),
    .free_take_o      (server_take),
    .free_give_o      (server_give),
    .free_give_place_o(server_give_place),
    .load_o           (server_load),
    .load_place_o     (server_load_place),
    .load_beat_o      (server_load_beat),
    .load_data_i      (load_data),
    .store_o          (server_store),
    .store_place_o    (server_store_place),
    .store_beat_o     (server_store_beat),
    .store_data_o     (server_store_data),
    .arrival_valid_o  (server_arrival),
    .arrival_real_o   (server_real),
    .arrival_place_o  (server_place),
    .served_o         (served),
    .rsp_valid_o,
    .rsp_ready_i,
    .rsp_data_o,
    .rsp_last_o,
    .rsp_status_o,
    .rsp_found_o
  );

  // The stash in order, and the plan.

  logic planned, writing, plan_read, plan_real, server_placed;
  logic [LevelWidth-1:0] plan_level;
  logic [IndexWidth-1:0] plan_index;
  logic [AddressBits-1:0] plan_address;
  logic [LeafWidth-1:0] plan_leaf;
  logic [PlaceWidth-1:0] plan_place;
  // A command is part of the session.
  logic wanted_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      wanted_q <= 1'b0;
    end else if (session_start) begin
      wanted_q <= command_start;
    end
  end

  assign server_placed = server_arrival && session_q;

  placer #(
    .LeafLevel  (LeafLevel),
    .BucketSlots(BucketSlots),
    .AddressBits(AddressBits),
    .Places     (Places),
    .PlaceWidth (PlaceWidth),
    .ScanCycles (StashBlocksMax + Beyond)
  ) u_placer (
    .clk_i,
    .rst_ni,
    .start_i          (session_start),
    .place_i          (command_start ? command_on_path && (!Raw || due) : 1'b1),
    .path_leaf_i      (Raw ? evict_leaf : op_leaf),
    .wanted_i         (wanted_q),
    .wanted_address_i (address_q),
    .wanted_leaf_i    (new_leaf_q),
    .wanted_remove_i  (op_q == OpReadRemove),
    .arrival_valid_i  (reader_placed || server_placed),
    .arrival_real_i   (server_placed ? server_real : reader_placed_real),
    .arrival_last_i   (server_placed ? !due_q : reader_placed_last),
    .arrival_address_i(server_placed ? address_q : reader_placed_address),
    .arrival_leaf_i   (server_placed ? new_leaf_q : reader_placed_leaf),
    .arrival_place_i  (server_placed ? server_place : reader_placed_place),
    .idle_o           (placer_idle),
    .scanned_o        (scanned),
    .found_o          (stash_found),
    .found_place_o    (stash_place),
    .count_o          (count),
    .planned_o        (planned),
    .writing_i        (writing),
    .plan_read_i      (plan_read),
    .plan_level_i     (plan_level),
    .plan_index_i     (plan_index),
    .plan_real_o      (plan_real),
    .plan_address_o   (plan_address),
    .plan_leaf_o      (plan_leaf),
    .plan_place_o     (plan_place)
  );

  // The path is written.

  path_writer #(
    .Raw             (Raw),
    .LeafLevel       (LeafLevel),
    .BucketSlots     (BucketSlots),
    .BlockBeats      (BlockBeats),
    .BusBits         (BusBits),
    .AddressBits     (AddressBits),
    .LeafBits        (LeafBits),
    .AddressTableBits(AddressTableBits),
    .LeafTableBits   (LeafTableBits),
    .PlaceWidth      (PlaceWidth)
  ) u_writer (
    .clk_i,
    .rst_ni,
    .start_i       (start_first),
    .start_operations_i,
    .discard_i     (discard),
    .op_valid_i    (op_start),
    .op_ready_o    (writer_ready),
    .op_kind_i     (op_kind),
    .planned_i     (planned),
    .serving_i     (serving),
    .arrived_i     (arrived),
    .writing_o     (writing),
    .written_o     (written),
    .plan_read_o   (plan_read),
    .plan_level_o  (plan_level),
    .plan_index_o  (plan_index),
    .plan_real_i   (plan_real),
    .plan_address_i(plan_address),
    .plan_leaf_i   (plan_leaf),
    .plan_place_i  (plan_place),
    .table_write_i (table_write),
    .table_level_i (table_level),
    .table_i       (opened_table),
    .load_o        (writer_load),
    .load_place_o  (writer_load_place),
    .load_beat_o   (writer_load_beat),
    .load_data_i   (load_data),
    .free_o        (writer_give),
    .free_place_o  (writer_give_place),
    .encode_valid_i(encode_valid),
    .encode_ready_o(encode_ready),
    .encode_mask_i (encode_mask),
    .body_valid_i  (body_valid),
    .body_ready_o  (body_ready_writer),
    .body_mask_i   (body_mask),
    .wdata_valid_o (mem_wdata_valid_o),
    .wdata_ready_i (mem_wdata_ready_i),
    .wdata_o       (mem_wdata_o),
    .wdata_strobe_o(mem_wdata_strobe_o)
  );

  logic unused;
  assign unused = &{1'b0, key_ready, free_count, entropy_valid_i, entropy_i};

endmodule
