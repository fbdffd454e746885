// SPDX-License-Identifier: Apache-2.0 OR MIT

/// Takes the beats of each path from memory, opens them, and hands on their blocks.
///
/// An arriving header requests its mask at once. All beats wait in a queue until their masks are
/// ready. Then one beat is opened in each cycle:
///
/// - In a path access or an EO access each slot becomes an arrival for the placer, real or not, and
///   the bytes of real blocks go to free slots of the stash.
/// - In an AO access the address tables are kept for the header write-back, without the wanted
///   block, whose bytes go to the stash still sealed.
///
/// The contents of a bucket are secret and untrusted. An entry that fails a check counts as a dummy
/// and raises `corrupt_o`. The timing depends only on memory and on masks.
module path_reader #(
  parameter bit Raw = 1'b1,
  parameter int unsigned LeafLevel = 20,
  parameter int unsigned BucketSlots = 5,
  parameter int unsigned BlockBeats = 1,
  parameter int unsigned BusBits = 512,
  parameter longint unsigned Capacity = 64'd1 << LeafLevel,
  parameter int unsigned AddressBits = 24,
  parameter int unsigned LeafBits = 24,
  parameter int unsigned AddressTableBits = 128,
  parameter int unsigned LeafTableBits = 128,
  // Width of a slot number of the stash.
  parameter int unsigned PlaceWidth = 8,
  localparam int unsigned LeafWidth = LeafLevel == 0 ? 1 : LeafLevel,
  localparam int unsigned LevelWidth = $clog2(LeafLevel + 2),
  localparam int unsigned HeadMaskBits = Raw ? AddressTableBits : BusBits,
  localparam int unsigned SlotWidth = BucketSlots == 1 ? 1 : $clog2(BucketSlots),
  localparam int unsigned BlockBeatWidth = BlockBeats == 1 ? 1 : $clog2(BlockBeats)
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,

  // The count of EO accesses that the tree has had. One cycle.
  input  logic                        start_i,
  input  logic [63:0]                 start_evictions_i,

  input  logic                        op_valid_i,
  output logic                        op_ready_o,
  input  oram_pkg::kind_e             op_kind_i,
  input  logic [LeafWidth-1:0]        op_leaf_i,
  // The operation looks for the wanted block.
  input  logic                        op_user_i,

  // The wanted block of the next operation with one, valid from the next cycle on. It stays until
  // the operation has been served.
  input  logic                        wanted_valid_i,
  input  logic [AddressBits-1:0]      wanted_address_i,
  input  logic [LeafWidth-1:0]        wanted_leaf_i,
  input  logic                        wanted_remove_i,

  input  logic                        rdata_valid_i,
  output logic                        rdata_ready_o,
  input  logic [BusBits-1:0]          rdata_i,
  input  logic                        rdata_error_i,

  // Requests the mask of a header.
  output logic                        arrival_valid_o,
  input  logic                        arrival_ready_i,
  output logic [63:0]                 arrival_counter_o,
  output logic [LeafLevel:0]          arrival_bucket_o,
  input  logic                        decode_valid_i,
  output logic                        decode_ready_o,
  input  logic [HeadMaskBits-1:0]     decode_mask_i,
  input  logic                        body_valid_i,
  output logic                        body_ready_o,
  input  logic [BusBits-1:0]          body_mask_i,

  // The command whose path was opened has been served; that path has been sealed. The next path
  // waits for both: it needs the stash, and what both paths share (the root at least).
  input  logic                        served_i,
  input  logic                        written_i,

  // Free slots of the stash.
  input  logic                        free_valid_i,
  input  logic [PlaceWidth-1:0]       free_place_i,
  output logic                        free_take_o,

  output logic                        store_o,
  output logic [PlaceWidth-1:0]       store_place_o,
  output logic [BlockBeatWidth-1:0]   store_beat_o,
  output logic [BusBits-1:0]          store_data_o,

  // To the placer, which has room. The last of an operation that serves no command is marked.
  output logic                        placed_valid_o,
  output logic                        placed_real_o,
  output logic                        placed_last_o,
  output logic [AddressBits-1:0]      placed_address_o,
  output logic [LeafWidth-1:0]        placed_leaf_o,
  output logic [PlaceWidth-1:0]       placed_place_o,

  // Opened address tables of an AO access, by level, without the wanted block.
  output logic                        table_write_o,
  output logic [LevelWidth-1:0]       table_level_o,
  output logic [AddressTableBits-1:0] table_o,

  // All beats of the operation have arrived; all headers have been opened; all beats have been
  // opened. One cycle each.
  output logic                        arrived_o,
  output logic                        headers_o,
  output logic                        opened_o,

  // Where the wanted block was on the path. It stays until the next operation begins. If it was
  // not there, the bucket is the root and the slot is 0.
  output logic                        found_o,
  output logic [PlaceWidth-1:0]       found_place_o,
  output logic [LeafLevel:0]          found_bucket_o,
  output logic [63:0]                 found_evictions_o,
  output logic [SlotWidth-1:0]        found_slot_o,

  output logic                        corrupt_o,
  output logic                        memory_error_o
);

  import oram_pkg::*;

  localparam int unsigned BucketBeats = 1 + BucketSlots * BlockBeats;
  localparam int unsigned BeatWidth = $clog2(BucketBeats + 1);
  // Beats that may wait for masks: one for each stage of the AES pipeline, and some for
  // arbitration.
  localparam int unsigned WaitingBeats = 32;
  localparam int unsigned HeadersDepth = WaitingBeats / BucketBeats + 2;

  // Where the leaf table of a header beat begins, and the address table.
  localparam int unsigned AddressesAt = 64;
  localparam int unsigned LeavesAt = AddressesAt + AddressTableBits;

  // Beats that arrive. Each operation is known before its first beat.

  logic in_valid, in_next, in_start, in_last_beat, in_last_level;
  logic [LeafWidth-1:0] in_leaf;
  logic [BeatWidth-1:0] in_beat_q;
  logic in_walking_q;
  logic [LevelWidth-1:0] in_level;
  logic [LeafLevel:0] in_bucket;
  logic in_accept;
  logic in_room, headers_room, beats_room;

  fifo #(
    .Width(LeafWidth),
    .Depth(2)
  ) u_arriving (
    .clk_i,
    .rst_ni,
    .valid_i(op_valid_i && op_ready_o),
    .ready_o(in_room),
    .data_i (op_leaf_i),
    .valid_o(in_valid),
    .ready_i(in_next),
    .data_o (in_leaf),
    .count_o()
  );

  assign in_start = in_valid && !in_walking_q;
  assign in_last_beat = in_beat_q == BeatWidth'(BucketBeats - 1);
  assign in_last_level = in_level == LevelWidth'(LeafLevel);
  assign rdata_ready_o = in_walking_q && beats_room && (in_beat_q != '0 || headers_room);
  assign in_accept = rdata_valid_i && rdata_ready_o;
  assign in_next = in_accept && in_last_beat && in_last_level;
  assign arrived_o = in_next;
  assign memory_error_o = in_accept && rdata_error_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      in_walking_q <= 1'b0;
      in_beat_q <= '0;
    end else if (in_start) begin
      in_walking_q <= 1'b1;
    end else if (in_accept) begin
      in_beat_q <= in_last_beat ? '0 : in_beat_q + BeatWidth'(1);
      in_walking_q <= !in_next;
    end
  end

  logic [LeafWidth-1:0] unused_in_index;
  logic [63:0] unused_in_evictions;

  eviction_path #(
    .LeafLevel(LeafLevel)
  ) u_arriving_path (
    .clk_i,
    .start_i    (in_start),
    .leaf_i     (in_leaf),
    .evictions_i('0),
    .step_i     (in_accept && in_last_beat),
    .level_o    (in_level),
    .index_o    (unused_in_index),
    .bucket_o   (in_bucket),
    .evictions_o(unused_in_evictions)
  );

  // The stored counter is big-endian in the first bytes of the header.
  function automatic logic [63:0] counter_of(logic [63:0] bytes);
    return {<<8{bytes}};
  endfunction

  fifo #(
    .Width(64 + LeafLevel + 1),
    .Depth(HeadersDepth)
  ) u_headers (
    .clk_i,
    .rst_ni,
    .valid_i(in_accept && in_beat_q == '0),
    .ready_o(headers_room),
    .data_i ({counter_of(rdata_i[63:0]), in_bucket}),
    .valid_o(arrival_valid_o),
    .ready_i(arrival_ready_i),
    .data_o ({arrival_counter_o, arrival_bucket_o}),
    .count_o()
  );

  logic beat_valid, beat_take;
  logic [BusBits-1:0] beat;

  fifo #(
    .Width(BusBits),
    .Depth(WaitingBeats)
  ) u_beats (
    .clk_i,
    .rst_ni,
    .valid_i(in_accept),
    .ready_o(beats_room),
    .data_i (rdata_i),
    .valid_o(beat_valid),
    .ready_i(beat_take),
    .data_o (beat),
    .count_o()
  );

  // Opening: the first stage.

  logic op_valid, op_next, op_user, op_room, walking_q, has_wanted_q, to_serve_q, to_write_q;
  logic start;
  kind_e op_kind;
  logic [LeafWidth-1:0] op_leaf;
  logic [BeatWidth-1:0] beat_q;
  logic last_beat, last_level, is_header, needs_decode, needs_body;
  logic [LevelWidth-1:0] level;
  logic [LeafLevel:0] bucket;
  logic [63:0] bucket_evictions, evictions_q;

  fifo #(
    .Width(2 + 1 + LeafWidth),
    .Depth(2)
  ) u_opening (
    .clk_i,
    .rst_ni,
    .valid_i(op_valid_i && op_ready_o),
    .ready_o(op_room),
    .data_i ({op_kind_i, op_user_i, op_leaf_i}),
    .valid_o(op_valid),
    .ready_i(op_next),
    .data_o ({op_kind, op_user, op_leaf}),
    .count_o()
  );

  assign op_ready_o = in_room && op_room;
  assign start = op_valid && !walking_q && !to_serve_q && !to_write_q
      && (has_wanted_q || !op_user);
  assign is_header = beat_q == '0;
  assign last_beat = beat_q == BeatWidth'(BucketBeats - 1);
  assign last_level = level == LevelWidth'(LeafLevel);
  assign needs_decode = is_header || op_kind == PathAccess;
  assign needs_body = op_kind == EvictionOnly;
  assign beat_take = walking_q && beat_valid && (decode_valid_i || !needs_decode)
      && (body_valid_i || !needs_body);
  assign decode_ready_o = beat_take && needs_decode;
  assign body_ready_o = beat_take && needs_body;
  assign op_next = beat_take && last_beat && last_level;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      walking_q <= 1'b0;
      has_wanted_q <= 1'b0;
      to_serve_q <= 1'b0;
      to_write_q <= 1'b0;
      beat_q <= '0;
      evictions_q <= '0;
    end else begin
      to_write_q <= start || (to_write_q && !written_i);
      if (start_i) begin
        evictions_q <= start_evictions_i;
      end
      if (start) begin
        walking_q <= 1'b1;
      end else if (beat_take) begin
        beat_q <= last_beat ? '0 : beat_q + BeatWidth'(1);
        walking_q <= !op_next;
        if (op_next && op_kind == EvictionOnly) begin
          evictions_q <= evictions_q + 64'd1;
        end
      end
      has_wanted_q <= wanted_valid_i || (has_wanted_q && !(op_next && op_user));
      if (op_next && op_user) begin
        to_serve_q <= 1'b1;
      end else if (served_i) begin
        to_serve_q <= 1'b0;
      end
    end
  end

  logic [LeafWidth-1:0] unused_index;

  eviction_path #(
    .LeafLevel(LeafLevel)
  ) u_opening_path (
    .clk_i,
    .start_i    (start),
    .leaf_i     (op_leaf),
    .evictions_i(evictions_q),
    .step_i     (beat_take && last_beat),
    .level_o    (level),
    .index_o    (unused_index),
    .bucket_o   (bucket),
    .evictions_o(bucket_evictions)
  );

  logic [BusBits-1:0] mask;

  always_comb begin
    mask = '0;
    if (is_header) begin
      mask[AddressesAt +: AddressTableBits] = decode_mask_i[AddressTableBits-1:0];
      if (op_kind == EvictionOnly) begin
        mask[LeavesAt +: LeafTableBits] = body_mask_i[LeafTableBits-1:0];
      end else if (!Raw) begin
        mask[LeavesAt +: LeafTableBits] = LeafTableBits'(decode_mask_i >> AddressTableBits);
      end
    end else if (op_kind == EvictionOnly) begin
      mask = body_mask_i;
    end else if (!Raw) begin
      mask = BusBits'(decode_mask_i);
    end
  end

  // Opening: the second stage, on an opened beat.

  typedef struct packed {
    kind_e                kind;
    logic                 user;
    logic                 header;
    // First beat of the operation, and last one.
    logic                 first;
    logic                 last;
    logic [LevelWidth-1:0] level;
    logic [LeafLevel:0]   bucket;
    logic [63:0]          evictions;
  } context_t;

  logic opened_valid_q;
  logic [BusBits-1:0] opened_q;
  context_t context_q;
  logic [LeafWidth-1:0] path_leaf_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      opened_valid_q <= 1'b0;
    end else begin
      opened_valid_q <= beat_take;
    end
  end

  always_ff @(posedge clk_i) begin
    if (beat_take) begin
      opened_q <= beat ^ mask;
      context_q <= '{
        kind: op_kind,
        user: op_user,
        header: is_header,
        first: is_header && level == '0,
        last: op_next,
        level: level,
        bucket: bucket,
        evictions: bucket_evictions
      };
      path_leaf_q <= op_leaf;
    end
  end

  typedef struct packed {
    logic                   real_block;
    logic [AddressBits-1:0] address;
    logic [LeafWidth-1:0]   leaf;
  } entry_t;

  // Ones for the bits of a leaf label that name a bucket on the level.
  logic [LeafWidth-1:0] shared_bits;
  entry_t entries_d [BucketSlots];
  entry_t entries_q [BucketSlots];
  logic [BucketSlots-1:0] hits, strange;
  logic was_written, corrupt_here, is_access_only;

  assign is_access_only = Raw && context_q.kind == AccessOnly;
  assign was_written = opened_q[63:0] != '0;

  always_comb begin
    for (int i = 0; i < LeafWidth; i++) begin
      shared_bits[i] = LevelWidth'(i) < context_q.level;
    end
    for (int slot = 0; slot < BucketSlots; slot++) begin
      automatic logic [AddressBits-1:0] address =
          opened_q[AddressesAt + AddressBits * slot +: AddressBits];
      automatic logic [LeafBits-1:0] leaf = opened_q[LeavesAt + LeafBits * slot +: LeafBits];
      automatic logic claimed = was_written && address != '1;
      automatic logic in_range = 64'(address) < 64'(Capacity);
      automatic logic on_path = ((LeafWidth'(leaf) ^ path_leaf_q) & shared_bits) == '0
          && 64'(leaf) >> LeafLevel == '0;
      hits[slot] = context_q.user && was_written && address == wanted_address_i;
      strange[slot] = claimed && !(in_range && (is_access_only || on_path));
      entries_d[slot].real_block = claimed && !strange[slot] && (!is_access_only || hits[slot]);
      entries_d[slot].address = address;
      entries_d[slot].leaf = LeafWidth'(leaf);
    end
  end

  // Contents that the controller never writes (the engine makes the same checks).
  logic twice, real_any, never_evicted;

  always_comb begin
    real_any = 1'b0;
    for (int slot = 0; slot < BucketSlots; slot++) begin
      real_any |= entries_d[slot].real_block;
    end
  end

  assign twice = |(hits & (hits - BucketSlots'(1))) || (|hits && found_o && !context_q.first);
  assign never_evicted = Raw && context_q.evictions == '0;
  assign corrupt_here = |strange || twice || (never_evicted && real_any)
      || (Raw && !was_written && !never_evicted);
  assign corrupt_o = opened_valid_q && context_q.header && corrupt_here;

  // The table of an AO access, without the wanted block. An unwritten bucket has only dummies.
  always_comb begin
    table_o = was_written ? opened_q[AddressesAt +: AddressTableBits] : '0;
    for (int slot = 0; slot < BucketSlots; slot++) begin
      if (hits[slot] || !was_written) begin
        table_o[AddressBits * slot +: AddressBits] = '1;
      end
    end
  end

  assign table_write_o = opened_valid_q && context_q.header && is_access_only;
  assign table_level_o = context_q.level;

  // The slot and the beat of a block that is in the second stage.
  logic [SlotWidth-1:0] slot_q;
  logic [BlockBeatWidth-1:0] block_beat_q;
  logic is_block, block_first, block_last, keeps;
  logic [PlaceWidth-1:0] place_q;
  entry_t entry;

  assign is_block = opened_valid_q && !context_q.header;
  assign block_first = block_beat_q == '0;
  assign block_last = block_beat_q == BlockBeatWidth'(BlockBeats - 1);
  assign entry = entries_q[slot_q];
  assign keeps = is_block && entry.real_block;
  assign free_take_o = keeps && block_first;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      slot_q <= '0;
      block_beat_q <= '0;
    end else if (is_block) begin
      block_beat_q <= block_last ? '0 : block_beat_q + BlockBeatWidth'(1);
      if (block_last) begin
        slot_q <= slot_q == SlotWidth'(BucketSlots - 1) ? '0 : slot_q + SlotWidth'(1);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (opened_valid_q && context_q.header) begin
      entries_q <= entries_d;
      // A block on the path twice is taken once.
      if (is_access_only) begin
        for (int slot = 0; slot < BucketSlots; slot++) begin
          entries_q[slot].real_block <= entries_d[slot].real_block && !twice;
        end
      end
    end
    if (free_take_o) begin
      place_q <= free_place_i;
    end
  end

  assign store_o = keeps;
  assign store_place_o = block_first ? free_place_i : place_q;
  assign store_beat_o = block_beat_q;
  assign store_data_o = opened_q;

  // Arrivals for the placer. The mark of the last one follows in the cycle after.
  logic is_wanted, mark_q;

  assign is_wanted = context_q.user && entry.real_block && entry.address == wanted_address_i;
  assign placed_valid_o = (is_block && block_first && !is_access_only) || mark_q;
  assign placed_last_o = mark_q;
  assign placed_real_o = !mark_q && entry.real_block && !(is_wanted && wanted_remove_i);
  assign placed_address_o = entry.address;
  assign placed_leaf_o = is_wanted ? wanted_leaf_i : entry.leaf;
  assign placed_place_o = free_place_i;
  assign headers_o =
      opened_valid_q && context_q.header && context_q.level == LevelWidth'(LeafLevel);
  assign opened_o = opened_valid_q && context_q.last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      mark_q <= 1'b0;
      found_o <= 1'b0;
    end else begin
      mark_q <= opened_o && !context_q.user;
      if (opened_valid_q && context_q.first) begin
        found_o <= Raw && |hits;
      end else if (opened_valid_q && context_q.header && |hits && Raw) begin
        found_o <= 1'b1;
      end else if (is_block && block_first && is_wanted && !Raw) begin
        found_o <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (is_block && block_first && is_wanted) begin
      found_place_o <= free_place_i;
    end
    if (opened_valid_q && context_q.header
        && (context_q.first || (|hits && !twice))) begin
      found_bucket_o <= context_q.bucket;
      found_evictions_o <= context_q.evictions;
      found_slot_o <= '0;
      for (int slot = 0; slot < BucketSlots; slot++) begin
        if (hits[slot]) begin
          found_slot_o <= SlotWidth'(slot);
        end
      end
    end
  end

  // The place that a real block takes is free: the stash has more slots than blocks.
  logic unused;
  assign unused = &{1'b0, unused_in_index, unused_in_evictions, unused_index, free_valid_i};

endmodule
