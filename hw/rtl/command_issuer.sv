// SPDX-License-Identifier: Apache-2.0 OR MIT

/// Turns operations on paths into memory commands, one a beat.
///
/// An operation reads all beats of its path, the root's bucket first, and then writes: all beats of
/// the path again, or the first beat of each bucket (AO access of RAW ORAM). Commands leave as fast
/// as memory takes them. The data of writes follow when they are ready; memory keeps the order.
///
/// Operations and commands are public.
module command_issuer #(
  parameter int unsigned LeafLevel = 20,
  parameter int unsigned BucketBeats = 6,
  parameter int unsigned SubtreeLevels = 4,
  localparam int unsigned LeafWidth = LeafLevel == 0 ? 1 : LeafLevel
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic                 op_valid_i,
  output logic                 op_ready_o,
  input  logic [LeafWidth-1:0] op_leaf_i,
  // The operation writes headers alone.
  input  logic                 op_headers_i,

  output logic                 cmd_valid_o,
  input  logic                 cmd_ready_i,
  output logic                 cmd_write_o,
  output logic [47:0]          cmd_address_o
);

  localparam int unsigned LevelWidth = $clog2(LeafLevel + 2);
  localparam int unsigned BeatWidth = $clog2(BucketBeats + 1);

  logic active_q, writing_q, headers_q, op_valid, op_ready, op_headers;
  logic [LeafWidth-1:0] leaf_q, op_leaf;
  logic [BeatWidth-1:0] beat_q;
  logic start, go, last_beat, last_level, last;
  logic [LevelWidth-1:0] level;
  logic [LeafWidth-1:0] index;
  logic [47:0] first_beat;

  assign last_beat = beat_q == BeatWidth'(BucketBeats - 1) || (writing_q && headers_q);
  assign last_level = level == LevelWidth'(LeafLevel);
  assign last = last_beat && last_level && writing_q;
  // The output takes the next command.
  assign go = active_q && (!cmd_valid_o || cmd_ready_i);
  assign op_ready = !active_q || (go && last);
  assign start = op_valid && op_ready;

  // Operations wait here until the commands of the one before have left.
  fifo #(
    .Width(LeafWidth + 1),
    .Depth(2)
  ) u_ops (
    .clk_i,
    .rst_ni,
    .valid_i(op_valid_i),
    .ready_o(op_ready_o),
    .data_i ({op_headers_i, op_leaf_i}),
    .valid_o(op_valid),
    .ready_i(op_ready),
    .data_o ({op_headers, op_leaf}),
    .count_o()
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
      writing_q <= 1'b0;
      beat_q <= '0;
      cmd_valid_o <= 1'b0;
    end else begin
      if (start) begin
        active_q <= 1'b1;
        writing_q <= 1'b0;
        beat_q <= '0;
      end else if (go) begin
        beat_q <= last_beat ? '0 : beat_q + BeatWidth'(1);
        if (last_beat && last_level) begin
          writing_q <= 1'b1;
          active_q <= !writing_q;
        end
      end
      if (go) begin
        cmd_valid_o <= 1'b1;
      end else if (cmd_ready_i) begin
        cmd_valid_o <= 1'b0;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (start) begin
      leaf_q <= op_leaf;
      headers_q <= op_headers;
    end
    if (go) begin
      cmd_write_o <= writing_q;
      cmd_address_o <= first_beat + 48'(beat_q);
    end
  end

  logic [LeafLevel:0] unused_bucket;
  logic [63:0] unused_evictions;
  logic unused;
  assign unused = &{1'b0, unused_bucket, unused_evictions};

  eviction_path #(
    .LeafLevel(LeafLevel)
  ) u_path (
    .clk_i,
    .start_i    (start || (go && last_beat && last_level)),
    .leaf_i     (start ? op_leaf : leaf_q),
    .evictions_i('0),
    .step_i     (go && last_beat),
    .level_o    (level),
    .index_o    (index),
    .bucket_o   (unused_bucket),
    .evictions_o(unused_evictions)
  );

  path_address #(
    .LeafLevel    (LeafLevel),
    .SubtreeLevels(SubtreeLevels),
    .BucketBeats  (BucketBeats)
  ) u_address (
    .level_i  (level),
    .index_i  (index),
    .address_o(first_beat)
  );

endmodule
