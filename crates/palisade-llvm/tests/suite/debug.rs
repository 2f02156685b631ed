//! Debug information: places and names of the source program.

use crate::common::{OPAQUE, TYPED, body, read};
use palisade_llvm::Module;
use palisade_llvm::debug::NodeId;
use palisade_llvm::module::{BlockId, RecordKind};

#[test]
fn instructions_have_places() {
    for text in [TYPED, OPAQUE] {
        let module = read(text);
        let (function, worker) = body(&module, "worker");
        assert_eq!(module.debug.function_name(function.subprogram.expect("it has one")), Some("worker"));
        let branch = worker.blocks[BlockId(0)].instructions.last().expect("it is there");
        let position = module.debug.position(branch.location.expect("it has one")).expect("it is known");
        assert_eq!((position.file, position.directory), ("lock.c", "/src"));
        assert_eq!((position.line, position.column, position.function), (11, 10, Some("worker")));
        assert_eq!(worker.blocks[BlockId(0)].instructions[0].location, None);
    }
}

#[test]
fn variables_have_names() {
    for text in [TYPED, OPAQUE] {
        let module = read(text);
        let (_, twice) = body(&module, "twice");
        let [record] = twice.records[..] else { panic!("{:?}", twice.records) };
        assert_eq!((record.kind, record.block, record.before), (RecordKind::Declare, BlockId(0), 2));
        let variable = module.debug.variable(record.variable).expect("it is known");
        assert_eq!((variable.name, variable.parameter, variable.line), ("x", Some(1), 8));
        let place = record.place.expect("it is known");
        assert_eq!(module.display(twice, place).to_string(), "%x.addr");
        assert!(record.location.is_some() && record.expression.is_some());
        let lock = module.global("lock").expect("it is there");
        let variable = module.debug.variable(lock.variables[0]).expect("it is known");
        assert_eq!((variable.name, variable.line), ("lock", 4));
        // The call is not an instruction: alloca, store, load, mul, ret.
        assert_eq!(twice.blocks[BlockId(0)].instructions.len(), 5);
    }
}

fn type_of(module: &Module, global: &str) -> NodeId {
    let variable = module.global(global).expect("it is there").variables[0];
    module.debug.variable(variable).and_then(|variable| variable.ty).expect("it has a type")
}

#[test]
fn parts_have_names() {
    let module = read(TYPED);
    let node = type_of(&module, "first");
    let cases = [
        (0, Some(4), ".value"),
        (2, Some(2), ".value+2"),
        (8, Some(8), ".next"),
        (8, None, ".next"),
        (16, Some(2), ".pair[0]"),
        (18, Some(2), ".pair[1]"),
        (16, Some(4), ".pair"),
        (20, Some(1), ".f/g"),
        (24, Some(8), ".whole"),
        (24, Some(2), ".part[0]"),
        (30, Some(2), ".part[3]"),
        (32, Some(4), "+32"),
        (0, Some(32), ""),
    ];
    for (offset, size, path) in cases {
        assert_eq!(module.debug.path(node, offset, size), path, "offset {offset}, size {size:?}");
    }
    assert_eq!(module.debug.path(type_of(&module, "lock"), 0, Some(4)), "");
}

#[test]
fn unsigned_numbers() {
    let module = read(
        "@a = global [2 x { i32, i32 }] zeroinitializer, !dbg !0\n\
         !0 = !DIGlobalVariableExpression(var: !1, expr: !DIExpression())\n\
         !1 = distinct !DIGlobalVariable(name: \"a\", type: !2)\n\
         !2 = !DICompositeType(tag: DW_TAG_array_type, baseType: !7, size: 128, elements: !4)\n\
         !4 = !{!5}\n!5 = !DISubrange(count: 2)\n\
         !7 = !DICompositeType(tag: DW_TAG_structure_type, size: 64, elements: !8)\n\
         !8 = !{!9, !10}\n\
         !9 = !DIDerivedType(tag: DW_TAG_member, name: \"l\", baseType: !11, size: 32)\n\
         !10 = !DIDerivedType(tag: DW_TAG_member, name: \"r\", baseType: !12, size: 32, offset: 32)\n\
         !11 = !DIBasicType(name: \"int\", size: 32)\n\
         !12 = !DIDerivedType(tag: DW_TAG_typedef, name: \"uint32_t\", baseType: !13)\n\
         !13 = !DIBasicType(name: \"unsigned int\", size: 32)\n",
    );
    let ty = type_of(&module, "a");
    for (offset, size, unsigned) in [(0, 4, false), (4, 4, true), (12, 4, true), (4, 2, false), (4, 8, false)]
    {
        assert_eq!(module.debug.is_unsigned(ty, offset, size), unsigned, "offset {offset}, size {size}");
    }
}

#[test]
fn arrays_and_nested_structs() {
    let module = read(
        "@a = global [2 x [3 x { i32, i32 }]] zeroinitializer, !dbg !0\n\
         !0 = !DIGlobalVariableExpression(var: !1, expr: !DIExpression())\n\
         !1 = distinct !DIGlobalVariable(name: \"a\", type: !2)\n\
         !2 = !DICompositeType(tag: DW_TAG_array_type, baseType: !3, size: 384, elements: !4)\n\
         !3 = !DIDerivedType(tag: DW_TAG_typedef, name: \"pair\", baseType: !7)\n\
         !4 = !{!5, !6}\n!5 = !DISubrange(count: 2)\n!6 = !DISubrange(count: 3)\n\
         !7 = !DICompositeType(tag: DW_TAG_structure_type, size: 64, elements: !8)\n\
         !8 = !{!9, !10}\n\
         !9 = !DIDerivedType(tag: DW_TAG_member, name: \"l\", baseType: !11, size: 32)\n\
         !10 = !DIDerivedType(tag: DW_TAG_member, name: \"r\", baseType: !11, size: 32, offset: 32)\n\
         !11 = !DIBasicType(name: \"int\", size: 32)\n",
    );
    let ty = type_of(&module, "a");
    for (offset, path) in [(0, "[0][0].l"), (4, "[0][0].r"), (24, "[1][0].l"), (44, "[1][2].r")] {
        assert_eq!(module.debug.path(ty, offset, Some(4)), path);
    }
}

#[test]
fn inlined_calls_are_listed() {
    let module = read(
        "define void @f() !dbg !2 {\n  ret void, !dbg !4\n}\n\
         !1 = !DIFile(filename: \"a.h\", directory: \"/d\")\n\
         !2 = distinct !DISubprogram(name: \"f\", file: !6)\n\
         !3 = distinct !DISubprogram(name: \"g\", file: !1)\n\
         !4 = !DILocation(line: 3, column: 5, scope: !3, inlinedAt: !5)\n\
         !5 = distinct !DILocation(line: 9, scope: !7)\n\
         !6 = !DIFile(filename: \"a.c\", directory: \"/d\")\n\
         !7 = !DILexicalBlockFile(scope: !2, discriminator: 0)\n",
    );
    let (_, f) = body(&module, "f");
    let location = f.blocks[BlockId(0)].instructions[0].location.expect("it has one");
    let positions = module.debug.positions(location);
    let shown: Vec<_> =
        positions.iter().map(|p| (p.file, p.line, p.column, p.function.unwrap_or("?"))).collect();
    assert_eq!(shown, [("a.h", 3, 5, "g"), ("a.c", 9, 0, "f")]);
}

/// Metadata that refers to itself ends all the same.
#[test]
fn loops_in_metadata_end() {
    let module = read(
        "@a = global i32 0, !dbg !1\n\
         define void @f() {\n  ret void, !dbg !4\n}\n\
         !1 = distinct !DIGlobalVariable(name: \"a\", type: !2)\n\
         !2 = !DICompositeType(tag: DW_TAG_structure_type, size: 64, elements: !3)\n\
         !3 = !{!5, !6}\n\
         !4 = distinct !DILocation(line: 3, scope: !7, inlinedAt: !4)\n\
         !5 = !DIDerivedType(tag: DW_TAG_member, name: \"x\", baseType: !2, size: 64)\n\
         !6 = !DIDerivedType(tag: DW_TAG_member, name: \"y\", baseType: !2, size: 64)\n\
         !7 = distinct !DILexicalBlock(scope: !7)\n\
         !8 = !DIDerivedType(tag: DW_TAG_typedef, baseType: !8)\n",
    );
    let path = module.debug.path(type_of(&module, "a"), 4, Some(4));
    assert!(path.starts_with(".x.x.x") && path.ends_with("+4"), "{path}");
    let (_, f) = body(&module, "f");
    let location = f.blocks[BlockId(0)].instructions[0].location.expect("it has one");
    assert!(!module.debug.positions(location).is_empty());
}
