// SPDX-License-Identifier: Apache-2.0 OR MIT

/// The back end of Path ORAM with the bit tricks of Tiny ORAM (sections II-A and III). See
/// `oram_backend` for its ports.
module path_backend #(
  parameter int unsigned LeafLevel = 20,
  parameter int unsigned BucketSlots = 4,
  parameter int unsigned StashBlocksMax = 78,
  parameter int unsigned BlockBytes = 64,
  parameter int unsigned BusBits = 512,
  parameter int unsigned AesCores = 4,
  parameter bit AesBlockRam = 1'b1,
  parameter longint unsigned Capacity = 64'd1 << LeafLevel,
  parameter int unsigned SubtreeLevels = 4,
  localparam int unsigned LeafWidth = LeafLevel == 0 ? 1 : LeafLevel,
  localparam int unsigned AddressBits = 8 * oram_pkg::field_bytes(Capacity),
  localparam int unsigned LeafBits = 8 * oram_pkg::field_bytes((64'd1 << LeafLevel) - 64'd1)
) (

  input  logic                   clk_i,
  input  logic                   rst_ni,

  // Start-up: the key of the tree, A, and how many operations and EO accesses the tree has had
  // under this key (both 0 if memory is new).
  input  logic                   start_valid_i,
  output logic                   start_ready_o,
  input  logic [127:0]           start_key_i,
  input  logic [16:0]            start_evict_period_i,
  input  logic [63:0]            start_operations_i,
  input  logic [63:0]            start_evictions_i,

  // Leaves of dummy accesses: uniform, and secret until they are used. Path ORAM alone.
  input  logic                   entropy_valid_i,
  output logic                   entropy_ready_o,
  input  logic [LeafWidth-1:0]   entropy_i,

  input  logic                   cmd_valid_i,
  output logic                   cmd_ready_o,
  input  oram_pkg::op_e          cmd_op_i,
  input  logic [AddressBits-1:0] cmd_address_i,
  input  logic [LeafBits-1:0]    cmd_old_leaf_i,
  input  logic [LeafBits-1:0]    cmd_new_leaf_i,

  // The block of a command: the same number of beats for every operation.
  input  logic                   wdata_valid_i,
  output logic                   wdata_ready_o,
  input  logic [BusBits-1:0]     wdata_i,

  // The block before the command: the same number of beats.
  output logic                   rsp_valid_o,
  input  logic                   rsp_ready_i,
  output logic [BusBits-1:0]     rsp_data_o,
  output logic                   rsp_last_o,
  output oram_pkg::status_e      rsp_status_o,
  output logic                   rsp_found_o,

  output logic                   mem_cmd_valid_o,
  input  logic                   mem_cmd_ready_i,
  output logic                   mem_cmd_write_o,
  // In beats.
  output logic [47:0]            mem_cmd_address_o,
  output logic                   mem_wdata_valid_o,
  input  logic                   mem_wdata_ready_i,
  output logic [BusBits-1:0]     mem_wdata_o,
  output logic [BusBits/8-1:0]   mem_wdata_strobe_o,
  input  logic                   mem_rdata_valid_i,
  output logic                   mem_rdata_ready_o,
  input  logic [BusBits-1:0]     mem_rdata_i,
  input  logic                   mem_rdata_error_i,

  // An error has closed the controller. Only a reset opens it: see `oram_backend`.
  output logic                   closed_o
);
  oram_backend #(
    .Raw           (1'b0),
    .LeafLevel     (LeafLevel),
    .BucketSlots   (BucketSlots),
    .StashBlocksMax(StashBlocksMax),
    .BlockBytes    (BlockBytes),
    .BusBits       (BusBits),
    .AesCores      (AesCores),
    .AesBlockRam   (AesBlockRam),
    .Capacity      (Capacity),
    .SubtreeLevels (SubtreeLevels)
  ) u_backend (
    .clk_i,
    .rst_ni,
    .start_valid_i,
    .start_ready_o,
    .start_key_i,
    .start_evict_period_i,
    .start_operations_i,
    .start_evictions_i,
    .entropy_valid_i,
    .entropy_ready_o,
    .entropy_i,
    .cmd_valid_i,
    .cmd_ready_o,
    .cmd_op_i,
    .cmd_address_i,
    .cmd_old_leaf_i,
    .cmd_new_leaf_i,
    .wdata_valid_i,
    .wdata_ready_o,
    .wdata_i,
    .rsp_valid_o,
    .rsp_ready_i,
    .rsp_data_o,
    .rsp_last_o,
    .rsp_status_o,
    .rsp_found_o,
    .mem_cmd_valid_o,
    .mem_cmd_ready_i,
    .mem_cmd_write_o,
    .mem_cmd_address_o,
    .mem_wdata_valid_o,
    .mem_wdata_ready_i,
    .mem_wdata_o,
    .mem_wdata_strobe_o,
    .mem_rdata_valid_i,
    .mem_rdata_ready_o,
    .mem_rdata_i,
    .mem_rdata_error_i,
    .closed_o
  );

endmodule
