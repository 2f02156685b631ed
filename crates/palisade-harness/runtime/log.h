/* The format of the log. src/log.rs has the same definitions in Rust, with explanations. A record is two
 * 64-bit numbers. */

#ifndef PALISADE_LOG_H
#define PALISADE_LOG_H

#include <stdint.h>

enum kind {
    K_LOAD,
    K_STORE,
    K_LOCKED,
    K_LOCKED_LOAD,
    K_FENCE,
    K_STORE_FENCE,
    K_START,
    K_JOIN,
    K_FREE,
    K_PAUSE,
    K_ENDED,
    K_NOTE,
    K_STUCK,
    K_EXIT,
    K_TEXT,
    K_END,
    K_UPDATE,
    K_MISUSE,
    K_SITE,
    K_CHOICE,
    K_VALUE
};

enum order { O_PLAIN, O_VOLATILE, O_RELAXED, O_ACQUIRE, O_RELEASE, O_ACQ_REL, O_SEQ_CST };

/* Flags of a record. */
#define F_CHOSEN (1ull << 60)
#define F_PENDING (2ull << 60)
#define F_WAITS (4ull << 60)
#define F_MAY_WAIT (8ull << 60)
/* Without F_PENDING: a store that waits in its buffer. */
#define F_BUFFERED F_WAITS

#define ADDRESS_BITS ((1ull << 48) - 1)
#define HEAD(kind, order, size) ((uint64_t)(size) << 48 | (uint64_t)(kind) << 56 | (uint64_t)(order) << 61)
#define KIND_OF(first) ((enum kind)((first) >> 56 & 31))

/* What a note is about: something that cannot be followed. */
enum note {
    N_FORK = 1,
    N_HANDLER = 2,
    N_DIVERGED = 3,
    N_ASSEMBLY = 4,
    N_TIME = 5,
    N_ACCESS = 6,
    N_CALL = 7,
    N_LOADED = 8,
    N_CODE = 9,
    N_MAPPING = 10,
    N_MEMORY_FILE = 11,
    N_AFTER_EXIT = 12,
    N_VALUE = 13,
    N_SHARED_STACK = 16
};
/* What else there is to say, above the number of the note. */
#define NOTE_BITS 8

/* The state of a thread in a K_STUCK record, stored in its size field. */
enum stuck { STUCK_DEADLOCK, STUCK_RUNNING, STUCK_DETACHED, STUCK_NOT_JOINED, STUCK_SPINS };

/* What a text is about. */
enum text { T_HELLO = 1, T_END = 2, T_MESSAGE = 3, T_PRINTED = 4 };

/* Why an execution was aborted. */
enum reason { R_NONE, R_DEADLOCK, R_STEPS, R_STALLED, R_UNSUPPORTED, R_TIME, R_INTERNAL, R_TURNS, R_SPUN, R_STOPPED, R_LIVELOCK, R_MISUSE, R_ASSUMED };

/* What is wrong with an access, in the size field of a K_MISUSE record, and what more is known. src/misuse.rs has
 * the same numbers. */
enum misuse {
    M_AFTER_FREE = 1,
    M_DOUBLE_FREE = 2,
    M_INVALID_FREE = 3,
    M_OVERFLOW = 4,
    M_AFTER_RETURN = 5,
    M_AFTER_END = 6,
    /* Locks. */
    M_NOT_HELD = 7,
    M_DESTROYED = 8,
    M_IN_USE = 9,
    M_FRESH = 10, /* a read of memory that was never written; it is in the log */
    /* The size of the access; whether it writes; whether it is a store that reaches memory only now; whether a step of
     * its own was chosen for it, which is not in the log. */
    M_ACCESS = 16,
    M_SIZE = 17,   /* of the block */
    M_START = 18,
    M_MADE = 19, /* where the block was allocated and freed, and by which threads */
    M_FREED = 20, /* or the lock was destroyed */
    M_OWNER = 21 /* of the stack, and whether it has ended; or which thread holds the lock */
};

#endif
