// SPDX-License-Identifier: Apache-2.0 OR MIT

/// The order of the stash, and the plan of the path that is written next.
///
/// The entries of the stash are in a queue in the order of their arrival, as in the engine. A
/// session visits all of them in this order, looks for the wanted block on the way, and then takes
/// arrivals until one is marked as the last. With `place_i` each entry passes PushToLeaf, which
/// gives it a slot of the path or leaves it in the stash. Without, all entries stay.
///
/// - The visit takes `ScanCycles` + 1 cycles, for any number of entries.
/// - The wanted block gets its new leaf on the way. A command that removes it takes it out of the
///   queue.
/// - At the end of a session with `place_i` the plan is handed over to the writer. The next session
///   works on a plan of its own. It does not end before the writer is done with the last one.
///
/// Everything but the timing is secret. The timing depends only on the times of arrivals.
module placer #(
  parameter int unsigned LeafLevel = 20,
  parameter int unsigned BucketSlots = 5,
  parameter int unsigned AddressBits = 24,
  // Slots of the stash, and the width of a slot number.
  parameter int unsigned Places = 256,
  parameter int unsigned PlaceWidth = 8,
  // Entries that the stash may have when a session begins.
  parameter int unsigned ScanCycles = 70,
  localparam int unsigned LeafWidth = LeafLevel == 0 ? 1 : LeafLevel,
  localparam int unsigned LevelWidth = $clog2(LeafLevel + 2),
  localparam int unsigned IndexWidth = $clog2(BucketSlots + 1),
  localparam int unsigned CountWidth = $clog2(Places + 1),
  localparam int unsigned PlanSlots = (LeafLevel + 1) * BucketSlots,
  localparam int unsigned PlanWidth = PlanSlots == 1 ? 1 : $clog2(PlanSlots)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // Begins a session. Only while `idle_o`.
  input  logic                   start_i,
  input  logic                   place_i,
  input  logic [LeafWidth-1:0]   path_leaf_i,

  // The wanted block, valid from the start to the end of the session.
  input  logic                   wanted_i,
  input  logic [AddressBits-1:0] wanted_address_i,
  input  logic [LeafWidth-1:0]   wanted_leaf_i,
  input  logic                   wanted_remove_i,

  input  logic                   arrival_valid_i,
  input  logic                   arrival_real_i,
  input  logic                   arrival_last_i,
  input  logic [AddressBits-1:0] arrival_address_i,
  input  logic [LeafWidth-1:0]   arrival_leaf_i,
  input  logic [PlaceWidth-1:0]  arrival_place_i,

  output logic                   idle_o,
  // The visit has ended, until the next session begins.
  output logic                   scanned_o,
  output logic                   found_o,
  output logic [PlaceWidth-1:0]  found_place_o,
  // Entries of the stash. Valid while `idle_o`.
  output logic [CountWidth-1:0]  count_o,

  // One cycle: there is a new plan.
  output logic                   planned_o,
  // The writer still reads the last plan.
  input  logic                   writing_i,
  // A slot of the plan, one cycle after the request.
  input  logic                   plan_read_i,
  input  logic [LevelWidth-1:0]  plan_level_i,
  input  logic [IndexWidth-1:0]  plan_index_i,
  output logic                   plan_real_o,
  output logic [AddressBits-1:0] plan_address_o,
  output logic [LeafWidth-1:0]   plan_leaf_o,
  output logic [PlaceWidth-1:0]  plan_place_o
);

  localparam int unsigned Levels = LeafLevel + 1;
  localparam int unsigned PathSlots = Levels * BucketSlots;
  localparam int unsigned LevelIndexWidth = Levels == 1 ? 1 : $clog2(Levels);
  localparam int unsigned PointerWidth = $clog2(Places);
  localparam int unsigned ScanWidth = $clog2(ScanCycles + 2);

  typedef struct packed {
    logic [AddressBits-1:0] address;
    logic [LeafWidth-1:0]   leaf;
    logic [PlaceWidth-1:0]  place;
  } entry_t;

  typedef enum logic [1:0] {Idle, Scan, Arrive, Drain} state_e;

  state_e state_q;
  logic place_q;
  logic [ScanWidth-1:0] scan_q;
  logic [2:0] drain_q;

  // The queue.

  logic [PointerWidth-1:0] head_q, tail_q;
  logic [CountWidth-1:0] count_q, to_visit_q;
  logic push, pop;
  entry_t pushed, visited;
  logic visiting_q;

  function automatic logic [PointerWidth-1:0] next(logic [PointerWidth-1:0] pointer);
    return pointer == PointerWidth'(Places - 1) ? '0 : pointer + PointerWidth'(1);
  endfunction

  assign pop = state_q == Scan && to_visit_q != '0;

  ram_1r1w #(
    .Width($bits(entry_t)),
    .Depth(Places)
  ) u_order (
    .clk_i,
    .write_i        (push),
    .write_address_i(tail_q),
    .write_data_i   (pushed),
    .read_i         (pop),
    .read_address_i (head_q),
    .read_data_o    (visited)
  );

  // Arrivals wait until the visit has ended. There is room for all slots of a path.

  logic waiting_valid, waiting_take, waiting_real, waiting_last, waiting_room;
  entry_t waiting;

  fifo #(
    .Width(2 + $bits(entry_t)),
    .Depth(PathSlots + 2)
  ) u_arrivals (
    .clk_i,
    .rst_ni,
    .valid_i(arrival_valid_i),
    .ready_o(waiting_room),
    .data_i ({arrival_real_i, arrival_last_i, arrival_address_i, arrival_leaf_i,
              arrival_place_i}),
    .valid_o(waiting_valid),
    .ready_i(waiting_take),
    .data_o ({waiting_real, waiting_last, waiting}),
    .count_o()
  );

  assign waiting_take = state_q == Arrive && waiting_valid;

  // The entry that enters PushToLeaf in this cycle.
  logic entering_valid, entering_real, is_wanted;
  entry_t entering;

  assign is_wanted = visiting_q && wanted_i && visited.address == wanted_address_i;

  always_comb begin
    entering_valid = visiting_q || waiting_take;
    entering = visiting_q ? visited : waiting;
    entering_real = visiting_q ? !(is_wanted && wanted_remove_i) : waiting_real;
    if (is_wanted) begin
      entering.leaf = wanted_leaf_i;
    end
  end

  logic leaving_valid, leaving_placed, leaving_real, unused_real;
  entry_t leaving;
  logic [LevelWidth-1:0] leaving_level;
  logic [IndexWidth-1:0] leaving_index;
  logic [IndexWidth-1:0] occupied [Levels];

  push_to_leaf #(
    .LeafLevel  (LeafLevel),
    .BucketSlots(BucketSlots),
    .SlotWidth  (1 + $bits(entry_t))
  ) u_push_to_leaf (
    .clk_i,
    .rst_ni,
    .start_i    (start_i),
    .path_leaf_i(path_leaf_i),
    .valid_i    (entering_valid),
    .real_i     (entering_real && place_q),
    .leaf_i     (entering.leaf),
    .slot_i     ({entering_real, entering}),
    .valid_o    (leaving_valid),
    .real_o     (unused_real),
    .placed_o   (leaving_placed),
    .slot_o     ({leaving_real, leaving}),
    .level_o    (leaving_level),
    .index_o    (leaving_index),
    .occupied_o (occupied)
  );

  assign push = leaving_valid && leaving_real && !leaving_placed;
  assign pushed = leaving;

  assign idle_o = state_q == Idle;
  assign scanned_o = state_q != Scan;
  assign count_o = count_q;
  assign planned_o = state_q == Drain && drain_q == '0 && place_q && !writing_i;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      place_q <= 1'b0;
      scan_q <= '0;
      drain_q <= '0;
      head_q <= '0;
      tail_q <= '0;
      count_q <= '0;
      to_visit_q <= '0;
      visiting_q <= 1'b0;
      found_o <= 1'b0;
    end else begin
      visiting_q <= pop;
      if (pop) begin
        head_q <= next(head_q);
        to_visit_q <= to_visit_q - CountWidth'(1);
      end
      if (push) begin
        tail_q <= next(tail_q);
      end
      count_q <= count_q + CountWidth'(push) - CountWidth'(pop);
      if (is_wanted) begin
        found_o <= 1'b1;
      end

      unique case (state_q)
        Idle: begin
          if (start_i) begin
            state_q <= Scan;
            place_q <= place_i;
            // One cycle more than entries: the last one leaves the queue's RAM in it.
            scan_q <= ScanWidth'(ScanCycles + 1);
            to_visit_q <= count_q;
            found_o <= 1'b0;
          end
        end
        Scan: begin
          scan_q <= scan_q - ScanWidth'(1);
          if (scan_q == ScanWidth'(1)) begin
            state_q <= Arrive;
          end
        end
        Arrive: begin
          if (waiting_take && waiting_last) begin
            state_q <= Drain;
            // The last entry has left PushToLeaf, and is in the plan, when this count is 0.
            drain_q <= 3'd3;
          end
        end
        Drain: begin
          if (drain_q != '0) begin
            drain_q <= drain_q - 3'd1;
          end else if (!(place_q && writing_i)) begin
            state_q <= Idle;
          end
        end
        default: state_q <= Idle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (is_wanted) begin
      found_place_o <= visited.place;
    end
  end

  // The plan: the array S of Algorithm 1, twice, and `Occupied` of the copy that is being written.

  logic bank_q;
  logic [IndexWidth-1:0] planned_q [Levels];
  entry_t plan;

  function automatic logic [PlanWidth-1:0] plan_slot(
    logic [LevelWidth-1:0] level, logic [IndexWidth-1:0] index
  );
    return PlanWidth'(level) * PlanWidth'(BucketSlots) + PlanWidth'(index);
  endfunction

  ram_1r1w #(
    .Width($bits(entry_t)),
    .Depth(2 << PlanWidth)
  ) u_plan (
    .clk_i,
    .write_i        (leaving_valid && leaving_placed),
    .write_address_i({bank_q, plan_slot(leaving_level, leaving_index)}),
    .write_data_i   (leaving),
    .read_i         (plan_read_i),
    .read_address_i ({!bank_q, plan_slot(plan_level_i, plan_index_i)}),
    .read_data_o    (plan)
  );

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      bank_q <= 1'b0;
    end else if (planned_o) begin
      bank_q <= !bank_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (planned_o) begin
      planned_q <= occupied;
    end
    if (plan_read_i) begin
      plan_real_o <= plan_index_i < planned_q[LevelIndexWidth'(plan_level_i)];
    end
  end

  assign plan_address_o = plan.address;
  assign plan_leaf_o = plan.leaf;
  assign plan_place_o = plan.place;

  logic unused;
  assign unused = &{1'b0, unused_real, waiting_room};

endmodule
