// SPDX-License-Identifier: Apache-2.0 OR MIT

/// PushToLeaf: finds the bucket of the evicted path for each block of the stash.
///
/// Tiny ORAM, section III, Algorithm 1. A block leaves three cycles after it enters: registers are
/// after lines 14 and 15 and at the output. `Occupied` is read and updated in the same cycle, so a
/// block may enter in every cycle.
///
/// - `start_i` clears `Occupied` and takes `path_leaf_i`. No block may be in the pipeline or enter
///   in that cycle; the first block may enter in the next cycle.
/// - A block with `real_i` low passes without taking a slot.
/// - `placed_o` means that the block goes to position `index_o` of the bucket on `level_o`. A block
///   that is not placed stays in the stash, or is not real.
///
/// Every input but `valid_i` and `start_i` is secret. The timing depends only on these two.
module push_to_leaf #(
  // Levels below the root: leaf labels have as many bits, and the root is level 0.
  parameter int unsigned LeafLevel = 20,
  // Slots of a bucket.
  parameter int unsigned BucketSlots = 4,
  // Width of a slot number of the stash.
  parameter int unsigned SlotWidth = 8,
  localparam int unsigned Levels = LeafLevel + 1,
  localparam int unsigned LeafWidth = LeafLevel == 0 ? 1 : LeafLevel,
  localparam int unsigned LevelWidth = $clog2(Levels + 1),
  localparam int unsigned IndexWidth = $clog2(BucketSlots + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  start_i,
  input  logic [LeafWidth-1:0]  path_leaf_i,

  input  logic                  valid_i,
  input  logic                  real_i,
  input  logic [LeafWidth-1:0]  leaf_i,
  input  logic [SlotWidth-1:0]  slot_i,

  output logic                  valid_o,
  output logic                  real_o,
  output logic                  placed_o,
  output logic [SlotWidth-1:0]  slot_o,
  output logic [LevelWidth-1:0] level_o,
  output logic [IndexWidth-1:0] index_o,

  // Blocks that were placed in each bucket of the path since the start.
  output logic [IndexWidth-1:0] occupied_o [Levels]
);

  if (LeafLevel > 40) begin : gen_bad_leaf_level
    $fatal(1, "push_to_leaf: LeafLevel = %0d is more than 40", LeafLevel);
  end
  if (BucketSlots < 1 || BucketSlots > 255) begin : gen_bad_bucket_slots
    $fatal(1, "push_to_leaf: BucketSlots = %0d is not within 1 to 255", BucketSlots);
  end

  // The path, and the number of blocks placed in each of its buckets.
  logic [LeafWidth-1:0] path_leaf_q;
  logic [IndexWidth-1:0] occupied_q [Levels];
  logic [Levels-1:0] full;

  assign occupied_o = occupied_q;

  always_comb begin
    for (int i = 0; i < Levels; i++) begin
      full[i] = occupied_q[i] == IndexWidth'(BucketSlots);
    end
  end

  // Lines 13 and 14. Line 13 appends a 0 at the right, because all paths share the root.
  logic [Levels-1:0] differs, first_differing_d, first_differing_q;
  logic valid1_q, real1_q;
  logic [SlotWidth-1:0] slot1_q;

  if (LeafLevel == 0) begin : gen_root_alone
    assign differs = 1'b0;

    logic unused_leaf;
    assign unused_leaf = ^{path_leaf_q, leaf_i};
  end else begin : gen_differs
    assign differs = {path_leaf_q ^ leaf_i, 1'b0};
  end
  assign first_differing_d = differs & -differs;

  // After line 15: the levels that both paths share.
  logic [Levels-1:0] shared_q;
  logic valid2_q, real2_q;
  logic [SlotWidth-1:0] slot2_q;

  // Lines 16 to 23: the deepest shared level that is not full.
  logic [Levels-1:0] open;
  logic placed;
  logic [LevelWidth-1:0] level;
  logic [IndexWidth-1:0] index;

  assign open = shared_q & ~full;
  assign placed = real2_q && open != '0;

  always_comb begin
    level = '0;
    index = '0;
    for (int i = 0; i < Levels; i++) begin
      if (open[i]) begin
        level = LevelWidth'(i);
        index = occupied_q[i];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    first_differing_q <= first_differing_d;
    real1_q <= real_i;
    slot1_q <= slot_i;
    // Line 15. Equal leaves differ at no level: 0 - 1 marks all levels as shared.
    shared_q <= first_differing_q - Levels'(1);
    real2_q <= real1_q;
    slot2_q <= slot1_q;
    real_o <= real2_q;
    placed_o <= placed;
    slot_o <= slot2_q;
    level_o <= level;
    index_o <= index;
    if (start_i) begin
      path_leaf_q <= path_leaf_i;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid1_q <= 1'b0;
      valid2_q <= 1'b0;
      valid_o <= 1'b0;
      for (int i = 0; i < Levels; i++) begin
        occupied_q[i] <= '0;
      end
    end else begin
      valid1_q <= valid_i;
      valid2_q <= valid1_q;
      valid_o <= valid2_q;
      for (int i = 0; i < Levels; i++) begin
        if (start_i) begin
          occupied_q[i] <= '0;
        end else if (valid2_q && placed && level == LevelWidth'(i)) begin
          occupied_q[i] <= occupied_q[i] + IndexWidth'(1);
        end
      end
    end
  end

endmodule
