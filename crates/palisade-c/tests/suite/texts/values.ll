source_filename = "values.c"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

@ready = internal global i8 0, align 1, !dbg !0
@table = internal global [3 x i32] [i32 4, i32 5, i32 6], align 4, !dbg !5
@.str = private unnamed_addr constant [24 x i8] c"!ready || table[0] == 4\00", align 1
@.str.1 = private unnamed_addr constant [9 x i8] c"values.c\00", align 1
@__PRETTY_FUNCTION__.observe = private unnamed_addr constant [19 x i8] c"void observe(void)\00", align 1

define dso_local void @compute() !dbg !21 {
  %1 = alloca i32, align 4
  %2 = alloca i8, align 1
  call void @llvm.dbg.declare(metadata i32* %1, metadata !25, metadata !DIExpression()), !dbg !26
  %3 = call zeroext i1 @__VERIFIER_nondet_bool(), !dbg !27
  br i1 %3, label %4, label %5, !dbg !29

4:
  store i32 3, i32* %1, align 4, !dbg !30
  br label %5, !dbg !31

5:
  call void @llvm.dbg.declare(metadata i8* %2, metadata !32, metadata !DIExpression()), !dbg !34
  %6 = call zeroext i8 @__VERIFIER_nondet_uchar(), !dbg !35
  store i8 %6, i8* %2, align 1, !dbg !34
  %7 = load i8, i8* %2, align 1, !dbg !36
  %8 = zext i8 %7 to i32, !dbg !36
  %9 = icmp slt i32 %8, 10, !dbg !37
  %10 = zext i1 %9 to i32, !dbg !37
  call void @__VERIFIER_assume(i32 noundef %10), !dbg !38
  %11 = load i8, i8* %2, align 1, !dbg !39
  %12 = zext i8 %11 to i32, !dbg !39
  %13 = call i32 @choose(i32 noundef %12), !dbg !40
  %14 = load i32, i32* %1, align 4, !dbg !41
  %15 = icmp ne i32 %13, %14, !dbg !42
  %16 = zext i1 %15 to i8, !dbg !43
  store volatile i8 %16, i8* @ready, align 1, !dbg !43
  %17 = load i8, i8* %2, align 1, !dbg !44
  %18 = zext i8 %17 to i64, !dbg !45
  %19 = getelementptr inbounds [3 x i32], [3 x i32]* @table, i64 0, i64 %18, !dbg !45
  store i32 1, i32* %19, align 4, !dbg !46
  ret void, !dbg !47
}

declare void @llvm.dbg.declare(metadata, metadata, metadata)

declare zeroext i1 @__VERIFIER_nondet_bool()

declare zeroext i8 @__VERIFIER_nondet_uchar()

declare void @__VERIFIER_assume(i32 noundef)

define internal i32 @choose(i32 noundef %0) !dbg !48 {
  %2 = alloca i32, align 4
  %3 = alloca i32, align 4
  store i32 %0, i32* %3, align 4
  call void @llvm.dbg.declare(metadata i32* %3, metadata !51, metadata !DIExpression()), !dbg !52
  %4 = load i32, i32* %3, align 4, !dbg !53
  switch i32 %4, label %10 [
    i32 0, label %5
    i32 1, label %7
  ], !dbg !54

5:
  %6 = load i32, i32* getelementptr inbounds ([3 x i32], [3 x i32]* @table, i64 0, i64 2), align 4, !dbg !55
  store i32 %6, i32* %2, align 4, !dbg !57
  br label %21, !dbg !57

7:
  %8 = load i32, i32* getelementptr inbounds ([3 x i32], [3 x i32]* @table, i64 0, i64 1), align 4, !dbg !58
  %9 = sub nsw i32 0, %8, !dbg !59
  store i32 %9, i32* %2, align 4, !dbg !60
  br label %21, !dbg !60

10:
  %11 = load i32, i32* %3, align 4, !dbg !61
  %12 = icmp sgt i32 %11, 5, !dbg !62
  br i1 %12, label %13, label %16, !dbg !61

13:
  %14 = load i32, i32* %3, align 4, !dbg !63
  %15 = sdiv i32 %14, 2, !dbg !64
  br label %19, !dbg !61

16:
  %17 = load i32, i32* %3, align 4, !dbg !65
  %18 = shl i32 %17, 2, !dbg !66
  br label %19, !dbg !61

19:
  %20 = phi i32 [ %15, %13 ], [ %18, %16 ], !dbg !61
  store i32 %20, i32* %2, align 4, !dbg !67
  br label %21, !dbg !67

21:
  %22 = load i32, i32* %2, align 4, !dbg !68
  ret i32 %22, !dbg !68
}

define dso_local void @observe() !dbg !69 {
  %1 = load volatile i8, i8* @ready, align 1, !dbg !70
  %2 = trunc i8 %1 to i1, !dbg !70
  br i1 %2, label %3, label %6, !dbg !70

3:
  %4 = load i32, i32* getelementptr inbounds ([3 x i32], [3 x i32]* @table, i64 0, i64 0), align 4, !dbg !70
  %5 = icmp eq i32 %4, 4, !dbg !70
  br i1 %5, label %6, label %7, !dbg !73

6:
  br label %8, !dbg !73

7:
  call void @__assert_fail(i8* noundef getelementptr inbounds ([24 x i8], [24 x i8]* @.str, i64 0, i64 0), i8* noundef getelementptr inbounds ([9 x i8], [9 x i8]* @.str.1, i64 0, i64 0), i32 noundef 32, i8* noundef getelementptr inbounds ([19 x i8], [19 x i8]* @__PRETTY_FUNCTION__.observe, i64 0, i64 0)), !dbg !70
  unreachable, !dbg !70

8:
  ret void, !dbg !74
}

declare void @__assert_fail(i8* noundef, i8* noundef, i32 noundef, i8* noundef)


!llvm.dbg.cu = !{!2}
!llvm.module.flags = !{!13, !14, !15, !16, !17, !18, !19}
!llvm.ident = !{!20}

!0 = !DIGlobalVariableExpression(var: !1, expr: !DIExpression())
!1 = distinct !DIGlobalVariable(name: "ready", scope: !2, file: !3, line: 8, type: !11, isLocal: true, isDefinition: true)
!2 = distinct !DICompileUnit(language: DW_LANG_C99, file: !3, producer: "Debian clang version 14.0.6", isOptimized: false, runtimeVersion: 0, emissionKind: FullDebug, globals: !4, splitDebugInlining: false, nameTableKind: None)
!3 = !DIFile(filename: "values.c", directory: "/c", checksumkind: CSK_MD5, checksum: "eada02b5ca8f97ea2b32867f96b9d991")
!4 = !{!0, !5}
!5 = !DIGlobalVariableExpression(var: !6, expr: !DIExpression())
!6 = distinct !DIGlobalVariable(name: "table", scope: !2, file: !3, line: 7, type: !7, isLocal: true, isDefinition: true)
!7 = !DICompositeType(tag: DW_TAG_array_type, baseType: !8, size: 96, elements: !9)
!8 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!9 = !{!10}
!10 = !DISubrange(count: 3)
!11 = !DIDerivedType(tag: DW_TAG_volatile_type, baseType: !12)
!12 = !DIBasicType(name: "_Bool", size: 8, encoding: DW_ATE_boolean)
!13 = !{i32 7, !"Dwarf Version", i32 5}
!14 = !{i32 2, !"Debug Info Version", i32 3}
!15 = !{i32 1, !"wchar_size", i32 4}
!16 = !{i32 7, !"PIC Level", i32 2}
!17 = !{i32 7, !"PIE Level", i32 2}
!18 = !{i32 7, !"uwtable", i32 1}
!19 = !{i32 7, !"frame-pointer", i32 2}
!20 = !{!"Debian clang version 14.0.6"}
!21 = distinct !DISubprogram(name: "compute", scope: !3, file: !3, line: 19, type: !22, scopeLine: 20, flags: DIFlagPrototyped, spFlags: DISPFlagDefinition, unit: !2, retainedNodes: !24)
!22 = !DISubroutineType(types: !23)
!23 = !{null}
!24 = !{}
!25 = !DILocalVariable(name: "x", scope: !21, file: !3, line: 21, type: !8)
!26 = !DILocation(line: 21, column: 9, scope: !21)
!27 = !DILocation(line: 22, column: 9, scope: !28)
!28 = distinct !DILexicalBlock(scope: !21, file: !3, line: 22, column: 9)
!29 = !DILocation(line: 22, column: 9, scope: !21)
!30 = !DILocation(line: 23, column: 11, scope: !28)
!31 = !DILocation(line: 23, column: 9, scope: !28)
!32 = !DILocalVariable(name: "c", scope: !21, file: !3, line: 24, type: !33)
!33 = !DIBasicType(name: "unsigned char", size: 8, encoding: DW_ATE_unsigned_char)
!34 = !DILocation(line: 24, column: 19, scope: !21)
!35 = !DILocation(line: 24, column: 23, scope: !21)
!36 = !DILocation(line: 25, column: 23, scope: !21)
!37 = !DILocation(line: 25, column: 25, scope: !21)
!38 = !DILocation(line: 25, column: 5, scope: !21)
!39 = !DILocation(line: 26, column: 20, scope: !21)
!40 = !DILocation(line: 26, column: 13, scope: !21)
!41 = !DILocation(line: 26, column: 26, scope: !21)
!42 = !DILocation(line: 26, column: 23, scope: !21)
!43 = !DILocation(line: 26, column: 11, scope: !21)
!44 = !DILocation(line: 27, column: 11, scope: !21)
!45 = !DILocation(line: 27, column: 5, scope: !21)
!46 = !DILocation(line: 27, column: 14, scope: !21)
!47 = !DILocation(line: 28, column: 1, scope: !21)
!48 = distinct !DISubprogram(name: "choose", scope: !3, file: !3, line: 10, type: !49, scopeLine: 11, flags: DIFlagPrototyped, spFlags: DISPFlagLocalToUnit | DISPFlagDefinition, unit: !2, retainedNodes: !24)
!49 = !DISubroutineType(types: !50)
!50 = !{!8, !8}
!51 = !DILocalVariable(name: "index", arg: 1, scope: !48, file: !3, line: 10, type: !8)
!52 = !DILocation(line: 10, column: 23, scope: !48)
!53 = !DILocation(line: 12, column: 13, scope: !48)
!54 = !DILocation(line: 12, column: 5, scope: !48)
!55 = !DILocation(line: 13, column: 20, scope: !56)
!56 = distinct !DILexicalBlock(scope: !48, file: !3, line: 12, column: 20)
!57 = !DILocation(line: 13, column: 13, scope: !56)
!58 = !DILocation(line: 14, column: 21, scope: !56)
!59 = !DILocation(line: 14, column: 20, scope: !56)
!60 = !DILocation(line: 14, column: 13, scope: !56)
!61 = !DILocation(line: 15, column: 21, scope: !56)
!62 = !DILocation(line: 15, column: 27, scope: !56)
!63 = !DILocation(line: 15, column: 33, scope: !56)
!64 = !DILocation(line: 15, column: 39, scope: !56)
!65 = !DILocation(line: 15, column: 45, scope: !56)
!66 = !DILocation(line: 15, column: 51, scope: !56)
!67 = !DILocation(line: 15, column: 14, scope: !56)
!68 = !DILocation(line: 17, column: 1, scope: !48)
!69 = distinct !DISubprogram(name: "observe", scope: !3, file: !3, line: 30, type: !22, scopeLine: 31, flags: DIFlagPrototyped, spFlags: DISPFlagDefinition, unit: !2, retainedNodes: !24)
!70 = !DILocation(line: 32, column: 5, scope: !71)
!71 = distinct !DILexicalBlock(scope: !72, file: !3, line: 32, column: 5)
!72 = distinct !DILexicalBlock(scope: !69, file: !3, line: 32, column: 5)
!73 = !DILocation(line: 32, column: 5, scope: !72)
!74 = !DILocation(line: 33, column: 1, scope: !69)
