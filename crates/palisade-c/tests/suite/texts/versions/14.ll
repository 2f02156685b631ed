; Typed pointers, calls of llvm.dbg.declare, casts for marks of lifetimes.
source_filename = "pass.c"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%struct.box = type { i32, [4 x i16] }

@box = dso_local global %struct.box zeroinitializer, align 4, !dbg !0
@flag = dso_local global i32 0, align 4

; Function Attrs: noinline nounwind uwtable
define dso_local void @put(i32 noundef %n) #0 !dbg !10 {
entry:
  %n.addr = alloca i32, align 4
  %i = alloca i32, align 4
  store i32 %n, i32* %n.addr, align 4
  call void @llvm.dbg.declare(metadata i32* %n.addr, metadata !13, metadata !DIExpression()), !dbg !14
  %0 = bitcast i32* %i to i8*, !dbg !15
  call void @llvm.lifetime.start.p0i8(i64 4, i8* %0) #3, !dbg !15
  call void @llvm.dbg.declare(metadata i32* %i, metadata !16, metadata !DIExpression()), !dbg !15
  %1 = load i32, i32* %n.addr, align 4, !dbg !15
  %or = or i32 %1, 2, !dbg !15
  store i32 %or, i32* %i, align 4, !dbg !15
  %2 = load i32, i32* %i, align 4, !dbg !17
  %idx = zext i32 %2 to i64, !dbg !17
  %slot = getelementptr inbounds [4 x i16], [4 x i16]* getelementptr inbounds (%struct.box, %struct.box* @box, i32 0, i32 1), i64 0, i64 %idx, !dbg !17
  %3 = trunc i32 %2 to i16, !dbg !17
  store i16 %3, i16* %slot, align 2, !dbg !17
  store i32 7, i32* getelementptr inbounds (%struct.box, %struct.box* @box, i32 0, i32 0), align 4, !dbg !17
  %4 = call i32 @abs(i32 noundef %2) #4, !dbg !18
  store atomic i32 %4, i32* @flag release, align 4, !dbg !18
  %5 = bitcast i32* %i to i8*, !dbg !18
  call void @llvm.lifetime.end.p0i8(i64 4, i8* %5) #3, !dbg !18
  ret void, !dbg !18
}

define dso_local void @get() #0 !dbg !20 {
entry:
  %0 = load atomic i32, i32* @flag acquire, align 4, !dbg !21
  %tobool = icmp ne i32 %0, 0, !dbg !21
  br i1 %tobool, label %then, label %done, !dbg !21

then:
  %1 = load i32, i32* getelementptr inbounds (%struct.box, %struct.box* @box, i32 0, i32 0), align 4, !dbg !22
  %2 = load i16, i16* getelementptr inbounds (%struct.box, %struct.box* @box, i32 0, i32 1, i64 2), align 2, !dbg !22
  %conv = sext i16 %2 to i32, !dbg !22
  %sum = add nsw i32 %1, %conv, !dbg !22
  %ok = icmp slt i32 %sum, 10, !dbg !22
  br i1 %ok, label %done, label %wrong, !dbg !22

wrong:
  call void @abort() #5, !dbg !22
  unreachable, !dbg !22

done:
  ret void, !dbg !23
}

declare void @llvm.dbg.declare(metadata, metadata, metadata) #1
declare void @llvm.lifetime.start.p0i8(i64 immarg, i8* nocapture) #2
declare void @llvm.lifetime.end.p0i8(i64 immarg, i8* nocapture) #2
declare i32 @abs(i32 noundef) #4
declare void @abort() #5

attributes #0 = { noinline nounwind uwtable "frame-pointer"="all" "min-legal-vector-width"="0" }
attributes #1 = { nofree nosync nounwind readnone speculatable willreturn }
attributes #2 = { argmemonly nofree nosync nounwind willreturn }
attributes #3 = { nounwind }
attributes #4 = { nounwind readnone willreturn }
attributes #5 = { noreturn nounwind }

!llvm.dbg.cu = !{!2}
!llvm.module.flags = !{!5, !6}
!llvm.ident = !{!7}

!0 = !DIGlobalVariableExpression(var: !1, expr: !DIExpression())
!1 = distinct !DIGlobalVariable(name: "box", scope: !2, file: !3, line: 2, type: !8, isLocal: false, isDefinition: true)
!2 = distinct !DICompileUnit(language: DW_LANG_C11, file: !3, producer: "clang", isOptimized: false, runtimeVersion: 0, emissionKind: FullDebug, globals: !4, splitDebugInlining: false, nameTableKind: None)
!3 = !DIFile(filename: "pass.c", directory: "/work")
!4 = !{!0}
!5 = !{i32 2, !"Debug Info Version", i32 3}
!6 = !{i32 1, !"wchar_size", i32 4}
!7 = !{!"clang"}
!8 = distinct !DICompositeType(tag: DW_TAG_structure_type, name: "box", file: !3, line: 1, size: 96, elements: !9)
!9 = !{}
!10 = distinct !DISubprogram(name: "put", scope: !3, file: !3, line: 4, type: !11, scopeLine: 4, flags: DIFlagPrototyped, spFlags: DISPFlagDefinition, unit: !2, retainedNodes: !9)
!11 = !DISubroutineType(types: !12)
!12 = !{null, !19}
!13 = !DILocalVariable(name: "n", arg: 1, scope: !10, file: !3, line: 4, type: !19)
!14 = !DILocation(line: 4, column: 14, scope: !10)
!15 = !DILocation(line: 5, column: 9, scope: !10)
!16 = !DILocalVariable(name: "i", scope: !10, file: !3, line: 5, type: !19)
!17 = !DILocation(line: 6, column: 5, scope: !10)
!18 = !DILocation(line: 7, column: 5, scope: !10)
!19 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!20 = distinct !DISubprogram(name: "get", scope: !3, file: !3, line: 10, type: !11, scopeLine: 10, spFlags: DISPFlagDefinition, unit: !2, retainedNodes: !9)
!21 = !DILocation(line: 11, column: 9, scope: !20)
!22 = !DILocation(line: 12, column: 9, scope: !20)
!23 = !DILocation(line: 13, column: 1, scope: !20)
