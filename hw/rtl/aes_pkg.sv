// SPDX-License-Identifier: Apache-2.0 OR MIT

/// AES-128 (FIPS 197): its types, the S-box, ShiftRows and MixColumns.
///
/// Byte 0 of FIPS 197 is in the highest bits of a state: a state in hexadecimal reads like the
/// bytes of the message.
package aes_pkg;

  localparam int unsigned Rounds = 10;

  /// Cycles from a block at the input of `aes_pipe` to its result: one per round, and one for the
  /// register at the output.
  localparam int unsigned PipeLatency = Rounds + 1;

  typedef logic [127:0] state_t;
  typedef state_t [Rounds:0] round_keys_t;

  /// x times 2 in GF(2^8), modulo x^8 + x^4 + x^3 + x + 1.
  function automatic logic [7:0] double(logic [7:0] x);
    return {x[6:0], 1'b0} ^ (x[7] ? 8'h1b : 8'h00);
  endfunction

  /// The table of FIPS 197, Figure 7, in reading order: the entry of 8'h00 is in the highest bits.
  localparam logic [2047:0] SBox = {
    128'h637c777b_f26b6fc5_3001672b_fed7ab76,
    128'hca82c97d_fa5947f0_add4a2af_9ca472c0,
    128'hb7fd9326_363ff7cc_34a5e5f1_71d83115,
    128'h04c723c3_1896059a_071280e2_eb27b275,
    128'h09832c1a_1b6e5aa0_523bd6b3_29e32f84,
    128'h53d100ed_20fcb15b_6acbbe39_4a4c58cf,
    128'hd0efaafb_434d3385_45f9027f_503c9fa8,
    128'h51a3408f_929d38f5_bcb6da21_10fff3d2,
    128'hcd0c13ec_5f974417_c4a77e3d_645d1973,
    128'h60814fdc_222a9088_46eeb814_de5e0bdb,
    128'he0323a0a_4906245c_c2d3ac62_9195e479,
    128'he7c8376d_8dd54ea9_6c56f4ea_657aae08,
    128'hba78252e_1ca6b4c6_e8dd741f_4bbd8b8a,
    128'h703eb566_4803f60e_613557b9_86c11d9e,
    128'he1f89811_69d98e94_9b1e87e9_ce5528df,
    128'h8ca1890d_bfe64268_41992d0f_b054bb16
  };

  /// SubBytes of one byte.
  function automatic logic [7:0] sub_byte(logic [7:0] x);
    return SBox[{~x, 3'b000} +: 8];
  endfunction

  /// Row r of the state moves r columns to the left.
  function automatic state_t shift_rows(state_t state);
    state_t shifted;
    for (int column = 0; column < 4; column++) begin
      for (int row = 0; row < 4; row++) begin
        shifted[127 - 8 * (4 * column + row) -: 8] =
            state[127 - 8 * (4 * ((column + row) % 4) + row) -: 8];
      end
    end
    return shifted;
  endfunction

  /// MixColumns of one column, with row 0 in the highest byte.
  function automatic logic [31:0] mix_column(logic [31:0] x);
    // Row i of `next` is row i + 1 of the column, and `sum` is a_i + a_(i+1).
    logic [31:0] next, sum, carry;
    next = {x[23:0], x[31:24]};
    sum = x ^ next;
    // The four bytes of `sum` times 2.
    carry = {7'b0, sum[31], 7'b0, sum[23], 7'b0, sum[15], 7'b0, sum[7]};
    sum = ({sum[30:0], 1'b0} & 32'hfefefefe) ^ carry ^ (carry << 1) ^ (carry << 3) ^ (carry << 4);
    // 2 a_i + 3 a_(i+1) + a_(i+2) + a_(i+3).
    return sum ^ next ^ {x[15:0], x[31:16]} ^ {x[7:0], x[31:8]};
  endfunction

  function automatic state_t mix_columns(state_t state);
    return {mix_column(state[127:96]), mix_column(state[95:64]), mix_column(state[63:32]),
            mix_column(state[31:0])};
  endfunction

endpackage
