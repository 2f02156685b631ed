; ModuleID = 'lock.c'
source_filename = "lock.c"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%struct.node = type { i32, %struct.node*, [2 x i16], i8, %union.word }
%union.word = type { i64 }
%struct.opaque = type opaque

@lock = internal global i32 0, align 4, !dbg !0
@head = dso_local global %struct.node* null, align 8
@first = dso_local global %struct.node { i32 1, %struct.node* null, [2 x i16] [i16 2, i16 -3], i8 26, %union.word { i64 9 } }, align 8, !dbg !20
@next = dso_local global i8* bitcast (%struct.node** getelementptr inbounds (%struct.node, %struct.node* @first, i32 0, i32 1) to i8*), align 8
@handler = internal global i32 (i32)* @twice, align 8
@own = dso_local thread_local global i32 3, align 4
@elsewhere = external dso_local global %struct.opaque, align 1
@.str = private unnamed_addr constant [6 x i8] c"a\22b\0A\5C\00", align 1
@twice_too = alias i32 (i32), i32 (i32)* @twice

define internal i32 @twice(i32 noundef %x) #0 !dbg !30 {
entry:
  %x.addr = alloca i32, align 4
  store i32 %x, i32* %x.addr, align 4
  call void @llvm.dbg.declare(metadata i32* %x.addr, metadata !33, metadata !DIExpression()), !dbg !34
  %0 = load i32, i32* %x.addr, align 4, !dbg !35
  %mul = mul nsw i32 %0, 2, !dbg !36
  ret i32 %mul, !dbg !36
}

define dso_local i8* @worker(i8* noundef %arg) #0 !dbg !40 {
entry:
  %arg.addr = alloca i8*, align 8
  store i8* %arg, i8** %arg.addr, align 8
  br label %while.cond, !dbg !43

while.cond:                                       ; preds = %while.body, %entry
  %0 = atomicrmw xchg i32* @lock, i32 1 acquire, align 4, !dbg !43
  %tobool = icmp ne i32 %0, 0, !dbg !43
  br i1 %tobool, label %while.body, label %while.end, !dbg !43

while.body:                                       ; preds = %while.cond
  br label %while.cond, !dbg !43, !llvm.loop !44

while.end:                                        ; preds = %while.cond
  %1 = load volatile i32, i32* getelementptr inbounds (%struct.node, %struct.node* @first, i32 0, i32 0), align 8, !dbg !46
  %2 = load i32 (i32)*, i32 (i32)** @handler, align 8, !dbg !46
  %call = call i32 %2(i32 noundef %1), !dbg !46
  %call1 = call i32 (i8*, ...) @printf(i8* noundef getelementptr inbounds ([6 x i8], [6 x i8]* @.str, i64 0, i64 0), i32 noundef %call), !dbg !46
  call void asm sideeffect "mfence", "~{memory},~{dirflag},~{fpsr},~{flags}"() #1, !dbg !46, !srcloc !45
  store atomic i32 0, i32* @lock release, align 4, !dbg !46
  %3 = load i8*, i8** %arg.addr, align 8, !dbg !46
  ret i8* %3, !dbg !46
}

declare void @llvm.dbg.declare(metadata, metadata, metadata) #2

declare i32 @printf(i8* noundef, ...)

attributes #0 = { noinline nounwind uwtable "frame-pointer"="all" }
attributes #1 = { nounwind }
attributes #2 = { nofree nosync nounwind readnone speculatable willreturn }

!llvm.dbg.cu = !{!2}
!llvm.module.flags = !{!10, !11}

!0 = !DIGlobalVariableExpression(var: !1, expr: !DIExpression())
!1 = distinct !DIGlobalVariable(name: "lock", scope: !2, file: !3, line: 4, type: !4, isLocal: true, isDefinition: true)
!2 = distinct !DICompileUnit(language: DW_LANG_C99, file: !3, producer: "clang", isOptimized: false, runtimeVersion: 0, emissionKind: FullDebug)
!3 = !DIFile(filename: "lock.c", directory: "/src")
!4 = !DIDerivedType(tag: DW_TAG_atomic_type, baseType: !5)
!5 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!10 = !{i32 7, !"Dwarf Version", i32 5}
!11 = !{i32 2, !"Debug Info Version", i32 3}
!20 = !DIGlobalVariableExpression(var: !21, expr: !DIExpression())
!21 = distinct !DIGlobalVariable(name: "first", scope: !2, file: !3, line: 6, type: !22, isLocal: false, isDefinition: true)
!22 = distinct !DICompositeType(tag: DW_TAG_structure_type, name: "node", file: !3, line: 2, size: 256, elements: !23)
!23 = !{!24, !25, !26, !27, !28, !50}
!24 = !DIDerivedType(tag: DW_TAG_member, name: "value", scope: !22, file: !3, line: 2, baseType: !5, size: 32)
!25 = !DIDerivedType(tag: DW_TAG_member, name: "next", scope: !22, file: !3, line: 2, baseType: !29, size: 64, offset: 64)
!26 = !DIDerivedType(tag: DW_TAG_member, name: "pair", scope: !22, file: !3, line: 2, baseType: !60, size: 32, offset: 128)
!27 = !DIDerivedType(tag: DW_TAG_member, name: "f", scope: !22, file: !3, line: 2, baseType: !5, size: 3, offset: 160, flags: DIFlagBitField, extraData: i64 160)
!28 = !DIDerivedType(tag: DW_TAG_member, name: "g", scope: !22, file: !3, line: 2, baseType: !5, size: 5, offset: 163, flags: DIFlagBitField, extraData: i64 160)
!29 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !22, size: 64)
!30 = distinct !DISubprogram(name: "twice", scope: !3, file: !3, line: 8, type: !31, scopeLine: 8, flags: DIFlagPrototyped, spFlags: DISPFlagLocalToUnit | DISPFlagDefinition, unit: !2, retainedNodes: !32)
!31 = !DISubroutineType(types: !32)
!32 = !{}
!33 = !DILocalVariable(name: "x", arg: 1, scope: !30, file: !3, line: 8, type: !5)
!34 = !DILocation(line: 8, column: 22, scope: !30)
!35 = !DILocation(line: 8, column: 34, scope: !30)
!36 = !DILocation(line: 8, column: 36, scope: !30)
!40 = distinct !DISubprogram(name: "worker", scope: !3, file: !3, line: 10, type: !31, scopeLine: 10, spFlags: DISPFlagDefinition, unit: !2, retainedNodes: !32)
!41 = distinct !DILexicalBlock(scope: !40, file: !3, line: 11, column: 3)
!43 = !DILocation(line: 11, column: 10, scope: !41)
!44 = distinct !{!44, !43, !43}
!45 = !{i64 123}
!46 = !DILocation(line: 12, column: 3, scope: !40)
!50 = !DIDerivedType(tag: DW_TAG_member, scope: !22, file: !3, line: 2, baseType: !51, size: 64, offset: 192)
!51 = distinct !DICompositeType(tag: DW_TAG_union_type, scope: !22, file: !3, line: 2, size: 64, elements: !52)
!52 = !{!53, !54}
!53 = !DIDerivedType(tag: DW_TAG_member, name: "whole", scope: !51, file: !3, line: 2, baseType: !55, size: 64)
!54 = !DIDerivedType(tag: DW_TAG_member, name: "part", scope: !51, file: !3, line: 2, baseType: !56, size: 64)
!55 = !DIBasicType(name: "long", size: 64, encoding: DW_ATE_signed)
!56 = !DICompositeType(tag: DW_TAG_array_type, baseType: !57, size: 64, elements: !58)
!57 = !DIBasicType(name: "short", size: 16, encoding: DW_ATE_signed)
!58 = !{!59}
!59 = !DISubrange(count: 4)
!60 = !DICompositeType(tag: DW_TAG_array_type, baseType: !57, size: 32, elements: !61)
!61 = !{!62}
!62 = !DISubrange(count: 2)
