source_filename = "stack.c"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%struct.node = type { i32, %struct.node* }

@top = internal global %struct.node* null, align 8, !dbg !0
@.str = private unnamed_addr constant [14 x i8] c"n->value == 1\00", align 1
@.str.1 = private unnamed_addr constant [8 x i8] c"stack.c\00", align 1
@__PRETTY_FUNCTION__.pop = private unnamed_addr constant [15 x i8] c"void pop(void)\00", align 1

define dso_local void @push() !dbg !31 {
  %1 = alloca %struct.node*, align 8
  %2 = alloca %struct.node*, align 8
  %3 = alloca %struct.node*, align 8
  %4 = alloca i8, align 1
  call void @llvm.dbg.declare(metadata %struct.node** %1, metadata !35, metadata !DIExpression()), !dbg !36
  %5 = call noalias i8* @malloc(i64 noundef 16), !dbg !37
  %6 = bitcast i8* %5 to %struct.node*, !dbg !37
  store %struct.node* %6, %struct.node** %1, align 8, !dbg !36
  %7 = load %struct.node*, %struct.node** %1, align 8, !dbg !38
  %8 = getelementptr inbounds %struct.node, %struct.node* %7, i32 0, i32 0, !dbg !39
  store i32 1, i32* %8, align 8, !dbg !40
  %9 = bitcast %struct.node** %2 to i64*, !dbg !41
  %10 = load atomic i64, i64* bitcast (%struct.node** @top to i64*) monotonic, align 8, !dbg !41
  store i64 %10, i64* %9, align 8, !dbg !41
  %11 = bitcast i64* %9 to %struct.node**, !dbg !41
  %12 = load %struct.node*, %struct.node** %11, align 8, !dbg !41
  %13 = load %struct.node*, %struct.node** %1, align 8, !dbg !42
  %14 = getelementptr inbounds %struct.node, %struct.node* %13, i32 0, i32 1, !dbg !43
  store %struct.node* %12, %struct.node** %14, align 8, !dbg !44
  br label %15, !dbg !45

15:
  %16 = load %struct.node*, %struct.node** %1, align 8, !dbg !46
  %17 = getelementptr inbounds %struct.node, %struct.node* %16, i32 0, i32 1, !dbg !46
  %18 = load %struct.node*, %struct.node** %1, align 8, !dbg !46
  store %struct.node* %18, %struct.node** %3, align 8, !dbg !46
  %19 = bitcast %struct.node** %17 to i64*, !dbg !46
  %20 = bitcast %struct.node** %3 to i64*, !dbg !46
  %21 = load i64, i64* %19, align 8, !dbg !46
  %22 = load i64, i64* %20, align 8, !dbg !46
  %23 = cmpxchg weak i64* bitcast (%struct.node** @top to i64*), i64 %21, i64 %22 seq_cst seq_cst, align 8, !dbg !46
  %24 = extractvalue { i64, i1 } %23, 0, !dbg !46
  %25 = extractvalue { i64, i1 } %23, 1, !dbg !46
  br i1 %25, label %27, label %26, !dbg !46

26:
  store i64 %24, i64* %19, align 8, !dbg !46
  br label %27, !dbg !46

27:
  %28 = zext i1 %25 to i8, !dbg !46
  store i8 %28, i8* %4, align 1, !dbg !46
  %29 = load i8, i8* %4, align 1, !dbg !46
  %30 = trunc i8 %29 to i1, !dbg !46
  %31 = xor i1 %30, true, !dbg !47
  br i1 %31, label %32, label %33, !dbg !45

32:
  br label %15, !dbg !45, !llvm.loop !48

33:
  ret void, !dbg !51
}

declare void @llvm.dbg.declare(metadata, metadata, metadata)

declare noalias i8* @malloc(i64 noundef)

define dso_local void @pop() !dbg !52 {
  %1 = alloca %struct.node*, align 8
  %2 = alloca %struct.node*, align 8
  %3 = alloca %struct.node*, align 8
  %4 = alloca i8, align 1
  call void @llvm.dbg.declare(metadata %struct.node** %1, metadata !53, metadata !DIExpression()), !dbg !54
  %5 = bitcast %struct.node** %2 to i64*, !dbg !55
  %6 = load atomic i64, i64* bitcast (%struct.node** @top to i64*) seq_cst, align 8, !dbg !55
  store i64 %6, i64* %5, align 8, !dbg !55
  %7 = bitcast i64* %5 to %struct.node**, !dbg !55
  %8 = load %struct.node*, %struct.node** %7, align 8, !dbg !55
  store %struct.node* %8, %struct.node** %1, align 8, !dbg !54
  br label %9, !dbg !56

9:
  %10 = load %struct.node*, %struct.node** %1, align 8, !dbg !57
  %11 = icmp ne %struct.node* %10, null, !dbg !57
  br i1 %11, label %12, label %29, !dbg !58

12:
  %13 = load %struct.node*, %struct.node** %1, align 8, !dbg !59
  %14 = getelementptr inbounds %struct.node, %struct.node* %13, i32 0, i32 1, !dbg !59
  %15 = load %struct.node*, %struct.node** %14, align 8, !dbg !59
  store %struct.node* %15, %struct.node** %3, align 8, !dbg !59
  %16 = bitcast %struct.node** %1 to i64*, !dbg !59
  %17 = bitcast %struct.node** %3 to i64*, !dbg !59
  %18 = load i64, i64* %16, align 8, !dbg !59
  %19 = load i64, i64* %17, align 8, !dbg !59
  %20 = cmpxchg weak i64* bitcast (%struct.node** @top to i64*), i64 %18, i64 %19 seq_cst seq_cst, align 8, !dbg !59
  %21 = extractvalue { i64, i1 } %20, 0, !dbg !59
  %22 = extractvalue { i64, i1 } %20, 1, !dbg !59
  br i1 %22, label %24, label %23, !dbg !59

23:
  store i64 %21, i64* %16, align 8, !dbg !59
  br label %24, !dbg !59

24:
  %25 = zext i1 %22 to i8, !dbg !59
  store i8 %25, i8* %4, align 1, !dbg !59
  %26 = load i8, i8* %4, align 1, !dbg !59
  %27 = trunc i8 %26 to i1, !dbg !59
  %28 = xor i1 %27, true, !dbg !60
  br label %29

29:
  %30 = phi i1 [ false, %9 ], [ %28, %24 ], !dbg !61
  br i1 %30, label %31, label %32, !dbg !56

31:
  br label %9, !dbg !56, !llvm.loop !62

32:
  %33 = load %struct.node*, %struct.node** %1, align 8, !dbg !64
  %34 = icmp ne %struct.node* %33, null, !dbg !64
  br i1 %34, label %35, label %45, !dbg !66

35:
  %36 = load %struct.node*, %struct.node** %1, align 8, !dbg !67
  %37 = getelementptr inbounds %struct.node, %struct.node* %36, i32 0, i32 0, !dbg !67
  %38 = load i32, i32* %37, align 8, !dbg !67
  %39 = icmp eq i32 %38, 1, !dbg !67
  br i1 %39, label %40, label %41, !dbg !71

40:
  br label %42, !dbg !71

41:
  call void @__assert_fail(i8* noundef getelementptr inbounds ([14 x i8], [14 x i8]* @.str, i64 0, i64 0), i8* noundef getelementptr inbounds ([8 x i8], [8 x i8]* @.str.1, i64 0, i64 0), i32 noundef 27, i8* noundef getelementptr inbounds ([15 x i8], [15 x i8]* @__PRETTY_FUNCTION__.pop, i64 0, i64 0)), !dbg !67
  unreachable, !dbg !67

42:
  %43 = load %struct.node*, %struct.node** %1, align 8, !dbg !72
  %44 = bitcast %struct.node* %43 to i8*, !dbg !72
  call void @free(i8* noundef %44), !dbg !73
  br label %45, !dbg !74

45:
  ret void, !dbg !75
}

declare void @__assert_fail(i8* noundef, i8* noundef, i32 noundef, i8* noundef)

declare void @free(i8* noundef)


!llvm.dbg.cu = !{!2}
!llvm.module.flags = !{!23, !24, !25, !26, !27, !28, !29}
!llvm.ident = !{!30}

!0 = !DIGlobalVariableExpression(var: !1, expr: !DIExpression())
!1 = distinct !DIGlobalVariable(name: "top", scope: !2, file: !3, line: 10, type: !16, isLocal: true, isDefinition: true)
!2 = distinct !DICompileUnit(language: DW_LANG_C99, file: !3, producer: "Debian clang version 14.0.6", isOptimized: false, runtimeVersion: 0, emissionKind: FullDebug, enums: !4, globals: !15, splitDebugInlining: false, nameTableKind: None)
!3 = !DIFile(filename: "stack.c", directory: "/c", checksumkind: CSK_MD5, checksum: "f69f2b6d7db46aa98bf37b60bedcd028")
!4 = !{!5}
!5 = !DICompositeType(tag: DW_TAG_enumeration_type, name: "memory_order", file: !6, line: 56, baseType: !7, size: 32, elements: !8)
!6 = !DIFile(filename: "/usr/lib/llvm-14/lib/clang/14.0.6/include/stdatomic.h", directory: "", checksumkind: CSK_MD5, checksum: "de5d66a1ef2f5448cc1919ff39db92bc")
!7 = !DIBasicType(name: "unsigned int", size: 32, encoding: DW_ATE_unsigned)
!8 = !{!9, !10, !11, !12, !13, !14}
!9 = !DIEnumerator(name: "memory_order_relaxed", value: 0)
!10 = !DIEnumerator(name: "memory_order_consume", value: 1)
!11 = !DIEnumerator(name: "memory_order_acquire", value: 2)
!12 = !DIEnumerator(name: "memory_order_release", value: 3)
!13 = !DIEnumerator(name: "memory_order_acq_rel", value: 4)
!14 = !DIEnumerator(name: "memory_order_seq_cst", value: 5)
!15 = !{!0}
!16 = !DIDerivedType(tag: DW_TAG_atomic_type, baseType: !17)
!17 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !18, size: 64)
!18 = distinct !DICompositeType(tag: DW_TAG_structure_type, name: "node", file: !3, line: 5, size: 128, elements: !19)
!19 = !{!20, !22}
!20 = !DIDerivedType(tag: DW_TAG_member, name: "value", scope: !18, file: !3, line: 6, baseType: !21, size: 32)
!21 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!22 = !DIDerivedType(tag: DW_TAG_member, name: "next", scope: !18, file: !3, line: 7, baseType: !17, size: 64, offset: 64)
!23 = !{i32 7, !"Dwarf Version", i32 5}
!24 = !{i32 2, !"Debug Info Version", i32 3}
!25 = !{i32 1, !"wchar_size", i32 4}
!26 = !{i32 7, !"PIC Level", i32 2}
!27 = !{i32 7, !"PIE Level", i32 2}
!28 = !{i32 7, !"uwtable", i32 1}
!29 = !{i32 7, !"frame-pointer", i32 2}
!30 = !{!"Debian clang version 14.0.6"}
!31 = distinct !DISubprogram(name: "push", scope: !3, file: !3, line: 12, type: !32, scopeLine: 13, flags: DIFlagPrototyped, spFlags: DISPFlagDefinition, unit: !2, retainedNodes: !34)
!32 = !DISubroutineType(types: !33)
!33 = !{null}
!34 = !{}
!35 = !DILocalVariable(name: "n", scope: !31, file: !3, line: 14, type: !17)
!36 = !DILocation(line: 14, column: 18, scope: !31)
!37 = !DILocation(line: 14, column: 22, scope: !31)
!38 = !DILocation(line: 15, column: 5, scope: !31)
!39 = !DILocation(line: 15, column: 8, scope: !31)
!40 = !DILocation(line: 15, column: 14, scope: !31)
!41 = !DILocation(line: 16, column: 15, scope: !31)
!42 = !DILocation(line: 16, column: 5, scope: !31)
!43 = !DILocation(line: 16, column: 8, scope: !31)
!44 = !DILocation(line: 16, column: 13, scope: !31)
!45 = !DILocation(line: 17, column: 5, scope: !31)
!46 = !DILocation(line: 17, column: 13, scope: !31)
!47 = !DILocation(line: 17, column: 12, scope: !31)
!48 = distinct !{!48, !45, !49, !50}
!49 = !DILocation(line: 18, column: 9, scope: !31)
!50 = !{!"llvm.loop.mustprogress"}
!51 = !DILocation(line: 19, column: 1, scope: !31)
!52 = distinct !DISubprogram(name: "pop", scope: !3, file: !3, line: 21, type: !32, scopeLine: 22, flags: DIFlagPrototyped, spFlags: DISPFlagDefinition, unit: !2, retainedNodes: !34)
!53 = !DILocalVariable(name: "n", scope: !52, file: !3, line: 23, type: !17)
!54 = !DILocation(line: 23, column: 18, scope: !52)
!55 = !DILocation(line: 23, column: 22, scope: !52)
!56 = !DILocation(line: 24, column: 5, scope: !52)
!57 = !DILocation(line: 24, column: 12, scope: !52)
!58 = !DILocation(line: 24, column: 14, scope: !52)
!59 = !DILocation(line: 24, column: 18, scope: !52)
!60 = !DILocation(line: 24, column: 17, scope: !52)
!61 = !DILocation(line: 0, scope: !52)
!62 = distinct !{!62, !56, !63, !50}
!63 = !DILocation(line: 25, column: 9, scope: !52)
!64 = !DILocation(line: 26, column: 9, scope: !65)
!65 = distinct !DILexicalBlock(scope: !52, file: !3, line: 26, column: 9)
!66 = !DILocation(line: 26, column: 9, scope: !52)
!67 = !DILocation(line: 27, column: 9, scope: !68)
!68 = distinct !DILexicalBlock(scope: !69, file: !3, line: 27, column: 9)
!69 = distinct !DILexicalBlock(scope: !70, file: !3, line: 27, column: 9)
!70 = distinct !DILexicalBlock(scope: !65, file: !3, line: 26, column: 12)
!71 = !DILocation(line: 27, column: 9, scope: !69)
!72 = !DILocation(line: 28, column: 14, scope: !70)
!73 = !DILocation(line: 28, column: 9, scope: !70)
!74 = !DILocation(line: 29, column: 5, scope: !70)
!75 = !DILocation(line: 30, column: 1, scope: !52)
