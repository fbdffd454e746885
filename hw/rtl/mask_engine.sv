// SPDX-License-Identifier: Apache-2.0 OR MIT

/// Makes the masks that seal and open one beat: AES-128 of `counter ‖ region ‖ bucket ‖ chunk`.
///
/// A request names `count_i` chunks of 16 bytes from one bucket. With `header_i` the first ones are
/// chunks of the address table (region 0, from chunk 0), and the others are chunks of the leaf
/// table (region 1, from chunk 0). Without it all are chunks of region 1 from `base_i` on.
///
/// Each cycle enters as many chunks as there are cores. A request is taken with its last chunk, so
/// a request for at most `AesCores` chunks is taken in one cycle. `Latency` cycles after
/// the last chunk the mask leaves with the request's tag. The output cannot be stalled. Byte i of
/// the mask is in bits [8i+7:8i].
///
/// Requests are public. Masks are secret.
module mask_engine #(
  parameter int unsigned BusBits = 512,
  parameter int unsigned AesCores = 1,
  parameter bit AesBlockRam = 1'b1,
  // Chunks of the address table of a bucket.
  parameter int unsigned AddressChunks = 1,
  parameter int unsigned TagWidth = 2,
  localparam int unsigned Chunks = BusBits / 128,
  localparam int unsigned CountWidth = $clog2(Chunks + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  aes_pkg::round_keys_t  round_keys_i,

  input  logic                  valid_i,
  output logic                  ready_o,
  input  logic [63:0]           counter_i,
  input  logic [40:0]           bucket_i,
  input  logic                  header_i,
  input  logic [21:0]           base_i,
  input  logic [CountWidth-1:0] count_i,
  input  logic [TagWidth-1:0]   tag_i,

  output logic                  valid_o,
  output logic [BusBits-1:0]    mask_o,
  output logic [TagWidth-1:0]   tag_o
);

  if (AesCores < 1 || AesCores > 4) begin : gen_bad_cores
    $fatal(1, "mask_engine: AesCores = %0d is not within 1 to 4", AesCores);
  end

  localparam int unsigned Steps = (Chunks + AesCores - 1) / AesCores;
  localparam int unsigned StepWidth = Steps == 1 ? 1 : $clog2(Steps);

  logic [StepWidth-1:0] step_q;
  logic last;

  assign last = (32'(step_q) + 1) * AesCores >= 32'(count_i);
  assign ready_o = last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      step_q <= '0;
    end else if (valid_i) begin
      step_q <= last ? '0 : step_q + StepWidth'(1);
    end
  end

  typedef struct packed {
    logic [StepWidth-1:0] step;
    logic                 last;
    logic [TagWidth-1:0]  tag;
  } passenger_t;

  passenger_t entering, leaving;
  logic [AesCores-1:0] leaves;
  logic [127:0] made [AesCores];

  assign entering = '{step: step_q, last: last, tag: tag_i};

  // The constant bound ends the loop for an invalid AesCores, so that the message above appears.
  for (genvar core = 0; core < AesCores && core < 4; core++) begin : gen_cores
    // The number of the chunk within the request, and its counter block.
    logic [21:0] number, chunk;
    logic is_header;
    passenger_t passenger;

    assign number = 22'(step_q) * 22'(AesCores) + 22'(core);
    assign is_header = header_i && number < 22'(AddressChunks);
    assign chunk = is_header ? number : header_i ? number - 22'(AddressChunks) : base_i + number;

    aes_pipe #(
      .UseBlockRam(AesBlockRam),
      .TagWidth   ($bits(passenger_t))
    ) u_aes (
      .clk_i,
      .rst_ni,
      .round_keys_i,
      .valid_i(valid_i),
      .block_i({counter_i, !is_header, bucket_i, chunk}),
      .tag_i  (entering),
      .valid_o(leaves[core]),
      .block_o(made[core]),
      .tag_o  (passenger)
    );

    if (core == 0) begin : gen_first
      assign leaving = passenger;
    end else begin : gen_others
      logic unused;
      assign unused = &{1'b0, passenger, leaves[core]};
    end
  end

  // Earlier chunks of the mask that is leaving.
  logic [127:0] earlier_q [Chunks];

  for (genvar chunk = 0; chunk < Chunks; chunk++) begin : gen_chunks
    logic [127:0] bytes;
    logic is_leaving;

    assign is_leaving = leaving.step == StepWidth'(chunk / AesCores);
    // AES has its first byte in the highest bits.
    assign bytes = {<<8{made[chunk % AesCores]}};
    assign mask_o[128 * chunk +: 128] = is_leaving ? bytes : earlier_q[chunk];

    always_ff @(posedge clk_i) begin
      if (leaves[0] && is_leaving) begin
        earlier_q[chunk] <= bytes;
      end
    end
  end

  assign valid_o = leaves[0] && leaving.last;
  assign tag_o = leaving.tag;

endmodule
