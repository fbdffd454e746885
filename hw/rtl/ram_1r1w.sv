// SPDX-License-Identifier: Apache-2.0 OR MIT

/// A RAM with one write port, one read port and a registered output.
///
/// - In a cycle with `write_i`, the word at `write_address_i` becomes `write_data_i`.
/// - In a cycle with `read_i`, the word at `read_address_i` is read. `read_data_o` holds it from
///   the next cycle until the next read.
/// - Reading the address that is written in the same cycle returns the old word.
/// - Words and output are undefined until they are written and read. There is no reset.
/// - Addresses must be below `Depth`.
module ram_1r1w #(
  // Bits of a word.
  parameter int unsigned Width = 8,
  // Words.
  parameter int unsigned Depth = 16,
  // Where the words are: 1 block RAM, 0 LUT RAM.
  parameter bit BlockRam = 1'b1,
  localparam int unsigned AddressWidth = Depth == 1 ? 1 : $clog2(Depth)
) (
  input  logic                    clk_i,

  input  logic                    write_i,
  input  logic [AddressWidth-1:0] write_address_i,
  input  logic [Width-1:0]        write_data_i,

  input  logic                    read_i,
  input  logic [AddressWidth-1:0] read_address_i,
  output logic [Width-1:0]        read_data_o
);

  if (Width < 1 || Depth < 1) begin : gen_bad_size
    $fatal(1, "ram_1r1w: Width = %0d and Depth = %0d must be at least 1", Width, Depth);
  end

  if (BlockRam) begin : gen_block_ram
    (* ram_style = "block" *) logic [Width-1:0] words_q [Depth];

    always_ff @(posedge clk_i) begin
      if (write_i) begin
        words_q[write_address_i] <= write_data_i;
      end
      if (read_i) begin
        read_data_o <= words_q[read_address_i];
      end
    end
  end else begin : gen_lut_ram
    (* ram_style = "distributed" *) logic [Width-1:0] words_q [Depth];

    always_ff @(posedge clk_i) begin
      if (write_i) begin
        words_q[write_address_i] <= write_data_i;
      end
      if (read_i) begin
        read_data_o <= words_q[read_address_i];
      end
    end
  end

endmodule
