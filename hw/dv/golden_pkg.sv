// SPDX-License-Identifier: Apache-2.0 OR MIT

/// Golden model of the controller, as `golden.h` describes it.
package golden_pkg;

  /// A beat of any bus: the upper bits are zeros.
  typedef bit [1023:0] beat_t;
  /// Strobes of a beat.
  typedef bit [127:0] strobe_t;

  import "DPI-C" function chandle golden_create(
    input int scheme, input int leaf_level, input int slots, input int stash_blocks_max,
    input int evict_period, input longint unsigned capacity, input int block_bytes,
    input int bus_bits, input int subtree_levels, input longint unsigned seed);
  import "DPI-C" function void golden_destroy(input chandle golden);
  import "DPI-C" function string golden_error(input chandle golden);
  import "DPI-C" function int golden_set_mix(
    input chandle golden, input int reads, input int writes, input int removes, input int appends,
    input int crowding);
  import "DPI-C" function int golden_tree_key(input chandle golden, output bit [127:0] key);
  import "DPI-C" function int golden_warm_up(
    input chandle golden, input longint unsigned commands);
  import "DPI-C" function int golden_start_counts(
    input chandle golden, output longint unsigned operations, output longint unsigned evictions);
  import "DPI-C" function int golden_next(
    input chandle golden, output int operation, output longint unsigned address,
    output longint unsigned old_leaf, output longint unsigned new_leaf);
  import "DPI-C" function int golden_command(
    input chandle golden, input int operation, input longint unsigned address,
    input longint unsigned new_leaf, input chandle data, output longint unsigned old_leaf);
  import "DPI-C" function int golden_set_leaf(
    input chandle golden, input longint unsigned address, input longint unsigned leaf);
  import "DPI-C" function int golden_data_beat(
    input chandle golden, input int beat, output beat_t data);
  import "DPI-C" function int golden_check_memory_command(
    input chandle golden, input int is_write, input longint unsigned address);
  import "DPI-C" function int golden_check_write_beat(
    input chandle golden, input beat_t data, input strobe_t strobe);
  import "DPI-C" function int golden_check_read_beat(input chandle golden, input beat_t data);
  import "DPI-C" function int golden_check_response(
    input chandle golden, input beat_t data, input int is_last, input int status,
    input int is_found);
  import "DPI-C" function int golden_next_entropy(
    input chandle golden, output longint unsigned leaf);
  import "DPI-C" function int golden_stash_blocks(
    input chandle golden, input longint unsigned command, output int blocks);
  import "DPI-C" function int golden_check_stash(
    input chandle golden, input longint unsigned command, input int index,
    input longint unsigned address, input longint unsigned leaf);
  import "DPI-C" function int golden_evictions(
    input chandle golden, input longint unsigned command, output longint unsigned evictions,
    output int accesses_since);
  import "DPI-C" function int golden_background_evictions(
    input chandle golden, output longint unsigned count);
  import "DPI-C" function int golden_check_all_done(input chandle golden);
  import "DPI-C" function int golden_image_put(
    input chandle golden, input longint unsigned address, input beat_t data);
  import "DPI-C" function int golden_check_image(input chandle golden);
  import "DPI-C" function int golden_image_begin(
    input chandle golden, output longint unsigned beats);
  import "DPI-C" function int golden_image_beat(
    input chandle golden, input longint unsigned beat, output longint unsigned address,
    output beat_t data);

endpackage
