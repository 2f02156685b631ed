//! Files that are not object files for x86-64.

use palisade_x86::{Contents, File};

#[track_caller]
fn check(bytes: &[u8], expected: &str) {
    let refused = palisade_x86::lift(&[File { name: "wrong.o", contents: Contents::Object(bytes) }]);
    match refused {
        Ok(_) => panic!("accepted, but {expected}"),
        Err((_, errors)) => assert!(errors[0].message.contains(expected), "{errors:?}"),
    }
}

#[test]
fn files_that_are_not_object_files() {
    check(b"", "not an ELF object file");
    check(b"int main(void) { return 0; }", "not an ELF object file");
    check(b"!<arch>\n", "an archive");
    check(b"BC\xc0\xde", "bitcode");
    check(b"\x7fELF", "not for x86-64");
    check(&[0xcf, 0xfa, 0xed, 0xfe, 0], "macOS");
    check(&std::fs::read("/proc/self/exe").expect("this program can be read"), "linked program");
}
