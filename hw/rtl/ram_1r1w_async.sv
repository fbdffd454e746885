// SPDX-License-Identifier: Apache-2.0 OR MIT

/// A LUT RAM with one write port and one read port without a register.
///
/// - In a cycle with `write_i`, the word at `write_address_i` becomes `write_data_i`, and can be
///   read from the next cycle on.
/// - `read_data_o` is the word at `read_address_i` in the same cycle.
/// - Words are undefined until they are written. There is no reset.
/// - Addresses must be below `Depth`.
module ram_1r1w_async #(
  // Bits of a word.
  parameter int unsigned Width = 8,
  // Words.
  parameter int unsigned Depth = 16,
  localparam int unsigned AddressWidth = Depth == 1 ? 1 : $clog2(Depth)
) (
  input  logic                    clk_i,

  input  logic                    write_i,
  input  logic [AddressWidth-1:0] write_address_i,
  input  logic [Width-1:0]        write_data_i,

  input  logic [AddressWidth-1:0] read_address_i,
  output logic [Width-1:0]        read_data_o
);

  if (Width < 1 || Depth < 1) begin : gen_bad_size
    $fatal(1, "ram_1r1w_async: Width = %0d and Depth = %0d must be at least 1", Width, Depth);
  end

  (* ram_style = "distributed" *) logic [Width-1:0] words_q [Depth];

  assign read_data_o = words_q[read_address_i];

  always_ff @(posedge clk_i) begin
    if (write_i) begin
      words_q[write_address_i] <= write_data_i;
    end
  end

endmodule
