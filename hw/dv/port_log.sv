// SPDX-License-Identifier: Apache-2.0 OR MIT

/// Writes what the ports and units of a back end do in each cycle, for `draw_access.py`.
///
/// It is bound to `oram_backend`. With `+portlog=FILE` each line of the file is a cycle: its number
/// and one bit for each activity.
module port_log (
  input logic clk_i,
  input logic accept_i,
  input logic mem_cmd_i,
  input logic mem_cmd_write_i,
  input logic rdata_i,
  input logic wdata_i,
  input logic visit_i,
  input logic serve_i,
  input logic rsp_i,
  input logic [3:0] aes_i,
  input logic evict_i
);

  int file;
  int unsigned cycle;

  initial begin
    automatic string name;
    file = 0;
    cycle = 0;
    if ($value$plusargs("portlog=%s", name) != 0) begin
      file = $fopen(name, "w");
    end
  end

  always_ff @(posedge clk_i) begin
    cycle <= cycle + 1;
    if (file != 0) begin
      $fwrite(file, "%0d %b%b%b%b%b%b%b%b%b%b\n", cycle, accept_i, mem_cmd_i && !mem_cmd_write_i,
              mem_cmd_i && mem_cmd_write_i, rdata_i, wdata_i, visit_i, serve_i, rsp_i, evict_i,
              aes_i);
    end
  end

endmodule

bind oram_backend port_log u_port_log (
  .clk_i,
  .accept_i       (accept),
  .mem_cmd_i      (mem_cmd_valid_o && mem_cmd_ready_i),
  .mem_cmd_write_i(mem_cmd_write_o),
  .rdata_i        (mem_rdata_valid_i && mem_rdata_ready_o),
  .wdata_i        (mem_wdata_valid_o && mem_wdata_ready_i),
  .visit_i        (!scanned),
  .serve_i        (serving && server_start),
  .rsp_i          (rsp_valid_o && rsp_ready_i),
  .aes_i          (u_masks.engine_valid ? 4'd1 << u_masks.chosen : 4'd0),
  .evict_i        (op_start && op_kind == oram_pkg::EvictionOnly)
);
