/* Accesses for which the compiler makes no call.
 *
 * src/audit.rs puts a call of `palisade_audit` before every instruction that accesses memory. If the
 * compiler has announced the access, nothing more happens: the announcement was the event, and no other
 * thread has run since. Otherwise the access is
 *   - ignored if its thread is alone, if it reads memory that cannot be written, or if it is on the
 *     thread's own stack;
 *   - an event in all other cases.
 *
 * On stacks, compilers announce the accesses that other threads may see and leave out most others. If
 * another thread does touch memory that its owner has accessed without an event, that is reported. Every
 * byte of a stack has two marks for this: its owner has accessed it without an event; another thread has
 * touched it. A byte with both marks is reported. Marks end with their frames: a function that takes
 * addresses in its frame removes the marks below it when it begins. */

#include "palisade.h"
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* The same numbers as in src/audit.rs. */
enum { A_SIZE = 0xff, A_READ = 0x100, A_WRITE = 0x200, A_LOCKED = 0x400, A_UNCLEAR = 0x800, A_MOVE = 0x1000, A_FRAME = 0x2000, A_THREAD_LOCAL = 0x4000, A_LEAVE = 0x8000 };

enum verdict { V_FINE, V_EVENT, V_REPORT, V_MARKS };

/* Where the marks are. */
#define MARKS 0x100000000000ull
#define MARK_OF(address) ((unsigned char *)((address) - STACKS + MARKS))
enum { BY_OWNER = 1, BY_OTHERS = 2 };

/* Vector registers are not saved on the way here. */
#define GENERAL __attribute__((target("general-regs-only")))

/* What can only be read. */
enum { MAX_RANGES = 512 };
static struct {
    uint64_t low, high;
} constant[MAX_RANGES];
static int constants;

static int add_constants(struct dl_phdr_info *module, size_t size, void *nothing)
{
    for (int i = 0; i < module->dlpi_phnum && constants < MAX_RANGES; i++) {
        const ElfW(Phdr) *part = &module->dlpi_phdr[i];
        if ((part->p_type == PT_LOAD && !(part->p_flags & PF_W)) || part->p_type == PT_GNU_RELRO) {
            constant[constants].low = module->dlpi_addr + part->p_vaddr;
            constant[constants].high = constant[constants].low + part->p_memsz;
            constants++;
        }
    }
    return 0;
}

__attribute__((constructor(101))) static void find_constants(void)
{
    dl_iterate_phdr(add_constants, NULL);
}

GENERAL static int is_constant(uint64_t address, uint64_t size)
{
    for (int i = 0; i < constants; i++) {
        if (address >= constant[i].low && address + size <= constant[i].high) {
            return 1;
        }
    }
    return 0;
}

GENERAL static int is_announced(struct thread *self, uint64_t address, uint64_t size, enum kind kind)
{
    unsigned count = self->announced_count < MAX_ANNOUNCED ? self->announced_count : MAX_ANNOUNCED;
    for (unsigned i = 0; i < count; i++) {
        struct announced *announced = &self->announced[i];
        uint64_t at = address - announced->address;
        if (announced->kind != kind || at >= announced->size || size > announced->size - at) {
            continue;
        }
        if (announced->size <= 64) {
            uint64_t bytes = (size < 64 ? (1ull << size) - 1 : ~0ull) << at;
            if (!(announced->left & bytes)) {
                continue;
            }
            announced->left &= ~bytes;
        }
        self->announced_used = 1;
        return 1;
    }
    return 0;
}

/* The owner of a stack accesses it without an event. */
GENERAL static int mark_own(struct thread *self, uint64_t address, uint64_t size)
{
    int result = V_FINE;
    if (!self->has_marks) {
        return V_MARKS;
    }
    if (address < self->lowest_mark) {
        self->lowest_mark = address;
    }
    for (uint64_t i = 0; i < size; i++) {
        volatile unsigned char *mark = MARK_OF(address + i);
        if (*mark & BY_OTHERS) {
            result = V_REPORT;
        }
        *mark |= BY_OWNER;
    }
    return result;
}

GENERAL static int judge(struct thread *self, uint64_t address, uint64_t size, enum kind kind, uint64_t code)
{
    if (is_announced(self, address, size, kind)) {
        return V_FINE;
    }
    if (address - STACKS < STACK_RANGE * MAX_THREADS && address >= (uint64_t)self->stack_low && address + size <= (uint64_t)self->stack_end) {
        return mark_own(self, address, size);
    }
    if (kind == K_LOAD && is_constant(address, size)) {
        return V_FINE;
    }
    return code & A_UNCLEAR ? V_REPORT : V_EVENT;
}

/* A function begins: memory below its frame belongs to no frame. */
GENERAL static void begin_frame(struct thread *self, uint64_t address)
{
    if (self->has_marks && address <= (uint64_t)self->stack_end && address >= (uint64_t)self->stack_low) {
        for (uint64_t at = self->lowest_mark; at < address; at++) {
            *(volatile unsigned char *)MARK_OF(at) = 0;
        }
        if (self->lowest_mark < address) {
            self->lowest_mark = address;
        }
    }
}

GENERAL static uint64_t thread_pointer(void)
{
    uint64_t result;
    __asm__("movq %%fs:0, %0" : "=r"(result));
    return result;
}

/* Whether there is more to do than can be done without saving all registers. */
GENERAL __attribute__((used)) int pal_audit(uint64_t address, uint64_t code, uint64_t count, uint64_t place, uint64_t source)
{
    if (pal.quiet) {
        return 0;
    }
    struct thread *self = pal.self;
    if (code & A_LEAVE) {
        return pal_leaves_frame(self, address, count);
    }
    if (code & A_FRAME) {
        pal_enter_frame(self, address, count);
    }
    if (pal_is_alone()) {
        return 0;
    }
    if (code & A_FRAME) {
        begin_frame(self, address);
        return 0;
    }
    uint64_t size = (code & A_SIZE) * count;
    if (!size) {
        return 0;
    }
    if (code & A_THREAD_LOCAL) {
        address += thread_pointer();
    }
    self->audit_load = code & A_READ ? judge(self, code & A_MOVE ? source : address, size, K_LOAD, code) : V_FINE;
    self->audit_store = code & A_WRITE ? judge(self, address, size, K_STORE, code) : V_FINE;
    return self->audit_load || self->audit_store;
}

/* Called before an access, with its address in %rdi: see src/audit.rs. Only caller-saved registers have to be
 * saved here. */
__asm__(".text\n"
        ".globl palisade_audit\n"
        ".type palisade_audit, @function\n"
        "palisade_audit:\n"
        "    pushq %rax\n"
        "    lahf\n"
        "    seto %al\n"
        "    pushq %rax\n    pushq %rcx\n    pushq %rdx\n    pushq %rsi\n    pushq %rdi\n"
        "    pushq %r8\n    pushq %r9\n    pushq %r10\n    pushq %r11\n"
        "    movq %rsi, %r8\n"
        "    movq 88(%rsp), %rsi\n"
        "    movq 96(%rsp), %rdx\n"
        "    movq 80(%rsp), %rcx\n"
        "    call pal_audit\n"
        "    testl %eax, %eax\n"
        "    popq %r11\n    popq %r10\n    popq %r9\n    popq %r8\n"
        "    popq %rdi\n    popq %rsi\n    popq %rdx\n    popq %rcx\n"
        "    popq %rax\n"
        "    jne 1f\n"
        "    addb $127, %al\n"
        "    sahf\n"
        "    popq %rax\n"
        "    ret\n"
        "1:  addb $127, %al\n"
        "    sahf\n"
        "    popq %rax\n"
        "    jmp pal_audit_followed\n"
        ".size palisade_audit, .-palisade_audit\n");

/* The marks of a stack. */
static uint64_t stack_pages(const struct thread *thread, uint64_t *size)
{
    uint64_t low = (uint64_t)thread->stack_low & ~4095ull, high = ((uint64_t)thread->stack_end + 4095) & ~4095ull;
    *size = high - low;
    return low;
}

static void make_marks(struct thread *thread)
{
    uint64_t size, low = stack_pages(thread, &size);
    if (!thread->has_marks) {
        if (pal_map((uint64_t)MARK_OF(low), size, MAP_PRIVATE | MAP_NORESERVE)) {
            pal_stop(R_INTERNAL, "there is no memory for the marks of a stack");
        }
        thread->has_marks = 1;
        /* Written before it is read, so that the page is mapped once. */
        *(volatile unsigned char *)MARK_OF((uint64_t)thread->stack_end - 1) = 0;
        thread->lowest_mark = (uint64_t)thread->stack_end;
    }
}

void pal_drop_marks(struct thread *thread)
{
    if (thread->has_marks) {
        uint64_t size, low = stack_pages(thread, &size);
        pal_syscall(SYS_munmap, (long)MARK_OF(low), (long)size, 0, 0, 0, 0);
        thread->has_marks = 0;
    }
}

/* Pieces that monitors know; one step. */
enum { WORD = 8, LINE = 64, SHORT = 256 };

static void log_part(uint64_t address, uint64_t size, enum kind kind, enum order order, uint64_t second, int *is_first)
{
    size_t unit = size <= SHORT ? WORD : LINE;
    for (uint64_t at = 0; at < size;) {
        uint64_t bytes = unit - (address + at) % unit;
        bytes = bytes < size - at ? bytes : size - at;
        uint64_t first = ((address + at) & ADDRESS_BITS) | HEAD(kind, order, bytes);
        if (unlikely(address + at - STACKS < STACK_RANGE * MAX_THREADS)) {
            pal_touches_stack(first, second);
        }
        pal_happens(first, second | (*is_first ? F_CHOSEN : 0));
        *is_first = 0;
        at += bytes;
    }
}

/* One step that reads one range and then writes another. */
static void copy_step(uint64_t to, enum order to_order, uint64_t from, enum order from_order, uint64_t size, uint64_t second)
{
    uint64_t bytes = size <= SHORT ? WORD - to % WORD : LINE - to % LINE;
    pal_add_range(from, size, K_LOAD);
    pal_add_range(to, size, K_STORE);
    pal_decide((to & ADDRESS_BITS) | HEAD(K_STORE, to_order, bytes < size ? bytes : size), second | F_CHOSEN);
    int is_first = 1;
    log_part(from, size, K_LOAD, from_order, second, &is_first);
    log_part(to, size, K_STORE, to_order, second, &is_first);
}

/* gcc announces that a struct is copied by a call for the store and then one for the load. The store has to wait for
 * the load: these calls are replaced (src/audit.rs). gcc makes both calls for `x = x`, but does not write. */
static void hold(void *address, uint64_t size, enum order order)
{
    pal.self->held = (uint64_t)address;
    pal.self->held_order = order;
    pal_announce((uint64_t)address, size, K_STORE);
}

static void copy(void *address, uint64_t size, enum order order, uint64_t place)
{
    struct thread *self = pal.self;
    uint64_t from = (uint64_t)address, to = self->held;
    if (size && !pal_is_quiet(place)) {
        uint64_t second = pal_at(place);
        if (to != from) {
            copy_step(to, self->held_order, from, order, size, second);
        } else {
            uint64_t bytes = size <= SHORT ? WORD - from % WORD : LINE - from % LINE;
            int is_first = 1;
            pal_add_range(from, size, K_LOAD);
            pal_decide((from & ADDRESS_BITS) | HEAD(K_LOAD, order, bytes < size ? bytes : size), second | F_CHOSEN);
            log_part(from, size, K_LOAD, order, second, &is_first);
        }
    }
    pal_announce(from, size, K_LOAD);
}

#define COPIES(kind, order, size)                                                                  \
    EXPORT void palisade_hold_##kind##write##size(void *address)                                   \
    {                                                                                              \
        hold(address, size, order);                                                                \
    }                                                                                              \
    EXPORT void palisade_copy_##kind##read##size(void *address)                                    \
    {                                                                                              \
        copy(address, size, order, CALLER);                                                        \
    }
#define ALL_COPIES(kind, order)                                                                    \
    COPIES(kind, order, 1)                                                                         \
    COPIES(kind, order, 2)                                                                         \
    COPIES(kind, order, 4)                                                                         \
    COPIES(kind, order, 8)                                                                         \
    COPIES(kind, order, 16)
ALL_COPIES(, O_PLAIN)
ALL_COPIES(volatile_, O_VOLATILE)

EXPORT void palisade_hold_write_range(void *address, unsigned long size)
{
    hold(address, size, O_PLAIN);
}

EXPORT void palisade_copy_read_range(void *address, unsigned long size)
{
    copy(address, size, O_PLAIN, CALLER);
}

/* Follows an access that was not announced. */
__attribute__((used)) void pal_audit_follow(uint64_t address, uint64_t code, uint64_t nothing, uint64_t place, uint64_t source, uint64_t count)
{
    (void)nothing;
    struct thread *self = pal.self;
    uint64_t size = (code & A_SIZE) * count;
    if (code & A_LEAVE) {
        pal_leave_frame(self, address, place);
        return;
    }
    if (code & A_THREAD_LOCAL) {
        address += thread_pointer();
    }
    source = code & A_MOVE ? source : address;
    enum verdict load = self->audit_load, store = self->audit_store;
    if (load == V_MARKS || store == V_MARKS) {
        make_marks(self);
        load = load == V_MARKS ? (enum verdict)mark_own(self, source, size) : load;
        store = store == V_MARKS ? (enum verdict)mark_own(self, address, size) : store;
    }
    if (load == V_REPORT || store == V_REPORT) {
        pal_note(N_ACCESS, place);
    }
    if (load != V_EVENT && store != V_EVENT) {
        return;
    }
    enum kind kind = code & A_LOCKED ? K_LOCKED : store == V_EVENT ? K_STORE : K_LOAD;
    enum order order = kind == K_LOCKED ? O_SEQ_CST : O_PLAIN;
    uint64_t at = store == V_EVENT ? address : source, second = pal_at(place);
    if (kind == K_STORE && load == V_EVENT) {
        copy_step(address, O_PLAIN, source, O_PLAIN, size, second);
        return;
    }
    uint64_t bytes = size <= SHORT ? WORD - at % WORD : LINE - at % LINE;
    if (bytes < size) {
        pal_add_range(at, size, kind);
    }
    pal_decide((at & ADDRESS_BITS) | HEAD(kind, order, bytes < size ? bytes : size), second | F_CHOSEN);
    int is_first = 1;
    log_part(at, size, kind, order, second, &is_first);
}

/* A function of the C library accesses memory for the program. */
void pal_accesses(const void *at, size_t size, int writes, uint64_t place)
{
    uint64_t code = (writes ? A_WRITE : A_READ) | 1;
    if (pal_audit((uint64_t)at, code, size, place, 0)) {
        pal_audit_follow((uint64_t)at, code, 0, place, 0, size);
    }
}

/* The part of a stack, within a frame, that other threads have touched. Returns 0 if there is none. */
int pal_touched_part(const struct thread *owner, uint64_t low, uint64_t high, uint64_t *from, uint64_t *to)
{
    if (!owner->is_touched) {
        return 0;
    }
    *from = *to = 0;
    for (uint64_t at = low > owner->lowest_mark ? low : owner->lowest_mark; at < high; at++) {
        if (*(volatile unsigned char *)MARK_OF(at) & BY_OTHERS) {
            *from = *from ? *from : at;
            *to = at + 1;
        }
    }
    return *to != 0;
}

/* A thread is about to touch a stack, by an event. */
void pal_touches_stack(uint64_t first, uint64_t second)
{
    struct thread *self = pal.self;
    uint64_t address = first & ADDRESS_BITS, size = first >> 48 & 0xff;
    if (KIND_OF(first) > K_LOCKED_LOAD || pal_is_on_stack(self, address) || pal_is_alone()) {
        return;
    }
    for (int i = 0; i < pal.thread_count; i++) {
        struct thread *owner = pal.threads[i];
        if (!pal_is_on_stack(owner, address) || owner->finished) {
            continue;
        }
        make_marks(owner);
        owner->is_touched = 1;
        if (address < owner->lowest_mark) {
            owner->lowest_mark = address;
        }
        for (uint64_t at = address; at < address + size && at < (uint64_t)owner->stack_end; at++) {
            unsigned char *mark = MARK_OF(at);
            if (*mark & BY_OWNER && !(*mark & BY_OTHERS)) {
                pal_note(N_ACCESS, second & ADDRESS_BITS);
            }
            *mark |= BY_OTHERS;
        }
        return;
    }
}
