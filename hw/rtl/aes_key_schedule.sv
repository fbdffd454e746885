// SPDX-License-Identifier: Apache-2.0 OR MIT

/// Expands an AES-128 key to its eleven round keys, one per cycle.
///
/// After reset, `ready_o` is high until a key is taken. `done_o` rises ten cycles after that, when
/// all round keys are at the output, and stays high. Another key needs another reset.
module aes_key_schedule (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  input  logic                 valid_i,
  output logic                 ready_o,
  input  aes_pkg::state_t      key_i,

  output logic                 done_o,
  output aes_pkg::round_keys_t round_keys_o
);

  import aes_pkg::*;

  // A shift register: each new round key enters at the top, so no multiplexer selects the last one.
  round_keys_t keys_q;
  // The number of the round key at the top.
  logic [3:0] round_q;
  logic has_key_q;
  logic [7:0] constant_q;
  logic load, expand;
  state_t last, next;
  logic [31:0] word;

  assign ready_o = !has_key_q;
  assign done_o = round_q == 4'(Rounds);
  assign round_keys_o = keys_q;
  assign load = valid_i && ready_o;
  assign expand = has_key_q && !done_o;
  assign last = keys_q[Rounds];

  always_comb begin
    // SubWord(RotWord(w3)) and the round constant.
    word = {sub_byte(last[23:16]), sub_byte(last[15:8]), sub_byte(last[7:0]),
            sub_byte(last[31:24])};
    word[31:24] = word[31:24] ^ constant_q;
    next[127:96] = last[127:96] ^ word;
    next[95:64] = last[95:64] ^ next[127:96];
    next[63:32] = last[63:32] ^ next[95:64];
    next[31:0] = last[31:0] ^ next[63:32];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      has_key_q <= 1'b0;
      round_q <= '0;
      constant_q <= 8'h01;
    end else if (load) begin
      has_key_q <= 1'b1;
    end else if (expand) begin
      round_q <= round_q + 4'd1;
      constant_q <= double(constant_q);
    end
  end

  // A reset erases the key.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      keys_q <= '0;
    end else if (load || expand) begin
      keys_q <= {load ? key_i : next, keys_q[Rounds:1]};
    end
  end

endmodule
