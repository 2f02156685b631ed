/* Frames that are left, as steps.
 *
 * A thread may hand out the address of a local variable and leave the function while others still use it. Whether
 * that happens depends on the order of two things: the access, and leaving the frame. So leaving it is a step that
 * conflicts with accesses to the frame, like `free`.
 *
 * Most functions are left without a step. A step is taken only if the function has taken an address in its frame, if
 * there are other threads, and if another thread touches the frame: in a search, in any execution so far (spin.c), and
 * otherwise in this one.
 *
 * The frame is left by two steps. Between them, its memory is known to belong to no function, and an access of another
 * thread is an error (misuse.c). After the second one, the owner may enter other functions whose frames are there. A
 * search tries the accesses of others before, between and after the two.
 *
 * Until the next such function begins, everything below the frame that was left belongs to no function that has handed
 * out an address, whatever frames the owner has there (`live_from`).
 *
 * src/audit.rs puts calls where a function that takes an address in its frame begins, and where it is about to return
 * and still has its whole frame. `frames` has the upper ends of such frames, each with a number for its function. Frames
 * that are left in other ways, by an exception, `longjmp` or a call in the place of a return, are below those that are
 * in use. They are dropped when the next function begins or ends. */

#include "palisade.h"

/* Vector registers are not saved on the way from the start of a function (audit.c). */
#define GENERAL __attribute__((target("general-regs-only")))

/* A function that calls no others may use RED_ZONE bytes below its stack pointer, and then has little else in its frame
 * but saved registers. */
enum { FUNCTION_SHIFT = 48, RED_ZONE = 128, MAX_SAVED = 64 };

/* The last frame, without those that are at or below an address; 0 if there is none or if it is not known any more. */
GENERAL static uint64_t last_above(struct thread *self, uint64_t address)
{
    while (self->frame_count > self->frames_lost) {
        uint64_t last = self->frames[(self->frame_count - 1) % MAX_FRAMES];
        if ((last & ADDRESS_BITS) > address) {
            return last;
        }
        self->frame_count--;
    }
    return 0;
}

/* A function begins that takes an address in its frame. */
GENERAL void pal_enter_frame(struct thread *self, uint64_t top, uint64_t function)
{
    self->live_from = 0;
    if (!function || top >= (uint64_t)self->stack_end || top < (uint64_t)self->stack_low) {
        return;
    }
    last_above(self, top);
    self->frames[self->frame_count++ % MAX_FRAMES] = (top & ADDRESS_BITS) | function << FUNCTION_SHIFT;
    if (self->frame_count - self->frames_lost > MAX_FRAMES) {
        self->frames_lost = self->frame_count - MAX_FRAMES;
    }
}

static void step(uint64_t from, uint64_t size, uint64_t place)
{
    uint64_t first = (from & ADDRESS_BITS) | HEAD(K_FREE, O_PLAIN, LEAVES), second = pal_at(place) | F_CHOSEN;
    pal_add_range(from, size, K_FREE);
    pal_decide(first, second);
    pal_log(first, second);
}

/* A function is about to return. Its frame is from `low` to the last upper end. Returns whether that is a step. */
GENERAL int pal_leaves_frame(struct thread *self, uint64_t low, uint64_t function)
{
    uint64_t last = self->frame_count ? last_above(self, low - 1) : 0;
    if (last >> FUNCTION_SHIFT != function) {
        return 0;
    }
    self->frame_count--;
    self->leaves = self->live_from = last & ADDRESS_BITS;
    int may_be_shared = pal.command.flags & EXPLORE ? pal.shared->shared_count != 0 : self->is_touched;
    return may_be_shared && !pal_is_alone();
}

void pal_leave_frame(struct thread *self, uint64_t low, uint64_t place)
{
    uint64_t top = self->leaves, from, to;
    low -= top - low < MAX_SAVED ? RED_ZONE : 0;
    int is_shared = pal.command.flags & EXPLORE ? pal_shared_part(low, top, &from, &to) : pal_touched_part(self, low, top, &from, &to);
    if (!is_shared) {
        return;
    }
    /* The frame is in use until this step. */
    self->live_from = 0;
    step(from, to - from, place);
    self->left_low = low;
    self->left_high = top;
    step(from, to - from, place);
    self->left_high = 0;
    self->live_from = top;
}
