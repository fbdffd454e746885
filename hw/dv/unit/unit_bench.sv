// SPDX-License-Identifier: Apache-2.0 OR MIT

/// Every block under test in one simulation: one build serves all unit benches.
///
/// Ports with a leading dimension serve several instances with different parameters. The tests
/// repeat these parameters.
module unit_bench (
  input  logic                clk_i,
  input  logic                rst_ni,

  // AES; element 0 has S-boxes in LUTs, element 1 in block RAM.
  input  logic                aes_key_valid_i,
  output logic                aes_key_ready_o,
  input  logic [127:0]        aes_key_i,
  output logic                aes_keys_done_o,
  output aes_pkg::round_keys_t aes_keys_o,
  input  logic                aes_valid_i,
  input  logic [127:0]        aes_block_i,
  input  logic [7:0]          aes_tag_i,
  output logic [1:0]          aes_valid_o,
  output logic [1:0][127:0]   aes_block_o,
  output logic [1:0][7:0]     aes_tag_o,

  input  logic [7:0]          sbox_a_i,
  input  logic [7:0]          sbox_b_i,
  output logic [1:0][7:0]     sbox_a_o,
  output logic [1:0][7:0]     sbox_b_o,
  output logic [7:0]          sbox_function_o,

  // FIFOs of 1, 2, 5 and 8 entries, and one of 6 entries in block RAM.
  input  logic [4:0]          fifo_valid_i,
  output logic [4:0]          fifo_ready_o,
  input  logic [4:0][7:0]     fifo_data_i,
  output logic [4:0]          fifo_valid_o,
  input  logic [4:0]          fifo_ready_i,
  output logic [4:0][7:0]     fifo_data_o,
  output logic [4:0][3:0]     fifo_count_o,

  // RAMs of 5 words: element 0 LUT RAM, 1 block RAM.
  input  logic                ram_write_i,
  input  logic [2:0]          ram_write_address_i,
  input  logic [11:0]         ram_write_data_i,
  input  logic                ram_read_i,
  input  logic [2:0]          ram_read_address_i,
  output logic [1:0][11:0]    ram_read_data_o,

  // Slot pools of 1, 5 and 8 slots.
  output logic [2:0]          pool_ready_o,
  output logic [2:0]          pool_take_valid_o,
  output logic [2:0][2:0]     pool_take_slot_o,
  input  logic [2:0]          pool_take_i,
  input  logic [2:0]          pool_give_i,
  input  logic [2:0][2:0]     pool_give_slot_i,
  output logic [2:0][3:0]     pool_free_o,

  // PushToLeaf, one instance for each LeafLevel up to 2, each leaf of the path and BucketSlots 1
  // and 2: element 2 * (2^LeafLevel - 1 + leaf) + BucketSlots - 1. All share their inputs.
  input  logic                push_start_i,
  input  logic                push_valid_i,
  input  logic                push_real_i,
  input  logic [1:0]          push_leaf_i,
  input  logic [3:0]          push_slot_i,
  // {valid, real, placed, slot, level, index}.
  output logic [13:0][14:0]   push_o,

  // PushToLeaf with LeafLevel 20, BucketSlots 4 and LeafLevel 5, BucketSlots 3.
  input  logic                big_start_i,
  input  logic [19:0]         big_path_leaf_i,
  input  logic                big_valid_i,
  input  logic                big_real_i,
  input  logic [19:0]         big_leaf_i,
  input  logic [7:0]          big_slot_i,
  // {valid, real, placed, slot, level, index}.
  output logic [1:0][18:0]    big_o,

  // Eviction paths of LeafLevel 0 to 4, 20 and 40.
  input  logic                evict_start_i,
  input  logic [39:0]         evict_leaf_i,
  input  logic [63:0]         evict_evictions_i,
  input  logic                evict_step_i,
  output logic [6:0][5:0]     evict_level_o,
  output logic [6:0][39:0]    evict_index_o,
  output logic [6:0][40:0]    evict_bucket_o,
  output logic [6:0][63:0]    evict_evictions_o,

  // Address maps, see MapLevels.
  input  logic [5:0]          map_level_i,
  input  logic [39:0]         map_index_i,
  output logic [8:0][47:0]    map_address_o
);

  // AES

  aes_key_schedule u_keys (
    .clk_i,
    .rst_ni,
    .valid_i     (aes_key_valid_i),
    .ready_o     (aes_key_ready_o),
    .key_i       (aes_key_i),
    .done_o      (aes_keys_done_o),
    .round_keys_o(aes_keys_o)
  );

  for (genvar i = 0; i < 2; i++) begin : gen_aes
    aes_pipe #(
      .UseBlockRam(i == 1),
      .TagWidth   (8)
    ) u_pipe (
      .clk_i,
      .rst_ni,
      .round_keys_i(aes_keys_o),
      .valid_i     (aes_valid_i),
      .block_i     (aes_block_i),
      .tag_i       (aes_tag_i),
      .valid_o     (aes_valid_o[i]),
      .block_o     (aes_block_o[i]),
      .tag_o       (aes_tag_o[i])
    );

    aes_sbox_pair #(
      .UseBlockRam(i == 1)
    ) u_sboxes (
      .clk_i,
      .a_i(sbox_a_i),
      .b_i(sbox_b_i),
      .a_o(sbox_a_o[i]),
      .b_o(sbox_b_o[i])
    );
  end

  assign sbox_function_o = aes_pkg::sub_byte(sbox_a_i);

  // FIFOs

  localparam int unsigned FifoDepths [4] = '{1, 2, 5, 8};

  for (genvar i = 0; i < 4; i++) begin : gen_fifos
    logic [$clog2(FifoDepths[i] + 1)-1:0] count;

    fifo #(
      .Width(8),
      .Depth(FifoDepths[i])
    ) u_fifo (
      .clk_i,
      .rst_ni,
      .valid_i(fifo_valid_i[i]),
      .ready_o(fifo_ready_o[i]),
      .data_i (fifo_data_i[i]),
      .valid_o(fifo_valid_o[i]),
      .ready_i(fifo_ready_i[i]),
      .data_o (fifo_data_o[i]),
      .count_o(count)
    );

    assign fifo_count_o[i] = 4'(count);
  end

  logic [2:0] ram_fifo_count;

  ram_fifo #(
    .Width(8),
    .Depth(6)
  ) u_ram_fifo (
    .clk_i,
    .rst_ni,
    .valid_i(fifo_valid_i[4]),
    .ready_o(fifo_ready_o[4]),
    .data_i (fifo_data_i[4]),
    .valid_o(fifo_valid_o[4]),
    .ready_i(fifo_ready_i[4]),
    .data_o (fifo_data_o[4]),
    .count_o(ram_fifo_count)
  );

  assign fifo_count_o[4] = 4'(ram_fifo_count);

  // RAMs

  for (genvar i = 0; i < 2; i++) begin : gen_rams
    ram_1r1w #(
      .Width   (12),
      .Depth   (5),
      .BlockRam(i == 1)
    ) u_ram (
      .clk_i,
      .write_i        (ram_write_i),
      .write_address_i(ram_write_address_i),
      .write_data_i   (ram_write_data_i),
      .read_i         (ram_read_i),
      .read_address_i (ram_read_address_i),
      .read_data_o    (ram_read_data_o[i])
    );
  end

  // Slot pools

  localparam int unsigned PoolSlots [3] = '{1, 5, 8};

  for (genvar i = 0; i < 3; i++) begin : gen_pools
    localparam int unsigned SlotWidth = PoolSlots[i] == 1 ? 1 : $clog2(PoolSlots[i]);
    logic [SlotWidth-1:0] slot;
    logic [$clog2(PoolSlots[i] + 1)-1:0] count;

    slot_pool #(
      .Slots(PoolSlots[i])
    ) u_pool (
      .clk_i,
      .rst_ni,
      .ready_o     (pool_ready_o[i]),
      .take_valid_o(pool_take_valid_o[i]),
      .take_slot_o (slot),
      .take_i      (pool_take_i[i]),
      .give_i      (pool_give_i[i]),
      .give_slot_i (pool_give_slot_i[i][SlotWidth-1:0]),
      .free_o      (count)
    );

    assign pool_take_slot_o[i] = 3'(slot);
    assign pool_free_o[i] = 4'(count);
  end

  // PushToLeaf

  for (genvar l = 0; l < 3; l++) begin : gen_levels
    for (genvar leaf = 0; leaf < 2 ** l; leaf++) begin : gen_leaves
      for (genvar z = 1; z < 3; z++) begin : gen_slots
        localparam int unsigned LeafWidth = l == 0 ? 1 : l;
        logic valid, is_real, placed;
        logic [3:0] slot;
        logic [$clog2(l + 2)-1:0] level;
        logic [$clog2(z + 1)-1:0] index;

        push_to_leaf #(
          .LeafLevel  (l),
          .BucketSlots(z),
          .SlotWidth  (4)
        ) u_push (
          .clk_i,
          .rst_ni,
          .start_i    (push_start_i),
          .path_leaf_i(LeafWidth'(leaf)),
          .valid_i    (push_valid_i),
          .real_i     (push_real_i),
          .leaf_i     (push_leaf_i[LeafWidth-1:0]),
          .slot_i     (push_slot_i),
          .valid_o    (valid),
          .real_o     (is_real),
          .placed_o   (placed),
          .slot_o     (slot),
          .level_o    (level),
          .index_o    (index),
          .occupied_o ()
        );

        assign push_o[2 * (2 ** l - 1 + leaf) + z - 1] =
            {valid, is_real, placed, slot, 4'(level), 4'(index)};
      end
    end
  end

  localparam int unsigned BigLevels [2] = '{20, 5};
  localparam int unsigned BigSlots [2] = '{4, 3};

  for (genvar i = 0; i < 2; i++) begin : gen_big
    logic valid, is_real, placed;
    logic [7:0] slot;
    logic [$clog2(BigLevels[i] + 2)-1:0] level;
    logic [$clog2(BigSlots[i] + 1)-1:0] index;

    push_to_leaf #(
      .LeafLevel  (BigLevels[i]),
      .BucketSlots(BigSlots[i]),
      .SlotWidth  (8)
    ) u_push (
      .clk_i,
      .rst_ni,
      .start_i    (big_start_i),
      .path_leaf_i(big_path_leaf_i[BigLevels[i]-1:0]),
      .valid_i    (big_valid_i),
      .real_i     (big_real_i),
      .leaf_i     (big_leaf_i[BigLevels[i]-1:0]),
      .slot_i     (big_slot_i),
      .valid_o    (valid),
      .real_o     (is_real),
      .placed_o   (placed),
      .slot_o     (slot),
      .level_o    (level),
      .index_o    (index),
      .occupied_o ()
    );

    assign big_o[i] = {valid, is_real, placed, slot, 5'(level), 3'(index)};
  end

  // Eviction paths

  localparam int unsigned EvictLevels [7] = '{0, 1, 2, 3, 4, 20, 40};

  for (genvar i = 0; i < 7; i++) begin : gen_evict
    localparam int unsigned LeafWidth = i == 0 ? 1 : EvictLevels[i];
    logic [$clog2(EvictLevels[i] + 2)-1:0] level;
    logic [LeafWidth-1:0] index;
    logic [EvictLevels[i]:0] bucket;

    eviction_path #(
      .LeafLevel(EvictLevels[i])
    ) u_path (
      .clk_i,
      .start_i    (evict_start_i),
      .leaf_i     (evict_leaf_i[LeafWidth-1:0]),
      .evictions_i(evict_evictions_i),
      .step_i     (evict_step_i),
      .level_o    (level),
      .index_o    (index),
      .bucket_o   (bucket),
      .evictions_o(evict_evictions_o[i])
    );

    assign evict_level_o[i] = 6'(level);
    assign evict_index_o[i] = 40'(index);
    assign evict_bucket_o[i] = 41'(bucket);
  end

  // Address maps
  localparam int unsigned MapLevels [9] = '{0, 1, 3, 4, 5, 6, 6, 20, 40};
  localparam int unsigned MapSubtrees [9] = '{4, 4, 2, 4, 1, 4, 7, 4, 4};
  localparam int unsigned MapBeats [9] = '{6, 6, 6, 5, 3, 6, 321, 6, 65};

  for (genvar i = 0; i < 9; i++) begin : gen_maps
    localparam int unsigned L = MapLevels[i];

    path_address #(
      .LeafLevel    (L),
      .SubtreeLevels(MapSubtrees[i]),
      .BucketBeats  (MapBeats[i])
    ) u_map (
      .level_i  (map_level_i[$clog2(L + 2)-1:0]),
      .index_i  (map_index_i[(L == 0 ? 1 : L)-1:0]),
      .address_o(map_address_o[i])
    );
  end

endmodule
