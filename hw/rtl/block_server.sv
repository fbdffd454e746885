// SPDX-License-Identifier: Apache-2.0 OR MIT

/// Serves one command: takes the user's block, exchanges it with the stash, and answers.
///
/// Each command brings one block and is answered with one block: the block before the command, or
/// zeros if it was absent.
///
/// The exchange begins with `start_i`, when the search for the block is complete. It takes the same
/// time for all commands: two cycles a beat, or as long as the masks take in RAW ORAM.
module block_server #(
  parameter bit Raw = 1'b1,
  parameter int unsigned BlockBeats = 1,
  parameter int unsigned BusBits = 512,
  parameter int unsigned PlaceWidth = 8,
  localparam int unsigned BlockBeatWidth = BlockBeats == 1 ? 1 : $clog2(BlockBeats)
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,

  // A command was accepted. One cycle.
  input  logic                      accept_i,
  input  oram_pkg::op_e             op_i,
  // From the command to the end of its answer.
  output logic                      busy_o,
  // The exchange is under way, or has not begun.
  output logic                      serving_o,

  input  logic                      data_valid_i,
  output logic                      data_ready_o,
  input  logic [BusBits-1:0]        data_i,

  // The search is complete, and the user's block may be exchanged.
  input  logic                      start_i,
  // The command failed: it is answered with this status and exchanges nothing.
  input  logic                      fail_i,
  input  oram_pkg::status_e         status_i,
  // The headers of the path have been opened: the block to open, if any, has been found.
  input  logic                      headers_i,
  // Location of the block: a stash entry, or a slot that was just filled from the path (in RAW ORAM
  // still sealed).
  input  logic                      found_in_stash_i,
  input  logic [PlaceWidth-1:0]     stash_place_i,
  input  logic                      found_on_path_i,
  input  logic [PlaceWidth-1:0]     path_place_i,

  output logic                      mask_request_o,
  input  logic                      mask_accept_i,
  input  logic                      mask_valid_i,
  output logic                      mask_ready_o,
  input  logic [BusBits-1:0]        mask_i,

  input  logic [PlaceWidth-1:0]     free_place_i,
  output logic                      free_take_o,
  output logic                      free_give_o,
  output logic [PlaceWidth-1:0]     free_give_place_o,

  output logic                      load_o,
  output logic [PlaceWidth-1:0]     load_place_o,
  output logic [BlockBeatWidth-1:0] load_beat_o,
  input  logic [BusBits-1:0]        load_data_i,
  output logic                      store_o,
  output logic [PlaceWidth-1:0]     store_place_o,
  output logic [BlockBeatWidth-1:0] store_beat_o,
  output logic [BusBits-1:0]        store_data_o,

  // The exchange begins in this cycle. The placer gets an arrival: a block that is new in the
  // queue, or none.
  output logic                      arrival_valid_o,
  output logic                      arrival_real_o,
  output logic [PlaceWidth-1:0]     arrival_place_o,
  // The exchange ends in this cycle.
  output logic                      served_o,

  output logic                      rsp_valid_o,
  input  logic                      rsp_ready_i,
  output logic [BusBits-1:0]        rsp_data_o,
  output logic                      rsp_last_o,
  output oram_pkg::status_e         rsp_status_o,
  output logic                      rsp_found_o
);

  import oram_pkg::*;

  typedef enum logic [2:0] {Idle, Wait, Load, Exchange, Finish, Answer} state_e;

  state_e state_q;
  op_e op_q;
  logic found_q, sealed_q, is_new_q, mask_asked_q;
  logic [PlaceWidth-1:0] place_q;
  logic [BlockBeatWidth-1:0] beat_q, data_beat_q;
  logic has_data_q, last_beat, found, is_write, is_sealed, begin_exchange, exchange;
  status_e status_q;

  // The user's block, and then the answer.
  logic [BusBits-1:0] buffer_q [BlockBeats];
  logic data_take;
  logic [BusBits-1:0] old_data, new_data;

  assign busy_o = state_q != Idle;
  assign serving_o = state_q != Idle && state_q != Answer;
  assign is_write = op_q == OpWrite || op_q == OpAppend;
  assign found = found_in_stash_i || found_on_path_i;
  assign last_beat = beat_q == BlockBeatWidth'(BlockBeats - 1);

  assign data_ready_o = state_q != Idle && !has_data_q;
  assign data_take = data_valid_i && data_ready_o;

  assign mask_request_o = Raw && op_q != OpAppend && headers_i && serving_o && !mask_asked_q;
  assign exchange = state_q == Exchange && (mask_valid_i || !Raw || op_q == OpAppend);
  assign mask_ready_o = exchange && op_q != OpAppend;

  // A write creates an absent block.
  assign begin_exchange = state_q == Wait && start_i && has_data_q;
  assign free_take_o = begin_exchange && !fail_i && !found && is_write;
  assign is_sealed = Raw && found_on_path_i && !found_in_stash_i && !fail_i;
  assign arrival_valid_o = begin_exchange;
  assign arrival_real_o = free_take_o || (is_sealed && op_q != OpReadRemove);
  assign arrival_place_o =
      found_in_stash_i ? stash_place_i : found_on_path_i ? path_place_i : free_place_i;

  // An appended block was absent. The writer may be reading the stash meanwhile.
  assign load_o = state_q == Load && op_q != OpAppend;
  assign load_place_o = place_q;
  assign load_beat_o = beat_q;
  assign old_data = found_q ? load_data_i ^ (sealed_q ? mask_i : '0) : '0;
  assign new_data = is_write ? buffer_q[beat_q] : old_data;
  assign store_o = exchange && (found_q || is_new_q);
  assign store_place_o = place_q;
  assign store_beat_o = beat_q;
  assign store_data_o = new_data;

  assign served_o = state_q == Finish;
  assign free_give_o = state_q == Finish && found_q && op_q == OpReadRemove;
  assign free_give_place_o = place_q;

  assign rsp_valid_o = state_q == Answer;
  assign rsp_data_o = status_q == StatusOk ? buffer_q[beat_q] : '0;
  assign rsp_last_o = last_beat;
  assign rsp_status_o = status_q;
  assign rsp_found_o = status_q == StatusOk && found_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      op_q <= OpRead;
      found_q <= 1'b0;
      sealed_q <= 1'b0;
      is_new_q <= 1'b0;
      mask_asked_q <= 1'b0;
      beat_q <= '0;
      data_beat_q <= '0;
      has_data_q <= 1'b0;
      status_q <= StatusOk;
    end else begin
      if (data_take) begin
        data_beat_q <= data_beat_q + BlockBeatWidth'(1);
        has_data_q <= data_beat_q == BlockBeatWidth'(BlockBeats - 1);
      end
      if (mask_accept_i) begin
        mask_asked_q <= 1'b1;
      end

      unique case (state_q)
        Idle: begin
          if (accept_i) begin
            state_q <= Wait;
            op_q <= op_i;
            data_beat_q <= '0;
            has_data_q <= 1'b0;
            mask_asked_q <= 1'b0;
          end
        end
        Wait: begin
          beat_q <= '0;
          if (begin_exchange) begin
            found_q <= found && !fail_i;
            sealed_q <= is_sealed;
            is_new_q <= free_take_o;
            status_q <= status_i;
            state_q <= fail_i ? Finish : Load;
          end
        end
        Load: state_q <= Exchange;
        Exchange: begin
          if (exchange) begin
            beat_q <= last_beat ? '0 : beat_q + BlockBeatWidth'(1);
            state_q <= last_beat ? Finish : Load;
          end
        end
        Finish: begin
          // An error that came up meanwhile is part of the answer.
          status_q <= status_q == StatusOk ? status_i : status_q;
          state_q <= Answer;
        end
        Answer: begin
          if (rsp_ready_i) begin
            beat_q <= last_beat ? '0 : beat_q + BlockBeatWidth'(1);
            if (last_beat) begin
              state_q <= Idle;
            end
          end
        end
        default: state_q <= Idle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (begin_exchange) begin
      place_q <= arrival_place_o;
    end
    if (data_take) begin
      buffer_q[data_beat_q] <= data_i;
    end else if (exchange) begin
      buffer_q[beat_q] <= old_data;
    end
  end

endmodule
