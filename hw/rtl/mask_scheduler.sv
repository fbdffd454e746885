// SPDX-License-Identifier: Apache-2.0 OR MIT

/// Decides which masks the AES cores make next, and keeps them until they are taken.
///
/// Four streams of masks, in the order of their urgency:
///
/// 1. Decoding. A header from memory requests its mask under the counter stored in it:
///    of the addresses alone (RAW ORAM), or of the whole bucket, beat by beat (Path ORAM).
/// 2. Serving (RAW ORAM). The block of interest of an AO access, or another one if it was not on
///    the path.
/// 3. Encoding. Each operation requests the masks of its path under a fresh counter, as soon as
///    its leaf is known: of the addresses alone (RAW ORAM), or of whole buckets (Path ORAM).
/// 4. Bodies (RAW ORAM). The masks under IV1 of the coming EO accesses, which are known ahead of
///    time (Tiny ORAM, section IV-D): for the read of each path, then for its write. They are made
///    while the cores have nothing else to do, and wait in block RAM.
///
/// The fresh counter is a count of operations. It never comes from memory.
module mask_scheduler #(
  parameter bit Raw = 1'b1,
  parameter int unsigned LeafLevel = 20,
  parameter int unsigned BucketSlots = 5,
  parameter int unsigned BlockBeats = 1,
  parameter int unsigned BusBits = 512,
  parameter int unsigned AesCores = 1,
  parameter bit AesBlockRam = 1'b1,
  parameter int unsigned AddressTableBits = 128,
  parameter int unsigned LeafTableBits = 128,
  // Body masks that the block RAM holds.
  parameter int unsigned BodyDepth = 512,
  localparam int unsigned LeafWidth = LeafLevel == 0 ? 1 : LeafLevel,
  localparam int unsigned HeadMaskBits = Raw ? AddressTableBits : BusBits,
  localparam int unsigned SlotWidth = BucketSlots == 1 ? 1 : $clog2(BucketSlots),
  localparam int unsigned BodyCountWidth = $clog2(BodyDepth + 1)
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  // The counts of operations and EO accesses that the tree has had. One cycle.
  input  logic                      start_i,
  input  logic [63:0]               start_operations_i,
  input  logic [63:0]               start_evictions_i,
  // The round keys are valid, and stay.
  input  logic                      run_i,
  input  aes_pkg::round_keys_t      round_keys_i,

  // A header has arrived.
  input  logic                      arrival_valid_i,
  output logic                      arrival_ready_o,
  input  logic [63:0]               arrival_counter_i,
  input  logic [LeafLevel:0]        arrival_bucket_i,
  output logic                      decode_valid_o,
  input  logic                      decode_ready_i,
  output logic [HeadMaskBits-1:0]   decode_mask_o,

  // An operation begins.
  input  logic                      op_valid_i,
  output logic                      op_ready_o,
  input  logic [LeafWidth-1:0]      op_leaf_i,
  // The write counter has no further value.
  output logic                      exhausted_o,
  // A header arrives with a counter that no operation has had yet.
  output logic                      corrupt_o,
  output logic                      encode_valid_o,
  input  logic                      encode_ready_i,
  output logic [HeadMaskBits-1:0]   encode_mask_o,

  // The block to open is known.
  input  logic                      serve_valid_i,
  output logic                      serve_ready_o,
  input  logic [LeafLevel:0]        serve_bucket_i,
  input  logic [63:0]               serve_evictions_i,
  input  logic [SlotWidth-1:0]      serve_slot_i,
  output logic                      serve_mask_valid_o,
  input  logic                      serve_mask_ready_i,
  output logic [BusBits-1:0]        serve_mask_o,

  output logic                      body_valid_o,
  input  logic                      body_ready_i,
  output logic [BusBits-1:0]        body_mask_o,
  output logic [BodyCountWidth-1:0] body_count_o
);

  localparam int unsigned BucketBeats = 1 + BucketSlots * BlockBeats;
  localparam int unsigned BeatWidth = $clog2(BucketBeats + 1);
  localparam int unsigned LevelWidth = $clog2(LeafLevel + 2);
  localparam int unsigned Chunks = BusBits / 128;
  localparam int unsigned CountWidth = $clog2(Chunks + 1);
  localparam int unsigned AddressChunks = AddressTableBits / 128;
  localparam int unsigned LeafChunks = LeafTableBits / 128;
  // Masks that the queue of a stream holds. For decoding, it must cover the latency of the
  // pipeline.
  localparam int unsigned HeadDepth = 32;
  localparam int unsigned ServeDepth = 4;

  typedef enum logic [1:0] {Decode, Serve, Encode, Body} source_e;

  typedef struct packed {
    logic [63:0]           counter;
    logic [LeafLevel:0]    bucket;
    logic                  header;
    logic [21:0]           base;
    logic [CountWidth-1:0] count;
  } request_t;

  // The first chunk of beat `beat` of a bucket's blocks; beat 0 is the header.
  function automatic logic [21:0] base_of(logic [21:0] beat);
    return 22'(LeafChunks) + (beat - 22'd1) * 22'(Chunks);
  endfunction

  // The request for one beat of a bucket. Header beats have the address table if `addresses`.
  function automatic request_t request_of(
    logic [63:0] counter, logic [LeafLevel:0] bucket, logic [BeatWidth-1:0] beat, bit addresses,
    bit leaves
  );
    request_t request;
    request.counter = counter;
    request.bucket = bucket;
    if (beat == '0) begin
      request.header = addresses;
      request.base = '0;
      request.count = CountWidth'((addresses ? AddressChunks : 0) + (leaves ? LeafChunks : 0));
    end else begin
      request.header = 1'b0;
      request.base = base_of(22'(beat));
      request.count = CountWidth'(Chunks);
    end
    return request;
  endfunction

  // Beats of a bucket for which masks are made under the stored or fresh counter.
  localparam int unsigned HeadBeats = Raw ? 1 : BucketBeats;

  logic [3:0] wants, takes;
  request_t requests [4];

  // 1. Decoding.

  logic [BeatWidth-1:0] decode_beat_q;
  logic decode_last;
  logic [$clog2(HeadDepth + 1)-1:0] decode_owed_q, encode_owed_q;

  assign decode_last = decode_beat_q == BeatWidth'(HeadBeats - 1);
  assign wants[Decode] = arrival_valid_i && decode_owed_q != ($bits(decode_owed_q))'(HeadDepth);
  assign requests[Decode] =
      request_of(arrival_counter_i, arrival_bucket_i, decode_beat_q, 1'b1, !Raw);
  assign arrival_ready_o = takes[Decode] && decode_last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      decode_beat_q <= '0;
    end else if (takes[Decode]) begin
      decode_beat_q <= decode_last ? '0 : decode_beat_q + BeatWidth'(1);
    end
  end

  // 2. Serving.

  localparam int unsigned BlockBeatWidth = $clog2(BlockBeats + 1);
  logic [BlockBeatWidth-1:0] serve_beat_q;
  logic serve_last;
  logic [$clog2(ServeDepth + 1)-1:0] serve_owed_q;

  assign serve_last = serve_beat_q == BlockBeatWidth'(BlockBeats - 1);
  assign wants[Serve] =
      Raw && serve_valid_i && serve_owed_q != ($bits(serve_owed_q))'(ServeDepth);
  assign requests[Serve] = '{
    counter: serve_evictions_i,
    bucket: serve_bucket_i,
    header: 1'b0,
    base: base_of(22'(serve_slot_i) * 22'(BlockBeats) + 22'(serve_beat_q) + 22'd1),
    count: CountWidth'(Chunks)
  };
  assign serve_ready_o = takes[Serve] && serve_last;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      serve_beat_q <= '0;
    end else if (takes[Serve]) begin
      serve_beat_q <= serve_last ? '0 : serve_beat_q + BlockBeatWidth'(1);
    end
  end

  // 3. Encoding.

  // The write counter: the number of the operation, from 1.
  logic [63:0] writes_q;
  logic encoding_q, encode_op, encode_start;
  logic [LeafWidth-1:0] encode_leaf;
  logic [BeatWidth-1:0] encode_beat_q;
  logic encode_last;
  logic [LevelWidth-1:0] encode_level;
  logic [LeafLevel:0] encode_bucket;

  // Operations wait here until all masks of the previous operation have been requested.
  fifo #(
    .Width(LeafWidth),
    .Depth(2)
  ) u_ops (
    .clk_i,
    .rst_ni,
    .valid_i(op_valid_i),
    .ready_o(op_ready_o),
    .data_i (op_leaf_i),
    .valid_o(encode_op),
    .ready_i(encode_start),
    .data_o (encode_leaf),
    .count_o()
  );

  assign encode_start = encode_op && !encoding_q;
  assign corrupt_o = arrival_valid_i && arrival_counter_i > writes_q;
  // Two operations may be waiting.
  assign exhausted_o = writes_q >= {62'h3fff_ffff_ffff_ffff, 2'b00};
  assign encode_last = encode_beat_q == BeatWidth'(HeadBeats - 1);
  assign wants[Encode] = encoding_q && encode_owed_q != ($bits(encode_owed_q))'(HeadDepth);
  assign requests[Encode] = request_of(writes_q, encode_bucket, encode_beat_q, 1'b1, !Raw);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      writes_q <= '0;
      encoding_q <= 1'b0;
      encode_beat_q <= '0;
    end else if (start_i) begin
      writes_q <= start_operations_i;
    end else if (encode_start) begin
      writes_q <= writes_q + 64'd1;
      encoding_q <= 1'b1;
    end else if (takes[Encode]) begin
      encode_beat_q <= encode_last ? '0 : encode_beat_q + BeatWidth'(1);
      if (encode_last && encode_level == LevelWidth'(LeafLevel)) begin
        encoding_q <= 1'b0;
      end
    end
  end

  logic [LeafWidth-1:0] unused_encode_index;
  logic [63:0] unused_encode_evictions;

  eviction_path #(
    .LeafLevel(LeafLevel)
  ) u_encode_path (
    .clk_i,
    .start_i    (encode_start),
    .leaf_i     (encode_leaf),
    .evictions_i('0),
    .step_i     (takes[Encode] && encode_last),
    .level_o    (encode_level),
    .index_o    (unused_encode_index),
    .bucket_o   (encode_bucket),
    .evictions_o(unused_encode_evictions)
  );

  // 4. Bodies.

  // The number of the EO access whose masks are being made (G of the paper).
  logic [63:0] ahead_q;
  // Whether its path has been started on, and whether the masks are for its write.
  logic walking_q, for_write_q;
  logic [BeatWidth-1:0] body_beat_q;
  logic body_last, body_restart;
  logic [LevelWidth-1:0] body_level;
  logic [LeafLevel:0] body_bucket;
  logic [63:0] body_evictions;
  // Masks that are in the RAM or on their way to it.
  logic [BodyCountWidth-1:0] body_owed_q;

  assign body_last = body_beat_q == BeatWidth'(BucketBeats - 1);
  assign body_restart = Raw && run_i && !walking_q;
  assign wants[Body] = Raw && walking_q && body_owed_q != BodyCountWidth'(BodyDepth);
  assign requests[Body] =
      request_of(body_evictions + 64'(for_write_q), body_bucket, body_beat_q, 1'b0, 1'b1);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      ahead_q <= '0;
      walking_q <= 1'b0;
      for_write_q <= 1'b0;
      body_beat_q <= '0;
    end else if (start_i) begin
      ahead_q <= start_evictions_i;
    end else if (body_restart) begin
      walking_q <= 1'b1;
    end else if (takes[Body]) begin
      body_beat_q <= body_last ? '0 : body_beat_q + BeatWidth'(1);
      if (body_last && body_level == LevelWidth'(LeafLevel)) begin
        walking_q <= 1'b0;
        for_write_q <= !for_write_q;
        ahead_q <= ahead_q + 64'(for_write_q);
      end
    end
  end

  logic [LeafWidth-1:0] unused_body_index;

  eviction_path #(
    .LeafLevel(LeafLevel)
  ) u_body_path (
    .clk_i,
    .start_i    (body_restart),
    .leaf_i     (LeafLevel == 0 ? '0 : ahead_q[LeafWidth-1:0]),
    .evictions_i(ahead_q),
    .step_i     (takes[Body] && body_last),
    .level_o    (body_level),
    .index_o    (unused_body_index),
    .bucket_o   (body_bucket),
    .evictions_o(body_evictions)
  );

  // The most urgent request enters the cores. A request that has started finishes first, even if
  // it is not wanted any more.

  source_e chosen, begun_q;
  logic begun_in_q, engine_ready;

  always_comb begin
    chosen = Body;
    if (begun_in_q) begin
      chosen = begun_q;
    end else if (wants[Decode]) begin
      chosen = Decode;
    end else if (wants[Serve]) begin
      chosen = Serve;
    end else if (wants[Encode]) begin
      chosen = Encode;
    end
  end

  logic engine_valid;
  assign engine_valid = run_i && (begun_in_q || wants[chosen]);

  always_comb begin
    takes = '0;
    takes[chosen] = engine_valid && engine_ready;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      begun_in_q <= 1'b0;
      begun_q <= Decode;
    end else if (engine_valid) begin
      begun_in_q <= !engine_ready;
      begun_q <= chosen;
    end
  end

  logic made;
  logic [BusBits-1:0] mask;
  source_e made_for;
  logic [1:0] made_tag;

  assign made_for = source_e'(made_tag);

  mask_engine #(
    .BusBits      (BusBits),
    .AesCores     (AesCores),
    .AesBlockRam  (AesBlockRam),
    .AddressChunks(AddressChunks),
    .TagWidth     (2)
  ) u_engine (
    .clk_i,
    .rst_ni,
    .round_keys_i,
    .valid_i  (engine_valid),
    .ready_o  (engine_ready),
    .counter_i(requests[chosen].counter),
    .bucket_i (41'(requests[chosen].bucket)),
    .header_i (requests[chosen].header),
    .base_i   (requests[chosen].base),
    .count_i  (requests[chosen].count),
    .tag_i    (chosen),
    .valid_o  (made),
    .mask_o   (mask),
    .tag_o    (made_tag)
  );

  // Masks that were requested and not taken yet. The queues have room for each of them.

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      decode_owed_q <= '0;
      encode_owed_q <= '0;
      serve_owed_q <= '0;
      body_owed_q <= '0;
    end else begin
      decode_owed_q <= decode_owed_q + ($bits(decode_owed_q))'(takes[Decode])
          - ($bits(decode_owed_q))'(decode_valid_o && decode_ready_i);
      encode_owed_q <= encode_owed_q + ($bits(encode_owed_q))'(takes[Encode])
          - ($bits(encode_owed_q))'(encode_valid_o && encode_ready_i);
      serve_owed_q <= serve_owed_q + ($bits(serve_owed_q))'(takes[Serve])
          - ($bits(serve_owed_q))'(serve_mask_valid_o && serve_mask_ready_i);
      body_owed_q <= body_owed_q + BodyCountWidth'(takes[Body])
          - BodyCountWidth'(body_valid_o && body_ready_i);
    end
  end

  // Whether the queue of a stream has room. It always has, by the counts above.
  logic [3:0] room;

  fifo #(
    .Width(HeadMaskBits),
    .Depth(HeadDepth)
  ) u_decode (
    .clk_i,
    .rst_ni,
    .valid_i(made && made_for == Decode),
    .ready_o(room[Decode]),
    .data_i (mask[HeadMaskBits-1:0]),
    .valid_o(decode_valid_o),
    .ready_i(decode_ready_i),
    .data_o (decode_mask_o),
    .count_o()
  );

  fifo #(
    .Width(HeadMaskBits),
    .Depth(HeadDepth)
  ) u_encode (
    .clk_i,
    .rst_ni,
    .valid_i(made && made_for == Encode),
    .ready_o(room[Encode]),
    .data_i (mask[HeadMaskBits-1:0]),
    .valid_o(encode_valid_o),
    .ready_i(encode_ready_i),
    .data_o (encode_mask_o),
    .count_o()
  );

  logic unused;
  assign unused = &{1'b0, room, unused_encode_index, unused_encode_evictions, unused_body_index};

  if (Raw) begin : gen_raw
    fifo #(
      .Width(BusBits),
      .Depth(ServeDepth)
    ) u_serve (
      .clk_i,
      .rst_ni,
      .valid_i(made && made_for == Serve),
      .ready_o(room[Serve]),
      .data_i (mask),
      .valid_o(serve_mask_valid_o),
      .ready_i(serve_mask_ready_i),
      .data_o (serve_mask_o),
      .count_o()
    );

    ram_fifo #(
      .Width(BusBits),
      .Depth(BodyDepth)
    ) u_body (
      .clk_i,
      .rst_ni,
      .valid_i(made && made_for == Body),
      .ready_o(room[Body]),
      .data_i (mask),
      .valid_o(body_valid_o),
      .ready_i(body_ready_i),
      .data_o (body_mask_o),
      .count_o(body_count_o)
    );
  end else begin : gen_path
    assign room[Serve] = 1'b1;
    assign room[Body] = 1'b1;
    assign serve_mask_valid_o = 1'b0;
    assign serve_mask_o = '0;
    assign body_valid_o = 1'b0;
    assign body_mask_o = '0;
    assign body_count_o = '0;

    logic unused_path;
    assign unused_path = &{1'b0, serve_mask_ready_i, body_ready_i};
  end

endmodule
