// SPDX-License-Identifier: Apache-2.0 OR MIT

/// Two AES S-boxes with a register at the output, in one block RAM of 18 Kb or in LUTs.
module aes_sbox_pair #(
  // Where the S-boxes are: 1 a ROM in block RAM with two ports, 0 LUTs.
  parameter bit UseBlockRam = 1'b1
) (
  input  logic       clk_i,
  input  logic [7:0] a_i,
  input  logic [7:0] b_i,
  output logic [7:0] a_o,
  output logic [7:0] b_o
);

  if (UseBlockRam) begin : gen_block_ram
    // Synthesis makes block RAM of an initialised memory with a registered read, not of a function.
    (* rom_style = "block", ram_style = "block" *) logic [7:0] rom [256];

    initial begin
      for (int i = 0; i < 256; i++) begin
        rom[i] = aes_pkg::sub_byte(8'(i));
      end
    end

    always_ff @(posedge clk_i) begin
      a_o <= rom[a_i];
      b_o <= rom[b_i];
    end
  end else begin : gen_luts
    // A memory too: Yosys takes minutes for 160 selections from the constant of 2048 bits.
    (* ram_style = "logic" *) logic [7:0] rom [256];

    initial begin
      for (int i = 0; i < 256; i++) begin
        rom[i] = aes_pkg::sub_byte(8'(i));
      end
    end

    always_ff @(posedge clk_i) begin
      a_o <= rom[a_i];
      b_o <= rom[b_i];
    end
  end

endmodule
