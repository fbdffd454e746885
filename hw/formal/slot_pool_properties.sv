// SPDX-License-Identifier: Apache-2.0 OR MIT

/// Every slot is either allocated or in the queue exactly once.
module slot_pool_properties #(
  parameter int unsigned Slots,
  parameter int unsigned SlotWidth,
  parameter int unsigned CountWidth,
  parameter int unsigned PointerWidth
) (
  input logic                    clk_i,
  input logic                    rst_ni,
  input logic                    ready_o,
  input logic                    take_valid_o,
  input logic [SlotWidth-1:0]    take_slot_o,
  input logic                    take_i,
  input logic                    give_i,
  input logic [SlotWidth-1:0]    give_slot_i,
  input logic [CountWidth-1:0]   free_o,
  input logic [SlotWidth-1:0]    next_q,
  input logic [SlotWidth-1:0]    entries_q [Slots],
  input logic [PointerWidth-1:0] head_q,
  input logic [PointerWidth-1:0] tail_q
);

  // The model: allocated slots, and the number of cycles since the reset.
  logic [2**SlotWidth-1:0] allocated_q;
  int unsigned cycles_q;
  logic reset_done_q;

  initial begin
    reset_done_q = 1'b0;
  end

  always_comb begin
    // The first cycle resets the pool, and no later one does.
    assume (rst_ni == reset_done_q);
    // The contract: only an allocated slot comes back.
    assume (!give_i || allocated_q[give_slot_i]);
  end

  always_ff @(posedge clk_i) begin
    reset_done_q <= 1'b1;
    if (!rst_ni) begin
      allocated_q <= '0;
      cycles_q <= 0;
    end else begin
      if (give_i) begin
        allocated_q[give_slot_i] <= 1'b0;
      end
      if (take_i && take_valid_o) begin
        allocated_q[take_slot_o] <= 1'b1;
      end
      if (cycles_q < Slots) begin
        cycles_q <= cycles_q + 1;
      end
    end
  end

  // How often each slot is in the queue.
  int unsigned copies [2**SlotWidth];
  int unsigned allocated;

  always_comb begin
    allocated = 0;
    for (int slot = 0; slot < 2**SlotWidth; slot++) begin
      allocated = allocated + 32'(allocated_q[slot]);
      copies[slot] = 0;
      for (int i = 0; i < Slots; i++) begin
        if (i < 32'(free_o)
            && 32'(entries_q[PointerWidth'((32'(head_q) + i) % Slots)]) == slot) begin
          copies[slot] = copies[slot] + 1;
        end
      end
    end
  end

  always_comb begin
    if (reset_done_q) begin
      assert (ready_o == (cycles_q == Slots));
      assert (32'(free_o) == cycles_q - allocated);
      assert (take_valid_o == (ready_o && free_o != 0));
      if (take_valid_o) begin
        assert (32'(take_slot_o) < Slots && !allocated_q[take_slot_o]);
      end
      // For the induction.
      assert (cycles_q <= Slots && allocated <= cycles_q);
      assert (ready_o || (32'(next_q) == cycles_q && allocated == 0));
      assert (32'(head_q) < Slots);
      assert (32'(tail_q) == (32'(head_q) + 32'(free_o)) % Slots);
    end
  end

  for (genvar slot = 0; slot < 2**SlotWidth; slot++) begin : gen_slots
    always_comb begin
      if (reset_done_q) begin
        assert (copies[slot] + 32'(allocated_q[slot]) == 32'(slot < cycles_q));
      end
    end
  end

endmodule

bind slot_pool slot_pool_properties #(
  .Slots       (Slots),
  .SlotWidth   (SlotWidth),
  .CountWidth  (CountWidth),
  .PointerWidth(Slots == 1 ? 1 : $clog2(Slots))
) u_properties (
  .entries_q(u_free.entries_q),
  .head_q   (u_free.head_q),
  .tail_q   (u_free.tail_q),
  .*
);
