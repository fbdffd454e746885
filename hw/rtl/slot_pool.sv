// SPDX-License-Identifier: Apache-2.0 OR MIT

/// The free list of the stash: a queue of slot numbers.
///
/// - After reset the pool fills itself, one slot per cycle. `ready_o` rises after `Slots` cycles.
/// - While `take_valid_o` is high, `take_slot_o` is a free slot. `take_i` allocates it.
/// - `give_i` frees `give_slot_i`, which must be allocated. It must not be high before `ready_o`.
/// - Both may happen in one cycle.
module slot_pool #(
  // Slots of the stash.
  parameter int unsigned Slots = 8,
  localparam int unsigned SlotWidth = Slots == 1 ? 1 : $clog2(Slots),
  localparam int unsigned CountWidth = $clog2(Slots + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // The pool has filled itself since reset.
  output logic                  ready_o,

  output logic                  take_valid_o,
  output logic [SlotWidth-1:0]  take_slot_o,
  input  logic                  take_i,

  input  logic                  give_i,
  input  logic [SlotWidth-1:0]  give_slot_i,

  output logic [CountWidth-1:0] free_o
);

  if (Slots < 1) begin : gen_bad_slots
    $fatal(1, "slot_pool: Slots = %0d must be at least 1", Slots);
  end

  logic filled_q;
  logic [SlotWidth-1:0] next_q;
  logic put;
  logic [SlotWidth-1:0] slot;

  assign ready_o = filled_q;
  assign put = !filled_q || give_i;
  assign slot = filled_q ? give_slot_i : next_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      filled_q <= 1'b0;
      next_q <= '0;
    end else if (!filled_q) begin
      filled_q <= next_q == SlotWidth'(Slots - 1);
      next_q <= next_q + SlotWidth'(1);
    end
  end

  logic queue_valid, queue_ready;

  fifo #(
    .Width(SlotWidth),
    .Depth(Slots)
  ) u_free (
    .clk_i,
    .rst_ni,
    .valid_i(put),
    .ready_o(queue_ready),
    .data_i (slot),
    .valid_o(queue_valid),
    .ready_i(take_i && filled_q),
    .data_o (take_slot_o),
    .count_o(free_o)
  );

  assign take_valid_o = queue_valid && filled_q;

  // The queue has room for every slot.
  logic unused_ready;
  assign unused_ready = queue_ready;

endmodule
