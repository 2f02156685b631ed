//! Constants: what literals and expressions mean.

use crate::common::{FORMS, read};
use palisade_llvm::Module;
use palisade_llvm::values::ConstantKind;

/// The initialiser of a variable, as text.
#[track_caller]
fn initializer(module: &Module, name: &str) -> String {
    let global = module.global(name).unwrap_or_else(|| panic!("there is no @{name}"));
    module.display_constant(global.initializer.expect("it has an initialiser")).to_string()
}

#[test]
fn all_forms_of_constants() {
    let module = read(FORMS);
    let expected = [
        ("0", "c\"\\x00\\xff\\\\\""),
        ("a name", "zeroinitializer"),
        ("\u{1}asm_name", "255"),
        ("é", "-2147483648"),
        ("packed", "<{ i8 1, ptr @0, [0 x i64] zeroinitializer }>"),
        ("wide", "-170141183460469231731687303715884105728"),
        ("widest", "-1"),
        ("bool", "true"),
        ("any", "{ i32 undef, i32 poison }"),
        ("float", "1.500000e+00"),
        ("double", "0x3FF8000000000000"),
        ("long_double", "0xK3FFF8000000000000000"),
        ("vector", "<i32 1, i32 2, i32 3, i32 4>"),
        ("splat", "splat (i32 7)"),
        ("difference", "sub (i64 ptrtoint (ptr @bool to i64), i64 ptrtoint (ptr @wide to i64))"),
        ("chosen", "getelementptr ([4 x i8], ptr @a name, i64 0, i64 2)"),
        ("labels", "[ptr blockaddress(@jumps, %one), ptr blockaddress(@jumps, %t w o)]"),
        ("llvm.used", "[ptr @common]"),
    ];
    for (name, text) in expected {
        assert_eq!(initializer(&module, name), text, "@{name}");
    }
}

#[test]
fn integers_have_the_width_of_their_type() {
    let check = |ty: &str, literal: &str, bits: u128| {
        let module = read(&format!("@x = global {ty} {literal}"));
        let constant = module.global("x").and_then(|global| global.initializer).expect("it is there");
        assert_eq!(module.constants[constant].kind, ConstantKind::Integer(bits), "{ty} {literal}");
    };
    check("i8", "-1", 0xff);
    check("i8", "255", 0xff);
    check("i1", "false", 0);
    check("i1", "-1", 1);
    check("i64", "-9223372036854775808", 1 << 63);
    check("i64", "u0xFFFFFFFFFFFFFFFF", u128::from(u64::MAX));
    check("i13", "8191", 8191);
    check("i256", "-2", u128::MAX - 1);
}

#[test]
fn expressions_of_older_versions() {
    let module = read(
        "@x = global i32 0\n@y = global i32 0\n\
         @a = global i1 icmp eq (i32* @x, i32* @y)\n\
         @b = global i32 select (i1 true, i32 1, i32 2)\n\
         @c = global i8* bitcast (i32* @x to i8*)\n\
         @d = global i32* getelementptr (i32, i32* @x, i32 1)\n\
         @e = global i32* inttoptr (i64 16 to i32*)\n\
         @f = global i64 add nuw (i64 ptrtoint (i32* @x to i64), i64 8)\n",
    );
    assert_eq!(initializer(&module, "a"), "icmp eq (i32* @x, i32* @y)");
    assert_eq!(initializer(&module, "b"), "select (i1 true, i32 1, i32 2)");
    assert_eq!(initializer(&module, "c"), "bitcast (i32* @x to i8*)");
    assert_eq!(initializer(&module, "d"), "getelementptr (i32, i32* @x, i32 1)");
    assert_eq!(initializer(&module, "e"), "inttoptr (i64 16 to i32*)");
    assert_eq!(initializer(&module, "f"), "add (i64 ptrtoint (i32* @x to i64), i64 8)");
}
