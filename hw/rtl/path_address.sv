// SPDX-License-Identifier: Apache-2.0 OR MIT

/// The address of a bucket in memory: subtrees of `SubtreeLevels` levels, each in one piece.
///
/// With k = SubtreeLevels, a bucket of level d is in group g = d / k, on level j = d mod k of a
/// subtree of h = min(k, L + 1 - g * k) levels. With low = index mod 2^(g*k) and
/// high = index >> (g*k), its place is
///
///   (2^(g*k) - 1) + low * (2^h - 1) + (2^j - 1) + high.
///
/// The position within the subtree, (2^j - 1) + high, is below 2^h, and (2^(g*k) - 1) - low is
/// ~low within g*k bits. So one addition remains:
///
///   {low, position} + ~low.
///
/// The module is combinational. Its inputs are public.
module path_address #(
  // Levels below the root.
  parameter int unsigned LeafLevel = 20,
  // Levels of a subtree.
  parameter int unsigned SubtreeLevels = 4,
  // Bus beats of a bucket.
  parameter int unsigned BucketBeats = 6,
  localparam int unsigned LeafWidth = LeafLevel == 0 ? 1 : LeafLevel,
  localparam int unsigned LevelWidth = $clog2(LeafLevel + 2)
) (
  // At most LeafLevel.
  input  logic [LevelWidth-1:0] level_i,
  // The bits from `level_i` up are ignored: the leaf of the path can be here as well.
  input  logic [LeafWidth-1:0]  index_i,
  // The bucket's first beat.
  output logic [47:0]           address_o
);

  if (LeafLevel > 40) begin : gen_bad_leaf_level
    $fatal(1, "path_address: LeafLevel = %0d is more than 40", LeafLevel);
  end
  if (SubtreeLevels < 1 || SubtreeLevels > 41) begin : gen_bad_subtree_levels
    $fatal(1, "path_address: SubtreeLevels = %0d is not within 1 to 41", SubtreeLevels);
  end
  if (BucketBeats < 1 || ((64'd2 << LeafLevel) - 64'd1) * 64'(BucketBeats) > 64'd1 << 48)
  begin : gen_bad_bucket_beats
    $fatal(1, "path_address: LeafLevel = %0d and BucketBeats = %0d: not 1 to 2^48 beats in all",
           LeafLevel, BucketBeats);
  end

  localparam int unsigned Levels = LeafLevel + 1;
  localparam int unsigned Height = SubtreeLevels > Levels ? Levels : SubtreeLevels;
  localparam int unsigned Groups = (Levels + Height - 1) / Height;
  // The levels of the subtrees of the last group.
  localparam int unsigned LastHeight = Levels - (Groups - 1) * Height;

  logic [Levels-1:0] index, low, low_inverted;
  // The level is in group g or below it.
  logic [Groups:0] reached;
  // j, one-hot, and the bits below it.
  logic [Height-1:0] level_in_subtree, below;
  logic [Height-1:0] high, position;
  logic [Levels-1:0] place;

  assign index = Levels'(index_i);

  always_comb begin
    for (int g = 0; g <= Groups; g++) begin
      reached[g] = g < Groups && level_i >= LevelWidth'(g * Height);
    end
  end

  always_comb begin
    level_in_subtree = '0;
    for (int level = 0; level < Levels; level++) begin
      if (level_i == LevelWidth'(level)) begin
        level_in_subtree[level % Height] = 1'b1;
      end
    end
  end

  always_comb begin
    high = '0;
    for (int b = 0; b < Levels; b++) begin
      high[b % Height] = high[b % Height]
          | (index[b] & reached[b / Height] & ~reached[b / Height + 1]);
      low[b] = reached[b / Height + 1] & index[b];
      low_inverted[b] = reached[b / Height + 1] & ~index[b];
    end
  end

  assign below = level_in_subtree - Height'(1);
  assign position = below + (high & below);
  assign place = Levels'(low_inverted)
      + (reached[Groups - 1] ? Levels'({low, position[LastHeight-1:0]}) : Levels'({low, position}));

  // place * BucketBeats as shifts and additions: synthesis would spend a DSP on a multiplication.
  always_comb begin
    address_o = '0;
    for (int b = 0; b < 32; b++) begin
      if (BucketBeats[b]) begin
        address_o = address_o + (48'(place) << b);
      end
    end
  end

endmodule
