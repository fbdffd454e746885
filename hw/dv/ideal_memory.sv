// SPDX-License-Identifier: Apache-2.0 OR MIT

/// Ideal memory of test benches: a sparse array behind one in-order queue of commands and one data
/// bus.
///
/// - A beat crosses the data bus in each cycle at most, of a read or of a write.
/// - Data cross it in the order of the commands. So a read returns what all earlier write commands
///   store, and waits until their data have come.
/// - With `early_reads_i` a read waits only for the data of earlier writes to its own address, and
///   a beat that is not taken does not hold writes up. Reads stay in order, and so do writes. A
///   write still waits for earlier reads.
/// - The data of a read command accepted in cycle t are valid in cycle t + Latency, unless beats of
///   earlier commands are still to cross the bus.
/// - Memory that was never written is zeros. A reset empties the queue and keeps the contents.
///
/// Each channel can stall at random: in a stalled cycle its ready, or a valid that is not up yet,
/// stays low.
module ideal_memory #(
  /// Bits of a beat.
  parameter int unsigned BusBits = 512,
  /// Bits of an address, in beats.
  parameter int unsigned AddressBits = 48,
  /// Cycles from a read command to its data.
  parameter int unsigned Latency = 30,
  /// Commands that the queue holds.
  parameter int unsigned Depth = 1024
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // Percentage of stalled cycles of each channel, and the seed of stalls.
  input  int unsigned            stall_cmd_i,
  input  int unsigned            stall_wdata_i,
  input  int unsigned            stall_rdata_i,
  input  longint unsigned        seed_i,
  // Which read beat since reset, counted from 1, is an error with data of all ones. 0: none.
  input  longint unsigned        error_at_i,
  input  logic                   early_reads_i,

  input  logic                   cmd_valid_i,
  output logic                   cmd_ready_o,
  input  logic                   cmd_write_i,
  input  logic [AddressBits-1:0] cmd_address_i,

  input  logic                   wdata_valid_i,
  output logic                   wdata_ready_o,
  input  logic [BusBits-1:0]     wdata_i,
  input  logic [BusBits/8-1:0]   wdata_strobe_i,

  output logic                   rdata_valid_o,
  input  logic                   rdata_ready_i,
  output logic [BusBits-1:0]     rdata_o,
  output logic                   rdata_error_o,

  // Beats that have crossed the bus since reset.
  output longint unsigned        bus_beats_o
);

  typedef struct packed {
    logic [AddressBits-1:0] address;
    longint unsigned        cycle;
    // How many commands were accepted before.
    longint unsigned        number;
  } command_t;

  logic [BusBits-1:0] store [logic [AddressBits-1:0]];
  command_t reads[$];
  command_t writes[$];
  longint unsigned cycle, accepted, read_beats, random_state;

  /// Data at an address.
  function automatic logic [BusBits-1:0] peek(logic [AddressBits-1:0] address);
    if (store.exists(address) != 0) return store[address];
    return '0;
  endfunction

  /// Replaces the data at an address.
  function automatic void poke(logic [AddressBits-1:0] address, logic [BusBits-1:0] data);
    store[address] = data;
  endfunction

  /// The lowest address that was written. Returns whether there is one.
  function automatic bit first(output logic [AddressBits-1:0] address);
    address = '0;
    return store.first(address) != 0;
  endfunction

  /// The next address that was written. Returns whether there is one.
  function automatic bit next(inout logic [AddressBits-1:0] address);
    return store.next(address) != 0;
  endfunction

  /// Whether the oldest read may return its data.
  function automatic bit read_may_go();
    if (reads.size() == 0 || cycle - reads[0].cycle < 64'(Latency)) return 1'b0;
    foreach (writes[i]) begin
      if (writes[i].number > reads[0].number) break;
      if (!early_reads_i || writes[i].address == reads[0].address) return 1'b0;
    end
    return 1'b1;
  endfunction

  /// Whether to stall: true in `percent` of calls.
  function automatic bit stalls(int unsigned percent);
    if (percent == 0) return 1'b0;
    // Xorshift.
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return 32'(random_state >> 32) % 100 < percent;
  endfunction

  // One process, which is a model and no hardware: first the transfers of the cycle that ends, then
  // the outputs of the next one.
  // verilator lint_off BLKSEQ
  // verilator lint_off UNUSEDSIGNAL
  always @(posedge clk_i) begin
    if (!rst_ni) begin
      reads.delete();
      writes.delete();
      cycle = 0;
      accepted = 0;
      read_beats = 0;
      random_state = seed_i ^ 64'h9e37_79b9_7f4a_7c15;
      cmd_ready_o <= 1'b0;
      wdata_ready_o <= 1'b0;
      rdata_valid_o <= 1'b0;
      rdata_o <= '0;
      rdata_error_o <= 1'b0;
      bus_beats_o <= 0;
    end else begin
      automatic bit is_waiting = rdata_valid_o && !rdata_ready_i;

      if (rdata_valid_o && rdata_ready_i) begin
        void'(reads.pop_front());
        read_beats++;
        bus_beats_o <= bus_beats_o + 1;
      end
      if (wdata_valid_i && wdata_ready_o) begin
        automatic command_t command = writes.pop_front();
        automatic logic [BusBits-1:0] data = peek(command.address);
        for (int unsigned i = 0; i < BusBits / 8; i++) begin
          if (wdata_strobe_i[i]) data[8*i+:8] = wdata_i[8*i+:8];
        end
        store[command.address] = data;
        bus_beats_o <= bus_beats_o + 1;
      end
      if (cmd_valid_i && cmd_ready_o) begin
        automatic command_t command =
            '{address: cmd_address_i, cycle: cycle, number: accepted};
        if (cmd_write_i) writes.push_back(command);
        else reads.push_back(command);
        accepted++;
      end
      cycle++;

      cmd_ready_o <= reads.size() + writes.size() < Depth && !stalls(stall_cmd_i);
      wdata_ready_o <= 1'b0;
      if (!is_waiting) begin
        rdata_valid_o <= 1'b0;
        rdata_error_o <= 1'b0;
      end
      // One beat on the bus: a read that may go comes first.
      if (!is_waiting && read_may_go()) begin
        if (!stalls(stall_rdata_i)) begin
          automatic bit is_error = error_at_i != 0 && read_beats + 1 == error_at_i;
          rdata_valid_o <= 1'b1;
          rdata_error_o <= is_error;
          rdata_o <= is_error ? '1 : peek(reads[0].address);
        end
      end else if ((!is_waiting || early_reads_i) && writes.size() > 0
                   && (reads.size() == 0 || writes[0].number < reads[0].number)) begin
        wdata_ready_o <= !stalls(stall_wdata_i);
      end
    end
  end
  // verilator lint_on UNUSEDSIGNAL
  // verilator lint_on BLKSEQ

endmodule
