// SPDX-License-Identifier: Apache-2.0 OR MIT

/// The recurrence of section IV-D gives the number of evictions that a count of every bucket gives.
///
/// The model evicts paths in reverse lexicographic order, one per cycle with `evict`, and counts
/// the evictions of every bucket. A walk may start in any cycle, to any leaf, with the model's
/// count. The model's counters have 12 bits, which the solver handles in seconds; the unit bench
/// covers 64 bits.
module eviction_path_properties #(
  parameter int unsigned LeafLevel,
  parameter int unsigned LeafWidth,
  parameter int unsigned LevelWidth
) (
  input logic                  clk_i,
  input logic                  start_i,
  input logic [LeafWidth-1:0]  leaf_i,
  input logic [63:0]           evictions_i,
  input logic                  step_i,
  input logic [LevelWidth-1:0] level_o,
  input logic [LeafWidth-1:0]  index_o,
  input logic [LeafLevel:0]    bucket_o,
  input logic [63:0]           evictions_o,
  input logic [LeafWidth-1:0]  rest_q,
  input logic [LeafLevel:0]    first_q
);

  localparam int unsigned CountWidth = 12;
  localparam int unsigned Buckets = 2 ** (LeafLevel + 1) - 1;

  // Any cycle without a start may have an eviction: `evictions_i` is free there.
  logic evict;

  assign evict = !start_i && evictions_i[0];

  // Evictions so far, in total and of each bucket.
  logic [CountWidth-1:0] evictions_q;
  logic [CountWidth-1:0] counts_q [Buckets];
  // The walk: its leaf, and the counts of its path when it started.
  logic [LeafWidth-1:0] leaf_q;
  logic [CountWidth-1:0] expected_q [LeafLevel + 1];
  logic walking_q;

  // The level of the bucket with a number.
  function automatic int unsigned level_of(int unsigned bucket);
    level_of = 0;
    for (int unsigned i = 1; i <= LeafLevel; i++) begin
      if (bucket >= 2 ** i - 1) begin
        level_of = i;
      end
    end
  endfunction

  initial begin
    evictions_q = '0;
    walking_q = 1'b0;
    for (int i = 0; i < Buckets; i++) begin
      counts_q[i] = '0;
    end
  end

  always_comb begin
    // The walk uses the model's count, and ends at the leaf. The counter does not overflow.
    assume (!start_i || evictions_i == 64'(evictions_q));
    assume (!step_i || 32'(level_o) < LeafLevel);
    assume (evictions_q != '1);
  end

  always_ff @(posedge clk_i) begin
    if (evict) begin
      evictions_q <= evictions_q + CountWidth'(1);
    end
    if (start_i) begin
      walking_q <= 1'b1;
      leaf_q <= leaf_i;
    end
  end

  for (genvar i = 0; i < Buckets; i++) begin : gen_counts
    localparam int unsigned Level = level_of(i);
    localparam logic [CountWidth-1:0] Mask = CountWidth'(2 ** Level - 1);
    localparam int unsigned Index = i - (2 ** Level - 1);
    logic is_evicted;

    // The path to leaf G mod 2^L goes through bucket G mod 2^level of each level.
    assign is_evicted = evict && (evictions_q & Mask) == CountWidth'(Index);

    always_ff @(posedge clk_i) begin
      if (is_evicted) begin
        counts_q[i] <= counts_q[i] + CountWidth'(1);
      end
    end

    // For the induction: the closed form.
    always_comb begin
      assert (counts_q[i] == (evictions_q >> Level)
              + CountWidth'((evictions_q & Mask) > CountWidth'(Index)));
    end
  end

  for (genvar level = 0; level <= LeafLevel; level++) begin : gen_levels
    localparam int unsigned First = 2 ** level - 1;

    always_ff @(posedge clk_i) begin
      if (start_i) begin
        expected_q[level] <= counts_q[First + 32'(leaf_i) % (2 ** level)];
      end
    end

    always_comb begin
      if (walking_q && 32'(level_o) == level) begin
        assert (evictions_o == 64'(expected_q[level]));
        assert (32'(index_o) == 32'(leaf_q) % (2 ** level));
        assert (32'(bucket_o) == First + 32'(index_o));
        // For the induction.
        assert (rest_q == leaf_q >> level);
        assert (32'(first_q) == 2 ** level);
      end
    end

    // For the induction: the counts of a path when its walk started.
    if (level < LeafLevel) begin : gen_next
      always_comb begin
        if (walking_q) begin
          assert (expected_q[level + 1]
                  == (expected_q[level] >> 1)
                      + CountWidth'(expected_q[level][0] && !leaf_q[level]));
        end
      end
    end
  end

  always_comb begin
    if (walking_q) begin
      assert (32'(level_o) <= LeafLevel);
    end
  end

endmodule

bind eviction_path eviction_path_properties #(
  .LeafLevel (LeafLevel),
  .LeafWidth (LeafWidth),
  .LevelWidth(LevelWidth)
) u_properties (
  .*
);
