source_filename = "ticket.c"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%struct.ticket_lock = type { i32, i32 }
%union.pthread_attr_t = type { i64, [48 x i8] }

@lock = internal global %struct.ticket_lock zeroinitializer, align 4, !dbg !0
@counter = internal global i32 0, align 4, !dbg !20
@.str = private unnamed_addr constant [17 x i8] c"counter == index\00", align 1
@.str.1 = private unnamed_addr constant [9 x i8] c"ticket.c\00", align 1
@__PRETTY_FUNCTION__.work = private unnamed_addr constant [19 x i8] c"void *work(void *)\00", align 1

define dso_local i32 @main() !dbg !36 {
  %1 = alloca i32, align 4
  %2 = alloca [2 x i64], align 16
  %3 = alloca i64, align 8
  %4 = alloca i32, align 4
  store i32 0, i32* %1, align 4
  call void @llvm.dbg.declare(metadata [2 x i64]* %2, metadata !40, metadata !DIExpression()), !dbg !47
  call void @llvm.dbg.declare(metadata i64* %3, metadata !48, metadata !DIExpression()), !dbg !50
  store i64 0, i64* %3, align 8, !dbg !50
  br label %5, !dbg !51

5:
  %6 = load i64, i64* %3, align 8, !dbg !52
  %7 = icmp slt i64 %6, 2, !dbg !54
  br i1 %7, label %8, label %17, !dbg !55

8:
  %9 = load i64, i64* %3, align 8, !dbg !56
  %10 = getelementptr inbounds [2 x i64], [2 x i64]* %2, i64 0, i64 %9, !dbg !57
  %11 = load i64, i64* %3, align 8, !dbg !58
  %12 = inttoptr i64 %11 to i8*, !dbg !59
  %13 = call i32 @pthread_create(i64* noundef %10, %union.pthread_attr_t* noundef null, i8* (i8*)* noundef @work, i8* noundef %12), !dbg !60
  br label %14, !dbg !60

14:
  %15 = load i64, i64* %3, align 8, !dbg !61
  %16 = add nsw i64 %15, 1, !dbg !61
  store i64 %16, i64* %3, align 8, !dbg !61
  br label %5, !dbg !62, !llvm.loop !63

17:
  call void @llvm.dbg.declare(metadata i32* %4, metadata !66, metadata !DIExpression()), !dbg !68
  store i32 0, i32* %4, align 4, !dbg !68
  br label %18, !dbg !69

18:
  %19 = load i32, i32* %4, align 4, !dbg !70
  %20 = icmp slt i32 %19, 2, !dbg !72
  br i1 %20, label %21, label %30, !dbg !73

21:
  %22 = load i32, i32* %4, align 4, !dbg !74
  %23 = sext i32 %22 to i64, !dbg !75
  %24 = getelementptr inbounds [2 x i64], [2 x i64]* %2, i64 0, i64 %23, !dbg !75
  %25 = load i64, i64* %24, align 8, !dbg !75
  %26 = call i32 @pthread_join(i64 noundef %25, i8** noundef null), !dbg !76
  br label %27, !dbg !76

27:
  %28 = load i32, i32* %4, align 4, !dbg !77
  %29 = add nsw i32 %28, 1, !dbg !77
  store i32 %29, i32* %4, align 4, !dbg !77
  br label %18, !dbg !78, !llvm.loop !79

30:
  ret i32 0, !dbg !81
}

declare void @llvm.dbg.declare(metadata, metadata, metadata)

declare i32 @pthread_create(i64* noundef, %union.pthread_attr_t* noundef, i8* (i8*)* noundef, i8* noundef)

define internal i8* @work(i8* noundef %0) !dbg !82 {
  %2 = alloca i8*, align 8
  %3 = alloca i64, align 8
  store i8* %0, i8** %2, align 8
  call void @llvm.dbg.declare(metadata i8** %2, metadata !85, metadata !DIExpression()), !dbg !86
  call void @llvm.dbg.declare(metadata i64* %3, metadata !87, metadata !DIExpression()), !dbg !88
  %4 = load i8*, i8** %2, align 8, !dbg !89
  %5 = ptrtoint i8* %4 to i64, !dbg !90
  store i64 %5, i64* %3, align 8, !dbg !88
  call void @acquire(%struct.ticket_lock* noundef @lock), !dbg !91
  %6 = load i64, i64* %3, align 8, !dbg !92
  %7 = trunc i64 %6 to i32, !dbg !93
  store i32 %7, i32* @counter, align 4, !dbg !94
  %8 = load i32, i32* @counter, align 4, !dbg !95
  %9 = sext i32 %8 to i64, !dbg !95
  %10 = load i64, i64* %3, align 8, !dbg !95
  %11 = icmp eq i64 %9, %10, !dbg !95
  br i1 %11, label %12, label %13, !dbg !98

12:
  br label %14, !dbg !98

13:
  call void @__assert_fail(i8* noundef getelementptr inbounds ([17 x i8], [17 x i8]* @.str, i64 0, i64 0), i8* noundef getelementptr inbounds ([9 x i8], [9 x i8]* @.str.1, i64 0, i64 0), i32 noundef 30, i8* noundef getelementptr inbounds ([19 x i8], [19 x i8]* @__PRETTY_FUNCTION__.work, i64 0, i64 0)), !dbg !95
  unreachable, !dbg !95

14:
  call void @release(%struct.ticket_lock* noundef @lock), !dbg !99
  ret i8* null, !dbg !100
}

declare i32 @pthread_join(i64 noundef, i8** noundef)

define internal void @acquire(%struct.ticket_lock* noundef %0) !dbg !101 {
  %2 = alloca %struct.ticket_lock*, align 8
  %3 = alloca i32, align 4
  %4 = alloca i32, align 4
  %5 = alloca i32, align 4
  %6 = alloca i32, align 4
  store %struct.ticket_lock* %0, %struct.ticket_lock** %2, align 8
  call void @llvm.dbg.declare(metadata %struct.ticket_lock** %2, metadata !105, metadata !DIExpression()), !dbg !106
  call void @llvm.dbg.declare(metadata i32* %3, metadata !107, metadata !DIExpression()), !dbg !108
  %7 = load %struct.ticket_lock*, %struct.ticket_lock** %2, align 8, !dbg !109
  %8 = getelementptr inbounds %struct.ticket_lock, %struct.ticket_lock* %7, i32 0, i32 0, !dbg !110
  store i32 1, i32* %4, align 4, !dbg !111
  %9 = load i32, i32* %4, align 4, !dbg !111
  %10 = atomicrmw add i32* %8, i32 %9 monotonic, align 4, !dbg !111
  store i32 %10, i32* %5, align 4, !dbg !111
  %11 = load i32, i32* %5, align 4, !dbg !111
  store i32 %11, i32* %3, align 4, !dbg !108
  br label %12, !dbg !112

12:
  %13 = load %struct.ticket_lock*, %struct.ticket_lock** %2, align 8, !dbg !113
  %14 = getelementptr inbounds %struct.ticket_lock, %struct.ticket_lock* %13, i32 0, i32 1, !dbg !114
  %15 = load atomic i32, i32* %14 acquire, align 4, !dbg !115
  store i32 %15, i32* %6, align 4, !dbg !115
  %16 = load i32, i32* %6, align 4, !dbg !115
  %17 = load i32, i32* %3, align 4, !dbg !116
  %18 = icmp ne i32 %16, %17, !dbg !117
  br i1 %18, label %19, label %20, !dbg !112

19:
  br label %12, !dbg !112, !llvm.loop !118

20:
  ret void, !dbg !120
}

declare void @__assert_fail(i8* noundef, i8* noundef, i32 noundef, i8* noundef)

define internal void @release(%struct.ticket_lock* noundef %0) !dbg !121 {
  %2 = alloca %struct.ticket_lock*, align 8
  %3 = alloca i32, align 4
  %4 = alloca i32, align 4
  %5 = alloca i32, align 4
  store %struct.ticket_lock* %0, %struct.ticket_lock** %2, align 8
  call void @llvm.dbg.declare(metadata %struct.ticket_lock** %2, metadata !122, metadata !DIExpression()), !dbg !123
  call void @llvm.dbg.declare(metadata i32* %3, metadata !124, metadata !DIExpression()), !dbg !125
  %6 = load %struct.ticket_lock*, %struct.ticket_lock** %2, align 8, !dbg !126
  %7 = getelementptr inbounds %struct.ticket_lock, %struct.ticket_lock* %6, i32 0, i32 1, !dbg !127
  %8 = load atomic i32, i32* %7 monotonic, align 4, !dbg !128
  store i32 %8, i32* %4, align 4, !dbg !128
  %9 = load i32, i32* %4, align 4, !dbg !128
  store i32 %9, i32* %3, align 4, !dbg !125
  %10 = load %struct.ticket_lock*, %struct.ticket_lock** %2, align 8, !dbg !129
  %11 = getelementptr inbounds %struct.ticket_lock, %struct.ticket_lock* %10, i32 0, i32 1, !dbg !130
  %12 = load i32, i32* %3, align 4, !dbg !131
  %13 = add nsw i32 %12, 1, !dbg !132
  store i32 %13, i32* %5, align 4, !dbg !133
  %14 = load i32, i32* %5, align 4, !dbg !133
  store atomic i32 %14, i32* %11 release, align 4, !dbg !133
  ret void, !dbg !134
}


!llvm.dbg.cu = !{!2}
!llvm.module.flags = !{!28, !29, !30, !31, !32, !33, !34}
!llvm.ident = !{!35}

!0 = !DIGlobalVariableExpression(var: !1, expr: !DIExpression())
!1 = distinct !DIGlobalVariable(name: "lock", scope: !2, file: !3, line: 9, type: !22, isLocal: true, isDefinition: true)
!2 = distinct !DICompileUnit(language: DW_LANG_C99, file: !3, producer: "Debian clang version 14.0.6", isOptimized: false, runtimeVersion: 0, emissionKind: FullDebug, enums: !4, retainedTypes: !15, globals: !19, splitDebugInlining: false, nameTableKind: None)
!3 = !DIFile(filename: "ticket.c", directory: "/c", checksumkind: CSK_MD5, checksum: "d2eba75d28843ea7ff26bb33c65862f5")
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
!15 = !{!16, !17, !18}
!16 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: null, size: 64)
!17 = !DIBasicType(name: "long", size: 64, encoding: DW_ATE_signed)
!18 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!19 = !{!0, !20}
!20 = !DIGlobalVariableExpression(var: !21, expr: !DIExpression())
!21 = distinct !DIGlobalVariable(name: "counter", scope: !2, file: !3, line: 10, type: !18, isLocal: true, isDefinition: true)
!22 = distinct !DICompositeType(tag: DW_TAG_structure_type, name: "ticket_lock", file: !3, line: 5, size: 64, elements: !23)
!23 = !{!24, !27}
!24 = !DIDerivedType(tag: DW_TAG_member, name: "next", scope: !22, file: !3, line: 6, baseType: !25, size: 32)
!25 = !DIDerivedType(tag: DW_TAG_typedef, name: "atomic_int", file: !6, line: 92, baseType: !26)
!26 = !DIDerivedType(tag: DW_TAG_atomic_type, baseType: !18)
!27 = !DIDerivedType(tag: DW_TAG_member, name: "owner", scope: !22, file: !3, line: 6, baseType: !25, size: 32, offset: 32)
!28 = !{i32 7, !"Dwarf Version", i32 5}
!29 = !{i32 2, !"Debug Info Version", i32 3}
!30 = !{i32 1, !"wchar_size", i32 4}
!31 = !{i32 7, !"PIC Level", i32 2}
!32 = !{i32 7, !"PIE Level", i32 2}
!33 = !{i32 7, !"uwtable", i32 1}
!34 = !{i32 7, !"frame-pointer", i32 2}
!35 = !{!"Debian clang version 14.0.6"}
!36 = distinct !DISubprogram(name: "main", scope: !3, file: !3, line: 35, type: !37, scopeLine: 36, flags: DIFlagPrototyped, spFlags: DISPFlagDefinition, unit: !2, retainedNodes: !39)
!37 = !DISubroutineType(types: !38)
!38 = !{!18}
!39 = !{}
!40 = !DILocalVariable(name: "threads", scope: !36, file: !3, line: 37, type: !41)
!41 = !DICompositeType(tag: DW_TAG_array_type, baseType: !42, size: 128, elements: !45)
!42 = !DIDerivedType(tag: DW_TAG_typedef, name: "pthread_t", file: !43, line: 27, baseType: !44)
!43 = !DIFile(filename: "/usr/include/x86_64-linux-gnu/bits/pthreadtypes.h", directory: "", checksumkind: CSK_MD5, checksum: "735e3bf264ff9d8f5d95898b1692fbdb")
!44 = !DIBasicType(name: "unsigned long", size: 64, encoding: DW_ATE_unsigned)
!45 = !{!46}
!46 = !DISubrange(count: 2)
!47 = !DILocation(line: 37, column: 15, scope: !36)
!48 = !DILocalVariable(name: "i", scope: !49, file: !3, line: 38, type: !17)
!49 = distinct !DILexicalBlock(scope: !36, file: !3, line: 38, column: 5)
!50 = !DILocation(line: 38, column: 15, scope: !49)
!51 = !DILocation(line: 38, column: 10, scope: !49)
!52 = !DILocation(line: 38, column: 22, scope: !53)
!53 = distinct !DILexicalBlock(scope: !49, file: !3, line: 38, column: 5)
!54 = !DILocation(line: 38, column: 24, scope: !53)
!55 = !DILocation(line: 38, column: 5, scope: !49)
!56 = !DILocation(line: 39, column: 33, scope: !53)
!57 = !DILocation(line: 39, column: 25, scope: !53)
!58 = !DILocation(line: 39, column: 54, scope: !53)
!59 = !DILocation(line: 39, column: 46, scope: !53)
!60 = !DILocation(line: 39, column: 9, scope: !53)
!61 = !DILocation(line: 38, column: 30, scope: !53)
!62 = !DILocation(line: 38, column: 5, scope: !53)
!63 = distinct !{!63, !55, !64, !65}
!64 = !DILocation(line: 39, column: 55, scope: !49)
!65 = !{!"llvm.loop.mustprogress"}
!66 = !DILocalVariable(name: "i", scope: !67, file: !3, line: 40, type: !18)
!67 = distinct !DILexicalBlock(scope: !36, file: !3, line: 40, column: 5)
!68 = !DILocation(line: 40, column: 14, scope: !67)
!69 = !DILocation(line: 40, column: 10, scope: !67)
!70 = !DILocation(line: 40, column: 21, scope: !71)
!71 = distinct !DILexicalBlock(scope: !67, file: !3, line: 40, column: 5)
!72 = !DILocation(line: 40, column: 23, scope: !71)
!73 = !DILocation(line: 40, column: 5, scope: !67)
!74 = !DILocation(line: 41, column: 30, scope: !71)
!75 = !DILocation(line: 41, column: 22, scope: !71)
!76 = !DILocation(line: 41, column: 9, scope: !71)
!77 = !DILocation(line: 40, column: 29, scope: !71)
!78 = !DILocation(line: 40, column: 5, scope: !71)
!79 = distinct !{!79, !73, !80, !65}
!80 = !DILocation(line: 41, column: 35, scope: !67)
!81 = !DILocation(line: 42, column: 5, scope: !36)
!82 = distinct !DISubprogram(name: "work", scope: !3, file: !3, line: 25, type: !83, scopeLine: 26, flags: DIFlagPrototyped, spFlags: DISPFlagLocalToUnit | DISPFlagDefinition, unit: !2, retainedNodes: !39)
!83 = !DISubroutineType(types: !84)
!84 = !{!16, !16}
!85 = !DILocalVariable(name: "argument", arg: 1, scope: !82, file: !3, line: 25, type: !16)
!86 = !DILocation(line: 25, column: 25, scope: !82)
!87 = !DILocalVariable(name: "index", scope: !82, file: !3, line: 27, type: !17)
!88 = !DILocation(line: 27, column: 10, scope: !82)
!89 = !DILocation(line: 27, column: 24, scope: !82)
!90 = !DILocation(line: 27, column: 18, scope: !82)
!91 = !DILocation(line: 28, column: 5, scope: !82)
!92 = !DILocation(line: 29, column: 20, scope: !82)
!93 = !DILocation(line: 29, column: 15, scope: !82)
!94 = !DILocation(line: 29, column: 13, scope: !82)
!95 = !DILocation(line: 30, column: 5, scope: !96)
!96 = distinct !DILexicalBlock(scope: !97, file: !3, line: 30, column: 5)
!97 = distinct !DILexicalBlock(scope: !82, file: !3, line: 30, column: 5)
!98 = !DILocation(line: 30, column: 5, scope: !97)
!99 = !DILocation(line: 31, column: 5, scope: !82)
!100 = !DILocation(line: 32, column: 5, scope: !82)
!101 = distinct !DISubprogram(name: "acquire", scope: !3, file: !3, line: 12, type: !102, scopeLine: 13, flags: DIFlagPrototyped, spFlags: DISPFlagLocalToUnit | DISPFlagDefinition, unit: !2, retainedNodes: !39)
!102 = !DISubroutineType(types: !103)
!103 = !{null, !104}
!104 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !22, size: 64)
!105 = !DILocalVariable(name: "l", arg: 1, scope: !101, file: !3, line: 12, type: !104)
!106 = !DILocation(line: 12, column: 41, scope: !101)
!107 = !DILocalVariable(name: "mine", scope: !101, file: !3, line: 14, type: !18)
!108 = !DILocation(line: 14, column: 9, scope: !101)
!109 = !DILocation(line: 14, column: 43, scope: !101)
!110 = !DILocation(line: 14, column: 46, scope: !101)
!111 = !DILocation(line: 14, column: 16, scope: !101)
!112 = !DILocation(line: 15, column: 5, scope: !101)
!113 = !DILocation(line: 15, column: 34, scope: !101)
!114 = !DILocation(line: 15, column: 37, scope: !101)
!115 = !DILocation(line: 15, column: 12, scope: !101)
!116 = !DILocation(line: 15, column: 69, scope: !101)
!117 = !DILocation(line: 15, column: 66, scope: !101)
!118 = distinct !{!118, !112, !119, !65}
!119 = !DILocation(line: 16, column: 9, scope: !101)
!120 = !DILocation(line: 17, column: 1, scope: !101)
!121 = distinct !DISubprogram(name: "release", scope: !3, file: !3, line: 19, type: !102, scopeLine: 20, flags: DIFlagPrototyped, spFlags: DISPFlagLocalToUnit | DISPFlagDefinition, unit: !2, retainedNodes: !39)
!122 = !DILocalVariable(name: "l", arg: 1, scope: !121, file: !3, line: 19, type: !104)
!123 = !DILocation(line: 19, column: 41, scope: !121)
!124 = !DILocalVariable(name: "owner", scope: !121, file: !3, line: 21, type: !18)
!125 = !DILocation(line: 21, column: 9, scope: !121)
!126 = !DILocation(line: 21, column: 39, scope: !121)
!127 = !DILocation(line: 21, column: 42, scope: !121)
!128 = !DILocation(line: 21, column: 17, scope: !121)
!129 = !DILocation(line: 22, column: 28, scope: !121)
!130 = !DILocation(line: 22, column: 31, scope: !121)
!131 = !DILocation(line: 22, column: 38, scope: !121)
!132 = !DILocation(line: 22, column: 44, scope: !121)
!133 = !DILocation(line: 22, column: 5, scope: !121)
!134 = !DILocation(line: 23, column: 1, scope: !121)
