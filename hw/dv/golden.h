/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Golden model of the ORAM controller: the engine, run one command ahead of the controller.
 * The crate `golden` implements it (liboblivio_golden.so). Made for DPI-C and for ctypes.
 *
 * Order of calls: golden_create; golden_tree_key for the start port; then for each command
 * golden_next (or golden_command), and a check for each transfer on a port of the controller, in
 * the order of that port; golden_check_all_done at the end. Commands may be drawn ahead: each port
 * has a queue of its own.
 *
 * Results: 0 if all is well, 1 for a mismatch, 2 for a misuse (nothing was changed), 3 after a
 * panic, which ends the use of the model. golden_error has the text.
 *
 * Beats are 32 words of 32 bits on any bus (`bit [1023:0]` in DPI-C), the least significant
 * word first; byte i of a beat is bits 8i+7 to 8i. Words past the bus are ignored, or zeros.
 *
 * A model is used by one thread at a time.
 */
#ifndef OBLIVIO_GOLDEN_H
#define OBLIVIO_GOLDEN_H

#ifdef __cplusplus
extern "C" {
#endif

enum { GOLDEN_OK = 0, GOLDEN_MISMATCH = 1, GOLDEN_MISUSE = 2, GOLDEN_PANIC = 3 };
enum { GOLDEN_PATH = 0, GOLDEN_RAW = 1 };
enum { GOLDEN_READ = 0, GOLDEN_WRITE = 1, GOLDEN_READ_REMOVE = 2, GOLDEN_APPEND = 3 };

/* Creates a model with an empty memory, or returns NULL; golden_error(NULL) then has the text.
 * scheme is GOLDEN_PATH or GOLDEN_RAW; leaf_level is L, slots Z, stash_blocks_max C, evict_period A
 * (RAW alone), capacity N. Everything random follows from seed. */
void *golden_create(int scheme, int leaf_level, int slots, int stash_blocks_max, int evict_period,
                    unsigned long long capacity, int block_bytes, int bus_bits, int subtree_levels,
                    unsigned long long seed);

/* Ends the use of a model. NULL does nothing. */
void golden_destroy(void *golden);

/* Text of the latest error of a model, valid until its next call.
 * For NULL: of the latest creation that failed. */
const char *golden_error(void *golden);

/* Weights of random commands. crowding is the percentage of commands whose new leaf other blocks
 * share: it fills the stash. At first 35, 40, 15, 10 and 0. */
int golden_set_mix(void *golden, int reads, int writes, int removes, int appends, int crowding);

/* Key of the tree: `bit [127:0]`, byte 0 of the key in bits 127 to 120. */
int golden_tree_key(void *golden, unsigned int *key);

/* Fills the memory with random commands before the controller starts, and leaves the stash empty.
 * Preload the controller's memory with golden_image_begin and golden_image_beat, then start the
 * controller with the counts of golden_start_counts. */
int golden_warm_up(void *golden, unsigned long long commands);

/* How many operations and EO accesses the tree has had: 0 and 0 without a warm-up. */
int golden_start_counts(void *golden, unsigned long long *operations,
                        unsigned long long *evictions);

/* Draws the next command and queues what the controller must do for it. */
int golden_next(void *golden, int *operation, unsigned long long *address,
                unsigned long long *old_leaf, unsigned long long *new_leaf);

/* Runs a given command; old_leaf receives the leaf from the model's position map. data is a block,
 * or NULL for data that the model draws. Read-remove ignores new_leaf, append old_leaf: both ports
 * carry a leaf in range. Refuses to append a block that is present. */
int golden_command(void *golden, int operation, unsigned long long address,
                   unsigned long long new_leaf, const unsigned char *data,
                   unsigned long long *old_leaf);

/* Maps an absent block to a leaf, so that the next access to it reads that path. */
int golden_set_leaf(void *golden, unsigned long long address, unsigned long long leaf);

/* Beat of the latest command's data, which the data port takes for every operation. */
int golden_data_beat(void *golden, int beat, unsigned int *data);

/* Checks for each transfer on the memory ports. A strobe is 4 words (`bit [127:0]`), a bit a byte;
 * bytes without a strobe may be anything. */
int golden_check_memory_command(void *golden, int is_write, unsigned long long address);
int golden_check_write_beat(void *golden, const unsigned int *data, const unsigned int *strobe);

/* Checks a beat that memory returns. */
int golden_check_read_beat(void *golden, const unsigned int *data);

/* Checks a response beat. */
int golden_check_response(void *golden, const unsigned int *data, int is_last, int status,
                          int is_found);

/* Next leaf for the entropy port. There always is one; a controller may take them ahead of use. */
int golden_next_entropy(void *golden, unsigned long long *leaf);

/* State after a command (counted from 0) and its evictions: blocks in the stash, oldest first, and
 * for RAW ORAM G and the accesses since the last EO access that was due. A call for a command ends
 * the keeping of earlier ones. */
int golden_stash_blocks(void *golden, unsigned long long command, int *blocks);
int golden_check_stash(void *golden, unsigned long long command, int index,
                       unsigned long long address, unsigned long long leaf);
int golden_evictions(void *golden, unsigned long long command, unsigned long long *evictions,
                     int *accesses_since);

/* Background evictions so far, of all commands that were drawn. */
int golden_background_evictions(void *golden, unsigned long long *count);

/* 0 if the controller has done everything. */
int golden_check_all_done(void *golden);

/* Hands over the controller's memory beat by beat, zeros left out; then compares it with the
 * model's, has a fresh engine read every block from it, and forgets it. */
int golden_image_put(void *golden, unsigned long long address, const unsigned int *data);
int golden_check_image(void *golden);

/* Copies the model's memory: begin takes a snapshot and returns the number of its beats. */
int golden_image_begin(void *golden, unsigned long long *beats);
int golden_image_beat(void *golden, unsigned long long beat, unsigned long long *address,
                      unsigned int *data);

#ifdef __cplusplus
}
#endif

#endif
