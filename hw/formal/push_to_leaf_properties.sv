// SPDX-License-Identifier: Apache-2.0 OR MIT

/// PushToLeaf gives each block the deepest bucket with room on both paths: the loop of section II-A
/// that Algorithm 1 replaces.
module push_to_leaf_properties #(
  parameter int unsigned LeafLevel,
  parameter int unsigned BucketSlots,
  parameter int unsigned SlotWidth,
  parameter int unsigned Levels,
  parameter int unsigned LeafWidth,
  parameter int unsigned LevelWidth,
  parameter int unsigned IndexWidth
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic                  start_i,
  input logic [LeafWidth-1:0]  path_leaf_i,
  input logic                  valid_i,
  input logic                  real_i,
  input logic [LeafWidth-1:0]  leaf_i,
  input logic [SlotWidth-1:0]  slot_i,
  input logic                  valid_o,
  input logic                  real_o,
  input logic                  placed_o,
  input logic [SlotWidth-1:0]  slot_o,
  input logic [LevelWidth-1:0] level_o,
  input logic [IndexWidth-1:0] index_o,
  input logic [LeafWidth-1:0]  path_leaf_q,
  input logic [IndexWidth-1:0] occupied_q [Levels],
  input logic [Levels-1:0]     first_differing_q,
  input logic [Levels-1:0]     shared_q,
  input logic                  valid1_q,
  input logic                  valid2_q
);

  // The bucket on `level` of the path to `a` is on the path to `b` too.
  function automatic logic is_shared(logic [LeafWidth-1:0] a, logic [LeafWidth-1:0] b, int level);
    is_shared = 1'b1;
    for (int i = 0; i < LeafLevel; i++) begin
      if (i < level && a[i] != b[i]) begin
        is_shared = 1'b0;
      end
    end
  endfunction

  typedef struct packed {
    logic                 valid;
    logic                 is_real;
    logic [LeafWidth-1:0] leaf;
    logic [SlotWidth-1:0] slot;
  } block_t;

  // The model: blocks that entered 1, 2 and 3 cycles ago, the path and its blocks.
  block_t block1_q, block2_q, block3_q;
  logic [LeafWidth-1:0] path_q;
  int unsigned blocks_q [Levels];
  logic reset_done_q;

  // The place of the block that entered 2 cycles ago, and of the one before it.
  logic found, found_q;
  int unsigned level, level_q, index, index_q;

  always_comb begin
    found = 1'b0;
    level = 0;
    index = 0;
    for (int i = LeafLevel; i >= 0; i--) begin
      if (!found && block2_q.valid && block2_q.is_real && blocks_q[i] < BucketSlots
          && is_shared(path_q, block2_q.leaf, i)) begin
        found = 1'b1;
        level = i;
        index = blocks_q[i];
      end
    end
  end

  initial begin
    reset_done_q = 1'b0;
  end

  always_comb begin
    // The first cycle resets the pipeline, and no later one does.
    assume (rst_ni == reset_done_q);
    // The contract: a scan starts while the pipeline is empty.
    assume (!start_i || (!valid_i && !block1_q.valid && !block2_q.valid));
  end

  always_ff @(posedge clk_i) begin
    reset_done_q <= 1'b1;
    block1_q <= '{valid: valid_i && rst_ni, is_real: real_i, leaf: leaf_i, slot: slot_i};
    block2_q <= block1_q;
    block3_q <= block2_q;
    if (!rst_ni) begin
      block2_q.valid <= 1'b0;
      block3_q.valid <= 1'b0;
    end
    if (start_i) begin
      path_q <= path_leaf_i;
    end
    found_q <= found;
    level_q <= level;
    index_q <= index;
    for (int i = 0; i < Levels; i++) begin
      if (!rst_ni || start_i) begin
        blocks_q[i] <= 0;
      end else if (found && level == i) begin
        blocks_q[i] <= blocks_q[i] + 1;
      end
    end
  end

  // The first cycle has no block in any register, and no start was before it: compare the path
  // from the first start on.
  logic started_q;

  initial begin
    started_q = 1'b0;
  end

  always_ff @(posedge clk_i) begin
    started_q <= started_q || start_i;
  end

  always_comb begin
    assume (started_q || !valid_i);
  end

  always_comb begin
    if (reset_done_q) begin
      assert (valid_o == block3_q.valid);
      if (valid_o) begin
        assert (real_o == block3_q.is_real && slot_o == block3_q.slot);
        assert (placed_o == found_q);
        if (placed_o) begin
          assert (32'(level_o) == level_q && 32'(index_o) == index_q);
          assert (index_q < BucketSlots);
        end
      end
      // For the induction.
      assert (valid1_q == block1_q.valid && valid2_q == block2_q.valid);
      assert (started_q || !(block1_q.valid || block2_q.valid));
      assert (!started_q || path_leaf_q == path_q);
      assert (!found || block2_q.valid);
    end
  end

  for (genvar i = 0; i < Levels; i++) begin : gen_levels
    always_comb begin
      if (reset_done_q) begin
        assert (blocks_q[i] <= BucketSlots && 32'(occupied_q[i]) == blocks_q[i]);
        if (block1_q.valid) begin
          assert (first_differing_q[i]
                  == (i > 0 && is_shared(path_q, block1_q.leaf, i - 1)
                      && !is_shared(path_q, block1_q.leaf, i)));
        end
        if (block2_q.valid) begin
          assert (shared_q[i] == is_shared(path_q, block2_q.leaf, i));
        end
      end
    end
  end

endmodule

bind push_to_leaf push_to_leaf_properties #(
  .LeafLevel  (LeafLevel),
  .BucketSlots(BucketSlots),
  .SlotWidth  (SlotWidth),
  .Levels     (Levels),
  .LeafWidth  (LeafWidth),
  .LevelWidth (LevelWidth),
  .IndexWidth (IndexWidth)
) u_properties (
  .*
);
