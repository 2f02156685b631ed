//! Modules: variables, functions, blocks and their numbers.

use crate::common::{FORMS, OPAQUE, TYPED, body, read};
use palisade_llvm::module::{Linkage, SymbolKind};
use palisade_llvm::types::Type;

#[test]
fn both_kinds_of_pointers_say_the_same() {
    for (text, pointer) in [(TYPED, "%struct.node*"), (OPAQUE, "ptr")] {
        let module = read(text);
        assert_eq!(module.source_name.as_deref(), Some("lock.c"));
        assert_eq!(module.triple.as_deref(), Some("x86_64-pc-linux-gnu"));
        let head = module.global("head").expect("it is there");
        assert_eq!(module.types.display(head.ty).to_string(), pointer);
        let node = module.types.find_named("struct.node").expect("it is there");
        let layout = module.layouts.get(node).expect("it has a size");
        assert_eq!((layout.size, layout.align, &*layout.offsets), (32, 8, &[0, 8, 16, 20, 24][..]));
        let own = module.global("own").expect("it is there");
        assert!(own.thread_local && !own.constant && own.align == Some(4));
        let elsewhere = module.global("elsewhere").expect("it is there");
        assert_eq!((elsewhere.initializer, elsewhere.linkage), (None, Linkage::External));
        assert_eq!(module.layouts.size(elsewhere.ty), None);
        let lock = module.global("lock").expect("it is there");
        assert_eq!((lock.linkage, lock.thread_local), (Linkage::Internal, false));
        assert!(module.global(".str").expect("it is there").constant);
        assert!(matches!(module.find("twice_too"), Some(SymbolKind::Alias(_))));
        let (worker, blocks) = body(&module, "worker");
        let names: Vec<&str> = blocks.blocks.iter().map(|block| &*block.name).collect();
        assert_eq!(names, ["entry", "while.cond", "while.body", "while.end"]);
        assert!(module.has_attribute(&worker.attributes, "nounwind"));
        assert!(module.has_attribute(&worker.attributes, "frame-pointer"));
        assert!(!module.has_attribute(&worker.attributes, "noreturn"));
        let printf = module.function("printf").expect("it is there");
        assert!(printf.body.is_none());
        assert!(matches!(module.types.get(printf.ty), Type::Function { variadic: true, .. }));
    }
}

#[test]
fn rare_forms() {
    let module = read(FORMS);
    assert_eq!(module.source_name.as_deref(), Some("a \"quoted\" name.c"));
    let lines: Vec<&str> = module.assembly.iter().map(|line| &*line.text).collect();
    assert_eq!(lines, [".globl nothing", "nothing: ret"]);
    let named = module.global("a name").expect("it is there");
    assert_eq!(named.section.as_deref(), Some(".data \"x\""));
    assert_eq!(module.types.display(named.ty).to_string(), "%a type");
    let far = module.global("far").expect("it is there");
    assert_eq!(module.types.display(far.pointer).to_string(), "ptr addrspace(256)");
    let linkages = [
        ("0", Linkage::Private),
        ("é", Linkage::WeakOdr),
        ("weak", Linkage::ExternWeak),
        ("common", Linkage::Common),
        ("llvm.used", Linkage::Appending),
    ];
    for (name, linkage) in linkages {
        assert_eq!(module.global(name).map(|global| global.linkage), Some(linkage), "@{name}");
    }
    let function = module.function("a function").expect("it is there");
    assert_eq!(function.linkage, Linkage::LinkOnceOdr);
    assert!(function.personality.is_some());
    let passing = function.parameters[0].passing;
    assert_eq!(passing.by_value.map(|ty| module.types.display(ty).to_string()).as_deref(), Some("%a type"));
    assert!(passing.non_null && passing.no_undef && passing.align == Some(8));
}

/// Parameters, blocks and results without a name share the numbers.
#[test]
fn numbers_are_given_in_order() {
    let module = read(FORMS);
    let (_, numbers) = body(&module, "numbers");
    let blocks: Vec<&str> = numbers.blocks.iter().map(|block| &*block.name).collect();
    assert_eq!(blocks, ["2", "7", "11", "12", "13"]);
    let mut values: Vec<&str> = numbers.values.iter().map(|value| &*value.name).collect();
    values.sort_by_key(|name| name.parse::<u32>().expect("all are numbers"));
    assert_eq!(values, ["0", "1", "3", "4", "5", "6", "8", "9", "10"]);
}

/// Words that only annotate, of this and coming versions, are skipped.
#[test]
fn annotations_are_skipped() {
    let module = read(
        "@x = dso_local global i32 0, !future !{i32 1}\n\
         declare noundef nofuture(1, 2) i32 @f(ptr futuristic captures(address: none) initializes((0, 4)) \"a\"=\"b\", i32 range(i32 -5, 9) noext) brandnew(3) strange #0\n\
         define i32 @g(i32 signext %a) future_attribute {\n\
         %r = call fast future i32 @f(ptr future(5) nonnull @x, i32 nofuture %a) strange \"k\"=\"v\", !future !1\n\
         ret i32 %r\n}\n\
         attributes #0 = { brandnew=5 stranger(\"x\") \"y\" }\n\
         !1 = !DIFuture(when: soon, what: (1, 2), who: !\"text\", which: i32 5)\n",
    );
    assert_eq!(module.functions.len(), 2);
}

#[test]
fn types_are_printed_as_they_are_written() {
    let types = [
        "i1",
        "i32",
        "ptr",
        "ptr addrspace(3)",
        "i8*",
        "i8 addrspace(3)**",
        "[3 x { i8, <{ i16, float }> }]",
        "<4 x double>",
        "<vscale x 2 x i64>",
        "void (i32, ...)*",
        "i32 (i8*, void (...)*)*",
        "{}",
        "x86_fp80",
    ];
    for ty in types {
        let module = read(&format!("@x = external global {ty}"));
        let global = module.global("x").expect("it is there");
        assert_eq!(module.types.display(global.ty).to_string(), ty);
    }
}
