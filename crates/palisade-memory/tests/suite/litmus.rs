//! The exact sets of outcomes of the classical litmus tests.
//!
//! The sets were worked out by hand from the definitions of the models: SC by interleaving, TSO and PSO by
//! adding the outcomes that delayed stores allow.

use crate::common::check;

#[test]
fn store_buffering() {
    let all = "00 01 10 11";
    let sb = |between: &str| {
        format!(
            "shared x, y: 0..1; process P {{ x = 1; {between} let r = y; }} process Q {{ y = 1; {between} let r = x; }}"
        )
    };
    check(&sb(""), "P.r Q.r", "01 10 11", all, all);
    check(&sb("sfence;"), "P.r Q.r", "01 10 11", all, all);
    check(&sb("fence;"), "P.r Q.r", "01 10 11", "01 10 11", "01 10 11");
    let one_side =
        "shared x, y: 0..1; process P { x = 1; fence; let r = y; } process Q { y = 1; let r = x; }";
    check(one_side, "P.r Q.r", "01 10 11", all, all);
    let locked =
        "shared x, y: 0..1; process P { xchg(x, 1); let r = y; } process Q { xchg(y, 1); let r = x; }";
    check(locked, "P.r Q.r", "01 10 11", "01 10 11", "01 10 11");
    let failed_cas = "shared x, y, z: 0..1; process P { x = 1; cas(z, 1, 0); let r = y; } process Q { y = 1; cas(z, 1, 0); let r = x; }";
    check(failed_cas, "P.r Q.r", "01 10 11", "01 10 11", "01 10 11");
}

#[test]
fn message_passing() {
    let mp = |between: &str| {
        format!(
            "shared x, y: 0..1; process P {{ x = 1; {between} y = 1; }} process Q {{ let r = y; let s = x; }}"
        )
    };
    check(&mp(""), "Q.r Q.s", "00 01 11", "00 01 11", "00 01 10 11");
    check(&mp("sfence;"), "Q.r Q.s", "00 01 11", "00 01 11", "00 01 11");
    check(&mp("fence;"), "Q.r Q.s", "00 01 11", "00 01 11", "00 01 11");
}

#[test]
fn load_buffering() {
    let lb = "shared x, y: 0..1; process P { let r = x; y = 1; } process Q { let r = y; x = 1; }";
    check(lb, "P.r Q.r", "00 01 10", "00 01 10", "00 01 10");
}

#[test]
fn s_and_r_and_2_2w() {
    let s = "shared x, y: 0..2; process P { x = 2; y = 1; } process Q { let r = y; x = 1; }";
    check(s, "Q.r x", "01 02 11", "01 02 11", "01 02 11 12");
    let r = "shared x, y: 0..2; process P { x = 1; y = 1; } process Q { y = 2; let r = x; }";
    check(r, "Q.r y", "01 11 12", "01 02 11 12", "01 02 11 12");
    let w = "shared x, y: 0..2; process P { x = 1; y = 2; } process Q { y = 1; x = 2; }";
    check(w, "x y", "12 21 22", "12 21 22", "11 12 21 22");
}

#[test]
fn three_processes() {
    let wrc = "shared x, y: 0..1; process P { x = 1; } process Q { let r = x; y = 1; } process R { let r = y; let s = x; }";
    let but_110 = "000 001 010 011 100 101 111";
    check(wrc, "Q.r R.r R.s", but_110, but_110, but_110);
    let isa2 = "shared x, y, z: 0..1; process P { x = 1; y = 1; } process Q { let r = y; z = 1; } process R { let r = z; let s = x; }";
    check(isa2, "Q.r R.r R.s", but_110, but_110, "000 001 010 011 100 101 110 111");
    let rwc = "shared x, y: 0..1; process P { x = 1; } process Q { let r = x; let s = y; } process R { y = 1; let r = x; }";
    let all = "000 001 010 011 100 101 110 111";
    check(rwc, "Q.r Q.s R.r", "000 001 010 011 101 110 111", all, all);
}

#[test]
fn independent_reads_of_independent_writes() {
    let iriw = "shared x, y: 0..1; process P { x = 1; } process Q { y = 1; }
        process R { let r = x; let s = y; } process S { let r = y; let s = x; }";
    let all_but_1010 = "0000 0001 0010 0011 0100 0101 0110 0111 1000 1001 1011 1100 1101 1110 1111";
    check(iriw, "R.r R.s S.r S.s", all_but_1010, all_but_1010, all_but_1010);
}

#[test]
fn own_stores_are_seen_at_once() {
    let n6 = "shared x, y: 0..2; process P { x = 1; let r = x; let s = y; } process Q { y = 2; x = 2; }";
    check(n6, "P.r P.s x", "102 121 122 222", "101 102 121 122 222", "101 102 121 122 202 222");
    let newest = "shared x, y: 0..2; process P { x = 1; y = 1; x = 2; let r = x; let s = y; }";
    check(newest, "P.r P.s x y", "2121", "2121", "2121");
}

#[test]
fn each_variable_on_its_own_is_coherent() {
    let corr = "shared x: 0..2; process P { x = 1; x = 2; } process Q { let r = x; let s = x; }";
    check(corr, "Q.r Q.s", "00 01 02 11 12 22", "00 01 02 11 12 22", "00 01 02 11 12 22");
    let coww = "shared x: 0..2; process P { x = 1; x = 2; }";
    check(coww, "x", "2", "2", "2");
    let corw = "shared x: 0..2; process P { let r = x; x = 1; } process Q { x = 2; }";
    check(corw, "P.r x", "01 02 21", "01 02 21", "01 02 21");
}

#[test]
fn a_store_store_fence_orders_only_the_stores_around_it() {
    let around = "shared x, y, z: 0..1; process P { x = 1; sfence; y = 1; z = 1; } process Q { let r = z; let s = y; let t = x; }";
    // z can overtake y but not x.
    check(around, "Q.r Q.s Q.t", "000 001 011 111", "000 001 011 111", "000 001 011 101 111");
    let twice = "shared x, y, z: 0..1; process P { x = 1; sfence; sfence; y = 1; sfence; z = 1; }
        process Q { let r = z; let s = y; let t = x; }";
    check(twice, "Q.r Q.s Q.t", "000 001 011 111", "000 001 011 111", "000 001 011 111");
}

#[test]
fn any_initial_value() {
    check("shared x: 0..2 = *; process P { let r = x; x = 1; }", "P.r x", "01 11 21", "01 11 21", "01 11 21");
}
