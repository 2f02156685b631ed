//! Objects that are only bytes in LLVM IR, as those of Rust: their scalars follow from how they are accessed.

use crate::common::{threads, translated};

/// The statements of the thread `f`, next to a thread `g`. Names of Rust make the objects bytes.
fn statements(globals: &str, f: &str, g: &str) -> String {
    let text = format!(
        "target datalayout = \"e-m:e-i64:64-f80:128-n8:16:32:64-S128\"\n{globals}\n\
         declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n\
         declare void @_RNvNtC4core9panicking5panic()\n\
         define void @_RNvC1a1f() {{\n{f}\n  ret void\n}}\ndefine void @_RNvC1a1g() {{\n{g}\n  ret void\n}}\n"
    );
    let translation = translated(&text, &threads(&["_RNvC1a1f", "_RNvC1a1g"]));
    let printed = palisade_program::print::print(&translation.program);
    let start = printed.find("process f {\n").expect("the thread is there") + "process f {\n".len();
    let end = printed[start..].find("\n}\n").expect("the thread ends") + start;
    let lines = printed[start..end].lines().map(|line| line.strip_prefix("    ").unwrap_or(line));
    lines.filter(|line| !line.starts_with("let ")).collect::<Vec<_>>().join("\n")
}

const PAIR: &str = "@p = global <{ [8 x i8] }> <{ [8 x i8] c\"\\01\\00\\00\\00\\02\\00\\00\\00\" }>";

/// Two halves that one thread accesses; the other one accesses both at once, by plain accesses.
#[test]
fn accesses_to_several_scalars_are_one_to_each() {
    let halves = "  store atomic i32 5, ptr @p monotonic, align 4\n  %q = getelementptr i8, ptr @p, i64 4\n  \
                  %v = load atomic i32, ptr %q monotonic, align 4";
    let f = "  %v = load i64, ptr @p\n  %w = add i64 %v, 1\n  store i64 %w, ptr @p";
    let found = statements(PAIR, f, halves);
    assert_eq!(found.matches("`p+0`").count(), 2, "{found}");
    assert_eq!(found.matches("`p+4`").count(), 2, "{found}");
    // An atomic access is not cut: it has an address at which there is no scalar of its size.
    let f =
        "  %v = load atomic i64, ptr @p monotonic, align 8\n  store atomic i64 %v, ptr @p monotonic, align 8";
    let found = statements(PAIR, f, halves);
    assert_eq!(found.matches('*').count(), 2, "{found}");
}

/// What is copied has the scalars of its copy, also through an object that is accessed in no other way.
#[test]
fn copies_are_cut_alike() {
    let globals = format!(
        "{PAIR}\n@q = global <{{ [8 x i8] }}> zeroinitializer\n@r = global <{{ [8 x i8] }}> zeroinitializer"
    );
    let copy = |to: &str, from: &str| {
        format!("  call void @llvm.memcpy.p0.p0.i64(ptr @{to}, ptr @{from}, i64 8, i1 false)\n")
    };
    let f = copy("q", "p") + &copy("r", "q");
    let g = "  store atomic i32 5, ptr @p monotonic, align 4\n  %q = getelementptr i8, ptr @r, i64 4\n  \
             store atomic i16 7, ptr %q monotonic, align 2\n  store atomic i32 5, ptr @q monotonic, align 4";
    let found = statements(&globals, &f, g);
    for name in ["p+0", "p+4", "q+0", "q+4", "r+0", "r+4"] {
        assert!(found.contains(&format!("`{name}`")), "{name}\n{found}");
    }
    assert!(!found.contains("+6"), "nobody accesses the last bytes\n{found}");
}

/// Through a pointer that lies in memory, too.
#[test]
fn objects_behind_pointers() {
    let globals = format!("{PAIR}\n@to = global <{{ [8 x i8] }}> zeroinitializer");
    let f = "  %p = load ptr, ptr @to\n  %q = getelementptr i8, ptr %p, i64 4\n  %v = load atomic i16, ptr %q \
             monotonic, align 2\n  %c = icmp eq i16 %v, 2\n  br i1 %c, label %e, label %b\nb:\n  \
             call void @_RNvNtC4core9panicking5panic()\n  unreachable\ne:";
    let g = "  store ptr @p, ptr @to";
    let found = statements(&globals, f, g);
    assert!(found.contains("no_panic"), "{found}");
}
