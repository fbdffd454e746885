// SPDX-License-Identifier: Apache-2.0 OR MIT

/// Seals paths and hands their beats to memory, in the order of the write commands.
///
/// - A path access or an EO access writes each bucket of the plan: its header, then its blocks, and
///   zeros for slots without a block. A block's slot of the stash becomes free.
/// - An AO access writes each header back: the counter and the address table alone, by strobes.
///
/// One beat leaves in each cycle in which memory takes it and its mask is there. The timing depends
/// only on memory and on masks. Headers carry the number of the operation as their counter.
module path_writer #(
  parameter bit Raw = 1'b1,
  parameter int unsigned LeafLevel = 20,
  parameter int unsigned BucketSlots = 5,
  parameter int unsigned BlockBeats = 1,
  parameter int unsigned BusBits = 512,
  parameter int unsigned AddressBits = 24,
  parameter int unsigned LeafBits = 24,
  parameter int unsigned AddressTableBits = 128,
  parameter int unsigned LeafTableBits = 128,
  parameter int unsigned PlaceWidth = 8,
  localparam int unsigned LeafWidth = LeafLevel == 0 ? 1 : LeafLevel,
  localparam int unsigned LevelWidth = $clog2(LeafLevel + 2),
  localparam int unsigned IndexWidth = $clog2(BucketSlots + 1),
  localparam int unsigned HeadMaskBits = Raw ? AddressTableBits : BusBits,
  localparam int unsigned BlockBeatWidth = BlockBeats == 1 ? 1 : $clog2(BlockBeats)
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,

  // The count of operations that the tree has had. One cycle.
  input  logic                        start_i,
  input  logic [63:0]                 start_operations_i,
  // Beats leave as zeros, and no byte of memory changes.
  input  logic                        discard_i,

  input  logic                        op_valid_i,
  output logic                        op_ready_o,
  input  oram_pkg::kind_e             op_kind_i,

  // There is a new plan. One cycle.
  input  logic                        planned_i,
  // A command is being served: blocks of the stash change.
  input  logic                        serving_i,
  // All beats of an operation have arrived, in the order of operations. One cycle.
  input  logic                        arrived_i,
  // A plan is being written, or waits for it.
  output logic                        writing_o,
  // The last beat of an operation has been sealed. One cycle.
  output logic                        written_o,

  output logic                        plan_read_o,
  output logic [LevelWidth-1:0]       plan_level_o,
  output logic [IndexWidth-1:0]       plan_index_o,
  input  logic                        plan_real_i,
  input  logic [AddressBits-1:0]      plan_address_i,
  input  logic [LeafWidth-1:0]        plan_leaf_i,
  input  logic [PlaceWidth-1:0]       plan_place_i,

  // Address tables of an AO access, one cycle after the request.
  input  logic                        table_write_i,
  input  logic [LevelWidth-1:0]       table_level_i,
  input  logic [AddressTableBits-1:0] table_i,

  // Data of the stash, one cycle after the request.
  output logic                        load_o,
  output logic [PlaceWidth-1:0]       load_place_o,
  output logic [BlockBeatWidth-1:0]   load_beat_o,
  input  logic [BusBits-1:0]          load_data_i,
  output logic                        free_o,
  output logic [PlaceWidth-1:0]       free_place_o,

  input  logic                        encode_valid_i,
  output logic                        encode_ready_o,
  input  logic [HeadMaskBits-1:0]     encode_mask_i,
  input  logic                        body_valid_i,
  output logic                        body_ready_o,
  input  logic [BusBits-1:0]          body_mask_i,

  output logic                        wdata_valid_o,
  input  logic                        wdata_ready_i,
  output logic [BusBits-1:0]          wdata_o,
  output logic [BusBits/8-1:0]        wdata_strobe_o
);

  import oram_pkg::*;

  localparam int unsigned BucketBeats = 1 + BucketSlots * BlockBeats;
  localparam int unsigned BeatWidth = $clog2(BucketBeats + 1);
  localparam int unsigned SlotWidth = BucketSlots == 1 ? 1 : $clog2(BucketSlots);
  localparam int unsigned AddressesAt = 64;
  localparam int unsigned LeavesAt = AddressesAt + AddressTableBits;
  localparam logic [BusBits/8-1:0] HeaderStrobe =
      (BusBits/8)'((129'd1 << (LeavesAt / 8)) - 129'd1);

  // Operations, and which of their inputs are ready.

  logic op_valid, op_next;
  kind_e op_kind;

  fifo #(
    .Width(2),
    .Depth(3)
  ) u_ops (
    .clk_i,
    .rst_ni,
    .valid_i(op_valid_i),
    .ready_o(op_ready_o),
    .data_i (op_kind_i),
    .valid_o(op_valid),
    .ready_i(op_next),
    .data_o ({op_kind}),
    .count_o()
  );

  // AO accesses write as soon as their last beat and a table have arrived; other operations write
  // once they are planned. Events come in the order of operations, so counters are enough.
  logic [1:0] arrived_q;
  logic planned_q;
  logic is_headers, start, active_q;
  logic [63:0] counter_q;
  // Tables of the AO access that have arrived.
  logic [LevelWidth-1:0] tables_q;

  assign is_headers = Raw && op_kind == AccessOnly;
  assign start =
      op_valid && !active_q && arrived_q != '0
      && (is_headers || ((planned_q || planned_i) && !serving_i));
  assign writing_o = planned_q || (active_q && !is_headers);

  // The order of beats.

  logic step, emit_last, op_last;
  logic [LevelWidth-1:0] level_q;
  logic [BeatWidth-1:0] beat_q;
  logic [SlotWidth-1:0] slot_q;
  logic [BlockBeatWidth-1:0] block_beat_q;

  typedef struct packed {
    logic                   real_block;
    logic [AddressBits-1:0] address;
    logic [LeafWidth-1:0]   leaf;
    logic [PlaceWidth-1:0]  place;
  } slot_t;

  slot_t gathered_q [BucketSlots];
  slot_t bucket_q [BucketSlots];
  logic gathered_full_q, gathering_q, is_header, block_last;
  logic [IndexWidth-1:0] gather_q, gathered_to_q;
  logic [LevelWidth-1:0] gather_level_q;
  logic gather_take;

  // The second stage holds a beat.
  logic sealing_q, seal;

  assign is_header = beat_q == '0;
  assign block_last = block_beat_q == BlockBeatWidth'(BlockBeats - 1);
  assign emit_last = is_headers || beat_q == BeatWidth'(BucketBeats - 1);
  assign op_last = emit_last && level_q == LevelWidth'(LeafLevel);
  assign step = active_q && (!sealing_q || seal)
      && (is_headers ? tables_q > level_q : !is_header || gathered_full_q);
  assign gather_take = step && is_header && !is_headers;
  assign op_next = step && op_last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
      arrived_q <= '0;
      planned_q <= 1'b0;
      counter_q <= '0;
      tables_q <= '0;
      level_q <= '0;
      beat_q <= '0;
      slot_q <= '0;
      block_beat_q <= '0;
    end else begin
      arrived_q <= arrived_q + 2'(arrived_i) - 2'(start);
      planned_q <= (planned_i || planned_q) && !(start && !is_headers);
      if (start_i) begin
        counter_q <= start_operations_i;
      end
      if (start) begin
        active_q <= 1'b1;
        counter_q <= counter_q + 64'd1;
        level_q <= '0;
        beat_q <= '0;
        slot_q <= '0;
        block_beat_q <= '0;
      end else if (step) begin
        active_q <= !op_last;
        beat_q <= emit_last ? '0 : beat_q + BeatWidth'(1);
        level_q <= emit_last ? level_q + LevelWidth'(1) : level_q;
        if (!is_header) begin
          block_beat_q <= block_last ? '0 : block_beat_q + BlockBeatWidth'(1);
          if (block_last) begin
            slot_q <= slot_q == SlotWidth'(BucketSlots - 1) ? '0 : slot_q + SlotWidth'(1);
          end
        end
      end
      if (op_next && is_headers) begin
        tables_q <= '0;
      end else if (table_write_i) begin
        tables_q <= table_level_i + LevelWidth'(1);
      end
    end
  end

  // The slots of the next bucket are gathered from the plan, one in a cycle.

  // The read of a bucket's first slot falls into the cycle in which the bucket before is taken.
  logic gather_first, gathers_q;

  assign gather_first = gather_take && gather_level_q != LevelWidth'(LeafLevel);
  assign plan_read_o = gather_first || (gathering_q && gather_q != IndexWidth'(BucketSlots));
  assign plan_level_o = gather_first ? gather_level_q + LevelWidth'(1) : gather_level_q;
  assign plan_index_o = gather_first ? '0 : gather_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      gathering_q <= 1'b0;
      gathers_q <= 1'b0;
      gathered_full_q <= 1'b0;
      gather_q <= '0;
      gathered_to_q <= '0;
      gather_level_q <= '0;
    end else begin
      gathers_q <= plan_read_o;
      gathered_to_q <= plan_index_o;
      if (start && !is_headers) begin
        gathering_q <= 1'b1;
        gather_level_q <= '0;
        gather_q <= '0;
        gathered_full_q <= 1'b0;
      end else begin
        if (plan_read_o) begin
          gather_q <= plan_index_o + IndexWidth'(1);
        end
        if (gathers_q && gathered_to_q == IndexWidth'(BucketSlots - 1)) begin
          gathered_full_q <= 1'b1;
        end
        if (gather_take) begin
          gathered_full_q <= 1'b0;
          gather_level_q <= gather_level_q + LevelWidth'(1);
          gathering_q <= gather_first;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (gathers_q) begin
      gathered_q[SlotWidth'(gathered_to_q)] <= '{
        real_block: plan_real_i,
        address: plan_address_i,
        leaf: plan_leaf_i,
        place: plan_place_i
      };
    end
    if (gather_take) begin
      bucket_q <= gathered_q;
    end
  end

  // First stage: the stash or the table is read.

  logic [AddressTableBits-1:0] old_table;

  assign load_o = step && !is_header;
  assign load_place_o = bucket_q[slot_q].place;
  assign load_beat_o = block_beat_q;
  assign free_o = step && !is_header && block_last && bucket_q[slot_q].real_block;
  assign free_place_o = bucket_q[slot_q].place;

  if (Raw) begin : gen_tables
    ram_1r1w #(
      .Width   (AddressTableBits),
      .Depth   (LeafLevel + 1),
      .BlockRam(1'b0)
    ) u_tables (
      .clk_i,
      .write_i        (table_write_i),
      .write_address_i((LeafLevel == 0 ? 1 : $clog2(LeafLevel + 1))'(table_level_i)),
      .write_data_i   (table_i),
      .read_i         (step && is_headers),
      .read_address_i ((LeafLevel == 0 ? 1 : $clog2(LeafLevel + 1))'(level_q)),
      .read_data_o    (old_table)
    );
  end else begin : gen_no_tables
    assign old_table = '0;
    logic unused_table;
    assign unused_table = &{1'b0, table_i};
  end

  // Second stage: the beat is sealed.

  logic sealing_header_q, sealing_headers_q, sealing_real_q, sealing_last_q;
  logic [63:0] sealing_counter_q;
  logic needs_encode, needs_body;
  logic [BusBits-1:0] plain, mask;

  assign needs_encode = sealing_header_q || !Raw;
  assign needs_body = Raw && !sealing_headers_q;
  assign seal = sealing_q && (encode_valid_i || !needs_encode) && (body_valid_i || !needs_body)
      && (!wdata_valid_o || wdata_ready_i);
  assign written_o = seal && sealing_last_q;
  assign encode_ready_o = seal && needs_encode;
  assign body_ready_o = seal && needs_body;

  always_comb begin
    plain = '0;
    mask = '0;
    if (sealing_header_q) begin
      // The counter is big-endian, and in clear.
      plain[63:0] = {<<8{sealing_counter_q}};
      if (sealing_headers_q) begin
        plain[AddressesAt +: AddressTableBits] = old_table;
      end else begin
        for (int i = 0; i < BucketSlots; i++) begin
          plain[AddressesAt + AddressBits * i +: AddressBits] =
              bucket_q[i].real_block ? bucket_q[i].address : '1;
          plain[LeavesAt + LeafBits * i +: LeafBits] =
              bucket_q[i].real_block ? LeafBits'(bucket_q[i].leaf) : '0;
        end
      end
      mask[AddressesAt +: AddressTableBits] = encode_mask_i[AddressTableBits-1:0];
      if (Raw) begin
        mask[LeavesAt +: LeafTableBits] =
            sealing_headers_q ? '0 : body_mask_i[LeafTableBits-1:0];
      end else begin
        mask[LeavesAt +: LeafTableBits] = LeafTableBits'(encode_mask_i >> AddressTableBits);
      end
    end else begin
      plain = sealing_real_q ? load_data_i : '0;
      mask = Raw ? body_mask_i : BusBits'(encode_mask_i);
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      sealing_q <= 1'b0;
      wdata_valid_o <= 1'b0;
    end else begin
      if (step) begin
        sealing_q <= 1'b1;
      end else if (seal) begin
        sealing_q <= 1'b0;
      end
      if (seal) begin
        wdata_valid_o <= 1'b1;
      end else if (wdata_ready_i) begin
        wdata_valid_o <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (step) begin
      sealing_header_q <= is_header;
      sealing_headers_q <= is_headers;
      sealing_real_q <= bucket_q[slot_q].real_block;
      sealing_last_q <= op_last;
      sealing_counter_q <= counter_q;
    end
    if (seal) begin
      wdata_o <= discard_i ? '0 : plain ^ mask;
      wdata_strobe_o <= discard_i ? '0 : sealing_headers_q ? HeaderStrobe : '1;
    end
  end

endmodule
