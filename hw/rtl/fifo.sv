// SPDX-License-Identifier: Apache-2.0 OR MIT

/// A synchronous first-in, first-out queue with ready/valid at both ends.
///
/// The oldest entry is at the output while `valid_o` is high. An entry that enters an empty queue
/// is at the output in the next cycle. A full queue accepts an entry in the cycle in which it hands
/// one out: `ready_o` depends on `ready_i` in the same cycle.
module fifo #(
  // Bits of an entry.
  parameter int unsigned Width = 8,
  // Entries of a full queue.
  parameter int unsigned Depth = 4,
  localparam int unsigned CountWidth = $clog2(Depth + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  valid_i,
  output logic                  ready_o,
  input  logic [Width-1:0]      data_i,

  output logic                  valid_o,
  input  logic                  ready_i,
  output logic [Width-1:0]      data_o,

  output logic [CountWidth-1:0] count_o
);

  if (Width < 1 || Depth < 1) begin : gen_bad_size
    $fatal(1, "fifo: Width = %0d and Depth = %0d must be at least 1", Width, Depth);
  end

  localparam int unsigned PointerWidth = Depth == 1 ? 1 : $clog2(Depth);

  logic [Width-1:0] entries_q [Depth];
  logic [PointerWidth-1:0] head_q, tail_q;
  logic [CountWidth-1:0] count_q;
  logic push, pop;

  assign valid_o = count_q != '0;
  assign ready_o = count_q != CountWidth'(Depth) || ready_i;
  assign data_o = entries_q[head_q];
  assign count_o = count_q;
  assign push = valid_i && ready_o;
  assign pop = valid_o && ready_i;

  function automatic logic [PointerWidth-1:0] next(logic [PointerWidth-1:0] pointer);
    return pointer == PointerWidth'(Depth - 1) ? '0 : pointer + PointerWidth'(1);
  endfunction

  always_ff @(posedge clk_i) begin
    if (push) begin
      entries_q[tail_q] <= data_i;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      head_q <= '0;
      tail_q <= '0;
      count_q <= '0;
    end else begin
      if (push) begin
        tail_q <= next(tail_q);
      end
      if (pop) begin
        head_q <= next(head_q);
      end
      count_q <= count_q + CountWidth'(push) - CountWidth'(pop);
    end
  end

endmodule
