// SPDX-License-Identifier: Apache-2.0 OR MIT

/// A pipelined AES-128 encryption core that accepts one block per cycle.
///
/// A block that enters with `valid_i` leaves `aes_pkg::PipeLatency` = 11 cycles later with its tag.
/// The pipeline never stalls: the receiver must have room for every block that has entered. The
/// round keys must not change while blocks are in the pipeline.
module aes_pipe #(
  // Where the S-boxes are: 1 block RAM (80 blocks of 18 Kb), 0 LUTs.
  parameter bit UseBlockRam = 1'b1,
  // Bits that travel with a block.
  parameter int unsigned TagWidth = 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  aes_pkg::round_keys_t  round_keys_i,

  input  logic                  valid_i,
  input  aes_pkg::state_t       block_i,
  input  logic [TagWidth-1:0]   tag_i,

  output logic                  valid_o,
  output aes_pkg::state_t       block_o,
  output logic [TagWidth-1:0]   tag_o
);

  import aes_pkg::*;

  // The state at the start of each round, and its bytes after the S-boxes one cycle later.
  state_t entering [Rounds];
  state_t substituted [Rounds];
  logic [PipeLatency-1:0] valid_q;
  logic [TagWidth-1:0] tag_q [PipeLatency];

  assign valid_o = valid_q[PipeLatency-1];
  assign tag_o = tag_q[PipeLatency-1];

  assign entering[0] = block_i ^ round_keys_i[0];

  for (genvar round = 0; round < Rounds; round++) begin : gen_rounds
    for (genvar pair = 0; pair < 8; pair++) begin : gen_pairs
      aes_sbox_pair #(
        .UseBlockRam(UseBlockRam)
      ) u_sboxes (
        .clk_i,
        .a_i(entering[round][16 * pair +: 8]),
        .b_i(entering[round][16 * pair + 8 +: 8]),
        .a_o(substituted[round][16 * pair +: 8]),
        .b_o(substituted[round][16 * pair + 8 +: 8])
      );
    end
    if (round < Rounds - 1) begin : gen_mix
      assign entering[round + 1] =
          mix_columns(shift_rows(substituted[round])) ^ round_keys_i[round + 1];
    end
  end

  always_ff @(posedge clk_i) begin
    tag_q[0] <= tag_i;
    for (int i = 1; i < PipeLatency; i++) begin
      tag_q[i] <= tag_q[i - 1];
    end
    // The last round has no MixColumns.
    block_o <= shift_rows(substituted[Rounds - 1]) ^ round_keys_i[Rounds];
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= '0;
    end else begin
      valid_q <= {valid_q[PipeLatency-2:0], valid_i};
    end
  end

endmodule
