// SPDX-License-Identifier: Apache-2.0 OR MIT

/// Walks a path from the root to its leaf and counts the past evictions of each bucket.
///
/// Tiny ORAM, section IV-D: if the bucket on level i was evicted to `g_i` times, the next one was
/// evicted to `g_(i+1) = (g_i + ~l_i) >> 1` times, where `l_i` is bit i of the leaf label. The root
/// was evicted to in every eviction.
///
/// `start_i` takes a leaf and the number of past evictions. The root is at the output in the next
/// cycle, and each cycle with `step_i` moves one level down. All inputs are public.
module eviction_path #(
  parameter int unsigned LeafLevel = 20,
  localparam int unsigned LeafWidth = LeafLevel == 0 ? 1 : LeafLevel,
  localparam int unsigned LevelWidth = $clog2(LeafLevel + 2)
) (
  input  logic                  clk_i,

  input  logic                  start_i,
  input  logic [LeafWidth-1:0]  leaf_i,
  input  logic [63:0]           evictions_i,
  input  logic                  step_i,

  output logic [LevelWidth-1:0] level_o,
  // Index of the bucket on its level: the low `level_o` bits of the leaf label.
  output logic [LeafWidth-1:0]  index_o,
  // Number of the bucket in its tree: 2^level - 1 + index.
  output logic [LeafLevel:0]    bucket_o,
  output logic [63:0]           evictions_o
);

  logic [LevelWidth-1:0] level_q;
  logic [LeafWidth-1:0] rest_q, index_q;
  // 2^level.
  logic [LeafLevel:0] first_q;
  logic [63:0] evictions_q;
  // (g_i + ~l_i) >> 1 without a 65-bit sum: bit 0 carries if both g_i and ~l_i are odd.
  logic [63:0] halved;

  assign halved = {1'b0, evictions_q[63:1]} + {63'b0, evictions_q[0] & ~rest_q[0]};

  assign level_o = level_q;
  assign index_o = index_q;
  assign bucket_o = first_q - (LeafLevel + 1)'(1) + (LeafLevel + 1)'(index_q);
  assign evictions_o = evictions_q;

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      level_q <= '0;
      rest_q <= leaf_i;
      index_q <= '0;
      first_q <= (LeafLevel + 1)'(1);
      evictions_q <= evictions_i;
    end else if (step_i) begin
      level_q <= level_q + LevelWidth'(1);
      rest_q <= rest_q >> 1;
      if (rest_q[0]) begin
        index_q <= index_q | first_q[LeafWidth-1:0];
      end
      first_q <= first_q << 1;
      evictions_q <= halved;
    end
  end

endmodule
