//! Instructions: everything that decides what they do is kept.

use crate::common::{FORMS, OPAQUE, TYPED, body, callee, function_with, operations, read, with_body};
use palisade_llvm::Module;
use palisade_llvm::calls::Callee;
use palisade_llvm::instructions::{Access, BinaryOp, CastOp, IntPredicate, Op, Ordering, RmwOp, Scope};
use palisade_llvm::module::{BlockId, Body};

/// The first operation of a function with this line, and the type of its result.
#[track_caller]
fn check(line: &str, ty: &str, is: impl Fn(&Module, &Body, &Op) -> bool) {
    with_body(&format!("  {line}\n  ret void"), |module, body| {
        let first = &body.blocks[BlockId(0)].instructions[0];
        assert_eq!(module.types.display(first.ty).to_string(), ty, "{line}");
        assert!(is(module, body, &first.op), "{line}: {:?}", first.op);
        let source = function_with(&format!("  {line}\n  ret void"));
        assert_eq!(&source[first.span.range()], line);
    });
}

#[test]
fn accesses() {
    let access = |op: &Op| match op {
        Op::Load { access, .. } | Op::Store { access, .. } => *access,
        op => panic!("{op:?}"),
    };
    let plain = Access::default();
    let cases = [
        ("%r = load i32, ptr %p", plain),
        ("%r = load i32, ptr %p, align 2", Access { align: Some(2), ..plain }),
        ("%r = load volatile i32, ptr %p, align 4", Access { align: Some(4), volatile: true, ..plain }),
        (
            "%r = load atomic i32, ptr %p monotonic, align 4",
            Access { atomic: Some((Ordering::Monotonic, Scope::System)), align: Some(4), ..plain },
        ),
        (
            "%r = load atomic volatile i32, ptr %p syncscope(\"singlethread\") seq_cst, align 8",
            Access {
                atomic: Some((Ordering::SequentiallyConsistent, Scope::SingleThread)),
                volatile: true,
                align: Some(8),
                ..plain
            },
        ),
        (
            "%r = load atomic i32, ptr %p unordered, align 4",
            Access { atomic: Some((Ordering::Unordered, Scope::System)), align: Some(4), ..plain },
        ),
    ];
    for (line, expected) in cases {
        check(line, "i32", |_, _, op| access(op) == expected);
    }
    check("store atomic i32 %x, ptr %p release, align 4", "void", |_, _, op| {
        access(op) == Access { atomic: Some((Ordering::Release, Scope::System)), align: Some(4), ..plain }
    });
    check("store i32 %x, ptr %p, align 4, !nontemporal !{i32 1}", "void", |_, _, op| {
        access(op) == Access { align: Some(4), nontemporal: true, ..plain }
    });
}

#[test]
fn read_modify_write() {
    check(
        "%r = cmpxchg weak volatile ptr %p, i32 %x, i32 %y acq_rel monotonic, align 4",
        "{ i32, i1 }",
        |_, _, op| {
            matches!(
                op,
                Op::CompareExchange {
                    weak: true,
                    volatile: true,
                    success: Ordering::AcquireRelease,
                    failure: Ordering::Monotonic,
                    scope: Scope::System,
                    align: Some(4),
                    ..
                }
            )
        },
    );
    check("%r = cmpxchg ptr %p, ptr %p, ptr null seq_cst seq_cst", "{ ptr, i1 }", |_, _, op| {
        matches!(op, Op::CompareExchange { weak: false, volatile: false, align: None, .. })
    });
    let operations = [
        ("xchg", RmwOp::Xchg),
        ("add", RmwOp::Add),
        ("sub", RmwOp::Sub),
        ("and", RmwOp::And),
        ("nand", RmwOp::Nand),
        ("or", RmwOp::Or),
        ("xor", RmwOp::Xor),
        ("max", RmwOp::Max),
        ("min", RmwOp::Min),
        ("umax", RmwOp::UMax),
        ("umin", RmwOp::UMin),
        ("uinc_wrap", RmwOp::UIncWrap),
        ("usub_sat", RmwOp::USubSat),
    ];
    for (word, expected) in operations {
        check(
            &format!("%r = atomicrmw {word} ptr %p, i32 %x acquire, align 4"),
            "i32",
            |_, _, op| matches!(op, Op::ReadModifyWrite { op, ordering: Ordering::Acquire, volatile: false, .. } if *op == expected),
        );
    }
    check(
        "%r = atomicrmw volatile xchg ptr %p, ptr null syncscope(\"singlethread\") seq_cst",
        "ptr",
        |_, _, op| {
            matches!(op, Op::ReadModifyWrite { volatile: true, scope: Scope::SingleThread, align: None, .. })
        },
    );
    check(
        "%r = atomicrmw fadd ptr %p, float 1.0 seq_cst",
        "float",
        |_, _, op| matches!(op, Op::ReadModifyWrite { op, .. } if op.is_float()),
    );
    for (word, expected) in [
        ("acquire", Ordering::Acquire),
        ("release", Ordering::Release),
        ("acq_rel", Ordering::AcquireRelease),
        ("seq_cst", Ordering::SequentiallyConsistent),
    ] {
        check(&format!("fence {word}"), "void", |_, _, op| {
            *op == Op::Fence { ordering: expected, scope: Scope::System }
        });
        check(&format!("fence syncscope(\"singlethread\") {word}"), "void", |_, _, op| {
            *op == Op::Fence { ordering: expected, scope: Scope::SingleThread }
        });
    }
}

#[test]
fn arithmetic() {
    check("%r = add nuw nsw i32 %x, %y", "i32", |_, _, op| {
        matches!(op, Op::Binary { op: BinaryOp::Add, flags, .. }
            if flags.no_signed_wrap() && flags.no_unsigned_wrap() && !flags.exact())
    });
    check(
        "%r = sub i32 0, %y",
        "i32",
        |module, body, op| matches!(op, Op::Binary { op: BinaryOp::Sub, left, .. } if module.display(body, *left).to_string() == "0"),
    );
    for word in ["mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor"] {
        check(
            &format!("%r = {word} i32 %x, %y"),
            "i32",
            |_, _, op| matches!(op, Op::Binary { op, .. } if op.word() == word && !op.is_float()),
        );
    }
    check(
        "%r = sdiv exact i32 %x, 4",
        "i32",
        |_, _, op| matches!(op, Op::Binary { flags, .. } if flags.exact()),
    );
    check(
        "%r = fadd nnan fast double 1.0, 2.0",
        "double",
        |_, _, op| matches!(op, Op::Binary { op, .. } if op.is_float()),
    );
    check("%r = fneg float 1.0", "float", |_, _, op| matches!(op, Op::FloatNegate(_)));
    check("%r = icmp sle i32 %x, %y", "i1", |_, _, op| {
        matches!(op, Op::Compare { predicate: IntPredicate::Sle, .. })
    });
    check("%r = icmp eq ptr %p, null", "i1", |_, _, op| matches!(op, Op::Compare { .. }));
    check("%r = icmp ne <2 x i32> zeroinitializer, undef", "<2 x i1>", |_, _, op| {
        matches!(op, Op::Compare { .. })
    });
    check("%r = fcmp oeq double 1.0, 2.0", "i1", |_, _, op| matches!(op, Op::FloatCompare { .. }));
    check("%r = select i1 %c, i32 %x, i32 %y", "i32", |_, _, op| matches!(op, Op::Select { .. }));
    check("%r = freeze i32 %x", "i32", |_, _, op| matches!(op, Op::Freeze(_)));
}

#[test]
fn conversions() {
    let cases = [
        ("trunc i32 %x to i8", "i8", CastOp::Trunc),
        ("zext nneg i32 %x to i64", "i64", CastOp::ZExt),
        ("sext i32 %x to i128", "i128", CastOp::SExt),
        ("ptrtoint ptr %p to i64", "i64", CastOp::PtrToInt),
        ("inttoptr i32 %x to ptr", "ptr", CastOp::IntToPtr),
        ("bitcast i32 %x to float", "float", CastOp::BitCast),
        ("addrspacecast ptr %p to ptr addrspace(1)", "ptr addrspace(1)", CastOp::AddrSpaceCast),
        ("sitofp i32 %x to double", "double", CastOp::SiToFp),
        ("uitofp nneg i32 %x to double", "double", CastOp::UiToFp),
        ("fptosi float 1.0 to i32", "i32", CastOp::FpToSi),
        ("fpext float 1.0 to double", "double", CastOp::FpExt),
        ("fptrunc double 1.0 to float", "float", CastOp::FpTrunc),
    ];
    for (line, ty, expected) in cases {
        check(&format!("%r = {line}"), ty, |_, _, op| matches!(op, Op::Cast { op, .. } if *op == expected));
    }
}

#[test]
fn addresses_and_parts() {
    check("%r = alloca i32", "ptr", |_, _, op| matches!(op, Op::Alloca { count: None, align: None, .. }));
    check("%r = alloca { i8, i64 }, i32 %x, align 16", "ptr", |_, _, op| {
        matches!(op, Op::Alloca { count: Some(_), align: Some(16), .. })
    });
    check(
        "%r = getelementptr inbounds nuw { i8, [4 x i32] }, ptr %p, i64 0, i32 1, i32 %x",
        "ptr",
        |_, _, op| {
            matches!(op, Op::GetElementPtr { indices, flags, .. }
            if indices.len() == 3 && flags.inbounds() && flags.no_unsigned_wrap())
        },
    );
    check(
        "%r = extractvalue { i32, { i8, [2 x i16] } } undef, 1, 1, 0",
        "i16",
        |_, _, op| matches!(op, Op::ExtractValue { indices, .. } if indices[..] == [1, 1, 0]),
    );
    check(
        "%r = insertvalue { i32, i8 } poison, i8 5, 1",
        "{ i32, i8 }",
        |_, _, op| matches!(op, Op::InsertValue { indices, .. } if indices[..] == [1]),
    );
    check("%r = extractelement <4 x i32> zeroinitializer, i64 1", "i32", |_, _, op| {
        matches!(op, Op::ExtractElement { .. })
    });
    check("%r = insertelement <4 x i32> undef, i32 %x, i32 0", "<4 x i32>", |_, _, op| {
        matches!(op, Op::InsertElement { .. })
    });
    check(
        "%r = shufflevector <4 x i32> undef, <4 x i32> undef, <2 x i32> zeroinitializer",
        "<2 x i32>",
        |_, _, op| matches!(op, Op::ShuffleVector { .. }),
    );
    check("%r = va_arg ptr %p, i32", "i32", |_, _, op| matches!(op, Op::NextArgument { .. }));
}

/// With typed pointers the type of a part is the type of the pointer.
#[test]
fn typed_addresses() {
    let module = read(
        "%s = type { i8, [4 x i32] }\n\
         define i32* @f(%s* %p, i64 %i) {\n  %q = getelementptr %s, %s* %p, i64 0, i32 1, i64 %i\n  ret i32* %q\n}\n\
         define void @g(i32** %p) {\n  %a = alloca i32\n  store i32* %a, i32** %p\n  ret void\n}\n",
    );
    let (_, f) = body(&module, "f");
    assert_eq!(module.types.display(f.blocks[BlockId(0)].instructions[0].ty).to_string(), "i32*");
}

#[test]
fn calls() {
    check("%r = call i32 (i32, ...) @h(i32 %x, ptr null, double 2.5)", "i32", |module, body, op| {
        callee(module, body, op).as_deref() == Some("@h")
            && op.call().is_some_and(|call| call.arguments.len() == 3)
    });
    check("%r = call i32 %p(i32 %x)", "i32", |module, _, op| {
        op.call().is_some_and(|call| module.types.display(call.ty).to_string() == "i32 (i32)")
    });
    check(
        "%r = call { i32, i1 } asm \"cmpxchg $2, $1\", \"={ax},*m,r\"(ptr elementtype(i32) %p, i32 %x)",
        "{ i32, i1 }",
        |module, _, op| {
            let call = op.call().expect("it is a call");
            let Callee::Assembly(assembly) = &call.callee else { return false };
            let element = call.arguments[0].passing.element.map(|ty| module.types.display(ty).to_string());
            &*assembly.template == "cmpxchg $2, $1"
                && &*assembly.constraints == "={ax},*m,r"
                && !assembly.side_effects
                && !assembly.intel
                && element.as_deref() == Some("i32")
        },
    );
    check(
        "call void asm sideeffect inteldialect \"lock\\0A\\09xadd [$0], eax\", \"\"()",
        "void",
        |_, _, op| {
            let Some(Callee::Assembly(assembly)) = op.call().map(|call| &call.callee) else { return false };
            assembly.side_effects && assembly.intel && &*assembly.template == "lock\n\txadd [$0], eax"
        },
    );
    check("call void inttoptr (i64 16 to ptr)(i32 %x)", "void", |module, body, op| {
        callee(module, body, op).as_deref() == Some("inttoptr (i64 16 to ptr)")
    });
    check("call void null()", "void", |module, body, op| callee(module, body, op).as_deref() == Some("null"));
    check("call void %p(ptr byval({ i32, i32 }) align 4 %p, ptr sret([9 x i8]) %p)", "void", |_, _, op| {
        let arguments = &op.call().expect("it is a call").arguments;
        arguments[0].passing.by_value.is_some() && arguments[1].passing.struct_return.is_some()
    });
}

#[test]
fn control_flow() {
    let module = read(FORMS);
    let (_, jumps) = body(&module, "jumps");
    assert!(
        matches!(operations(jumps)[0], Op::IndirectBranch { targets, .. } if targets[..] == [BlockId(1), BlockId(2)])
    );
    let (_, numbers) = body(&module, "numbers");
    let phi = &numbers.blocks[BlockId(1)].instructions[0].op;
    assert!(matches!(phi, Op::Phi(incoming) if incoming[0].1 == BlockId(0) && incoming[1].1 == BlockId(1)));
    let switch = &numbers.blocks[BlockId(2)].instructions[0].op;
    let Op::Switch { default, cases, .. } = switch else { panic!("{switch:?}") };
    let cases: Vec<(String, BlockId)> =
        cases.iter().map(|(value, block)| (module.display_constant(*value).to_string(), *block)).collect();
    assert_eq!(*default, BlockId(3));
    assert_eq!(cases, [("0".to_owned(), BlockId(4)), ("-7".to_owned(), BlockId(3))]);
    let mut successors = Vec::new();
    switch.for_each_successor(|block| successors.push(block));
    assert_eq!(successors, [BlockId(3), BlockId(4), BlockId(3)]);
    let (_, unwinds) = body(&module, "unwinds");
    let found = operations(unwinds);
    assert!(matches!(found[0], Op::Invoke { normal: BlockId(1), unwind: BlockId(2), .. }));
    assert!(matches!(found[2], Op::LandingPad { cleanup: true, clauses } if clauses.len() == 2));
    assert!(matches!(found.last(), Some(Op::Resume(_))));
    let (_, assembly) = body(&module, "assembly");
    let found = operations(assembly);
    assert!(
        matches!(found[0], Op::CallBranch { fallthrough: BlockId(1), targets, .. } if targets[..] == [BlockId(2)])
    );
    let bundles = &found[2].call().expect("it is a call").bundles;
    let tags: Vec<(&str, usize)> =
        bundles.iter().map(|bundle| (&*bundle.tag, bundle.operands.len())).collect();
    assert_eq!(tags, [("align", 2), ("nonnull", 1)]);
}

/// Both texts of the spinlock have the same operations.
#[test]
fn both_kinds_of_pointers_have_the_same_operations() {
    let names = |text: &str| -> Vec<String> {
        let module = read(text);
        let (_, worker) = body(&module, "worker");
        let name = |op: &&Op| format!("{op:?}").split([' ', '(']).next().unwrap_or_default().to_owned();
        operations(worker).iter().map(name).collect()
    };
    assert_eq!(names(TYPED), names(OPAQUE));
    assert_eq!(names(TYPED).len(), 15);
}
