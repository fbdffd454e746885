// SPDX-License-Identifier: Apache-2.0 OR MIT

/// Commands, results and kinds of path operations of the ORAM back ends.
package oram_pkg;

  /// What a command does with its block.
  typedef enum logic [1:0] {
    OpRead,
    OpWrite,
    // Read the block and take it out of the ORAM.
    OpReadRemove,
    // Put an absent block into the stash. Memory sees nothing.
    OpAppend
  } op_e;

  /// Result of a command. All but `StatusOk` close the controller.
  typedef enum logic [2:0] {
    StatusOk,
    // An address or a leaf is out of range, or an appended block is in the stash already.
    StatusBadCommand,
    // A is 0 or too large, or the controller was started twice.
    StatusBadStart,
    StatusMemoryError,
    // A bucket has failed a check.
    StatusCorrupt,
    // A counter of 64 bits has no further value.
    StatusExhausted,
    // Evictions do not bring the stash below its bound: its blocks do not fit the tree.
    StatusStashFull
  } status_e;

  /// Kinds of operations on a path.
  typedef enum logic [1:0] {
    // Path ORAM: read, open, seal and write a path.
    PathAccess,
    // RAW ORAM, AO: read a path, write its headers.
    AccessOnly,
    // RAW ORAM, EO: read, open, seal and write a path.
    EvictionOnly
  } kind_e;

  /// Fewest whole bytes that hold `0` to `values - 1`, and all ones for a dummy.
  function automatic int unsigned field_bytes(longint unsigned values);
    for (int unsigned bytes = 1; bytes < 8; bytes++) begin
      if ((values >> (8 * bytes)) == 0) begin
        return bytes;
      end
    end
    return 8;
  endfunction

  /// Bits of a table with one entry of `entry_bytes` bytes for each slot, in whole AES blocks.
  function automatic int unsigned table_bits(int unsigned slots, int unsigned entry_bytes);
    return (slots * entry_bytes + 15) / 16 * 128;
  endfunction

endpackage
