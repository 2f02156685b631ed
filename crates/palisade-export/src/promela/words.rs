//! Words that cannot be names in Promela, and macros for arithmetic that does not wrap around.

use crate::uses::Guard;

/// Keywords of Promela.
pub(super) const PROMELA: &str = "\
    active assert atomic bit bool break byte chan d_step D_proctype do else empty enabled eval false fi for full \
    get_priority goto hidden if in init inline int len local ltl mtype nempty never nfull notrace np_ nr_pr od of \
    pc_value pid printf printm priority proctype provided return run select set_priority short show skip STDIN \
    timeout trace true typedef unless unsigned xr xs c_code c_decl c_expr c_state c_track";

/// Names that Spin's verifiers use for macros or that this exporter uses itself.
pub(super) const SPIN: &str = "\
    rand uchar uint ulong ushort wasnew q_sz pptr qptr getframe grab_state Addproc Index Max Offsetof PanSource \
    Pclaim Pinit SpinVersion StackSize UnBlock G_int G_long holder monitor instance memory old_value old_values \
    can_add can_sub can_mul can_div can_shl wrap size_of";

/// The macro for values that wrap around.
pub(super) const WRAP: &str = "\
#define size_of(lo, hi) ((hi) - (lo) + 1)
#define wrap(x, lo, hi) ((((x) % size_of(lo, hi) - (lo) % size_of(lo, hi)) % size_of(lo, hi) + size_of(lo, hi)) % size_of(lo, hi) + (lo))";

/// The macros for guards.
pub(super) const GUARDS: &[(Guard, &str)] = &[
    (Guard::Add, "#define can_add(a, b) ((b) >= 0 -> (a) <= MAX - (b) : (a) >= MIN - (b))"),
    (Guard::Sub, "#define can_sub(a, b) ((b) >= 0 -> (a) >= MIN + (b) : (a) <= MAX + (b))"),
    (
        Guard::Mul,
        "#define can_mul(a, b) ((b) == 0 || ((b) > 0 -> (a) <= MAX / (b) && (a) >= MIN / (b) : \
         ((b) == -1 -> (a) > MIN : (a) >= MAX / (b) && (a) <= MIN / (b))))",
    ),
    (Guard::Div, "#define can_div(a, b) ((a) > MIN || (b) != -1)"),
    (
        Guard::Shl,
        "#define can_shl(a, b) ((b) >= 0 && (b) < 31 && (a) <= (MAX >> (b)) && (a) >= (MIN >> (b)))",
    ),
];
