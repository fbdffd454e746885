// SPDX-License-Identifier: Apache-2.0 OR MIT

/// The queue holds exactly the entries that entered and did not leave, in order.
module fifo_properties #(
  parameter int unsigned Width,
  parameter int unsigned Depth,
  parameter int unsigned CountWidth,
  parameter int unsigned PointerWidth
) (
  input logic                    clk_i,
  input logic                    rst_ni,
  input logic                    valid_i,
  input logic                    ready_o,
  input logic [Width-1:0]        data_i,
  input logic                    valid_o,
  input logic                    ready_i,
  input logic [Width-1:0]        data_o,
  input logic [CountWidth-1:0]   count_o,
  input logic [Width-1:0]        entries_q [Depth],
  input logic [PointerWidth-1:0] head_q,
  input logic [PointerWidth-1:0] tail_q
);

  // The model: entry 0 is the oldest.
  logic [Width-1:0] model_q [Depth];
  int unsigned size_q;
  logic reset_done_q;

  initial begin
    reset_done_q = 1'b0;
  end

  always_comb begin
    // The first cycle resets the queue, and no later one does.
    assume (rst_ni == reset_done_q);
  end

  always_ff @(posedge clk_i) begin
    reset_done_q <= 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      size_q <= 0;
    end else begin
      if (valid_o && ready_i) begin
        for (int i = 0; i + 1 < Depth; i++) begin
          model_q[i] <= model_q[i + 1];
        end
      end
      if (valid_i && ready_o) begin
        model_q[size_q - 32'(valid_o && ready_i)] <= data_i;
      end
      size_q <= size_q + 32'(valid_i && ready_o) - 32'(valid_o && ready_i);
    end
  end

  always_comb begin
    if (reset_done_q) begin
      assert (size_q <= Depth);
      assert (32'(count_o) == size_q);
      assert (valid_o == (size_q != 0));
      assert (ready_o == (size_q < Depth || ready_i));
      if (valid_o) begin
        assert (data_o == model_q[0]);
      end
      // For the induction: pointers, and every entry.
      assert (32'(head_q) < Depth);
      assert (32'(tail_q) == (32'(head_q) + size_q) % Depth);
    end
  end

  for (genvar i = 0; i < Depth; i++) begin : gen_entries
    always_comb begin
      if (reset_done_q && i < size_q) begin
        assert (entries_q[PointerWidth'((32'(head_q) + i) % Depth)] == model_q[i]);
      end
    end
  end

endmodule

bind fifo fifo_properties #(
  .Width       (Width),
  .Depth       (Depth),
  .CountWidth  (CountWidth),
  .PointerWidth(PointerWidth)
) u_properties (
  .*
);
