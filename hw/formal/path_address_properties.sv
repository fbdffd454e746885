// SPDX-License-Identifier: Apache-2.0 OR MIT

/// The address map is the formula of the subtree layout, and a bijection: different buckets have
/// different places, and all places are below the number of buckets.
module path_address_properties #(
  parameter int unsigned LeafLevel = 5,
  parameter int unsigned SubtreeLevels = 2,
  parameter int unsigned BucketBeats = 6,
  // Whether to compare two buckets. The formula alone is faster in large trees.
  parameter bit Injective = 1'b1,
  localparam int unsigned LeafWidth = LeafLevel == 0 ? 1 : LeafLevel,
  localparam int unsigned LevelWidth = $clog2(LeafLevel + 2)
) (
  input logic [LevelWidth-1:0] level_i [2],
  input logic [LeafWidth-1:0]  leaf_i [2]
);

  localparam longint unsigned Buckets = (64'd2 << LeafLevel) - 64'd1;

  logic [47:0] address [2];
  logic [63:0] place [2];

  for (genvar i = 0; i < 2; i++) begin : gen_maps
    path_address #(
      .LeafLevel    (LeafLevel),
      .SubtreeLevels(SubtreeLevels),
      .BucketBeats  (BucketBeats)
    ) u_map (
      .level_i  (level_i[i]),
      .index_i  (leaf_i[i]),
      .address_o(address[i])
    );

    always_comb begin
      place[i] = '0;
      for (int unsigned level = 0; level <= LeafLevel; level++) begin
        if (32'(level_i[i]) == level) begin
          automatic int unsigned top = level - level % SubtreeLevels;
          automatic int unsigned height =
              SubtreeLevels < LeafLevel + 1 - top ? SubtreeLevels : LeafLevel + 1 - top;
          automatic logic [63:0] index = 64'(leaf_i[i]) & ((64'd1 << level) - 64'd1);
          automatic logic [63:0] low = index & ((64'd1 << top) - 64'd1);
          place[i] = ((64'd1 << top) - 64'd1) + (low << height) - low
              + ((64'd1 << (level - top)) - 64'd1) + (index >> top);
        end
      end
    end

    always_comb begin
      assume (32'(level_i[i]) <= LeafLevel);
      assert (64'(address[i]) == place[i] * 64'(BucketBeats));
      assert (place[i] < Buckets);
    end
  end

  logic same;

  always_comb begin
    same = level_i[0] == level_i[1];
    for (int unsigned b = 0; b < LeafLevel; b++) begin
      if (b < 32'(level_i[0]) && leaf_i[0][b] != leaf_i[1][b]) begin
        same = 1'b0;
      end
    end
  end

  if (Injective) begin : gen_injective
    always_comb begin
      assert ((address[0] == address[1]) == same);
    end
  end

endmodule
