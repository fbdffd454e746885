// SPDX-License-Identifier: Apache-2.0 OR MIT

/// A first-in, first-out queue in block RAM, with the ports of `fifo`.
///
/// The oldest entry is at the output while `valid_o` is high. An entry that enters an empty
/// queue is there three cycles later. One entry may enter and one may leave in every cycle.
module ram_fifo #(
  parameter int unsigned Width = 8,
  parameter int unsigned Depth = 512,
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

  if (Width < 1 || Depth < 4) begin : gen_bad_size
    $fatal(1, "ram_fifo: Width = %0d must be at least 1 and Depth = %0d at least 4", Width, Depth);
  end

  localparam int unsigned PointerWidth = $clog2(Depth);

  logic [PointerWidth-1:0] head_q, tail_q;
  // Entries in the queue, in RAM, and at the output or on their way to it.
  logic [CountWidth-1:0] count_q, in_ram_q;
  logic [1:0] ahead_q;
  logic push, pop, fetch, fetched_q;
  logic [Width-1:0] from_ram;

  assign ready_o = count_q != CountWidth'(Depth);
  assign count_o = count_q;
  assign push = valid_i && ready_o;
  assign pop = valid_o && ready_i;
  assign fetch = in_ram_q != '0 && (ahead_q < 2'd2 || pop);

  function automatic logic [PointerWidth-1:0] next(logic [PointerWidth-1:0] pointer);
    return pointer == PointerWidth'(Depth - 1) ? '0 : pointer + PointerWidth'(1);
  endfunction

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      head_q <= '0;
      tail_q <= '0;
      count_q <= '0;
      in_ram_q <= '0;
      ahead_q <= '0;
      fetched_q <= 1'b0;
    end else begin
      if (push) begin
        tail_q <= next(tail_q);
      end
      if (fetch) begin
        head_q <= next(head_q);
      end
      count_q <= count_q + CountWidth'(push) - CountWidth'(pop);
      in_ram_q <= in_ram_q + CountWidth'(push) - CountWidth'(fetch);
      ahead_q <= ahead_q + 2'(fetch) - 2'(pop);
      fetched_q <= fetch;
    end
  end

  ram_1r1w #(
    .Width(Width),
    .Depth(Depth)
  ) u_ram (
    .clk_i,
    .write_i        (push),
    .write_address_i(tail_q),
    .write_data_i   (data_i),
    .read_i         (fetch),
    .read_address_i (head_q),
    .read_data_o    (from_ram)
  );

  logic room;
  logic [1:0] waiting;

  fifo #(
    .Width(Width),
    .Depth(2)
  ) u_output (
    .clk_i,
    .rst_ni,
    .valid_i(fetched_q),
    .ready_o(room),
    .data_i (from_ram),
    .valid_o,
    .ready_i,
    .data_o,
    .count_o(waiting)
  );

  // `ahead_q` bounds the fetches, so the output has room.
  logic unused;
  assign unused = &{1'b0, room, waiting};

endmodule
